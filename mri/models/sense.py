"""Zero-filled SENSE."""

from torch import Tensor

from mri.models.parts.method import Method, sense_flops


class Sense(Method):
    """x = sum_c conj(S_c) F^H y_c with the centred orthonormal DFT F; nothing to learn."""

    any_plane = True
    not_in_pairs_because = None

    def forward(self, kspace: Tensor, maps: Tensor, mask: Tensor, echo: Tensor) -> Tensor:
        return self.measurement(maps).adjoint(kspace)

    def flops(self, coils: int) -> int:
        return sense_flops(self.plane, coils)
