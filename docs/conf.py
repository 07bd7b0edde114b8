"""The site: `make docs` builds it into docs/_build/html. Warnings are errors; every example of the gallery is run."""

import os
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]

import docstrings  # noqa: E402
import records  # noqa: E402

import monarch_core  # noqa: E402

project = "Monarch operators for science"
author = "The authors of Monarch operators for science"
copyright = author
release = version = monarch_core.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "gallery"]
suppress_warnings = ["config.cache"]  # the gallery's options hold functions

# Markdown
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4

# Appearance
html_theme = "furo"
html_title = "Monarch operators for science"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {"navigation_with_keys": True}
html_copy_source = False
pygments_style, pygments_dark_style = "friendly", "monokai"

# API reference, from docstrings
default_role = "code"  # docstrings quote code in single backticks, as Markdown does
autodoc_member_order = "bysource"
autodoc_inherit_docstrings = False  # of torch and Lightning
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_mock_imports = ["transformers", "peft", "wandb"]
python_use_unqualified_type_names = True
add_module_names = False


def setup(app: Any) -> None:
    """Called by Sphinx."""

    def rewrite(app: Any, what: str, name: str, found: Any, options: Any, lines: list[str]) -> None:
        lines[:] = docstrings.as_rst(lines)

    def read(app: Any, document: str, source: list[str]) -> None:
        source[0] = records.as_page(document, source[0])

    app.connect("autodoc-process-docstring", rewrite)
    app.connect("source-read", read)


# The gallery: examples write their data and runs to a folder that is thrown away, and look like the suite's figures.
_place = tempfile.TemporaryDirectory(prefix="monarch-gallery-")
os.environ["MONARCH_DATA"] = str(Path(_place.name) / "datasets")
os.environ["MONARCH_RUNS"] = str(Path(_place.name) / "runs")
os.environ.setdefault("OMP_NUM_THREADS", "1")
warnings.filterwarnings("ignore", module="lightning")


def suite_style(gallery: dict[str, Any], example: str) -> None:
    """The suite's figures, for an example."""
    import matplotlib
    from cycler import cycler

    from lab import plot

    matplotlib.rcParams.update(plot.STYLE)
    matplotlib.rcParams["axes.prop_cycle"] = cycler(color=plot.COLOURS)


sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "reset_modules": ("matplotlib", suite_style),
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "min_reported_time": 1,
    "plot_gallery": os.environ.get("MONARCH_GALLERY", "1") == "1",  # 0 builds the pages without running them
}
