"""Maps of T2: the signal equations inverted, against the generator's own."""

import numpy as np
import pytest

from data.knee.anatomy import LABELS, render
from data.knee.config import acquired_grid, calibration_region, field_of_view
from data.knee.generate import segmentation
from data.knee.scanner import Protocol
from data.knee.subject import Subject
from data.knee.tissue import TIMING, TISSUES, qdess_echoes
from data.scans.reader import load_scans
from data.scans.scan import Segmentation, Timing
from lab.cli import run
from lab.errors import UserError
from mri.config import T2Options
from mri.eval import evaluate
from mri.t2 import errors_by_tissue, t2_map, timing_of
from mri.train import train


@pytest.mark.parametrize("t2", [20.0, 30.0, 39.0, 50.0, 70.0])
def test_noise_free_cartilage_within_one_per_cent(t2: float) -> None:
    """Also though T1 is assumed to be 1200 ms where it is 1240 ms, and whatever the density of protons."""
    echoes = 0.86 * np.stack(qdess_echoes(TISSUES["cartilage"].t1, np.full(50, t2)))
    np.testing.assert_allclose(t2_map(*echoes, TIMING), t2, rtol=0.01)


def test_any_timing_is_inverted() -> None:
    times = np.geomspace(5.0, 300.0, 50)
    for timing in (Timing(18.0, 6.0, 20.0), Timing(25.0, 7.5, 30.0), Timing(30.0, 5.0, 40.0)):
        np.testing.assert_allclose(
            t2_map(*qdess_echoes(900.0, times, timing), timing, 900.0), times, rtol=1e-4
        )


def test_voxels_without_signal_have_no_t2() -> None:
    first, second = qdess_echoes(1200.0, np.array([40.0, 40.0, 40.0, 40.0]))
    first[1] = second[1] = 0
    second[2] = 2 * first[2]  # no T2 has a second echo larger than the first
    second[3] = 0
    found = t2_map(first, second, TIMING)
    assert np.isfinite(found).tolist() == [True, False, False, False]


def test_the_rendered_knee_gives_the_t2_of_its_tissues() -> None:
    """Muscle and fluid-free cartilage of a subject, whose own relaxation times differ from the average by per cents."""
    shape = (8, 96, 40)
    grid = acquired_grid(shape)
    protocol = Protocol(shape, field_of_view(shape), grid, calibration_region(grid), 1, 0.0)
    slab = render(Subject(5), protocol.axes())
    found = t2_map(slab.echoes[0], slab.echoes[1], TIMING, TISSUES["muscle"].t1)
    muscle = found[slab.labels == LABELS.index("muscle")]
    assert np.nanmedian(muscle) == pytest.approx(TISSUES["muscle"].t2, rel=0.2)
    assert np.array_equal(segmentation(5, shape).labels, slab.labels)


def test_errors_by_tissue_by_hand() -> None:
    reference = np.full((2, 5, 10), 40.0, np.float32)
    found = reference + 2
    found[1] -= 6  # 2 below in the second half
    found[0, 0, 0] = np.nan
    labels = np.zeros(reference.shape, np.uint8)
    labels[1] = 1
    rows = errors_by_tissue(found, reference, Segmentation(labels, {0: "a", 1: "b", 2: "none"}))
    assert [row["tissue"] for row in rows] == ["a", "b"]
    assert rows[0] == pytest.approx({"tissue": "a", "t2": 40, "bias": 2, "error": 2, "found": 49 / 50})
    assert (rows[1]["bias"], rows[1]["error"]) == (-4, 4)
    (everywhere,) = errors_by_tissue(found, reference, None)
    assert everywhere["tissue"] == "everywhere"


def test_timing_comes_from_flags_or_from_the_file(knees) -> None:
    scan = load_scans(knees, "test").scans[0]
    assert timing_of(scan, T2Options()) == TIMING
    assert timing_of(scan, T2Options(te=6.0)) == (25.0, 6.0, 30.0)
    with pytest.raises(
        UserError, match="the first echo, at 30 ms, must lie within the repetition time of 25 ms"
    ):
        timing_of(scan, T2Options(te=30.0))
    scan.timing = None
    with pytest.raises(UserError, match=r"does not say its repetition time.*--tr, --te .*--flip"):
        timing_of(scan, T2Options(tr=20.0))
    with pytest.raises(UserError, match="--te must be below --tr"):
        T2Options(tr=5.0, te=6.0)


def test_eval_has_a_table_by_tissue_a_picture_and_maps_on_its_page(knees, workplace) -> None:
    words = [
        "--preset",
        "smoke",
        "--masks",
        "4",
        "--mask",
        "random",
        "--data",
        str(knees),
        "--model",
        "dc-sense",
    ]
    assert run("python -m mri.train", {"": train}, [*words, "--name", "d"]) == 0
    assert run("python -m mri.eval", {"": evaluate}, ["--t2"]) == 0
    results = workplace / "runs/mri/results"
    text = (results / "t2.md").read_text()
    assert "| muscle" in text
    assert "cartilage" in text
    assert "dc-sense" in text
    assert (results / "t2.png").stat().st_size > 10_000
    page = (results / "report.html").read_text()
    assert '"title": "T2"' in page or '"title":"T2"' in page, "maps of T2 are there to look through"
