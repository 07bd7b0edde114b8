"""Converted models of Hugging Face's transformers with `save_pretrained` and `from_pretrained`.

Import this module before `from_pretrained`. It uses the way that transformers offers to quantisers: the structure of
the Monarch layers stands in config.json, and the layers take their places before the weights are loaded.
"""

from __future__ import annotations

from typing import Any
from weakref import ref

from torch import nn
from transformers import PreTrainedModel
from transformers.quantizers.auto import register_quantization_config, register_quantizer
from transformers.quantizers.base import HfQuantizer
from transformers.utils.quantization_config import QuantizationConfigMixin

from ..conversion.saving import METHOD, Structure, rebuild, structure


@register_quantization_config(METHOD)
class MonarchConfig(QuantizationConfigMixin):  # type: ignore[misc]
    """The structure of the Monarch layers, as `monarch_core.structure` gives it when the configuration is written.

    So whatever becomes of the layers later on, as when an adapter is merged into one, is in it.
    """

    def __init__(
        self, layers: Structure, quant_method: str = METHOD, model: PreTrainedModel | None = None
    ) -> None:
        self.quant_method = quant_method
        self._layers = layers
        self._model = (lambda: None) if model is None else ref(model)

    @property
    def model(self) -> PreTrainedModel | None:
        """The model that this belongs to, as long as there is one."""
        return self._model()

    @property
    def layers(self) -> Structure:
        return self._layers if self.model is None else structure(self.model)

    def to_dict(self) -> dict[str, Any]:
        return {"quant_method": self.quant_method, "layers": self.layers}

    def __deepcopy__(self, memo: dict[int, Any]) -> MonarchConfig:
        # While a model is copied, its copy is in memo already.
        return MonarchConfig(self.layers, model=memo.get(id(self.model), self.model))

    def __reduce__(self) -> Any:
        return MonarchConfig, (self.layers,)


@register_quantizer(METHOD)
class MonarchQuantizer(HfQuantizer):  # type: ignore[misc]
    """Puts the Monarch layers in place before the weights are loaded. Nothing is quantised, everything trains."""

    def is_serializable(self) -> bool:
        return True

    @property
    def is_trainable(self) -> bool:
        return True

    def _process_model_before_weight_loading(self, model: PreTrainedModel, **_: Any) -> PreTrainedModel:
        rebuild(model, self.quantization_config.layers)
        return model

    def _process_model_after_weight_loading(self, model: PreTrainedModel, **_: Any) -> PreTrainedModel:
        """Take away what marks a quantised model, which can be neither cast nor trained."""
        self.remove_quantization_config(model)
        for part in model.modules():
            if isinstance(part, PreTrainedModel) and hasattr(part.config, "_is_quantized"):
                del part.config._is_quantized
        note(model)
        return model


def note(model: nn.Module) -> None:
    """Have the configuration of each transformers model in `model` tell of its Monarch layers, if it has any."""
    if isinstance(model, PreTrainedModel):
        _note(model)
        return
    for child in model.children():
        note(child)


def _note(model: PreTrainedModel) -> None:
    config = model.config
    noted = getattr(config, "quantization_config", None)
    method = noted.get("quant_method") if isinstance(noted, dict) else getattr(noted, "quant_method", None)
    if noted is not None and method != METHOD:
        return
    # A part of a model shares its configuration, which is about the whole.
    whole = noted.model if isinstance(noted, MonarchConfig) else None
    if whole is None or all(part is not model for part in whole.modules()):
        whole = model
    layers = structure(whole)
    if layers:
        config.quantization_config = MonarchConfig(layers, model=whole)
    elif noted is not None:
        del config.quantization_config
