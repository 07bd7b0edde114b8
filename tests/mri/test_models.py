"""Each method against an independent definition."""

import itertools

import pytest
import torch

from data.scans import sense
from data.scans.sense import fft2c, ifft2c, sample
from lab import weights
from lab.errors import UserError
from mri.config import TrainConfig
from mri.experiment import header
from mri.models import MODELS, build
from mri.models.dc_sense import DcSense
from mri.models.msense import MSense, separable_compensation
from mri.models.sense import Sense
from mri.models.unet import UNet
from mri.models.varnet import VarNet
from mri.predictor import load

TOLERANCE = {torch.complex64: 1e-5, torch.complex128: 1e-12}


def relative(found: torch.Tensor, expected: torch.Tensor) -> float:
    return float(((found - expected).norm() / expected.norm()).detach())


def inner(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    return torch.vdot(one.flatten(), other.flatten())


def measurement(given) -> sense.Sense:
    return sense.Sense(given.maps, given.mask)


def radial_density(plane: tuple[int, int]) -> torch.Tensor:
    ky, kz = (torch.linspace(-1, 1, n, dtype=torch.float64) for n in plane)
    return 1 / (1 + 3 * torch.hypot(ky[:, None], kz))


def test_parameter_counts_are_the_papers():
    assert MSense((512, 160)).num_parameters == 57_472
    assert UNet((512, 160)).num_parameters == 7_756_418
    assert Sense((512, 160)).num_parameters == DcSense((512, 160)).num_parameters == 0


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("form", ["separable", "grid"])
def test_msense_at_init_equals_sense(problem, dtype, form):
    plane = (512, 160) if form == "separable" else (32, 20)
    given = problem(plane, coils=2, batch=1, dtype=dtype)
    expected = Sense(plane)(*given.inputs)
    found = MSense(plane, form=form, dtype=dtype)(*given.inputs)
    assert relative(found, expected) < TOLERANCE[dtype]


def test_sense_is_the_adjoint_of_the_measurement(problem):
    given = problem((12, 10))
    y = sample(torch.randn_like(given.kspace), given.mask)
    measured = measurement(given)(given.image)
    back = Sense((12, 10))(y, given.maps, given.mask, given.echo)
    assert torch.allclose(
        torch.vdot(y.flatten(), measured.flatten()), torch.vdot(back.flatten(), given.image.flatten())
    )


@pytest.mark.parametrize("form", ["separable", "grid"])
def test_operator_of_a_trained_msense_has_the_right_adjoint(form):
    operator = MSense((12, 10), form=form, dtype=torch.complex128).operators[0]
    with torch.no_grad():
        for parameter in operator.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    x, y = torch.randn(2, 12, 10, dtype=torch.complex128)
    assert torch.allclose(
        torch.vdot(operator(x).flatten(), y.flatten()), torch.vdot(x.flatten(), operator.adjoint(y).flatten())
    )


def test_gradients_of_msense(problem):
    given = problem((6, 4), coils=2, batch=1)
    method = MSense((6, 4), steps=2, consistency=True, dtype=torch.complex128)
    names, values = zip(*method.named_parameters(), strict=True)

    def image(*parameters):
        found = torch.func.functional_call(method, dict(zip(names, parameters, strict=True)), given.inputs)
        return torch.view_as_real(found)

    assert torch.autograd.gradcheck(image, values)


@pytest.mark.parametrize("form", ["separable", "grid"])
def test_density_compensation_folds_exactly_into_the_factors(problem, form):
    plane, given = (16, 12), problem((16, 12))
    density = torch.outer(torch.rand(16) + 0.1, torch.rand(12) + 0.1)
    folded = MSense(plane, density, start="density", form=form, dtype=torch.complex128)
    folded.choose(0.3)
    assert folded.num_parameters == MSense(plane, form=form).num_parameters
    assert relative(folded(*given.inputs), ifft2c_combined(given, density.double() ** -0.3)) < 1e-6


def ifft2c_combined(given, weights):
    return (given.maps.conj() * ifft2c(given.kspace * weights)).sum(1)


def test_separable_weights_of_a_product_density_are_its_factors():
    ky, kz = torch.rand(9).double() + 0.2, torch.rand(7).double() + 0.2
    u, v = separable_compensation(torch.outer(ky, kz), 0.4)
    assert torch.allclose(torch.outer(u, v), torch.outer(ky, kz) ** -0.4, rtol=1e-9)


def test_dc_sense_reweights_frequencies(problem):
    plane, given = (16, 12), problem((16, 12))
    density = radial_density(plane).float()
    assert relative(DcSense(plane, density, 0.0)(*given.inputs), Sense(plane)(*given.inputs)) < 1e-7
    expected = ifft2c_combined(given, density.double() ** -0.7)
    assert relative(DcSense(plane, density, 0.7)(*given.inputs), expected) < 1e-6


def test_unrolled_steps_are_landweber_iterations_at_init(problem):
    plane, given = (12, 10), problem((12, 10))
    image = torch.zeros_like(given.image)
    for _ in range(4):
        residual = given.kspace - sample(fft2c(given.maps * image[:, None]), given.mask)
        image = image + (given.maps.conj() * ifft2c(residual)).sum(1)
    found = MSense(plane, steps=4, dtype=torch.complex128)(*given.inputs)
    assert relative(found, image) < 1e-12
    assert MSense(plane, steps=4).num_parameters == MSense(plane).num_parameters


def test_consistency_restores_what_one_coil_measured(problem):
    given = problem((12, 10), coils=1)
    method = MSense((12, 10), consistency=True, dtype=torch.complex128)
    with torch.no_grad():
        for parameter in method.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    again = measurement(given)(method(*given.inputs))
    assert relative(again, given.kspace) < 1e-12


def test_echoes_have_operators_of_their_own(problem):
    given = problem((12, 10), batch=4)
    method = MSense((12, 10), per_echo=True, dtype=torch.complex128)
    before = method(*given.inputs)
    with torch.no_grad():
        next(method.operators[1].parameters()).mul_(2)
    after = method(*given.inputs)
    assert torch.equal(after[given.echo == 0], before[given.echo == 0])
    assert torch.allclose(after[given.echo == 1], 2 * before[given.echo == 1])
    later = method(*given.inputs[:3], given.echo + 1)  # echoes 2 and 3: both have the last operator
    assert torch.allclose(later, 2 * MSense((12, 10), dtype=torch.complex128)(*given.inputs))
    pairs = method.in_pairs().double()
    real = [torch.view_as_real(each) for each in given.inputs[:2]]
    assert torch.allclose(torch.view_as_complex(pairs(*real, given.mask.double(), given.echo + 1)), later)


def test_unet_takes_sides_that_do_not_halve_evenly(problem):
    given = problem((44, 22), dtype=torch.complex64)
    image = UNet((44, 22), channels=2)(*given.inputs)
    assert image.shape == given.image.shape
    assert image.dtype == torch.complex64


def test_msense_counts_two_matrix_products_a_block():
    # 96 = 8 x 12 and 40 = 5 x 8: R and L of each axis meet every line of the other one.
    blocks = 40 * (8 * 12 * 12 + 12 * 8 * 8) + 96 * (5 * 8 * 8 + 8 * 5 * 5)
    assert MSense((96, 40)).flops(coils=3) == 8 * 3 * blocks + 8 * 3 * 96 * 40


@pytest.mark.parametrize("name", ["sense", "msense", "dc-sense", "cg-sense", "l1-wavelet"])
def test_full_sampling_gives_the_image_back(problem, name):
    given = problem((32, 24), batch=1, dtype=torch.complex64)
    method = build(name, (32, 24))
    if "strength" in dict(method.named_buffers()):
        method.strength.fill_(0.0 if name == "dc-sense" else 1e-6)
    image = method(given.full, given.maps, torch.ones_like(given.mask), given.echo)
    assert relative(image, given.image) < 1e-4


def test_unet_knows_how_bright_a_slice_is(problem):
    given = problem((32, 32), dtype=torch.complex64)
    method = UNet((32, 32), channels=2)
    image = method(*given.inputs)
    brighter = method(7 * given.kspace, *given.inputs[1:])
    assert relative(brighter, 7 * image) < 1e-4


def test_unet_refuses_slices_that_vanish_in_its_pools():
    with pytest.raises(UserError, match="at least 16 x 32"):
        UNet((16, 16))


def test_varnet_has_two_sizes():
    assert VarNet((512, 160)).num_parameters == 175_314
    assert VarNet((96, 40), channels=27).num_parameters == 1_989_054


def test_varnet_without_its_networks_is_landweber_iteration(problem):
    given, method = problem((16, 12)), VarNet((16, 12), cascades=3, channels=2).double()
    with torch.no_grad():
        for parameter in method.refinements.parameters():
            parameter.zero_()
    image = torch.zeros_like(given.image)
    for _ in range(4):
        image = image + measurement(given).adjoint(given.kspace - measurement(given)(image))
    assert relative(method(*given.inputs), image) < 1e-12


def test_varnet_adds_what_its_networks_find(problem):
    given, method = problem((16, 12)), VarNet((16, 12), cascades=1, channels=2).double()
    zero_filled = Sense((16, 12))(*given.inputs)
    residual = given.kspace - measurement(given)(zero_filled)
    gradient = Sense((16, 12))(residual, *given.inputs[1:])
    expected = (
        zero_filled + gradient + method.refinements[0](*given.inputs)
    )  # a U-Net on the zero-filled image
    assert relative(method(*given.inputs), expected) < 1e-12


def test_varnet_knows_how_bright_a_slice_is(problem):
    given, method = problem((16, 12)), VarNet((16, 12), channels=2).double()
    assert relative(method(7 * given.kspace, *given.inputs[1:]), 7 * method(*given.inputs)) < 1e-4


@pytest.mark.parametrize("name", MODELS)
def test_every_entry_builds_and_reconstructs(problem, name):
    given = problem((32, 32), dtype=torch.complex64)
    method = build(name, (32, 32), torch.rand(32, 32) + 0.1)
    assert method.flops(coils=3) > 0
    assert (method.num_parameters > 0) == MODELS[name].learned
    image = method(*given.inputs)
    assert image.shape == given.image.shape
    assert image.dtype == torch.complex64
    if not method.any_plane:
        return
    other = problem((40, 32), dtype=torch.complex64)
    assert method(*other.inputs).shape == other.image.shape


@pytest.mark.parametrize("name", MODELS)
def test_every_entry_loads_back_from_its_weights(problem, name, tmp_path):
    config = TrainConfig(model=name)
    method = build(name, (32, 32), torch.rand(32, 32) + 0.1, **config.options)
    if method.candidates:
        method.choose(method.candidates[-1])
    with torch.no_grad():
        for parameter in method.parameters():
            parameter += 0.01 * torch.randn_like(parameter)
    weights.save(tmp_path / "w.safetensors", method, header(method, config))
    loaded = load(tmp_path / "w.safetensors")
    given = problem((32, 32), dtype=torch.complex64)
    assert type(loaded.method) is type(method)
    assert loaded.header["acc"] == config.acc
    for key, tensor in method.state_dict().items():
        assert torch.equal(loaded.method.state_dict()[key], tensor)
    assert torch.equal(loaded.method(*given.inputs), method(*given.inputs))


@pytest.mark.parametrize("name", MODELS)
def test_every_candidate_changes_the_reconstruction(problem, name):
    options = {"start": "density"} if name == "msense" else {}
    method = build(name, (32, 32), torch.rand(32, 32) + 0.1, **options)
    given = problem((32, 32), batch=1, dtype=torch.complex64)
    images = []
    for candidate in method.candidates[:3]:
        method.choose(candidate)
        images.append(method(*given.inputs).detach())
    for one, other in itertools.pairwise(images):
        assert relative(one, other) > 1e-6


@pytest.mark.parametrize(
    "change",
    [
        {"options": {"steps": 10**9}},
        {"options": {"steps": -1}},
        {"options": {"form": "zzz"}},
        {"plane": [32]},
        {"plane": None},
        {"acc": "x"},
        {"mask": None},
        {"model": "nobody"},
    ],
)
def test_a_header_that_describes_no_method_is_a_sentence(tmp_path, change):
    config = TrainConfig(model="msense")
    method = build("msense", (32, 32), **config.options)
    weights.save(tmp_path / "w.safetensors", method, header(method, config) | change)
    with pytest.raises(UserError, match=r"w\.safetensors describes no model that can be built"):
        load(tmp_path / "w.safetensors")
