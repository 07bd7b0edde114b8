"""What the site is made of: links between pages lead somewhere, docstrings and records become pages.

`make docs` builds the site, with warnings as errors, and runs the gallery.
"""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

LINK = re.compile(r"(?<!`)\[[^\]]*\]\(([^)\s]+)\)|<img [^>]*src=\"([^\"]+)\"")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
BUILT = "auto_gallery/"
"""Pages that only the site has."""

PAGES = sorted(
    path.relative_to(Path(__file__).parent.parent)
    for pattern in ("*.md", "docs/**/*.md", "results/**/*.md", "*/README.md")
    for path in Path(__file__).parent.parent.glob(pattern)
    if not {"_build", "auto_gallery", ".venv"} & set(path.parts)
)


def anchors(text: str) -> set[str]:
    """The names by which headings are linked to, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", FENCED.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_lead_somewhere(root, page):
    text = FENCED.sub("", (root / page).read_text(encoding="utf-8"))
    for link in ("".join(found) for found in LINK.findall(text)):
        if re.match(r"https?:|mailto:", link) or BUILT in link:
            continue
        path, _, anchor = link.partition("#")
        target = (root / page).parent / path if path else root / page
        assert target.exists(), f"{link} leads nowhere"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target.read_text(encoding="utf-8")), f"{link}: no such heading"


def test_every_example_of_the_gallery_ends_in_a_picture(root):
    examples = sorted((root / "docs/gallery").glob("*.py"))
    assert len(examples) >= 10
    for example in examples:
        assert example.read_text().rstrip().endswith("plt.show()"), example


def part_of_the_site(root: Path, name: str) -> ModuleType:
    found = importlib.util.spec_from_file_location(f"site_{name}", root / f"docs/{name}.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_docstrings_keep_equations_sections_and_plain_characters(root):
    docstrings = part_of_the_site(root, "docstrings")
    text = """The norm |x| of `a*b`.

    y = M x

Attributes:
    errors: of each sample,
        over all frames.
    places: where.

>>> 1 + 1
2
"""
    assert list(docstrings.as_rst(text.splitlines())) == [
        r"The norm \|x\| of `a*b`.",
        "",
        *("", "::", "", "        y = M x", ""),
        "",
        "**Attributes:**",
        "",
        "- ``errors``: of each sample,",
        "  over all frames.",
        "- ``places``: where.",
        "",
        ">>> 1 + 1",
        "2",
        "",
    ]


def test_records_become_pages_with_links_of_the_site(root):
    records = part_of_the_site(root, "records")
    page = records.as_page("results/pde", "see [all](../../results/pde-0.1/README.md)")
    assert page == "see [all](records/pde-0.1.md)"
    page = records.as_page("results/records/pde-0.1", "")
    assert "](../../../results/pde-0.1/images/errors.png)" in page
    assert "`results/pde-0.1/per_sample.csv`" in page
    assert "](../../pde.md" in page
    assert records.as_page("pde", "as it is") == "as it is"


def test_every_campaign_has_a_page(root):
    campaigns = {readme.parent.name for readme in root.glob("results/*/README.md")}
    pages = {page.stem for page in root.glob("docs/results/records/*.md")} - {"index"}
    assert campaigns
    assert pages == campaigns
