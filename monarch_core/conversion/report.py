"""What a conversion did to each linear layer of a model, and why."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass


@dataclass(frozen=True)
class LayerReport:
    """One linear layer: replaced or left, and why."""

    name: str
    kind: str
    """The class of the dense layer."""
    size: str
    """Inputs and outputs: `768 -> 3072`, with the number of matrices in front if there are several."""
    replaced: bool
    reason: str
    """Why the layer was left as it is; empty for a replaced one."""
    dense_parameters: int
    parameters: int
    relative_error: float | None = None
    """||W - M||_F / ||W||_F of the projection; None where nothing was projected."""

    def __str__(self) -> str:
        if not self.replaced:
            return f"{self.name}  {self.kind} {self.size}  left: {self.reason}"
        share = self.parameters / self.dense_parameters
        error = "" if self.relative_error is None else f", relative error {self.relative_error:.2f}"
        return f"{self.name}  {self.kind} {self.size}  replaced: {share:.0%} of the parameters{error}"


@dataclass(frozen=True)
class ConversionReport:
    """What `monarchize` did: one entry per linear layer of the model, in the order of the model. Print it."""

    layers: tuple[LayerReport, ...]
    dense_parameters: int
    """Parameters of the whole model before."""
    parameters: int
    """Parameters of the whole model after."""

    @property
    def replaced(self) -> tuple[str, ...]:
        """The names of the layers that were replaced."""
        return tuple(layer.name for layer in self.layers if layer.replaced)

    @property
    def left(self) -> dict[str, str]:
        """The names of the layers that stayed as they were, each with the reason."""
        return {layer.name: layer.reason for layer in self.layers if not layer.replaced}

    @property
    def summary(self) -> str:
        reasons = Counter(reason for reason in self.left.values())
        left = "; ".join(f"{count} left: {reason}" for reason, count in reasons.most_common())
        counts = f"{len(self.replaced)} of {len(self.layers)} linear layers replaced"
        sizes = f"{self.dense_parameters:,} -> {self.parameters:,} parameters"
        return f"{counts}, {sizes}{'; ' if left else ''}{left}"

    def __str__(self) -> str:
        return "\n".join((*map(str, self.layers), self.summary))
