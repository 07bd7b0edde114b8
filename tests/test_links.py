"""Links between the pages of the repository lead somewhere; the site checks its own when it is built."""

import re
from pathlib import Path

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
