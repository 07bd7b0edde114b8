"""The records in results/ as pages of the site: one page per campaign, from the README of its folder.

Links of the repository become links of the site; those to files beside a README, which the site does not have, become
their names.
"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RECORDS = "results/records/"


def as_page(document: str, text: str) -> str:
    """The source of a page of the site, by its name and its source in docs/."""
    if document.startswith("results/") and not document.startswith(RECORDS):
        return re.sub(r"\]\(\.\./\.\./results/([^)/]+)/README\.md\)", r"](records/\1.md)", text)
    folder = document.removeprefix(RECORDS)
    readme = ROOT / "results" / folder / "README.md"
    if not document.startswith(RECORDS) or not readme.exists():
        return text
    text = readme.read_text(encoding="utf-8")
    text = text.replace("](../../docs/", "](../../").replace(
        "](images/", f"](../../../results/{folder}/images/"
    )
    beside = r"(?<!!)\[([^]]*)\]\((?!\.\./|#|https?:)([^)]*)\)"
    return re.sub(beside, lambda link: f"`results/{folder}/{link[2].removeprefix('.')}`", text)
