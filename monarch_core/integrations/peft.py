"""LoRA of Hugging Face's PEFT on top of Monarch layers.

config = with_monarch(LoraConfig(target_modules=["query", "value"]))
model = get_peft_model(model, config)
"""

from __future__ import annotations

import warnings
from typing import Any

from peft import LoraConfig
from peft.tuners.lora.layer import Linear as LoraLinear
from torch import nn

from ..linear import MonarchLinear


class LoraMonarch(LoraLinear):  # type: ignore[misc]
    """A MonarchLinear with a low-rank adapter. Merged, the sum is no Monarch matrix: the layer becomes dense."""

    base_layer: nn.Module

    def __init__(self, base_layer: MonarchLinear, adapter_name: str, **options: Any) -> None:
        with warnings.catch_warnings():
            # PEFT says so of every layer it does not know by name, although it finds the sizes.
            warnings.filterwarnings("ignore", "Unsupported layer type", UserWarning)
            super().__init__(base_layer, adapter_name, **options)

    def merge(self, safe_merge: bool = False, adapter_names: list[str] | None = None) -> None:
        if isinstance(self.base_layer, MonarchLinear):
            self.fan_in_fan_out = self.base_layer.replaces == "conv1d"  # whose weight is (in, out)
            self.base_layer = self.base_layer.to_dense_layer()
        super().merge(safe_merge, adapter_names)


def with_monarch(config: LoraConfig) -> LoraConfig:
    """The same configuration, which now also adapts MonarchLinear layers."""
    config._register_custom_module({MonarchLinear: LoraMonarch})
    return config
