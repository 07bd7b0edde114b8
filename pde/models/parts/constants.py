"""Numbers that a module needs and does not learn, as exact as its precision allows."""

from typing import Any, Self

import torch
from torch import Tensor, nn


class Constants(nn.Module):
    """A module with constants that are known in double precision."""

    def __init__(self) -> None:
        super().__init__()
        self._exact: dict[str, Tensor] = {}

    def constant(self, name: str, value: Tensor) -> None:
        """Keep a constant, given in double precision, in that of the module, wherever it is moved to."""
        self._exact[name] = value
        self.register_buffer(name, value.to(torch.get_default_dtype()), persistent=False)

    def _apply(self, *how: Any, **options: Any) -> Self:
        super()._apply(*how, **options)
        for name, value in self._exact.items():
            here = getattr(self, name)
            # Of a module in single precision that becomes double, nothing is lost.
            setattr(self, name, value.to(here.dtype).to(here.device))
        return self
