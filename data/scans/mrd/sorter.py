"""Lines of an ISMRMRD file sorted into k-space: coils whitened, readout oversampling cropped in image space."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from data.scans.mapped import Mapped
from data.scans.mrd.acquisitions import AT_ONCE, Acquisitions, Lines
from data.scans.own.arrays import maps_beside, maps_in
from data.scans.own.notes import read_notes
from data.scans.own.scan import OwnScan
from data.scans.own.store import Complex, file_key, kept
from data.scans.sense import centre, fftc, ifftc
from lab.console import say
from lab.errors import UserError
from lab.files import fingerprint
from lab.progress import Progress

VERSION = 2
"""Of what the lines become; one higher, and every file is sorted again."""
TO_RIGHT_FRONT_HEAD = np.array([-1.0, -1.0, 1.0])
"""ISMRMRD's coordinates run towards left, back and head."""


class Sorter:
    """Puts lines where they belong: (slice, echo, coil, ky, kz).

    The slices of a 3-D scan are the positions along the readout, its planes (phase 1, phase 2). Those of a 2-D scan
    are its own, with planes (readout, phase 1). Lines measured several times are averaged.
    """

    def __init__(self, lines: Acquisitions) -> None:
        self.lines, self.header = lines, lines.header
        self.width, ny, nz = self.header.encoded.matrix
        self.readout, self.three_dimensional = self.header.kept_readout, nz > 1
        self.plane = (ny, nz) if nz > 1 else (self.readout, ny)

    def scan(self) -> OwnScan:
        """The scan; what is sorted is kept on disk."""
        path, imaging, apart = self.lines.path, self.lines.imaging, self.lines.calibration
        kspace = self._kept("kspace", imaging, len(self.lines.frames[1]))
        calibration = self._kept("calibration", apart, 1) if len(apart) else None
        notes = read_notes(path)
        unsaid: Any = {key: value for key, value in self.header.timing.items() if getattr(notes, key) is None}
        notes = replace(notes, **unsaid)
        spacing = notes.voxel_spacing or list(self.spacing())
        beside = maps_beside(path, notes, (".npy", ".cfl"))
        return OwnScan(
            path,
            kspace,
            replace(notes, voxel_spacing=spacing),
            maps=None if beside is None else maps_in(beside),
            mixing=None if beside is None else self.whitening(imaging),
            calibration=calibration,
            affine=None if notes.orientation else self.affine(spacing),
            three_dimensional=self.three_dimensional,
            echo_times=self.echo_times() if notes.echo_ms == self.header.timing.get("echo_ms") else (),
            version=VERSION,
        )

    def _kept(self, name: str, chosen: Lines, echoes: int) -> Mapped:
        path, coils = self.lines.path, int(self.lines.heads["active_channels"][chosen[0]])
        slices = self.readout if self.three_dimensional else len(self.lines.slices)
        memory = 8 * coils * (6 * AT_ONCE * self.width + 4 * self.plane[0] * self.plane[1])
        shape = (slices, echoes, coils, *self.plane)
        key = fingerprint([file_key(path), VERSION])
        return kept(path, key, name, shape, memory, lambda array: self.fill(array, chosen))

    def fill(self, array: Complex, chosen: Lines) -> None:
        """Sort some lines into an array of zeros; lines measured several times are averaged."""
        whitening, places = self.whitening(chosen), self.lines.places(chosen)
        counter, values = self.lines.frames
        frames = np.searchsorted(values, self.lines.counter(counter, chosen)) % array.shape[1]
        order = {value: place for place, value in enumerate(self.lines.slices)}
        slices = [order[value] for value in self.lines.counter("slice", chosen).tolist()]
        counts = np.zeros((len(self.lines.slices), array.shape[1], *self._lines_shape), np.int64)
        number = 0
        with Progress(len(chosen), f"sorting {self.lines.path.name}", unit="line") as progress:
            for some, samples in self.lines.samples(chosen):
                for line in self._readouts(some, torch.from_numpy(samples), whitening).numpy():
                    (y, z), frame, at = places[number], frames[number], slices[number]
                    if self.three_dimensional:
                        array[:, frame, :, y, z] += line.T
                    else:
                        array[at, frame, :, :, y] += line
                    counts[at, frame, y, z] += 1
                    number += 1
                progress.advance(len(some))
        for at, frame, y, z in np.argwhere(counts > 1):
            place = (slice(None), frame, slice(None), y, z) if self.three_dimensional else (at, frame, ..., y)
            array[place] /= counts[at, frame, y, z]

    @property
    def _lines_shape(self) -> tuple[int, int]:
        _, ny, nz = self.header.encoded.matrix
        return ny, nz

    def _readouts(self, some: Lines, samples: Tensor, whitening: Tensor | None) -> Tensor:
        """Lines (line, coil, sample) without oversampling: in image space if the scan is 3-D, else in k-space."""
        heads = self.lines.heads[some]
        if whitening is not None:
            samples = torch.einsum("dc,lcs->lds", whitening, samples)
        full = samples.new_zeros(*samples.shape[:2], self.width)
        places = (torch.arange(self.readout) - self.readout // 2) * (
            self.width / self.readout
        ) + self.width // 2
        measured = torch.empty(len(samples), 1, self.readout, dtype=torch.bool)
        for at, (line, head) in enumerate(zip(samples, heads, strict=True)):
            begin, end = int(head["discard_pre"]), samples.shape[2] - int(head["discard_post"])
            first = self.width // 2 - int(head["center_sample"])
            if first + begin < 0 or first + end > self.width:
                raise UserError(
                    f"{self.lines.path}: a line of {samples.shape[2]} samples with its centre at "
                    f"{int(head['center_sample'])} does not fit into the {self.width} that the header encodes."
                )
            full[at, :, first + begin : first + end] = line[:, begin:end]
            measured[at] = (places > first + begin - 1) & (places < first + end)
        if self.readout == self.width and not self.three_dimensional:
            return full
        image = ifftc(full, -1)[..., centre(self.readout, self.width)]
        # Cropping interpolates: without the product, what a partial echo left out would be small, but not zero.
        return image if self.three_dimensional else fftc(image, -1) * measured

    def whitening(self, chosen: Lines) -> Tensor | None:
        """The matrix (coil, coil) after which the noise of all coils is white with variance 1; None without noise.

        With the covariance L L^H of the noise it is L^-1, scaled to the bandwidth of the lines.
        """
        if not len(self.lines.noise):
            return None
        noise = torch.cat([some.movedim(1, 0).flatten(1) for some in self._noise()], dim=1)
        coils, count = noise.shape
        if coils != (measured := int(self.lines.heads["active_channels"][chosen[0]])):
            raise UserError(
                f"{self.lines.path}: its noise is of {coils} coils, its image of {measured}; write the file again "
                "without the noise."
            )
        if count < 4 * coils:
            say(
                f"{self.lines.path.name}: {count} noise samples are too few to whiten {coils} coils; left as they are"
            )
            return None
        factor, failed = torch.linalg.cholesky_ex(noise @ noise.mH / count)
        if int(failed):
            raise UserError(
                f"{self.lines.path}: a coil has no noise at all; write the file again without it."
            )
        times = [float(self.lines.heads["sample_time_us"][some[0]]) for some in (chosen, self.lines.noise)]
        gain = (times[0] / times[1]) ** 0.5 if min(times) > 0 else 1.0
        inverse = torch.linalg.solve_triangular(factor, torch.eye(coils, dtype=factor.dtype), upper=False)
        return (gain * inverse).to(torch.complex64)

    def _noise(self) -> list[Tensor]:
        return [
            torch.from_numpy(samples).to(torch.complex128)
            for _, samples in self.lines.samples(self.lines.noise)
        ]

    def echo_times(self) -> list[float]:
        """Milliseconds, of each frame; none where the header gives fewer than there are contrasts."""
        counter, values = self.lines.frames
        times, wanted = self.header.echo_times, values if counter == "contrast" else [0] * len(values)
        return [times[number] for number in wanted] if max(wanted) < len(times) else []

    def spacing(self) -> tuple[float, float, float]:
        """Millimetres along slices and the axes of a plane."""
        x, y, z = self.header.encoded.spacing
        if self.three_dimensional:
            return x, y, z
        first, last = self.lines.positions(self.lines.slices)[[0, -1]]
        apart = float(np.linalg.norm(last - first)) / max(len(self.lines.slices) - 1, 1)
        return apart or z, x, y

    def affine(self, spacing: Sequence[float]) -> NDArray[np.float64] | None:
        """Voxel indices to millimetres towards right, front and head; None if the lines do not say."""
        head = self.lines.heads[self.lines.imaging[0]]
        read, phase, across = (np.asarray(head[f"{name}_dir"], float) for name in ("read", "phase", "slice"))
        axes = np.stack([read, phase, across] if self.three_dimensional else [across, read, phase], axis=-1)
        if not np.allclose(axes.T @ axes, np.eye(3), atol=1e-2):
            return None
        positions = self.lines.positions(self.lines.slices)
        extent = positions[-1] - positions[0]
        if not self.three_dimensional and extent.any():
            axes[:, 0] = extent / np.linalg.norm(extent)
        slices = self.readout if self.three_dimensional else 1
        middle = np.array([slices // 2, *(n // 2 for n in self.plane)], float)
        matrix = np.eye(4)
        matrix[:3, :3] = axes * np.asarray(spacing)
        matrix[:3, 3] = positions[0] - matrix[:3, :3] @ middle
        matrix[:3] *= TO_RIGHT_FRONT_HEAD[:, None]
        return matrix
