"""Iterative SENSE and compressed sensing against sigpy, their objectives and their definitions."""

import numpy as np
import pytest
import torch

from data.scans.sense import Sense
from lab import weights
from mri.config import TrainConfig
from mri.experiment import header
from mri.models.cg_sense import CgSense
from mri.models.dc_sense import DcSense
from mri.models.l1_wavelet import L1Wavelet, shrunk
from mri.models.parts.solvers import conjugate_gradients, inner, largest_eigenvalue
from mri.models.parts.wavelets import LOW, Wavelets
from mri.predictor import load


def relative(found: torch.Tensor, expected: torch.Tensor) -> float:
    return float((found - expected).norm() / expected.norm())


def sigpy_images(app, given, strength: float, **options) -> torch.Tensor:
    """What an app of sigpy makes of each slice."""
    images = [
        app(y.numpy(), s.numpy(), strength, weights=m.double().numpy(), show_pbar=False, **options).run()
        for y, s, m in zip(given.kspace, given.maps, given.mask, strict=True)
    ]
    return torch.from_numpy(np.stack(images))


@pytest.mark.parametrize("plane", [(16, 12), (15, 11)])
@pytest.mark.parametrize("iterations", [3, 30])
def test_cg_sense_is_sigpys(problem, plane, iterations):
    from sigpy.mri.app import SenseRecon

    given = problem(plane, batch=3)
    method = CgSense(plane)
    method.choose((0.05, iterations))
    expected = sigpy_images(SenseRecon, given, 0.05, max_iter=iterations)
    assert relative(method(*given.inputs), expected) < 1e-8


@pytest.mark.parametrize("plane", [(32, 20), (31, 45)])
@pytest.mark.parametrize("iterations", [5, 40])
def test_l1_wavelet_is_sigpys(problem, plane, iterations):
    from sigpy.mri.app import L1WaveletRecon

    given = problem(plane, batch=2)
    measure = Sense(given.maps, given.mask)
    largest = largest_eigenvalue(measure.normal, measure.adjoint(given.kspace)).flatten().tolist()
    found = L1Wavelet(plane, strength=0.2, iterations=iterations)(*given.inputs)
    for number, value in enumerate(largest):
        one = type(
            "One", (), {key: getattr(given, key)[number : number + 1] for key in ("kspace", "maps", "mask")}
        )
        expected = sigpy_images(L1WaveletRecon, one, 0.2, max_iter=iterations, alpha=1 / value)
        assert relative(found[number], expected[0]) < 1e-8


def test_l1_wavelet_lowers_its_objective_as_far_as_sigpy_does(problem):
    """With step lengths that each finds by itself."""
    from sigpy.mri.app import L1WaveletRecon

    given, W = problem((32, 20), batch=1), Wavelets((32, 20), torch.float64)

    def objective(image):
        misfit = (Sense(given.maps, given.mask)(image) - given.kspace).abs().square().sum() / 2
        parts = torch.view_as_real(image).movedim(-1, 1)
        return float(misfit + 0.2 * torch.hypot(*W(parts).unbind(1)).sum())

    theirs = objective(sigpy_images(L1WaveletRecon, given, 0.2, max_iter=100))
    assert objective(L1Wavelet((32, 20), strength=0.2, iterations=100)(*given.inputs)) < 1.0001 * theirs


@pytest.mark.parametrize("plane", [(64, 40), (31, 45), (96, 33), (8, 6)])
def test_wavelets_are_those_of_pywavelets(plane):
    import pywt
    import sigpy

    x = torch.randn(*plane, dtype=torch.float64)
    ours = Wavelets(plane, torch.float64)(x)
    theirs = torch.from_numpy(sigpy.linop.Wavelet(plane)(x.numpy()))
    # The order differs, and sigpy's array has empty corners: compare what does not depend on either.
    assert np.allclose(pywt.Wavelet("db4").dec_lo, LOW, atol=1e-14)
    theirs = theirs[theirs != 0].sort().values
    assert torch.allclose(ours[ours != 0].sort().values, theirs, atol=1e-12)


@pytest.mark.parametrize("plane", [(64, 40), (31, 45), (8, 6)])
def test_wavelets_keep_lengths_and_have_the_right_adjoint(plane):
    W = Wavelets(plane, torch.float64)
    x, y = torch.randn(*plane, dtype=torch.float64), torch.randn(*W.out_shape, dtype=torch.float64)
    assert torch.allclose(W(x) @ y, (x * W.adjoint(y)).sum())
    assert torch.allclose(W.adjoint(W(x)), x, atol=1e-12)


def test_shrinkage_is_that_of_sigpy():
    import sigpy

    x = torch.randn(2, 32, 20, dtype=torch.complex128)
    wavelet = sigpy.linop.Wavelet((32, 20))
    prox = sigpy.prox.UnitaryTransform(sigpy.prox.L1Reg(wavelet.oshape, 0.7), wavelet)
    found = shrunk(x, Wavelets((32, 20), torch.float64), torch.full((2, 1, 1), 0.35))
    for one, theirs in zip(found, x, strict=True):
        assert np.allclose(one.numpy(), prox(0.5, theirs.numpy()))


def test_every_image_of_a_batch_is_solved_as_if_alone(problem):
    given = problem((12, 10), batch=4)
    for method in (CgSense((12, 10)), L1Wavelet((12, 10))):
        method.choose(method.candidates[0])
        method.choose(method.candidates[-1], echo=1)
        together = method(*given.inputs)
        for k in range(4):
            alone = method(*(each[k : k + 1] for each in given.inputs))
            assert relative(together[k : k + 1], alone) < 1e-12


def test_conjugate_gradients_solve_in_as_many_steps_as_there_are_eigenvalues():
    spectrum = torch.tensor([1.0, 2.0, 5.0, 5.0], dtype=torch.float64).reshape(1, 2, 2)
    right = torch.randn(3, 2, 2, dtype=torch.complex128)
    solved = conjugate_gradients(lambda x: spectrum * x, right, 3)
    assert relative(solved, right / spectrum) < 1e-12
    start = torch.randn_like(right)
    assert relative(conjugate_gradients(lambda x: spectrum * x, right, 3, start), right / spectrum) < 1e-12
    assert torch.equal(conjugate_gradients(lambda x: spectrum * x, 0 * right, 5), 0 * right)


def test_inner_products_are_real_parts():
    one, other = torch.randn(2, 3, 4, 5, dtype=torch.complex128)
    expected = [torch.vdot(a.flatten(), b.flatten()).real for a, b in zip(one, other, strict=True)]
    assert torch.allclose(inner(one, other).flatten(), torch.stack(expected))


def test_largest_eigenvalue_of_the_measurement(problem):
    given = problem((6, 5), batch=2)
    found = largest_eigenvalue(Sense(given.maps, given.mask).normal, given.image, 300).flatten()
    for k in range(2):
        A = Sense(given.maps[k], given.mask[k]).to_dense()
        assert torch.allclose(found[k], torch.linalg.matrix_norm(A, 2) ** 2, rtol=1e-5)


@pytest.mark.parametrize("made", [CgSense, L1Wavelet, DcSense])
def test_echoes_have_strengths_of_their_own_and_keep_them_in_the_weights(problem, made, tmp_path):
    given, density = problem((12, 10), batch=4), torch.rand(12, 10) + 0.1
    first, last = made.candidates[1], made.candidates[-1]
    method, alone = made((12, 10), density), [made((12, 10), density) for _ in range(2)]
    method.choose(first)
    method.choose(last, echo=1)
    for one, candidate in zip(alone, (first, last), strict=True):
        one.choose(candidate)
    found = method(*given.inputs)
    for number, one in enumerate(alone):
        mine = given.echo == number
        assert relative(found[mine], one(*given.inputs)[mine]) < 1e-12
    name = {CgSense: "cg-sense", L1Wavelet: "l1-wavelet", DcSense: "dc-sense"}[made]
    weights.save(tmp_path / "w.safetensors", method, header(method, TrainConfig(model=name)))
    assert torch.equal(load(tmp_path / "w.safetensors").method(*given.inputs), found)


def test_weights_with_one_number_for_all_echoes_are_read(tmp_path):
    method = DcSense((12, 10), torch.rand(12, 10))
    method.strength = torch.tensor(0.3, dtype=torch.float64)  # as it used to be stored
    weights.save(tmp_path / "w.safetensors", method, header(method, TrainConfig(model="dc-sense")))
    assert load(tmp_path / "w.safetensors").method.of_echo(
        "strength", torch.arange(2)
    ).flatten().tolist() == [0.3, 0.3]
