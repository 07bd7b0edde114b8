"""The report as a file: self-contained, honest about what it leaves out, safe whatever the names in it are."""

import base64
import re
import zlib
from html.parser import HTMLParser

import numpy as np
import pytest

from lab.report import Curves, Page, Stack, Viewer, write
from lab.report.viewer import LEVELS, packed, thinned
from lab.table import Column, Score, Table


def unpacked(text: str, shape: tuple[int, ...]) -> np.ndarray:
    """What the page's script makes of the stored text."""
    halves = np.frombuffer(zlib.decompress(base64.b64decode(text)), np.uint8).astype(np.int64)
    low, high = halves.reshape(2, *shape)
    return np.cumsum(low + 256 * high, axis=-1) % (LEVELS + 1)


def viewer(pictures: int = 3, stacks: int = 2, size: int = 8) -> Viewer:
    generator = np.random.default_rng(0)
    found = []
    for number in range(stacks):
        truth = generator.standard_normal((pictures, size, size))
        errors = {"a": np.arange(1.0, pictures + 1)}
        curves = [Curves("error", "step", range(1, pictures + 1), errors, marks_picture=True)]
        found.append(Stack({"sample": str(number)}, truth, {"a": truth + 0.1}, curves=curves))
    return Viewer("Fields", "field", "frame", found)


def test_pictures_are_stored_to_sixteen_bits():
    values = np.random.default_rng(0).uniform(-2, 3, (4, 5, 6))
    levels = unpacked(packed(values, -2.0, 3.0, missing=3.0), values.shape)
    assert np.abs(-2 + 5 * levels / LEVELS - values).max() <= 0.5 * 5 / LEVELS + 1e-12


def test_pictures_that_are_not_finite_are_stored_at_the_ends():
    values = np.array([[[0.5, np.nan, np.inf, -np.inf, 7.0]]])
    assert unpacked(packed(values, 0.0, 1.0, missing=1.0), values.shape).tolist() == [
        [[32768, LEVELS, LEVELS, 0, LEVELS]]
    ]


def test_what_does_not_fit_is_thinned_evenly_and_the_page_says_so():
    whole = viewer(pictures=12, stacks=1)
    small = thinned(whole, room=2 * 2 * 4 * 64)  # four pictures of truth and of the method
    (stack,) = small.stacks
    assert np.array_equal(stack.truth, whole.stacks[0].truth[::3])
    assert np.array_equal(stack.made["a"], whole.stacks[0].made["a"][::3])
    assert list(small.labels) == ["1", "4", "7", "10"]
    assert list(stack.curves[0].x) == [1, 4, 7, 10]
    assert "one frame in 3" in small.thinned
    assert thinned(whole).thinned == ""


def test_rather_fewer_samples_than_a_movie_of_a_few_frames():
    small = thinned(viewer(pictures=4, stacks=10), room=2 * 2 * 4 * 64)
    assert len(small.stacks) == 3
    assert "the first 3 of 10" in small.thinned


def test_a_page_stays_small_whatever_it_shows(tmp_path):
    path = write(Page("Title", "a", "Simulated.", viewers=[viewer(40, 4, 200)]), tmp_path / "report.html")
    assert 5e6 < path.stat().st_size < 15e6
    assert "To keep this page small" in path.read_text()


class Elements(HTMLParser):
    """The elements of a page that could load something, and the ends of its scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.scripts = 0

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.scripts += tag == "script"
        self.loads += [f"{tag} {name}={value}" for name, value in attributes if name in ("src", "href")]


def page(label: str = "a") -> Page:
    table = Table([Column("model", "model"), Column("error", "error", better="lower")], caption="Errors")
    table.rows += [
        {"model": label, "error": Score(0.25, 0.01, 3)},
        {"model": "b", "error": Score(0.5, 0.02, 3)},
    ]
    return Page("Title", "Compared: a, b.", "Simulated data.", [table], [viewer()], command="python -m x")


def test_the_page_loads_nothing(tmp_path):
    text = write(page(), tmp_path / "report.html").read_text()
    elements = Elements()
    elements.feed(text)
    assert elements.loads == []
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)
    assert "@import" not in text


def test_the_page_names_best_and_worst_and_how_to_repeat_it(tmp_path):
    text = write(page(), tmp_path / "report.html").read_text()
    assert "Errors, error: best a (0.2500 ± 0.0100), worst b (0.5000 ± 0.0200)." in text
    assert "python -m x" in text


@pytest.mark.parametrize(
    "label", ["</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "\"&'"]
)
def test_names_are_shown_and_never_run(tmp_path, label):
    counts = []
    for each in (label, "a"):
        elements = Elements()
        elements.feed(write(page(each), tmp_path / "report.html").read_text())
        assert elements.loads == []
        counts.append(elements.scripts)
    assert counts[0] == counts[1]
