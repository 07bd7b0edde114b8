"""Files of Darcy, Burgers and shallow-water fields from before a file named its geometry: the same otherwise."""

from pathlib import Path
from typing import Any

import h5py
from torch import Tensor

from data.fields.file import FieldsFile
from data.fields.geometry import Box, Geometry, Sphere
from data.hdf5 import Hdf5File
from lab.errors import UserError


class OldFields(FieldsFile):
    """A file whose problem tells the geometry; those with inputs were the static ones."""

    @staticmethod
    def recognises(path: Path) -> bool:
        """Whether the file is in this format."""
        return h5py.is_hdf5(path) and {"problem", "names", "fingerprint"} <= Hdf5File(path).attribute_names()

    def _geometry(self, attributes: dict[str, Any], rows: Tensor) -> Geometry:
        if (
            attributes["problem"] == "navier-stokes"
        ):  # whose files always had a format of their own, or a geometry
            raise UserError(f"{self.path} has no attribute 'geometry'; make the file again.")
        return Sphere.of(rows) if attributes["problem"] == "shallow-water" else Box("walls", "walls")
