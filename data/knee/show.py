"""Pictures of a scan in SKM-TEA's layout: both echoes in three planes, coil maps, masks and k-space."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch

from data.knee.config import ShowConfig
from data.masks.pool import pad
from data.scans.skm_tea.format import listed_splits, read_annotations
from data.scans.skm_tea.layout import KSPACE, MAPS, MASKS, TARGET, scan_path
from data.scans.skm_tea.scan import SkmTeaScan
from lab.errors import UserError
from lab.plot import IMAGE_MAP, figure, save, show_image, style

PHASE_MAP = "twilight"


def show(config: ShowConfig) -> list[Path]:
    """Draw one scan; returns the pictures."""
    root = config.folder
    records = {
        record.scan_id: record for split in listed_splits(root) for record in read_annotations(root, split)
    }
    if not records:
        raise UserError(
            f"{root} lists no scans; name the folder that holds annotations/ and files_recon_calib-24/."
        )
    name = config.scan or next(iter(records))
    if name not in records:
        raise UserError(f"{root} has no scan {name!r}; it lists {', '.join(records)}.")
    scan = SkmTeaScan(scan_path(root, records[name].file_name), records[name])
    folder = config.out or root / "pictures"
    with style(), h5py.File(scan.path) as file:
        title = f"{name}, {file.attrs.get('origin', 'scan')}"
        return [
            _draw_echoes(file, scan, title, folder / f"{name}_echoes.png"),
            _draw_maps(file, scan, title, folder / f"{name}_maps.png"),
            _draw_masks(file, scan, title, folder / f"{name}_masks.png"),
        ]


def _draw_echoes(file: Any, scan: SkmTeaScan, title: str, path: Path) -> Path:
    views = _views(scan, knee=not str(file.attrs.get("origin", "")).startswith("real magnitudes"))
    drawn, panels = figure(scan.num_echoes, len(views), width=2.4, height=2.6)
    for echo in range(scan.num_echoes):
        volume = np.abs(file[TARGET][..., echo, 0])
        limit = float(np.percentile(volume[:: max(1, scan.num_slices // 16)], 99.3))
        for panel, (name, view, aspect) in zip(panels[echo], views, strict=True):
            scale = {"cmap": IMAGE_MAP, "vmin": 0, "vmax": limit, "aspect": aspect}
            show_image(panel, volume[view], title=f"{name}, E{echo + 1}", **scale)
    drawn.suptitle(title)
    return save(drawn, path)


def _views(scan: SkmTeaScan, knee: bool) -> list[tuple[str, tuple[Any, ...], float]]:
    """Planes to show: name, index and the shape of a pixel."""
    dx, dy, dz = scan.voxel_spacing
    x, y, z = scan.matrix_shape
    if not knee or x < 8:
        return [(f"slice {i + 1}", (i,), dy / dz) for i in sorted({x // 4, x // 2, 3 * x // 4})]
    every = slice(None)
    sagittal = [("sagittal", (every, every, int(z * place)), dx / dy) for place in (0.32, 0.5, 0.66)]
    return [*sagittal, ("axial", (x // 2,), dy / dz), ("coronal", (every, y // 2), dx / dz)]


def _draw_maps(file: Any, scan: SkmTeaScan, title: str, path: Path) -> Path:
    _, dy, dz = scan.voxel_spacing
    maps = file[MAPS][scan.matrix_shape[0] // 2, ..., 0]
    shown = min(8, scan.num_coils)
    drawn, panels = figure(2, shown, width=1.3, height=1.5)
    for coil in range(shown):
        (above, below), one, title_here = panels[:, coil], maps[..., coil], f"coil {coil + 1}"
        show_image(above, np.abs(one), title=title_here, cmap="viridis", vmin=0, vmax=0.8, aspect=dy / dz)
        show_image(below, np.angle(one), cmap=PHASE_MAP, vmin=-np.pi, vmax=np.pi, aspect=dy / dz)
    drawn.suptitle(f"{title}: maps estimated from the calibration region, magnitude and phase")
    return save(drawn, path)


def _draw_masks(file: Any, scan: SkmTeaScan, title: str, path: Path) -> Path:
    kspace = np.abs(file[KSPACE][scan.matrix_shape[0] // 2, :, :, 0, 0])
    masks = list(file.get(MASKS, {}))
    drawn, panels = figure(1, 1 + len(masks), width=1.8, height=3.4)
    logs = np.log10(np.maximum(kspace, kspace.max() * 1e-5))
    show_image(panels[0, 0], logs, title="k-space, coil 1", cmap="magma", aspect=0.5)
    for panel, name in zip(panels[0, 1:], masks, strict=True):
        mask = file[MASKS][name][...]
        padded = pad(torch.from_numpy(mask), scan.matrix_shape[1:])
        show_image(panel, padded, title=f"{name}, {mask.size / mask.sum():.2f}", cmap=IMAGE_MAP, aspect=0.5)
    drawn.suptitle(f"{title}: k-space (logarithm) and masks, zero-padded")
    return save(drawn, path)
