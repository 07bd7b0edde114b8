"""`python -m pde.export`: a trained model as an ONNX or .pt2 file, for other programs."""

from pathlib import Path
from typing import TYPE_CHECKING

from lab.cli import main
from pde.config import ExportConfig

if TYPE_CHECKING:
    from torch import Tensor

    from lab.export import Exportable


def export(config: ExportConfig) -> None:
    """Write a trained model as a file that onnxruntime, or torch alone, runs.

    Frames (batch, x, y, frame, field) in, the forecast (batch, x, y, step, field) out, in physical units.
    """
    from lab.export import write

    write(config, lambda weights: exportable(weights, config.steps))


def exportable(path: Path, steps: int) -> "Exportable":
    """The forecast of `steps` frames by the model in a weights file."""
    import torch
    from torch.nn.functional import interpolate

    from lab import weights
    from lab.errors import UserError
    from lab.export import Exportable
    from pde.predictor import Unrolled, load

    predictor, header = load(path).requires_grad_(False), weights.load(path, app="pde").header
    if steps != 1 and header["recipe"] == "map":
        raise UserError(
            f"--steps {steps}: an input of {header['problem']} has one answer; leave --steps out."
        )
    # Where as many frames are given as the network sees, none is before them to lead it in.
    lead = predictor.net.lead if header["recipe"] == "markov" else 0
    frames, resolution = predictor.in_frames + lead, predictor.net.resolution
    fields = header["in_channels"] if header["recipe"] == "map" else predictor.fields + predictor.constants

    def inputs(batch: int) -> "dict[str, Tensor]":
        """Smooth random fields with the mean and spread of the training data."""
        mean, std = predictor.input_scale
        coarse = torch.randn(batch, frames * fields, 4, 4, generator=torch.Generator().manual_seed(batch))
        smooth = interpolate(coarse, resolution, mode="bilinear").permute(0, 2, 3, 1)
        return {"frames": mean + std * smooth.contiguous().unflatten(-1, (frames, fields))}

    normalisation = {name: value.tolist() for name, value in predictor.named_buffers(recurse=False)}
    layout = {
        "frames": ["batch", "x", "y", "frame", "field"],
        "forecast": ["batch", "x", "y", "step", "field"],
    }
    return Exportable(
        module=Unrolled(predictor, steps),
        inputs=inputs,
        free={"frames": {0: "batch"}},
        output="forecast",
        expected=lambda given: predictor.predict(given["frames"], steps),
        metadata={
            **header,
            "steps": steps,
            "normalisation": normalisation,
            "normalised_inside": True,
            "layout": layout,
        },
    )


if __name__ == "__main__":
    main(export)
