"""The models by name: `build("mno", in_channels=1, resolution=64, groups=5)`."""

import inspect
from typing import TYPE_CHECKING, Any

from lab.errors import UserError
from pde.models.parts.resolution import Resolution, shown

if TYPE_CHECKING:
    from pde.models.parts.model import Model

MODELS = {
    "mno": "the Monarch Neural Operator: transforms that learn, from an exact start",
    "lfno": "its Fourier twin: the same latent operator, transforms fixed",
    "fno": "the Fourier Neural Operator",
    "ffno": "the factorised Fourier Neural Operator, residual after the feed-forward",
    "sfno": "the spherical Fourier Neural Operator: harmonics of a sphere, weights per degree",
    "unet": "the U-Net of Turbulent-Flow-Net",
    "tfnet": "TF-Net: the flow split in three by learnable filters",
    "resnet": "18 convolutions with residuals",
}


def maker(name: str) -> Any:
    """The class or function that makes the model called `name`."""
    from pde.models.ffno import FFNO
    from pde.models.fno import FNO
    from pde.models.lfno import LFNO
    from pde.models.mno import mno
    from pde.models.resnet import ResNet
    from pde.models.sfno import SFNO
    from pde.models.tfnet import TFNet
    from pde.models.unet import UNet

    makers: dict[str, Any] = {
        "mno": mno,
        "lfno": LFNO,
        "fno": FNO,
        "ffno": FFNO,
        "sfno": SFNO,
        "unet": UNet,
        "tfnet": TFNet,
        "resnet": ResNet,
    }
    if name not in makers:
        raise UserError(f"there is no model {name!r}; choose one of {', '.join(MODELS)}.")
    return makers[name]


def all_options(name: str, chosen: dict[str, Any]) -> dict[str, Any]:
    """The chosen options of a model and the defaults of the others, so that weights outlive a change of defaults.

    >>> all_options("ffno", {"modes": 8})
    {'width': 20, 'modes': 8, 'depth': 4, 'expansion': 2}
    """
    parameters = inspect.signature(maker(name)).parameters
    defaults = {
        key: parameter.default
        for key, parameter in parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
    return defaults | chosen


def build(name: str, in_channels: int, resolution: Resolution, fields: int = 1, **options: Any) -> "Model":
    """The model called `name`, from (batch, x, y, in_channels) to (batch, x, y, fields).

    The channels are the fields of the frames that the model sees; `resolution` is the number of points per side, or
    (rows, columns).
    """
    make = maker(name)
    try:
        model: Model = make(in_channels, resolution, fields, **options)
    except (ValueError, TypeError) as error:
        raise UserError(f"{name} cannot be built on {shown(resolution)} points: {error}") from error
    return model
