"""Files that hold arrays by name: `.npy`, `.npz`, MATLAB, HDF5 and with it NetCDF-4, NetCDF-3, and Zarr.

HDF5, NetCDF, Zarr and `.npy` are read as far as they are indexed; `.npz` and MATLAB are read into memory once. Numbers
that a file packs by `scale_factor` and `add_offset`, as NetCDF does, are unpacked, and its `_FillValue` becomes NaN.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from data.fields import matlab
from data.hdf5 import Hdf5File
from lab.console import say
from lab.errors import UserError

PACKING = ("scale_factor", "add_offset", "_FillValue")


@dataclass(frozen=True)
class NamedArray:
    """An array in a file, read when it is indexed; the labels of its axes and its unit where the file tells them."""

    shape: tuple[int, ...]
    kind: str
    """Of its type, as numpy calls it."""
    read: Callable[[Any], Any]
    labels: Sequence[str] = ()
    unit: str = ""
    packing: Mapping[str, float] = field(default_factory=dict)

    def __getitem__(self, index: Any) -> Any:
        values = np.asarray(self.read(index))
        if not self.packing:
            return values
        missing = values == self.packing.get("_FillValue", np.nan)
        unpacked = values * self.packing.get("scale_factor", 1.0) + self.packing.get("add_offset", 0.0)
        return np.where(missing, np.nan, unpacked)


Opened = tuple[dict[str, NamedArray], dict[str, str]]
"""The arrays of a file, and those of its own attributes that are text."""


def open_arrays(path: Path) -> Opened:
    """What a file holds."""
    if is_zarr(path):
        return _zarr(path)
    if h5py.is_hdf5(path):
        return _hdf5(path)
    if matlab.is_matlab(path):
        return _in_memory(matlab.load(path, *matlab.shapes_in(path))), {}
    if _is_netcdf3(path):
        return _netcdf3(path)
    if path.suffix not in (".npy", ".npz"):
        raise UserError(
            f"{path} is not a file of fields in a format that is known here; docs/data.md lists the formats, and "
            "python -m data.darcy, for example, makes such a file."
        )
    try:
        if path.suffix == ".npy":
            return _in_memory({path.stem: np.load(path, mmap_mode="r")}), {}
        with path.open("rb") as stream, np.load(stream) as file:
            return _in_memory({name: file[name] for name in file.files}), {}
    except Exception as error:  # a damaged zip archive or header raises many kinds
        raise UserError(
            f"{path} cannot be read as a numpy file ({str(error).splitlines()[0]}); it is truncated or holds objects: "
            "save plain arrays again."
        ) from error


def is_zarr(path: Path) -> bool:
    """Whether the path is a Zarr store in a folder."""
    return path.is_dir() and any((path / name).is_file() for name in ("zarr.json", ".zgroup", ".zarray"))


def _in_memory(arrays: Mapping[str, Any]) -> dict[str, NamedArray]:
    return {name: NamedArray(each.shape, each.dtype.kind, each.__getitem__) for name, each in arrays.items()}


def _about(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """What the attributes of an array say: its unit and how it is packed."""
    there = {key: np.ravel(attributes[key])[0] for key in PACKING if key in attributes}
    packing = {key: float(value) for key, value in there.items() if np.issubdtype(type(value), np.number)}
    if np.isnan(packing.get("_FillValue", 0.0)):
        del packing["_FillValue"]  # NaN is missing as it stands
    return {"unit": _text(attributes.get("units", "")), "packing": packing}


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _texts(attributes: Mapping[str, Any]) -> dict[str, str]:
    return {key: _text(value) for key, value in attributes.items() if isinstance(value, str | bytes)}


def _hdf5(path: Path) -> Opened:
    file, names = Hdf5File(path), list[str]()
    file.file.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
    arrays = {}
    for name in names:
        each = file.file[name]
        if each.dtype.kind in "fiu" and each.shape is not None:
            reading = lambda index, name=name: file.read(name, index)  # noqa: E731
            arrays[name] = NamedArray(
                each.shape, each.dtype.kind, reading, file.axis_names(name), **_about(each.attrs)
            )
    return arrays, _texts(file.attributes())


def _is_netcdf3(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(3) == b"CDF" or path.suffix in (".nc", ".cdf")


def _netcdf3(path: Path) -> Opened:
    from scipy.io import netcdf_file

    def reading(name: str) -> Callable[[Any], Any]:
        def read(index: Any) -> Any:
            with netcdf_file(path, mmap=True) as file:  # only what is indexed leaves the disk
                return np.array(file.variables[name].data[index])

        return read

    try:
        with netcdf_file(path, mmap=True) as file:
            # Comprehensions, which leave no name behind: a view that is still around keeps the file from closing.
            arrays = {
                name: NamedArray(
                    tuple(each.data.shape),
                    each.data.dtype.kind,
                    reading(name),
                    list(each.dimensions),
                    **_about(each._attributes),
                )
                for name, each in file.variables.items()
            }
            return arrays, _texts(file._attributes)
    except Exception as error:  # its parser raises many kinds on a damaged file
        raise UserError(
            f"{path} cannot be read as a NetCDF file ({str(error).splitlines()[0]}); it is truncated or of another "
            "kind: copy it again."
        ) from error


def _zarr(path: Path) -> Opened:
    try:
        import zarr
    except ImportError as error:
        raise UserError(
            f"{path} is a Zarr store; reading it needs the extra: pip install 'monarch-science[zarr]'."
        ) from error
    try:
        store = zarr.open(path, mode="r")
        found = {path.stem: store} if isinstance(store, zarr.Array) else dict(store.members(max_depth=None))
        arrays = {}
        for name, each in found.items():
            if not isinstance(each, zarr.Array) or each.dtype.kind not in "fiu":
                continue
            _check_blosc(path, each)
            if each.nchunks_initialized < each.nchunks:
                missing = each.nchunks - each.nchunks_initialized
                say(
                    f"{path}: {missing} of {each.nchunks} chunks of {name!r} are not stored; they count as "
                    f"{each.fill_value}"
                )
            names: Any = getattr(each.metadata, "dimension_names", None) or each.attrs.get(
                "_ARRAY_DIMENSIONS", []
            )
            labels = [] if any(label is None for label in names) else [str(label) for label in names]
            attributes = dict(each.attrs)
            arrays[name] = NamedArray(
                each.shape, each.dtype.kind, _explained(path, each), labels, **_about(attributes)
            )
        return arrays, _texts({} if isinstance(store, zarr.Array) else dict(store.attrs))
    except UserError:
        raise
    except Exception as error:  # damaged metadata raises many kinds
        raise _damaged_store(path, error) from error


def _check_blosc(path: Path, array: Any) -> None:
    """Compare the length of every chunk with its header: Blosc decodes a chunk that was cut short without a word."""
    if getattr(getattr(array.metadata, "compressor", None), "codec_id", None) != "blosc":
        return
    for chunk in (path / array.path).rglob("*"):
        if chunk.is_file() and chunk.name.replace(".", "").isdigit():
            with chunk.open("rb") as file:
                told = int.from_bytes(file.read(16)[12:], "little")
            if told != chunk.stat().st_size:
                raise UserError(
                    f"{path} is not a whole Zarr store ({chunk.name} is truncated); copy it again."
                )


def _explained(path: Path, array: Any) -> Callable[[Any], Any]:
    def read(index: Any) -> Any:
        try:
            return array[index]
        except Exception as error:
            raise _damaged_store(path, error) from error

    return read


def _damaged_store(path: Path, error: Exception) -> UserError:
    reason = (str(error) or type(error).__name__).splitlines()[0]
    return UserError(f"{path} is not a whole Zarr store ({reason}); copy it again.")
