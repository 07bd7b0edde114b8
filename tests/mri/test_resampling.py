"""mSENSE at other matrix sizes, and sums of separable pairs."""

import pytest
import torch

from mri.models.msense import MSense, frequency_weights, inverse_dft
from mri.models.parts.resampling import resampled
from mri.models.sense import Sense


def transform(columns: torch.Tensor, fft) -> torch.Tensor:
    """The centred orthonormal transform of every column."""
    return torch.fft.fftshift(fft(torch.fft.ifftshift(columns, 0), dim=0, norm="ortho"), 0)


def relative(found: torch.Tensor, expected: torch.Tensor) -> float:
    return float(((found - expected).norm() / expected.norm()).detach())


def moved(method: MSense, by: float = 0.1) -> MSense:
    """As if it had learned."""
    with torch.no_grad():
        for parameter in method.parameters():
            parameter += by * torch.randn_like(parameter)
    return method


@pytest.mark.parametrize("plane", [(96, 40), (104, 36), (87, 45), (64, 64)])
@pytest.mark.parametrize("rank", [1, 2])
def test_msense_at_init_equals_sense_at_every_size(problem, plane, rank):
    given, method = problem(plane, batch=1), MSense((96, 40), rank=rank, dtype=torch.complex128)
    assert relative(method(*given.inputs), Sense(plane)(*given.inputs)) < 1e-12


@pytest.mark.parametrize("n", [11, 12])
def test_resampling_to_the_same_size_changes_nothing(n):
    matrix = torch.randn(n, n, dtype=torch.complex128)
    assert torch.allclose(resampled(matrix, n), matrix)


@pytest.mark.parametrize("n", [9, 16, 20, 24])
def test_weights_of_frequencies_follow_the_highest_frequency(n):
    def weighted(size: int) -> torch.Tensor:
        """The inverse DFT times weights that are linear in k / k_max on each side, and leak into the next frequency."""
        k = (torch.arange(size, dtype=torch.float64) - size // 2) / size
        weights, leak = torch.diag(1 + k), torch.diag(0.3 - 0.1 * k).roll(1, 0)
        return transform((weights + leak).to(torch.complex128), torch.fft.ifft)

    found, expected = (transform(each, torch.fft.fft) for each in (resampled(weighted(16), n), weighted(n)))
    low = slice(1, n - max(2, n // 8))  # beyond the last old frequency there is nothing to interpolate
    assert torch.allclose(found[:, low], expected[:, low], atol=1e-12)


def test_gradients_reach_what_is_resampled(problem):
    given = problem((6, 4), coils=2, batch=1)
    method = moved(MSense((8, 6), rank=2, dtype=torch.complex128))
    names, values = zip(*method.named_parameters(), strict=True)

    def image(*parameters):
        found = torch.func.functional_call(method, dict(zip(names, parameters, strict=True)), given.inputs)
        return torch.view_as_real(found)

    assert torch.autograd.gradcheck(image, values, fast_mode=True)


def test_rank_is_a_sum_whose_second_pair_learns_from_zero(problem):
    given = problem((12, 10), batch=1)
    method = MSense((12, 10), rank=2, dtype=torch.complex128)
    assert method.num_parameters == 2 * MSense((12, 10)).num_parameters
    method(*given.inputs).abs().square().sum().backward()
    assert next(method.operators[1].parameters()).grad.abs().sum() > 0
    moved(method)
    expected = sum((given.maps.conj() * each(given.kspace)).sum(1) for each in method.operators)
    assert relative(method(*given.inputs), expected) < 1e-12
    columns = sum(each.to_dense() for each in method.operators).norm(dim=0).reshape(12, 10)
    assert torch.allclose(frequency_weights(*method.operators), columns)


def test_echoes_keep_their_pairs(problem):
    given = problem((12, 10), batch=4)
    method = moved(MSense((12, 10), rank=2, per_echo=True, dtype=torch.complex128))
    found = method(*given.inputs)
    for number in (0, 1):
        operators = method.operators[2 * number : 2 * number + 2]
        expected = sum((given.maps.conj() * each(given.kspace)).sum(1) for each in operators)
        assert relative(found[given.echo == number], expected[given.echo == number]) < 1e-12


def test_one_pair_weighs_as_an_outer_product():
    operator = inverse_dft(
        (6, 4), "separable", (torch.rand(6).double(), torch.rand(4).double()), torch.complex64
    )
    dense = operator.to_dense().norm(dim=0).reshape(6, 4)
    assert torch.allclose(frequency_weights(operator), dense, atol=1e-6)
