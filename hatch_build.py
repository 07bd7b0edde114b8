"""How the distribution monarch-science is built from this repository.

As it is, `pip install .` installs everything, monarch_core included, so that a clone needs nothing that is not in it.
With MONARCH_SPLIT=1 monarch_core is left to its own distribution, monarch-core, of the same version:

    python -m hatchling build -t wheel                  # in monarch_core/: monarch-core
    MONARCH_SPLIT=1 python -m hatchling build -t wheel  # here: monarch-science, which depends on it
"""

import os
import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface


def is_split() -> bool:
    return os.environ.get("MONARCH_SPLIT") == "1"


class Dependencies(MetadataHookInterface):
    """torch, or monarch-core, which brings it; and the rest as pyproject.toml lists it."""

    def update(self, metadata: dict[str, Any]) -> None:
        source = (Path(self.root) / "monarch_core/__init__.py").read_text()
        found = re.search(r'^__version__ = "(.+)"$', source, re.MULTILINE)
        assert found is not None
        core = f"monarch-core=={found[1]}" if is_split() else "torch>=2.7,<3"
        metadata["dependencies"] = [core, *self.config["dependencies"]]


class Packages(BuildHookInterface):
    """monarch_core beside the packages that pyproject.toml lists, unless it is left out."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if not is_split() and self.target_name == "wheel" and version != "editable":
            root = Path(self.root)
            for file in (*root.glob("monarch_core/**/*.py"), root / "monarch_core/py.typed"):
                build_data["force_include"][str(file)] = str(file.relative_to(root))
