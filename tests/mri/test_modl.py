"""MoDL against dense algebra, and its gradients."""

import pytest
import torch

from data.scans.sense import Sense
from mri.models.modl import STRENGTH, MoDL, regularised
from mri.models.parts.solvers import conjugate_gradients
from tests.mri.conftest import Problem


def relative(found: torch.Tensor, expected: torch.Tensor) -> float:
    return float(((found - expected).norm() / expected.norm()).detach())


def test_modl_without_its_network_is_iterated_tikhonov_regularisation(problem, monkeypatch):
    monkeypatch.setattr("mri.models.modl.CG_ITERATIONS", 60)
    given, method = problem((6, 5), batch=2), MoDL((6, 5), iterations=3, channels=2).double()
    with torch.no_grad():
        for parameter in method.network.parameters():
            parameter.zero_()
    found = method(*given.inputs)
    for k in range(2):
        A = Sense(given.maps[k], given.mask[k]).to_dense()
        x = right = A.mH @ given.kspace[k].flatten()
        for _ in range(3):
            x = torch.linalg.solve(A.mH @ A + STRENGTH * torch.eye(30), right + STRENGTH * x)
        assert relative(found[k].flatten(), x) < 1e-7  # the strength is kept in single precision


def small(iterations: int) -> tuple[Problem, tuple[torch.Tensor, ...]]:
    given = Problem((4, 3), coils=2, batch=2)
    tensors = [torch.randn(2, 4, 3, dtype=torch.complex128, requires_grad=True) for _ in range(2)]
    return given, (*tensors, torch.tensor([0.3, 0.7], dtype=torch.float64, requires_grad=True)[:, None, None])


def test_gradients_of_the_solution():
    given, tensors = small(40)
    normal = Sense(given.maps, given.mask).normal
    assert torch.autograd.gradcheck(lambda *given: regularised(normal, *given, 40), tensors)


def test_gradients_of_the_solution_are_those_through_the_steps():
    given, (zero_filled, prior, strength) = small(40)
    normal = Sense(given.maps, given.mask).normal
    through = conjugate_gradients(lambda x: normal(x) + strength * x, zero_filled + strength * prior, 12)
    weights = torch.randn_like(prior)
    found = []
    for image in (through, regularised(normal, zero_filled, prior, strength, 40)):
        loss = (weights.conj() * image).real.sum()
        found.append(torch.autograd.grad(loss, (zero_filled, prior, strength), retain_graph=True))
    for one, other in zip(*found, strict=True):
        assert relative(one, other) < 1e-8


def test_modl_knows_neither_units_nor_matrix_size(problem):
    method = MoDL((12, 10), channels=4).double()
    for plane in ((12, 10), (16, 11)):
        given = problem(plane)
        image = method(*given.inputs)
        assert image.shape == given.image.shape
        assert relative(method(7 * given.kspace, *given.inputs[1:]), 7 * image) < 1e-10


def test_modl_learns_a_small_case(problem):
    torch.manual_seed(0)
    given = problem((16, 12), dtype=torch.complex64)
    method = MoDL((16, 12), iterations=2, channels=8)
    optimizer = torch.optim.Adam(method.parameters(), 3e-3)
    losses = []
    for _ in range(60):
        loss = (method(*given.inputs) - given.image).abs().square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]
    assert all(
        parameter.grad is not None and parameter.grad.abs().sum() > 0 for parameter in method.parameters()
    )


@pytest.mark.parametrize("channels", [32, 64])
def test_number_of_parameters(channels):
    ends = 2 * 2 * channels * 9 + channels + 2
    assert MoDL((96, 40), channels=channels).num_parameters == ends + 3 * (9 * channels**2 + channels) + 1
