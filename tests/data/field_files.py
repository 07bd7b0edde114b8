"""Other people's files, each written by the description of its layout, with what a reader is to make of it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import zarr
from scipy.io import netcdf_file, savemat

from data.fields.geometry import Box, Line
from monarch_core.transforms.sphere import quadrature

SAMPLES, FRAMES, ROWS, COLUMNS = 3, 5, 8, 12
WALLS = Box("walls", "walls")
Written = tuple[Path, np.ndarray]
"""A file, and what the reader is to make of it: (sample, row, column, frame, field)."""


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def centres(n: int, length: float = 1.0) -> np.ndarray:
    return (np.arange(n) + 0.5) / n * length


def write_flow(
    folder: Path, name: str = "2D_CFD_Rand_M0.1_Eta0.01_Zeta0.01_periodic_128_Train.hdf5"
) -> Written:
    values = random(SAMPLES, FRAMES, ROWS, COLUMNS, 4)
    with h5py.File(folder / name, "w") as file:
        for i, field in enumerate(("density", "pressure", "Vx", "Vy")):
            file[field] = values[..., i]
        file["x-coordinate"], file["y-coordinate"] = centres(ROWS), centres(COLUMNS, 2.0)
        file["t-coordinate"] = np.arange(FRAMES + 1) * 0.05  # PDEBench adds the end of the last step
    return folder / name, np.moveaxis(values, 1, 3)


def write_groups(folder: Path, channels: int = 2) -> Written:
    values = random(SAMPLES, FRAMES, ROWS, COLUMNS, channels)
    path = folder / "2D_diff-react_NA_NA.h5"
    with h5py.File(path, "w") as file:
        for i, sample in enumerate(values):
            group = file.create_group(f"{i:04d}")
            group["data"] = sample
            group["grid/x"], group["grid/y"] = centres(ROWS, 2.0) - 1, centres(COLUMNS, 2.0) - 1
            group["grid/t"] = np.linspace(0, 5, FRAMES)
    return path, np.moveaxis(values, 1, 3)


def write_darcy(folder: Path) -> Written:
    values = random(SAMPLES, 1, ROWS, ROWS)
    path = folder / "2D_DarcyFlow_beta1.0_Train.hdf5"
    with h5py.File(path, "w") as file:
        file["tensor"], file["nu"] = values, 2 * values[:, 0]
        file["x-coordinate"], file["y-coordinate"] = centres(ROWS), centres(ROWS)
        file.attrs["beta"] = 1.0
    return path, np.moveaxis(values, 1, 3)[..., None]


def write_matlab_darcy(folder: Path) -> Written:
    values = random(SAMPLES, ROWS + 1, ROWS + 1)
    path = folder / "piececonst_r9_N3_smooth1.mat"
    savemat(path, {"coeff": 2.0 * values.astype(np.float64), "sol": values, "Kcoeff": values[..., :1]})
    return path, values[..., None, None]


def write_well(folder: Path, sphere: bool = False, dimensions: int = 2) -> Written:
    """A scalar, a vector, a field that lacks an axis, one that does not vary, and a number of each sample."""
    axes = ["theta", "phi"] if sphere else ["x", "y"]
    scalar, vector = random(SAMPLES, FRAMES, ROWS, COLUMNS), random(SAMPLES, FRAMES, ROWS, COLUMNS, 2)
    mask, forcing = random(ROWS, COLUMNS), random(SAMPLES, FRAMES, COLUMNS)
    path = folder / "well.hdf5"
    with h5py.File(path, "w") as file:
        file.attrs.update(
            {"dataset_name": "shear_flow", "n_spatial_dims": dimensions, "n_trajectories": SAMPLES}
        )
        file.attrs["grid_type"] = "spherical" if sphere else "cartesian"
        file.attrs["simulation_parameters"], file.attrs["Reynolds"] = ["Reynolds"], 1e4
        about = file.create_group("dimensions")
        about.attrs["spatial_dims"] = axes
        about["time"] = np.arange(FRAMES) * 0.1
        rows = quadrature("legendre-gauss", ROWS)[0].numpy() if sphere else np.arange(ROWS) / ROWS
        columns = np.arange(COLUMNS) / COLUMNS * (2 * np.pi if sphere else 3)
        about[axes[0]], about[axes[1]] = rows, columns
        for axis, kind in zip(axes, ("PERIODIC", "WALL"), strict=True):
            condition = file.create_group(f"boundary_conditions/{axis}_{kind.lower()}")
            condition.attrs["associated_dims"], condition.attrs["bc_type"] = [axis], kind
        fields: list[tuple[str, str, np.ndarray, tuple[bool, bool, list[bool]]]] = [
            ("t0_fields", "tracer", scalar, (True, True, [True, True])),
            ("t0_fields", "mask", mask, (False, False, [True, True])),
            ("t0_fields", "forcing", forcing, (True, True, [False, True])),
            ("t1_fields", "velocity", vector, (True, True, [True, True])),
        ]
        file["scalars/viscosity"] = np.arange(SAMPLES, dtype=np.float64)
        file["scalars/viscosity"].attrs.update({"sample_varying": True, "time_varying": False})
        file["scalars"].attrs["field_names"] = ["viscosity"]
        for group, name, values, (sample, time, space) in fields:
            file[f"{group}/{name}"] = values
            varies = {"sample_varying": sample, "time_varying": time, "dim_varying": space}
            file[f"{group}/{name}"].attrs.update(varies)
        file["t0_fields"].attrs["field_names"] = ["tracer", "mask", "forcing"]
        file["t1_fields"].attrs["field_names"] = ["velocity"]
        file.create_group("t2_fields").attrs["field_names"] = np.array([], dtype="S1")
    full = np.broadcast_to(forcing[:, :, None], scalar.shape)
    return path, np.moveaxis(np.concatenate([np.stack([scalar, full], -1), vector], -1), 1, 3)


def write_npy(folder: Path) -> Written:
    values = random(SAMPLES, FRAMES, ROWS, COLUMNS)
    np.save(folder / "wind.npy", values.astype(np.float64))
    return folder / "wind.npy", np.moveaxis(values, 1, 3)[..., None]


def write_npz(folder: Path) -> Written:
    values = random(SAMPLES, FRAMES, ROWS, COLUMNS, 3)
    coordinates = {"x": centres(ROWS), "y": centres(COLUMNS), "t": np.arange(FRAMES) * 0.5}
    np.savez(folder / "own.npz", velocity=values[..., :2], p=values[..., 2], **coordinates)
    return folder / "own.npz", np.moveaxis(values, 1, 3)


def write_labelled(folder: Path) -> Written:
    """As NetCDF-4 does: dimensions are data sets that are attached as scales."""
    values = random(SAMPLES, ROWS, COLUMNS, FRAMES)
    path = folder / "own.nc"
    with h5py.File(path, "w") as file:
        file["wave/h"] = np.moveaxis(values, 3, 0)
        for i, (name, n) in enumerate((("time", FRAMES), ("batch", SAMPLES), ("x", ROWS), ("y", COLUMNS))):
            file[name] = np.arange(n) * 0.5
            file[name].make_scale(name)
            file["wave/h"].dims[i].attach_scale(file[name])
    return path, values[..., None]


def write_map(folder: Path) -> Written:
    values = random(SAMPLES, ROWS, COLUMNS)
    with h5py.File(folder / "map.h5", "w") as file:
        file["inputs"], file["outputs"] = np.stack([2 * values, values], -1), values
    return folder / "map.h5", values[..., None, None]


def write_scalar_line(folder: Path) -> Written:
    """PDEBench's advection, Burgers and reaction-diffusion."""
    values = random(SAMPLES, FRAMES, ROWS)
    path = folder / "1D_Burgers_Sols_Nu0.001.hdf5"
    with h5py.File(path, "w") as file:
        file["tensor"], file["x-coordinate"] = values, centres(ROWS)
        file["t-coordinate"] = np.arange(FRAMES + 1) * 0.01
    return path, on_a_line(values)


def write_line_flow(folder: Path) -> Written:
    """PDEBench's compressible flow on a line."""
    values = random(SAMPLES, FRAMES, ROWS, 3)
    path = folder / "1D_CFD_Rand_Eta0.1_Zeta0.1_trans_Train.hdf5"
    with h5py.File(path, "w") as file:
        for i, field in enumerate(("density", "pressure", "Vx")):
            file[field] = values[..., i]
        file["x-coordinate"], file["t-coordinate"] = centres(ROWS, 2.0), np.arange(FRAMES + 1) * 0.01
    return path, values.transpose(0, 2, 1, 3)[:, :, None]


def write_sorption(folder: Path) -> Written:
    """PDEBench's diffusion-sorption."""
    values = random(SAMPLES, FRAMES, ROWS, 1)
    path = folder / "1D_diff-sorp_NA_NA.h5"
    with h5py.File(path, "w") as file:
        for i, sample in enumerate(values):
            group = file.create_group(f"{i:04d}")
            group["data"], group["grid/x"] = sample, centres(ROWS)
            group["grid/t"] = np.linspace(0, 500, FRAMES)
    return path, values.transpose(0, 2, 1, 3)[:, :, None]


def write_burgers(folder: Path) -> Written:
    """FNO's Burgers file, as MATLAB v5."""
    values = random(SAMPLES, ROWS)
    path = folder / "burgers_data_R10.mat"
    savemat(path, {"a": 2.0 * values.astype(np.float64), "u": values.astype(np.float64), "a_x": values})
    return path, values[:, :, None, None, None]


def write_burgers_v73(folder: Path) -> Written:
    """The same as MATLAB v7.3: HDF5 with the axes reversed."""
    values = random(SAMPLES, ROWS)
    path = folder / "burgers_data_R10.mat"
    with h5py.File(path, "w") as file:
        file["a"], file["u"] = 2 * values.T, values.T
        for name in "au":
            file[name].attrs["MATLAB_class"] = np.bytes_("double")
    return path, values[:, :, None, None, None]


def write_navier_stokes(folder: Path) -> Written:
    """FNO's Navier-Stokes files, as MATLAB v5."""
    values = random(SAMPLES, ROWS, ROWS, 12)
    path = folder / "NavierStokes_V1e-4_N3_T12.mat"
    savemat(path, {"a": values[..., 0], "u": values, "t": np.arange(1.0, 13.0)})
    return path, values[..., None]


def write_netcdf3(folder: Path) -> Written:
    """Two fields, one of them packed, with units; axes in an order of their own."""
    values = random(SAMPLES, ROWS, COLUMNS, FRAMES)
    path = folder / "ocean.nc"
    with netcdf_file(path, "w") as file:
        for name, n in (("time", FRAMES), ("sample", SAMPLES), ("lat", ROWS), ("lon", COLUMNS)):
            file.createDimension(name, n)
        times = file.createVariable("time", "f8", ("time",))
        times[:], times.units = np.arange(FRAMES) * 6.0, "hours"
        height = file.createVariable("height", "f4", ("time", "sample", "lat", "lon"))
        height[:], height.units = np.moveaxis(values, 3, 0), "m"
        packed = file.createVariable("speed", "i2", ("sample", "time", "lat", "lon"))
        stored = np.round(np.moveaxis(values, 3, 1) * 100).astype(np.int16)
        packed[:], packed.scale_factor, packed.add_offset, packed.units = stored, 0.01, 1.0, "m/s"
    unpacked = np.moveaxis(stored * 0.01 + 1.0, 1, 3).astype(np.float32)
    return path, np.stack([values, unpacked], -1)


def write_zarr(folder: Path, version: Any = 3) -> Written:
    """As xarray writes it: the names of dimensions beside the arrays."""
    values = random(SAMPLES, FRAMES, ROWS, COLUMNS)
    names = ("sample", "time", "x", "y")
    group = zarr.open_group(folder / "store.zarr", mode="w", zarr_format=version)
    group.attrs["periodic"], group.attrs["keeps"] = "x,y", "mirror x,turn y"
    for name, array, axes in (("u", values, names), ("time", np.arange(FRAMES) * 0.5, ("time",))):
        made = group.create_array(
            name,
            shape=array.shape,
            chunks=(1, *array.shape[1:]) if array.ndim > 1 else array.shape,
            dtype=array.dtype,
            dimension_names=axes if version == 3 else None,
        )
        made[:] = array
        if version == 2:
            made.attrs["_ARRAY_DIMENSIONS"] = list(axes)
    group["u"].attrs["units"] = "m/s"
    return folder / "store.zarr", np.moveaxis(values, 1, 3)[..., None]


def write_line(folder: Path) -> Written:
    """Plain arrays on a line, with a coefficient and a number of each sample."""
    values = random(SAMPLES, FRAMES, ROWS)
    given = {
        "conductivity": 2 * values[:, 0],
        "speed": np.arange(SAMPLES) + 0.5,
        "dt": 0.25,
        "run": np.arange(SAMPLES),
    }
    np.savez(folder / "line.npz", u=values, **given)
    return folder / "line.npz", on_a_line(values)


def write_line_map(folder: Path) -> Written:
    values = random(SAMPLES, ROWS)
    np.savez(folder / "linemap.npz", inputs=2 * values, outputs=values, speed=np.arange(SAMPLES) + 0.5)
    return folder / "linemap.npz", values[:, :, None, None, None]


def write_forced(folder: Path) -> Written:
    """Fields beside forces (sample, x, y, component) and a mask (x, y), in HDF5 without labels."""
    values = random(SAMPLES, FRAMES, ROWS, COLUMNS, 2)
    with h5py.File(folder / "forced.h5", "w") as file:
        file["velocity"], file["force"], file["mask"] = values, values[:, 0], values[0, 0, ..., 0]
        file["velocity"].attrs["units"] = "m/s"
    return folder / "forced.h5", np.moveaxis(values, 1, 3)


def on_a_line(values: np.ndarray) -> np.ndarray:
    """(sample, time, x) as (sample, x, 1, time, 1)."""
    return values.transpose(0, 2, 1)[:, :, None, :, None]


WRITERS: dict[str, tuple[Callable[[Path], Written], dict[str, Any]]] = {
    "flow": (
        write_flow,
        {
            "names": ("density", "pressure", "Vx", "Vy"),
            "geometry": Box(),
            "dt": 0.05,
            "problem": "compressible-flow",
        },
    ),
    "groups": (write_groups, {"names": ("activator", "inhibitor"), "geometry": WALLS, "dt": 1.25}),
    "darcy": (
        write_darcy,
        {"problem": "darcy", "geometry": WALLS, "inputs": ("permeability",), "static": True},
    ),
    "matlab darcy": (
        write_matlab_darcy,
        {"problem": "darcy", "geometry": WALLS, "inputs": ("permeability",), "static": True},
    ),
    "well": (
        write_well,
        {
            "problem": "shear_flow",
            "names": ("tracer", "forcing", "velocity_x", "velocity_y"),
            "constants": ("mask", "viscosity"),
            "geometry": Box("periodic", "walls"),
            "dt": 0.1,
        },
    ),
    "npy": (write_npy, {"names": ("wind",), "problem": "own", "dt": 1.0}),
    "npz": (write_npz, {"names": ("velocity0", "velocity1", "p"), "dt": 0.5}),
    "labelled": (write_labelled, {"names": ("wave/h",), "dt": 0.5}),
    "map": (write_map, {"names": ("outputs",), "inputs": ("inputs0", "inputs1"), "static": True}),
    "scalar line": (
        write_scalar_line,
        {"problem": "burgers-line", "names": ("u",), "geometry": Line(), "dt": 0.01},
    ),
    "line flow": (
        write_line_flow,
        {"names": ("density", "pressure", "Vx"), "problem": "compressible-flow", "dt": 0.01},
    ),
    "sorption": (write_sorption, {"names": ("concentration",), "geometry": Line("walls"), "dt": 125.0}),
    "burgers": (
        write_burgers,
        {"problem": "burgers-line", "geometry": Line(), "inputs": ("a",), "static": True},
    ),
    "burgers v7.3": (write_burgers_v73, {"geometry": Line(), "inputs": ("a",), "static": True}),
    "navier-stokes": (
        write_navier_stokes,
        {"problem": "navier-stokes", "names": ("vorticity",), "geometry": Box()},
    ),
    "netcdf-3": (
        write_netcdf3,
        {
            "names": ("height", "speed"),
            "dt": 6.0,
            "units": {"time": "hours", "height": "m", "speed": "m/s"},
        },
    ),
    "zarr": (write_zarr, {"names": ("u",), "geometry": Box(), "dt": 0.5, "units": {"u": "m/s"}}),
    "zarr v2": (lambda folder: write_zarr(folder, 2), {"names": ("u",), "geometry": Box(), "dt": 0.5}),
    "line": (write_line, {"names": ("u",), "constants": ("conductivity", "speed"), "dt": 0.25}),
    "line map": (write_line_map, {"inputs": ("inputs", "speed"), "static": True}),
    "forced": (
        write_forced,
        {
            "names": ("velocity0", "velocity1"),
            "constants": ("force0", "force1", "mask"),
            "units": {"velocity0": "m/s", "velocity1": "m/s"},
        },
    ),
}

LINES = ("scalar line", "line flow", "sorption", "burgers", "burgers v7.3", "line", "line map")


def boundary(kind: str) -> list[str]:
    """What the flags tell of the boundary of such a file."""
    return ["--periodic", "x"] if kind in LINES else ["--periodic", "x", "--walls", "y"]
