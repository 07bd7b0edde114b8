"""The report in a real browser: every control does what it says, and the console stays empty."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lab.report import Curves, Page, Stack, Viewer, write
from lab.table import Column, Score, Table

selenium = pytest.importorskip("selenium", reason="selenium is not installed")
pytestmark = pytest.mark.skipif(
    not (shutil.which("chromium") and shutil.which("chromedriver")),
    reason="there is no chromium with its driver",
)

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


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with a viewer of fields and one of images."""
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
    ]
    return write(
        Page("Report", "Compared.", "Simulated.", [table], viewers),
        tmp_path_factory.mktemp("page") / "report.html",
    )


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1200,1600"):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    yield driver
    driver.quit()


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
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(driver, 10, poll_frequency=0.05).until(lambda _: condition())


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
    assert page.all("[data-name=fno]") == []
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
    assert order() == ["", "m2", "m0"]
    page.driver.find_element("css selector", "section.table .all").click()
    assert order() == ["m1", "m2", "m0"]


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
