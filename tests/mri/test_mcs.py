"""Monarch compressed sensing: what its parts are at the start, what it is equivariant to, and that it learns."""

import pytest
import scipy.fft
import torch

from data.scans.sense import Sense, sample
from lab.errors import UserError
from mri.models.mcs import MonarchCS, noise_level
from mri.models.parts.patches import PatchTransform

PLANE = (16, 12)


def disturbed(plane=PLANE, **options) -> MonarchCS:
    """A method in double precision with parameters away from their start."""
    method = MonarchCS(plane, dtype=torch.float64, **options)
    with torch.no_grad():
        for parameter in method.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return method


def relative(found: torch.Tensor, expected: torch.Tensor) -> float:
    return float(((found - expected).norm() / expected.norm()).detach())


def test_parameter_count_does_not_depend_on_the_plane():
    assert MonarchCS((512, 160)).num_parameters == 2 * 1_024 + 3 * 8 * 63 + 63 + 17 == 3_640
    assert MonarchCS((40, 30)).num_parameters == 3_640
    assert MonarchCS(PLANE, transform="fixed").num_parameters == 3_640 - 1_024
    assert MonarchCS(PLANE, pooling="none").num_parameters == 3_640 - 1_024
    assert MonarchCS(PLANE, shrinkage="soft").num_parameters == 3_640 - 8 * 63
    assert MonarchCS(PLANE, joint_echoes=True).num_parameters == 3_640 + 2 * 63


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.float64, 1e-12)])
def test_transform_starts_at_the_cosine_transform_of_each_patch(dtype, tolerance):
    method = MonarchCS(PLANE, dtype=dtype)
    image = torch.randn(*PLANE, dtype=dtype)
    first = next(method.patch_transforms(PLANE))
    padded = torch.nn.functional.pad(image, (4, 4, 4, 4)).numpy()
    corners = [(row, column) for row in range(0, 20, 4) for column in range(0, 16, 4)]
    for number, (row, column) in enumerate(corners):
        expected = scipy.fft.dctn(padded[row : row + 8, column : column + 8], norm="ortho").ravel()[1:] / 2
        assert abs(first(image)[:, number].detach().numpy() - expected).max() < tolerance


@pytest.mark.parametrize("plane", [(16, 12), (13, 9), (5, 30)])
@pytest.mark.parametrize("offset", [(0, 0), (3, 1)])
def test_patches_of_an_orthonormal_matrix_are_a_tight_frame(plane, offset):
    matrix = torch.linalg.qr(torch.randn(64, 64, dtype=torch.float64)).Q
    W = PatchTransform(plane, matrix, 4, offset)
    image = torch.randn(2, *plane, dtype=torch.float64)
    assert relative(W.adjoint(W(image)), image) < 1e-12


def test_adjoint_of_the_patch_transform_is_its_transpose_and_the_monarchs_adjoint():
    method = disturbed()
    for W in method.patch_transforms((9, 14)):
        x = torch.randn(9, 14, dtype=torch.float64)
        z = torch.randn(W.out_shape, dtype=torch.float64)
        assert torch.allclose((W(x) * z).sum(), (x * W.adjoint(z)).sum())
    patch = torch.randn(8, 8, dtype=torch.float64)
    dense = method.transform.monarch.to_dense()
    assert torch.allclose(dense @ patch.flatten(), method.transform(patch).flatten())
    assert torch.allclose(dense.mT @ patch.flatten(), method.transform.adjoint(patch).flatten())


def test_every_iteration_moves_the_patches():
    transforms = list(MonarchCS(PLANE).patch_transforms(PLANE))
    assert len({tuple(W.padding) for W in transforms}) == 8


def test_the_mean_is_not_shrunk():
    for W in MonarchCS(PLANE, dtype=torch.float64).patch_transforms((24, 24)):
        removed = W.adjoint(W(torch.ones(24, 24, dtype=torch.float64)))
        assert removed[8:-8, 8:-8].abs().max() < 1e-12  # at the edges patches see a step to the zeros outside


@pytest.mark.parametrize("shrinkage", ["power", "soft"])
def test_shrinkage_keeps_the_phase_and_takes_less_of_what_is_large(shrinkage):
    method = MonarchCS(PLANE, shrinkage=shrinkage, dtype=torch.float64)
    z = torch.randn(1, 2, 63, 1, dtype=torch.float64) * torch.logspace(-3, 3, 20, dtype=torch.float64)
    removed = method.shrinkage(2, z, torch.ones(1, dtype=torch.float64))
    share = removed / z
    assert torch.allclose(share[:, 0], share[:, 1])
    assert ((share > 0) & (share < 1)).all()
    assert (share.diff(dim=-1) < 0).all()
    power = 1.0 if shrinkage == "power" else 0.5
    t = method.theta[2].exp()[:, None]
    expected = 0.9 * z * (1 + (z.square().sum(1) / t.square())) ** -power
    assert torch.allclose(removed, expected)


def test_pooling_starts_near_the_identity():
    start = MonarchCS(PLANE, dtype=torch.float64).pooling.to_dense().square()
    row, column = torch.arange(64) // 8, torch.arange(64) % 8
    distance = (row[:, None] != row).int() + (column[:, None] != column).int()
    assert torch.allclose(start, torch.tensor(0.01, dtype=torch.float64) ** distance)


def test_a_larger_neighbour_never_makes_a_coefficient_shrink_more():
    method, noise = MonarchCS(PLANE, dtype=torch.float64), torch.ones(1, dtype=torch.float64)
    with torch.no_grad():
        method.pooling.R += torch.randn_like(method.pooling.R)  # of either sign
    squares = method.pooling.to_dense()[1:, 1:].square()
    z = torch.randn(1, 2, 63, 1, dtype=torch.float64)
    louder = z.clone()
    louder[:, :, 20] *= 10
    before, after = (method.shrinkage(0, each, noise, squares) / each for each in (z, louder))
    assert (after <= before).all()
    assert (after < before).sum() > 60


def test_a_coefficient_is_judged_by_the_pooled_energy_of_its_patch():
    method, noise = disturbed(), torch.tensor([0.3, 2.0], dtype=torch.float64)
    z = torch.randn(2, 2, 63, 5, dtype=torch.float64)
    squares = method.pooling.to_dense()[1:, 1:].square()
    found = method.shrinkage(4, z, noise, squares)
    for slice_, patch in ((0, 3), (1, 0)):
        t = method.theta[4].exp() * noise[slice_] ** method.gamma
        energy = (z[slice_, :, :, patch].square().sum(0)) / t**2
        gain = method.alpha[4] * (1 + squares @ energy) ** -method.q[4]
        assert torch.allclose(found[slice_, :, :, patch], gain * z[slice_, :, :, patch])


def test_without_mixing_pooling_is_none(problem):
    given, pooled, alone = problem(PLANE), disturbed(), disturbed(pooling="none")
    with torch.no_grad():
        block = torch.eye(8, dtype=torch.float64)
        pooled.pooling.R.copy_(block[None, :, None, :].expand(8, -1, -1, -1))
        pooled.pooling.L.copy_(block[None, :, :, None].expand(8, -1, -1, -1))
    alone.load_state_dict({k: v for k, v in pooled.state_dict().items() if not k.startswith("pooling")})
    assert relative(pooled(*given.inputs), alone(*given.inputs)) < 1e-12


def test_echoes_lend_each_other_energy_by_their_noise():
    method = disturbed(joint_echoes=True)
    energy, noise = torch.rand(6, 63, 4, dtype=torch.float64), torch.rand(6, dtype=torch.float64) + 0.1
    found = method.lent(energy, noise, echoes=3)
    for first in (0, 3):
        for echo in range(3):
            others = [first + other for other in range(3) if other != echo]
            terms = [(noise[first + echo] / noise[at]) ** method.delta[:, None] * energy[at] for at in others]
            expected = method.kappa.exp()[:, None] * sum(terms) / 2
            assert torch.allclose(found[first + echo], expected)


def test_joint_echoes_without_coupling_are_reconstructed_as_they_are_alone(problem):
    given, joint = problem(PLANE, batch=4), disturbed(joint_echoes=True)
    inputs = *given.inputs[:3], torch.tensor([0, 1, 0, 1])
    coupled = joint(*inputs)
    with torch.no_grad():
        joint.kappa.fill_(-80)
    alone = disturbed()
    alone.load_state_dict({k: v for k, v in joint.state_dict().items() if k not in ("kappa", "delta")})
    assert relative(joint(*inputs), alone(*inputs)) < 1e-12
    assert relative(coupled, alone(*inputs)) > 1e-4
    one_echo = *given.inputs[:3], torch.zeros(4, dtype=torch.long)
    with torch.no_grad():
        joint.kappa.fill_(3)
    assert relative(joint(*one_echo), alone(*one_echo)) < 1e-12


def test_joint_echoes_may_come_in_any_scale_phase_and_order(problem):
    given, method = problem(PLANE, batch=4), disturbed(joint_echoes=True)
    kspace, maps, mask = given.inputs[:3]
    echo = torch.tensor([0, 1, 0, 1])
    image = method(kspace, maps, mask, echo)
    factors = torch.tensor([1e-3, 4j, 5, -2j], dtype=torch.complex128)
    found = method(factors[:, None, None, None] * kspace, maps, mask, echo)
    assert relative(found, factors[:, None, None] * image) < 1e-10
    order = [1, 0, 3, 2]
    assert relative(method(kspace[order], maps[order], mask[order], echo), image[order]) < 1e-10


def test_echoes_that_do_not_stand_together_are_refused(problem):
    given = problem(PLANE, batch=3)
    with pytest.raises(ValueError, match=r"stand one after the other, slice by slice; got \[0, 0, 1\]"):
        disturbed(joint_echoes=True)(*given.inputs[:3], torch.tensor([0, 0, 1]))


def test_noise_level_is_that_of_the_outer_samples():
    kspace = 10 * torch.randn(2, 4, 64, 64, dtype=torch.complex128)
    mask = torch.rand(2, 64, 64) < 0.5
    ky, kz = ((torch.arange(64) - 32) / 32 for _ in range(2))
    radius = torch.hypot(ky[:, None], kz)
    kspace[..., radius < 0.7] *= 50
    found = noise_level(sample(kspace, mask), mask)
    assert (found / 10 - 1).abs().max() < 0.05


def test_coils_that_a_batch_adds_do_not_lower_the_noise_level():
    torch.manual_seed(0)
    kspace, mask = torch.randn(1, 4, 20, 16, dtype=torch.complex128), torch.rand(1, 20, 16) < 0.5
    filled = torch.cat((kspace, torch.zeros_like(kspace)), 1)
    assert torch.equal(noise_level(filled, mask), noise_level(kspace, mask))


def test_scale_and_phase_of_the_data_come_out_as_they_went_in(problem):
    given, method = problem(PLANE), disturbed()
    image = method(*given.inputs)
    for factor in (1e-6, 7.0, 3e5, 0.6 + 0.8j, -2j):
        assert relative(method(factor * given.kspace, *given.inputs[1:]), factor * image) < 1e-10


def test_scale_and_phase_may_differ_within_a_batch(problem):
    given, method = problem(PLANE), disturbed()
    factors = torch.tensor([1e-3, 4j], dtype=torch.complex128)
    found = method(factors[:, None, None, None] * given.kspace, *given.inputs[1:])
    assert relative(found, factors[:, None, None] * method(*given.inputs)) < 1e-10


def test_another_matrix_size_and_another_acceleration_need_no_other_weights(problem):
    method = disturbed()
    for plane in ((16, 12), (13, 21), (6, 5)):
        given = problem(plane)
        small = disturbed(plane)
        small.load_state_dict(method.state_dict())
        image = method(*given.inputs)
        assert image.shape == given.image.shape
        assert torch.equal(image, small(*given.inputs))


def test_without_shrinkage_and_momentum_it_is_landweber_iteration(problem):
    given, method = problem(PLANE), MonarchCS(PLANE, iterations=3, dtype=torch.float64)
    with torch.no_grad():
        method.alpha.zero_()
        method.beta.zero_()
    measure = Sense(given.maps, given.mask)
    image = torch.zeros_like(given.image)
    for _ in range(4):
        image = image + measure.adjoint(given.kspace - measure(image))
    assert relative(method(*given.inputs), image) < 1e-12


def test_a_slice_without_samples_is_black(problem):
    given = problem(PLANE, dtype=torch.complex64)
    nothing = torch.zeros_like(given.mask)
    image = MonarchCS(PLANE)(sample(given.kspace, nothing), given.maps, nothing, given.echo)
    assert torch.equal(image, torch.zeros_like(image))


@pytest.mark.parametrize("joint", [False, True])
def test_gradients(problem, joint):
    given = problem((6, 4), coils=2, batch=1 + joint)
    method = disturbed((6, 4), iterations=2, patch=2, joint_echoes=joint)
    inputs = *given.inputs[:3], torch.arange(1 + joint)
    names, values = zip(*method.named_parameters(), strict=True)

    def image(*parameters):
        found = torch.func.functional_call(method, dict(zip(names, parameters, strict=True)), inputs)
        return torch.view_as_real(found)

    assert torch.autograd.gradcheck(image, values)


def test_an_odd_patch_is_refused():
    with pytest.raises(UserError, match="must be even, not 7"):
        MonarchCS(PLANE, patch=7)


def piecewise_constant(count: int, plane: tuple[int, int], maker: torch.Generator) -> torch.Tensor:
    """Images of a few overlapping rectangles, each with its own value and the whole with a smooth phase."""
    images = torch.zeros(count, *plane)
    for image in images:
        for _ in range(6):
            (top, left), (high, wide) = (
                [int(torch.randint(low, n // 2, (), generator=maker)) for n in plane] for low in (0, 4)
            )
            image[top : top + high, left : left + wide] += torch.rand((), generator=maker)
    phase = torch.linspace(0, 1, plane[0])[:, None] + torch.linspace(0, 2, plane[1])
    return torch.polar(images, phase.expand_as(images))


def test_a_few_steps_of_training_beat_zero_filled_sense_on_images_not_seen():
    plane, maker = (32, 24), torch.Generator().manual_seed(0)
    images = piecewise_constant(8, plane, maker)
    maps = torch.randn(1, 3, *plane, dtype=torch.complex64, generator=maker)
    maps = (maps / maps.abs().square().sum(1, keepdim=True).sqrt()).expand(8, -1, -1, -1)
    mask = torch.rand(8, *plane, generator=maker) < 0.4
    noise = 0.02 * torch.randn(8, 3, *plane, dtype=torch.complex64, generator=maker)
    kspace = sample(Sense(maps)(images) + noise, mask)
    train, test = slice(0, 4), slice(4, 8)

    def error(method, part):
        image = method(kspace[part], maps[part], mask[part], torch.zeros(4))
        return (image - images[part]).abs().square().mean()

    method = MonarchCS(plane, iterations=4)
    groups = [{"params": rate.parameters, "lr": 1e-3 * rate.factor} for rate in method.rates()]
    optimizer = torch.optim.AdamW(groups, weight_decay=0.0)
    untrained = float(error(method, test).detach())
    for _ in range(15):
        optimizer.zero_grad()
        error(method, train).log().backward()
        optimizer.step()
    zero_filled = (Sense(maps).adjoint(kspace) - images)[test].abs().square().mean()
    trained = float(error(method, test).detach())
    assert trained < 0.5 * untrained
    assert trained < 0.1 * float(zero_filled)
