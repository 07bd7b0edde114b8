"""Pages that commands write after real, small runs: every control changes what is seen, the console stays empty."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from data.fields.generator import generate
from data.knee.generate import ensure
from lab.cli import run
from lab.demo.eval import evaluate as evaluate_demo
from lab.demo.train import train as train_demo
from mri.eval import evaluate as evaluate_mri
from mri.train import train as train_mri
from pde.eval import evaluate as evaluate_pde
from pde.train import train as train_pde

LOOKS = """
const canvases = [...arguments[0].querySelectorAll("canvas")].filter((each) => each.offsetParent !== null);
const hash = (canvas) => canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data
  .reduce((sum, value, at) => (sum * 31 + value * (at % 97 + 1)) % 1000000007, 7);
return [canvases.map(hash).join(), arguments[0].innerText].join("\\n");
"""
SET = """
const [control, value] = arguments;
control.value = value;
control.dispatchEvent(new Event(control.type === "range" ? "input" : "change", {bubbles: true}));
"""
SMALL = ("--preset", "smoke", "--num-train", "4", "--num-val", "2", "--num-test", "2")


def called(command: str, function: Callable[[Any], Any], *words: object) -> None:
    assert run(f"python -m {command}", {"": function}, [str(word) for word in words]) == 0


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of its own for the data and runs of these tests."""
    folder = tmp_path_factory.mktemp("pages")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("MONARCH_DATA", str(folder / "datasets"))
        for name in ("MONARCH_RUNS", "MONARCH_RUN_NAME", "SKM_TEA_ROOT"):
            patch.delenv(name, raising=False)
        yield folder


@pytest.fixture(scope="module")
def flow_page(place: Path) -> Path:
    from data.navier_stokes.config import GenerateConfig

    size = {"num_samples": 8, "final_time": 13, "grid": 16, "resolution": 16}
    path = generate(GenerateConfig(nu=1e-2, precision="float32", out=Path("flow.h5"), workers=1, **size))
    for model in ("fno", "ffno"):
        words = ("--nu", 1e-2, "--data", path, "--width", 4, "--modes", 3, "--model", model, "--name", model)
        called("pde.train", train_pde, *SMALL, *words)
    called("pde.eval", evaluate_pde, "--problem", "navier-stokes", "--out", "flow")
    return place / "flow/report.html"


@pytest.fixture(scope="module")
def sphere_page(place: Path) -> Path:
    from data.shallow_water.config import GenerateConfig

    path = generate(
        GenerateConfig(num_samples=8, resolution=16, frames=4, spin_up=0, workers=1, out=Path("sphere.h5"))
    )
    words = ("--problem", "shallow-water", "--resolution", "null", "--data", path, "--width", 4, "--modes", 3)
    called("pde.train", train_pde, *SMALL, *words, "--model", "sfno", "--name", "sfno")
    called("pde.eval", evaluate_pde, "--problem", "shallow-water", "--out", "sphere")
    return place / "sphere/report.html"


@pytest.fixture(scope="module")
def mri_page(place: Path) -> Path:
    knees = ensure(6, out=place / "knees", shape=(8, 32, 24), jobs=1)
    words = ("--preset", "smoke", "--masks", 4, "--mask", "random", "--data", knees, "--num-train", 1)
    for acc in (2, 3):
        called("mri.train", train_mri, *words, "--model", "dc-sense", "--acc", acc, "--name", f"dc{acc}")
    called("mri.train", train_mri, *words, "--model", "msense", "--epochs", 1, "--name", "msense")
    called("mri.eval", evaluate_mri, "--out", "mri")
    return place / "mri/report.html"


@pytest.fixture
def opened(browser) -> Iterator[Callable[[Path], Any]]:
    from selenium.webdriver.support.ui import WebDriverWait

    def look(path: Path) -> Any:
        browser.get(path.as_uri())
        ready = "return document.documentElement.dataset.ready && !document.querySelector('.viewer:not([data-ready])')"
        WebDriverWait(browser, 20).until(lambda driver: driver.execute_script(ready))
        return browser

    yield look
    assert [each["message"] for each in browser.get_log("browser") if each["level"] == "SEVERE"] == []


def changed(driver: Any, viewer: Any, act: Callable[[], object]) -> bool:
    """Whether the viewer looks different after something was done; pictures may take a moment to unpack."""
    from selenium.common.exceptions import TimeoutException
    from selenium.webdriver.support.ui import WebDriverWait

    before = driver.execute_script(LOOKS, viewer)
    act()
    try:
        WebDriverWait(driver, 5, poll_frequency=0.05).until(
            lambda _: driver.execute_script(LOOKS, viewer) != before
        )
    except TimeoutException:
        return False
    return True


def every_control(driver: Any, viewer: Any) -> list[str]:
    """Move every control of a viewer there and back; the names of those that exist and of which nothing is seen."""
    idle = []

    def find(selector: str) -> list[Any]:
        return [each for each in viewer.find_elements("css selector", selector) if each.is_enabled()]

    for control in find("select"):
        values = [each.get_attribute("value") for each in control.find_elements("tag name", "option")]
        name = control.get_attribute("name")
        if name in ("first", "second") or len(values) < 2:
            continue  # seen only while it flickers, which test_browser.py looks at
        first = control.get_property("value")
        other = next(value for value in values if value != first)
        for value in (other, first):
            if not changed(driver, viewer, partial(driver.execute_script, SET, control, value)):
                idle.append(f"{name} = {value}")
    for control in find("input[type=range]"):
        low, high = (control.get_attribute(end) for end in ("min", "max"))
        first = control.get_property("value")
        for value in (high if first != high else low, first):
            if not changed(driver, viewer, partial(driver.execute_script, SET, control, value)):
                idle.append(f"{control.get_attribute('name')} = {value}")
    for control in [*find("input[type=checkbox]"), *find("button[name=flicker]"), *find("button[name=play]")]:
        for _ in range(2):
            if not changed(driver, viewer, control.click):
                idle.append(control.get_attribute("value") or control.get_attribute("name"))
    return idle


@pytest.mark.parametrize("kind", ["flow", "sphere", "mri"])
def test_every_control_changes_what_is_seen(request, opened, kind):
    driver = opened(request.getfixturevalue(f"{kind}_page"))
    viewers = driver.find_elements("css selector", ".viewer")
    assert viewers
    for viewer in viewers:
        assert every_control(driver, viewer) == []


def test_a_page_of_flows_says_what_it_is(opened, flow_page):
    driver = opened(flow_page)
    head = driver.find_element("id", "head").text
    assert "FNO, F-FNO" in head
    assert "2 test samples (simulated) on 16 x 16 points" in head
    assert "best " in head
    titles = [each.text for each in driver.find_elements("css selector", ".viewer svg text[font-weight]")]
    assert titles == ["relative L2 error", "energy"]
    assert len(driver.find_elements("css selector", "#training polyline")) == 2
    assert "processor" in driver.find_element("id", "runs").text
    assert driver.find_element("css selector", "#runs pre").get_property("textContent").startswith("{")


def test_a_page_of_scans_names_synthetic_data_and_tests_against_the_reference(opened, mri_page):
    driver = opened(mri_page)
    assert "synthetic knee" in driver.find_element("id", "head").text
    captions = [each.text for each in driver.find_elements("css selector", "caption")]
    assert any("Difference to sense" in caption and "Wilcoxon" in caption for caption in captions)
    names = {each.get_attribute("name") for each in driver.find_elements("css selector", ".viewer select")}
    assert {"scan", "echo", "acceleration"} <= names
    assert mri_page.stat().st_size < 15e6


def test_a_page_of_the_demonstration_has_a_table_and_training(opened, place):
    called("lab.demo.train", train_demo, "--preset", "smoke", "--name", "m")
    called("lab.demo.eval", evaluate_demo, "--out", "demo")
    driver = opened(place / "demo/report.html")
    assert "synthetic" in driver.find_element("id", "head").text
    assert driver.find_elements("css selector", "section.table tbody tr")
    assert driver.find_elements("css selector", "#training polyline")


def test_printed_a_page_has_no_controls_and_dark_it_is_dark(opened, flow_page):
    driver = opened(flow_page)
    background = "return getComputedStyle(document.body).backgroundColor"
    shown = "return getComputedStyle(document.querySelector('.toolbar')).display"
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    try:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "screen", "features": dark})
        assert driver.execute_script(background) == "rgb(20, 23, 26)"
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": dark})
        assert driver.execute_script(background) == "rgb(255, 255, 255)"
        assert driver.execute_script(shown) == "none"
    finally:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
