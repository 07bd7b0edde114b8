"""`python -m mri.export`: a method as an ONNX or .pt2 file, for other programs."""

from pathlib import Path
from typing import TYPE_CHECKING

from lab.cli import main
from lab.config import ExportOptions

if TYPE_CHECKING:
    from torch import Tensor

    from lab.export import Exportable, Tensors

COILS = 4
"""Of the examples; a file takes any number."""


def export(config: ExportOptions) -> None:
    """Write a trained or tuned method as a file that onnxruntime, or torch alone, runs.

    K-space and maps (batch, coil, ky, kz, 2), mask (batch, ky, kz) and echo (batch) in, images (batch, ky, kz, 2) out.
    Complex numbers have their real and imaginary parts on the last axis; the image has the units of the k-space.
    """
    from lab.export import write

    write(config, exportable)


def exportable(path: Path) -> "Exportable":
    """The reconstruction of slices by the method in a weights file."""
    import torch

    from data.scans.sense import sample
    from lab.export import Exportable
    from mri.predictor import InPairs, load

    predictor = load(path)
    method = predictor.method.cpu()
    module = InPairs(method)

    def inputs(batch: int) -> "dict[str, Tensor]":
        """Noise, and maps with unit sum of squares."""
        random = torch.Generator().manual_seed(batch)
        kspace, maps = torch.randn(2, batch, COILS, *method.plane, 2, generator=random)
        maps = maps / maps.square().sum((1, 4), keepdim=True).sqrt()
        mask = (torch.rand(batch, *method.plane, generator=random) < 0.5).float()
        return {"kspace": kspace, "maps": maps, "mask": mask, "echo": torch.arange(batch) % 2}

    def expected(given: "Tensors") -> "Tensor":
        kspace, maps = (torch.view_as_complex(given[name]) for name in ("kspace", "maps"))
        mask = given["mask"] > 0
        return torch.view_as_real(method(sample(kspace, mask), maps, mask, given["echo"]))

    measured, per_slice = {0: "batch", 1: "coils"}, {0: "batch"}
    layout = {
        "kspace": ["batch", "coil", "ky", "kz", "re, im"],
        "maps": ["batch", "coil", "ky", "kz", "re, im"],
        "mask": ["batch", "ky", "kz"],
        "echo": ["batch"],
        "image": ["batch", "ky", "kz", "re, im"],
    }
    return Exportable(
        module=module,
        inputs=inputs,
        free={"kspace": measured, "maps": measured, "mask": per_slice, "echo": per_slice},
        output="image",
        expected=expected,
        metadata={
            **predictor.header,
            "layout": layout,
            "transform": "centred and orthonormal; zero frequency and zero position at n // 2",
            "normalisation": "none: the image has the units of the k-space",
        },
    )


if __name__ == "__main__":
    main(export)
