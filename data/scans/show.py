"""What a scan of any format looks like: images of a slice, coil maps, k-space and its sampling, in one picture."""

from pathlib import Path

import numpy as np

from data.scans.options import ShowConfig
from data.scans.reader import open_scan
from data.scans.scan import Scan
from lab.console import say
from lab.errors import UserError
from lab.plot import IMAGE_MAP, QUANTITY_MAP, figure, save, show_image, style

MOST = 6
"""Panels of a row: echoes or coils that are shown."""


def show(config: ShowConfig) -> Path:
    """Write NAME_scan.png; returns its path."""
    scan = open_scan(config.file)
    index = scan.num_slices // 2 if config.slice is None else config.slice
    if index not in range(scan.num_slices):
        raise UserError(f"--slice takes 0 to {scan.num_slices - 1}, not {index}.")
    path = (config.out or scan.path.parent) / f"{scan.scan_id}_scan.png"
    draw(scan, index, path)
    say(f"wrote {path}: slice {index} of {scan.num_slices}, {scan.sampling}")
    return path


def draw(scan: Scan, index: int, path: Path) -> Path:
    """The echoes of a slice (zero-filled where it is undersampled), k-space and mask, and the maps."""
    aspect = scan.voxel_spacing[1] / scan.voxel_spacing[2]
    echoes, coils = min(scan.num_echoes, MOST - 2), min(scan.num_coils, MOST)
    kspace, maps, _ = scan.read(index, 0)
    strength = kspace.abs().square().sum(0).sqrt().numpy()
    with style():
        drawn, panels = figure(3, max(echoes + 2, coils), width=1.9, height=2.1)
        drawn.suptitle(f"{scan.scan_id}, slice {index} ({scan.origin}): {scan.sampling}", fontsize=8)
        for panel in panels.flat:
            panel.set_visible(False)
        first = iter(panels[0])
        for echo in range(echoes):
            image = np.abs(scan.read(index, echo)[2].numpy())
            top = float(np.quantile(image, 0.995)) or 1.0
            title = f"echo {echo + 1}" + (", zero-filled" if scan.undersampled else "")
            _show(next(first), image, title, cmap=IMAGE_MAP, vmin=0, vmax=top, aspect=aspect)
        logs = np.log10(np.maximum(strength, max(float(strength.max()), 1e-30) * 1e-5))
        _show(next(first), logs, "k-space (logarithm)", cmap="magma")
        _show(next(first), strength > 0, "sampled", cmap=IMAGE_MAP, vmin=0, vmax=1)
        for coil in range(coils):
            one = maps[coil].numpy()
            _show(panels[1, coil], np.abs(one), f"coil {coil + 1}", cmap=QUANTITY_MAP, vmin=0, aspect=aspect)
            _show(
                panels[2, coil],
                np.angle(one),
                "phase",
                cmap="twilight",
                vmin=-np.pi,
                vmax=np.pi,
                aspect=aspect,
            )
        return save(drawn, path)


def _show(panel: object, image: np.ndarray, title: str, **options: object) -> None:
    panel.set_visible(True)  # type: ignore[attr-defined]
    show_image(panel, image, title=title, **options)  # type: ignore[arg-type]
