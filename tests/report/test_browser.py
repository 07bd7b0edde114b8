"""The report in a real browser: every control does what it says, and the console stays empty."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lab.report import Curves, Page, Stack, Viewer, write
from lab.table import Column, Score, Table

PIXELS = """
const canvas = arguments[0], data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
return data.reduce((sum, value, at) => (sum * 31 + value * (at % 97 + 1)) % 1000000007, 7);
"""
SET = """
const [control, value] = arguments;
control.value = value;
control.dispatchEvent(new Event("input", {bubbles: true}));
control.dispatchEvent(new Event("change", {bubbles: true}));
"""


def waves(pictures: int, lines: int, columns: int, phase: float) -> np.ndarray:
    t, y, x = np.meshgrid(*(np.linspace(0, 1, n) for n in (pictures, lines, columns)), indexing="ij")
    return np.sin(7 * x + 3 * y + 5 * t + phase)


def quantity() -> Stack:
    """A map in ms of a disc; there is none outside of it."""
    truth = np.full((3, 10, 10), 40.0)
    truth[:, :2] = np.nan
    return Stack({"scan": "a"}, truth, {"mcs": truth * 1.1}, unit="ms")


def planet() -> Stack:
    """A field that is positive in the north and negative in the south."""
    latitudes = np.linspace(85, -85, 18)
    truth = np.broadcast_to(np.sin(np.radians(latitudes))[:, None], (2, 18, 36)).copy()
    return Stack({"sample": "0"}, truth, {"sfno": 0.9 * truth}, latitudes=latitudes.tolist())


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with viewers of fields, images, a quantity, and fields on a sphere."""
    fields, images = [], []
    for number in range(2):
        truth = waves(5, 12, 16, number)
        made = {"fno": truth + 0.3 * waves(5, 12, 16, 2.0), "mno": truth + 0.05}
        errors = {name: np.abs(each - truth).mean((1, 2)) for name, each in made.items()}
        curves = [Curves("relative L2 error", "steps", range(1, 6), errors, marks_picture=True)]
        fields.append(Stack({"case": "nu = 0.001", "sample": str(number)}, truth, made, curves=curves))
        lit = np.abs(truth)
        images.append(
            Stack({"echo": str(number + 1)}, lit, {"sense": lit * 0.8, "mcs": lit * 0.98}, {"mcs": "40 dB"})
        )
    table = Table([Column("model", "model"), Column("error", "error", better="lower")], caption="Errors")
    table.rows += [
        {"model": f"m{n}", "error": Score(error, 0.01, 3)} for n, error in enumerate((0.5, 10.0, 2.0))
    ]
    viewers = [
        Viewer("Flow", "field", "frame", fields, [str(10 + n) for n in range(5)]),
        Viewer("Scans", "image", "slice", images),
        Viewer("T2", "map", "slice", [quantity()]),
        Viewer("Planet", "field", "frame", [planet()]),
    ]
    return write(
        Page("Report", "Compared.", "Simulated.", [table], viewers),
        tmp_path_factory.mktemp("page") / "report.html",
    )


class Opened:
    """A page in the browser, asked by CSS selectors within one viewer."""

    def __init__(self, driver: Any, viewer: int) -> None:
        self.driver, self.within = driver, f"#viewers section:nth-child({viewer + 1})"

    def all(self, selector: str) -> list[Any]:
        return self.driver.find_elements("css selector", f"{self.within} {selector}")

    def one(self, selector: str) -> Any:
        (found,) = self.all(selector)
        return found

    def set(self, name: str, value: object) -> None:
        self.driver.execute_script(SET, self.one(f"[name={name}]"), str(value))

    def pixels(self, name: str, part: str = "picture") -> int:
        canvas = self.one(f"[data-name={name}] .{part} canvas")
        return int(self.driver.execute_script(PIXELS, canvas))

    def caption(self, name: str) -> str:
        return str(self.one(f"[data-name={name}] figcaption").text)


@pytest.fixture
def opened(browser, report):
    from selenium.webdriver.support.ui import WebDriverWait

    def look(viewer: int) -> Opened:
        browser.get(report.as_uri())
        ready = f"#viewers section:nth-child({viewer + 1})[data-ready]"
        WebDriverWait(browser, 10).until(lambda driver: driver.find_elements("css selector", ready))
        return Opened(browser, viewer)

    yield look
    assert [each["message"] for each in browser.get_log("browser") if each["level"] == "SEVERE"] == []


def wait(driver: Any, condition: Any) -> None:
    from selenium.common.exceptions import StaleElementReferenceException
    from selenium.webdriver.support.ui import WebDriverWait

    # The page may draw itself anew between finding an element and asking it.
    redrawn = (StaleElementReferenceException,)
    WebDriverWait(driver, 20, poll_frequency=0.05, ignored_exceptions=redrawn).until(lambda _: condition())


def test_the_slider_changes_pictures_numbers_and_the_mark_in_the_curve(opened):
    page = opened(0)
    before = page.pixels("truth"), page.pixels("fno"), page.pixels("fno", "error"), page.caption("fno")
    mark = page.one(".mark").get_attribute("x1")
    assert "frame 14 (5 of 5)" in page.one("[name=position]").text
    page.set("picture", 0)
    after = page.pixels("truth"), page.pixels("fno"), page.pixels("fno", "error"), page.caption("fno")
    assert all(one != other for one, other in zip(before, after, strict=True))
    assert page.one(".mark").get_attribute("x1") != mark
    assert "frame 10 (1 of 5)" in page.one("[name=position]").text


def test_the_error_that_is_shown_is_that_of_the_picture(opened):
    page = opened(0)
    truth = waves(5, 12, 16, 0.0)[-1]
    error = np.linalg.norm(np.full_like(truth, 0.05)) / np.linalg.norm(truth)
    assert float(page.caption("mno").split()[-1]) == pytest.approx(error, rel=5e-3)
    assert f"relative error {page.caption('mno').split()[-1]}" in page.one(
        "[data-name=mno] .picture canvas"
    ).get_attribute("aria-label")


def test_another_sample_and_fewer_methods(opened):
    page = opened(0)
    before = page.pixels("truth")
    page.set("sample", "1")
    wait(page.driver, lambda: page.pixels("truth") != before)
    page.one("input[value=fno]").click()
    wait(page.driver, lambda: page.all("[data-name=fno]") == [])
    assert "fno" not in page.one(".charts").text
    page.one("input[value=fno]").click()
    assert len(page.all("[data-name=fno]")) == 1


def test_play_moves_on_and_pause_stops(opened):
    page = opened(0)
    position = page.one("[name=position]")
    first = position.text
    page.one("[name=play]").click()
    assert page.one("[name=play]").text == "Pause"
    wait(page.driver, lambda: position.text != first)
    page.one("[name=play]").click()
    assert page.one("[name=play]").text == "Play"


def test_gain_changes_errors_alone_and_zoom_all_pictures(opened):
    page = opened(0)
    before = page.pixels("mno"), page.pixels("mno", "error")
    page.set("gain", 0)
    louder = page.pixels("mno"), page.pixels("mno", "error")
    assert louder[0] == before[0]
    assert louder[1] != before[1]
    names = ("truth", "fno", "mno")
    before = [page.pixels(name) for name in names]
    page.set("zoom", 4)
    assert all(page.pixels(name) != one for name, one in zip(names, before, strict=True))


def test_a_focused_picture_is_moved_by_keys(opened):
    page = opened(0)
    canvas = page.one("[data-name=truth] .picture canvas")
    whole = page.pixels("truth")
    canvas.send_keys("+")
    near = page.pixels("truth")
    canvas.send_keys("\ue012")  # the left arrow
    left = page.pixels("truth")
    assert len({whole, near, left}) == 3
    canvas.send_keys("0")
    assert page.pixels("truth") == whole


def test_a_focused_picture_steps_plays_and_flickers_by_keys(opened):
    page = opened(0)
    canvas, position = page.one("[data-name=truth] .picture canvas"), page.one("[name=position]")
    canvas.send_keys(",")
    assert "frame 13 (4 of 5)" in position.text
    canvas.send_keys(".")
    assert "frame 14 (5 of 5)" in position.text
    canvas.send_keys(" ")
    assert page.one("[name=play]").text == "Pause"
    canvas.send_keys(" ")
    assert page.one("[name=play]").text == "Play"
    canvas.send_keys("f")
    assert page.one("[data-name=flicker]").is_displayed()


def test_the_view_is_reset(opened):
    page = opened(1)
    before = page.pixels("mcs")
    page.set("zoom", 3)
    page.set("window", 0.3)
    assert page.pixels("mcs") != before
    page.one("[name=reset]").click()
    assert page.pixels("mcs") == before


def test_the_pointer_reads_values(opened):
    from selenium.webdriver import ActionChains

    page = opened(0)
    ActionChains(page.driver).move_to_element(page.one("[data-name=mno] .picture canvas")).perform()
    where, words = page.one("[name=readout]").text.split(": ")
    line, column = (int(word.split()[1]) - 1 for word in where.split(", "))
    values = {name: float(value) for name, value in (pair.split() for pair in words.split(", "))}
    truth = waves(5, 12, 16, 0.0)[-1, line, column]
    assert values["truth"] == pytest.approx(truth, abs=0.006)
    assert values["mno"] == pytest.approx(truth + 0.05, abs=0.006)


def colour(page: Opened, name: str, across: float, down: float) -> list[int]:
    script = """
    const [canvas, x, y] = arguments;
    return [...canvas.getContext("2d").getImageData(x * canvas.width, y * canvas.height, 1, 1).data];
    """
    found: list[int] = page.driver.execute_script(
        script, page.one(f"[data-name={name}] .picture canvas"), across, down
    )
    return found


def test_a_sphere_is_drawn_on_a_map(opened):
    page = opened(3)
    assert colour(page, "truth", 0.02, 0.05)[3] == 0  # beside the map
    red, _, blue, alpha = colour(page, "truth", 0.53, 0.08)
    assert alpha == 255
    assert red > blue + 50  # the north is positive
    red, _, blue, _ = colour(page, "truth", 0.53, 0.92)
    assert blue > red + 50
    before = page.pixels("truth")
    page.set("zoom", 3)
    assert page.pixels("truth") != before


def test_a_quantity_is_in_colour_with_its_unit_and_blank_where_there_is_none(opened):
    page = opened(2)
    assert colour(page, "mcs", 0.5, 0.05)[3] == 0
    red, green, blue, alpha = colour(page, "mcs", 0.5, 0.7)
    assert alpha == 255
    assert len({red, green, blue}) == 3
    assert "ms" in page.one(".bars").text
    assert float(page.caption("mcs").split()[-1]) == pytest.approx(0.1, rel=1e-2)


def test_the_slider_is_moved_by_keys(opened):
    page = opened(0)
    page.one("[name=picture]").send_keys("\ue012")
    assert "frame 13 (4 of 5)" in page.one("[name=position]").text


def test_dragging_sets_window_and_level_of_images(opened):
    from selenium.webdriver import ActionChains

    page = opened(1)
    names = ("window", "level")
    before, picture = [page.one(f"[name={name}]").get_property("value") for name in names], page.pixels("mcs")
    canvas = page.one("[data-name=truth] .picture canvas")
    ActionChains(page.driver).click_and_hold(canvas).move_by_offset(-40, 25).release().perform()
    after = [page.one(f"[name={name}]").get_property("value") for name in names]
    assert float(after[0]) < float(before[0])
    assert float(after[1]) > float(before[1])
    assert page.pixels("mcs") != picture


def test_flicker_alternates_between_two_methods(opened):
    page = opened(1)
    page.set("first", "truth")
    page.set("second", "sense")
    page.one("[name=flicker]").click()
    seen = set()

    def both() -> bool:
        seen.add(page.caption("flicker").split(": ")[1].split()[0])
        return seen == {"truth", "sense"}

    wait(page.driver, both)
    page.one("[name=flicker]").click()
    assert not page.one("[data-name=flicker]").is_displayed()


def test_tables_are_sorted_by_value_and_rows_switched_off(opened):
    page = opened(0)
    head = page.driver.find_elements("css selector", "section.table th button")[1]

    def order() -> list[str]:
        return [cell.text for cell in page.driver.find_elements("css selector", "section.table td.text")]

    head.click()
    assert order() == ["m0", "m2", "m1"]
    head.click()
    assert order() == ["m1", "m2", "m0"]
    page.driver.find_element("css selector", "section.table tbody input").click()
    numbers = page.driver.find_elements("css selector", "section.table td.number")
    assert [cell.text for cell in numbers] == ["", "2.0000 ± 0.0100", "0.5000 ± 0.0100"]
    page.driver.find_element("css selector", "section.table .all").click()
    assert all(cell.text for cell in numbers)


def test_rows_on_show_are_copied_as_csv_in_their_order(opened):
    page = opened(0)
    page.driver.execute_script(
        "window.copied = []; copyText = async (text) => { copied.push(text); return true; };"
    )
    page.driver.find_elements("css selector", "section.table th button")[1].click()
    page.driver.find_elements("css selector", "section.table tbody input")[1].click()
    page.driver.find_element("css selector", "section.table .copy").click()
    head, *rows = page.driver.execute_script("return copied")[0].splitlines()
    assert head == "model,error,error_se,error_n"
    assert [row.split(",")[0] for row in rows] == ["m0", "m1"]
    assert page.driver.find_element("css selector", "section.table [role=status]").text == "copied"


def test_every_picture_has_a_text_alternative(opened):
    page = opened(0)
    pictures = page.driver.find_elements("css selector", "canvas, svg")
    assert pictures
    assert all(each.get_attribute("aria-label") for each in pictures if each.is_displayed())


@pytest.mark.parametrize("width", [360, 1200])
def test_nothing_is_cut_off_at_the_side(opened, width):
    page = opened(0)
    metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        assert page.driver.execute_script("return document.documentElement.scrollWidth") <= width
    finally:
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
