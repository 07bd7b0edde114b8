"""Converted models of Hugging Face's transformers with `save_pretrained` and `from_pretrained`.

Import this module before `from_pretrained`. It uses the way that transformers offers to quantisers: the structure of
the Monarch layers stands in config.json, and the layers take their places before the weights are loaded.
"""

from __future__ import annotations

from typing import Any

from torch import nn
from transformers.quantizers.auto import register_quantization_config, register_quantizer
from transformers.quantizers.base import HfQuantizer
from transformers.utils.quantization_config import QuantizationConfigMixin

from ..conversion.convert import densify
from ..conversion.saving import METHOD, Structure, rebuild


@register_quantization_config(METHOD)
class MonarchConfig(QuantizationConfigMixin):  # type: ignore[misc]
    """The structure of the Monarch layers, as `monarch_core.structure` gives it."""

    def __init__(self, layers: Structure, quant_method: str = METHOD) -> None:
        self.quant_method = quant_method
        self.layers = layers


@register_quantizer(METHOD)
class MonarchQuantizer(HfQuantizer):  # type: ignore[misc]
    """Puts the Monarch layers in place before the weights are loaded. Nothing is quantised, everything trains."""

    is_trainable = True
    is_compileable = True

    def is_serializable(self) -> bool:
        return True

    def _process_model_before_weight_loading(self, model: nn.Module, **_: Any) -> nn.Module:
        rebuild(model, self.quantization_config.layers)
        return model

    def _dequantize(self, model: nn.Module, dtype: Any = None) -> nn.Module:
        return densify(model)
