"""The models by name: `build("mno", in_frames=1, resolution=64, groups=5)`."""

import inspect
from typing import TYPE_CHECKING, Any

from lab.errors import UserError

if TYPE_CHECKING:
    from torch import nn

MODELS = {
    "mno": "the Monarch Neural Operator: transforms that learn, from an exact start",
    "fno": "the Fourier Neural Operator",
    "ffno": "the factorised Fourier Neural Operator, residual after the feed-forward",
    "unet": "the U-Net of Turbulent-Flow-Net",
    "tfnet": "TF-Net: the flow split in three by learnable filters",
    "resnet": "18 convolutions with residuals",
}


def maker(name: str) -> Any:
    """The class or function that makes the model called `name`."""
    from pde.models.ffno import FFNO
    from pde.models.fno import FNO
    from pde.models.mno import mno
    from pde.models.resnet import ResNet
    from pde.models.tfnet import TFNet
    from pde.models.unet import UNet

    makers: dict[str, Any] = {
        "mno": mno,
        "fno": FNO,
        "ffno": FFNO,
        "unet": UNet,
        "tfnet": TFNet,
        "resnet": ResNet,
    }
    if name not in makers:
        raise UserError(f"there is no model {name!r}; choose one of {', '.join(MODELS)}.")
    return makers[name]


def all_options(name: str, chosen: dict[str, Any]) -> dict[str, Any]:
    """The chosen options of a model and the defaults of the others, so that weights outlive a change of defaults.

    >>> all_options("fno", {"modes": 8})
    {'width': 20, 'modes': 8, 'depth': 4, 'batch_norm': False}
    """
    parameters = inspect.signature(maker(name)).parameters
    defaults = {
        key: parameter.default
        for key, parameter in parameters.items()
        if parameter.default is not inspect.Parameter.empty
    }
    return defaults | chosen


def build(name: str, in_frames: int, resolution: int, **options: Any) -> "nn.Module":
    """The model called `name`, from `in_frames` frames of resolution x resolution points to the next frame."""
    make = maker(name)
    try:
        model: nn.Module = make(in_frames, resolution, **options)
    except (ValueError, TypeError) as error:
        raise UserError(f"{name} cannot be built on {resolution} x {resolution} points: {error}") from error
    return model
