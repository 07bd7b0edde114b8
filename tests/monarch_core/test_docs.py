"""The examples in the docstrings and on the page docs/monarch.md run and hold."""

import doctest
import importlib
import pkgutil
import re

import pytest
import torch

import monarch_core

MODULES = [module.name for module in pkgutil.walk_packages(monarch_core.__path__, "monarch_core.")]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    library = name.removeprefix("monarch_core.integrations.")
    if library != name:
        pytest.importorskip(library, reason=f"{library} is not installed")
    results = doctest.testmod(importlib.import_module(name), extraglobs={"torch": torch})
    assert results.failed == 0


@pytest.mark.parametrize("page", ["docs/monarch.md", "README.md", "monarch_core/README.md"])
def test_page_examples(root, page):
    blocks = re.findall(r"```python\n(.*?)```", (root / page).read_text(), flags=re.DOTALL)
    assert blocks
    exec("\n".join(blocks), {})


def test_page_names_every_public_constructor(root):
    page = (root / "docs/monarch.md").read_text()
    building_blocks = {"LinearOperator", "Product", "Permutation", "Stride", "Resize", "RealPart"}
    missing = [name for name in set(monarch_core.__all__) - building_blocks if name not in page]
    assert missing == []


def test_public_names_are_those_others_rely_on():
    names = ["Monarch", "dft", "dft2", "dct", "dst", "hadamard", "toeplitz", "circulant"]
    assert set(names) <= set(monarch_core.__all__)


def test_page_shows_pictures_that_exist(root):
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", (root / "docs/monarch.md").read_text())
    assert pictures
    assert all((root / "docs" / picture).is_file() for picture in pictures)
