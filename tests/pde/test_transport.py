"""Transport against exact solutions, and its filter against torch.fft and scipy.fft."""

from math import pi

import numpy as np
import pytest
import torch
from scipy.fft import dstn, idstn
from torch import Tensor

from data.fields.geometry import Box, Geometry, Sphere
from data.fields.layout import Grid
from lab.errors import UserError
from pde.models import build
from pde.models.options import Parity
from pde.models.parts.splines import Degree, spline_between_walls, spline_on_torus
from pde.models.parts.transport import REACH, Plane, Transport

TORUS, WALLS = Box(), Box("walls", "walls")
GRIDS: list[tuple[Geometry, tuple[int, int]]] = [
    (TORUS, (16, 16)),
    (TORUS, (9, 15)),
    (WALLS, (16, 12)),
    (Box("walls", "periodic"), (12, 16)),
    (Box("periodic", "walls"), (12, 16)),
    (Sphere(), (12, 24)),
    (Sphere("equiangular"), (13, 24)),
]
pytestmark = pytest.mark.usefixtures("double_precision")


def mesh(geometry: Geometry, resolution: tuple[int, int]) -> tuple[Tensor, Tensor]:
    x, y = torch.meshgrid(*geometry.coordinates(*resolution), indexing="ij")
    return x, y


def as_field(values: Tensor) -> Tensor:
    return values[None, ..., None]


def waves(x: Tensor, y: Tensor) -> Tensor:
    """A smooth function on the torus."""
    return torch.cos(2 * pi * (3 * x + y)) + torch.sin(2 * pi * (x - 4 * y) + 0.3)


# Exact solutions


@pytest.mark.parametrize("parity", ["even", "odd"])
@pytest.mark.parametrize(("geometry", "resolution"), GRIDS)
def test_a_field_that_nothing_moves_stays_as_it_is(
    geometry: Geometry, resolution: tuple[int, int], parity: Parity
) -> None:
    field = torch.randn(2, *resolution, 3)
    if geometry == Sphere("equiangular"):  # a pole is one point, whatever its longitude
        field[:, 0], field[:, -1] = field[:, :1, 0], field[:, -1:, 0]
    still = Transport(resolution, geometry, fields=3, parity=parity)(field, torch.zeros(2, *resolution, 4))
    rounding = 1e-8 if isinstance(geometry, Sphere) else 1e-10  # roots near a pole are smoothed by TINY
    assert (still - field).abs().max() < rounding


@pytest.mark.parametrize("resolution", [(48, 48), (40, 56)])
def test_a_rigid_motion_on_the_torus_moves_the_field(resolution: tuple[int, int]) -> None:
    x, y = mesh(TORUS, resolution)
    halves = torch.tensor([0.31, -1.7, 4.4, 0.83])  # the second half leads around the torus
    moved = Transport(resolution, TORUS)(as_field(waves(x, y)), halves.expand(1, *resolution, 4))
    expected = waves(x + REACH * (0.31 + 4.4), y + REACH * (-1.7 + 0.83))
    assert (moved - as_field(expected)).abs().max() < 1e-4


def taylor_green(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return (
        torch.sin(2 * pi * x) * torch.cos(2 * pi * y),
        -torch.cos(2 * pi * x) * torch.sin(2 * pi * y),
    )


def carried_back(x: Tensor, y: Tensor, time: float, steps: int = 64) -> tuple[Tensor, Tensor]:
    """Where points of a Taylor-Green vortex come from, by Runge-Kutta of order four."""
    h = -time / steps
    for _ in range(steps):
        a = taylor_green(x, y)
        b = taylor_green(x + h / 2 * a[0], y + h / 2 * a[1])
        c = taylor_green(x + h / 2 * b[0], y + h / 2 * b[1])
        d = taylor_green(x + h * c[0], y + h * c[1])
        x = x + h / 6 * (a[0] + 2 * b[0] + 2 * c[0] + d[0])
        y = y + h / 6 * (a[1] + 2 * b[1] + 2 * c[1] + d[1])
    return x, y


def error_in_a_vortex(n: int, time: float, degree: Degree = 1) -> float:
    """Of a scalar that a Taylor-Green vortex winds up, against characteristics followed finely."""
    x, y = mesh(TORUS, (n, n))
    transport = Transport((n, n), TORUS)
    transport.paths = Plane((n, n), TORUS, degree=degree)

    def scalar(x: Tensor, y: Tensor) -> Tensor:
        return torch.cos(2 * pi * x) + torch.sin(2 * pi * (x + y))

    half = -torch.stack(taylor_green(x, y), -1) * (time / 2 / REACH)
    with torch.no_grad():
        moved = transport(as_field(scalar(x, y)), torch.cat((half, half), -1)[None])
    return float((moved - as_field(scalar(*carried_back(x, y, time)))).abs().max())


def test_a_vortex_winds_up_a_scalar() -> None:
    assert error_in_a_vortex(128, 0.02) < 1e-4


def test_characteristics_are_of_third_order_in_a_step() -> None:
    """With velocities by cubic splines, so that characteristics are the only source of error."""
    long, short = (error_in_a_vortex(96, time, degree=3) for time in (0.12, 0.06))
    assert 6.5 < long / short < 9.5


def turned(points: Tensor, axis: Tensor, angle: float) -> Tensor:
    """Points in space, turned about a unit vector (Rodrigues)."""
    along = (points @ axis)[..., None] * axis
    across = torch.linalg.cross(axis.expand_as(points), points)
    return along + np.cos(angle) * (points - along) + np.sin(angle) * across


@pytest.mark.parametrize("sphere", [Sphere(), Sphere("equiangular")])
@pytest.mark.parametrize("axis", [(0.0, 0.0, 1.0), (1.0, 0.0, 0.0), (0.48, -0.6, 0.64)])
def test_a_solid_rotation_of_the_sphere_turns_the_field(sphere: Sphere, axis: tuple[float, ...]) -> None:
    """Also across the poles, where longitudes jump."""
    resolution, angle, about = (49, 96), 0.15, torch.tensor(axis)
    points = sphere.features(*resolution)
    theta, phi = mesh(sphere, resolution)
    east = torch.stack((-phi.sin(), phi.cos(), torch.zeros_like(phi)), -1)
    south = torch.stack((theta.cos() * phi.cos(), theta.cos() * phi.sin(), -theta.sin()), -1)
    rate = torch.linalg.cross(about.expand_as(points), points) * (angle / 2)
    half = torch.stack(((rate * south).sum(-1), (rate * east).sum(-1)), -1) / (REACH * pi)

    def field(p: Tensor) -> Tensor:
        x, y, z = p.unbind(-1)
        return torch.stack((x * y + z, x**2 * z - y), -1)

    moved = Transport(resolution, sphere, fields=2)(field(points)[None], torch.cat((half, half), -1)[None])
    expected = field(turned(points, about, angle))
    assert (expected - field(points)).abs().max() > 0.1
    # Gauss's rows keep an uneven distance across the poles, which a spline by rows does not know.
    assert (moved[0] - expected).abs().max() < (2e-3 if sphere.latitudes == "equiangular" else 5e-3)


def test_an_odd_number_of_longitudes_has_no_other_side() -> None:
    with pytest.raises(UserError, match="an even number of longitudes is needed; there are 15"):
        build("fno", 1, Grid.of(Sphere(), 8, 15), width=4, modes=3, transport=True)


def test_a_filter_on_the_sphere_commutes_with_turns_of_longitude() -> None:
    transport = Transport((12, 24), Sphere())
    with torch.no_grad():
        transport.filters.normal_()
    field, velocities = torch.randn(2, 12, 24, 1), 0.3 * torch.randn(2, 12, 24, 4)
    made = transport(field, velocities).roll(5, 2)
    assert (transport(field.roll(5, 2), velocities.roll(5, 2)) - made).norm() < 1e-9 * made.norm()


@pytest.mark.parametrize("parity", ["even", "odd"])
@pytest.mark.parametrize("geometry", [WALLS, Box("walls", "periodic"), Box("periodic", "walls")])
def test_points_that_would_come_from_beyond_a_wall_come_from_the_wall(geometry: Box, parity: Parity) -> None:
    resolution = (12, 16)
    field = torch.randn(3, *resolution, 2)
    transport = Transport(resolution, geometry, fields=2, parity=parity)
    moved = transport(field, 20 * torch.randn(3, *resolution, 4))
    assert moved.isfinite().all()
    coefficients = field.permute(0, 3, 1, 2)
    for axis, (n, wall) in enumerate(zip(resolution, geometry.bounded, strict=True)):
        matrix = spline_between_walls(n, parity) if wall else spline_on_torus(n)
        coefficients = (matrix @ coefficients.movedim(2 + axis, -2)).movedim(-2, 2 + axis)
    lowest, highest = coefficients.amin((-2, -1)), coefficients.amax((-2, -1))
    assert (moved >= lowest[:, None, None] - 1e-9).all()
    assert (moved <= highest[:, None, None] + 1e-9).all()


def test_at_a_wall_all_that_lies_beyond_has_the_value_of_the_wall() -> None:
    x, _ = mesh(WALLS, (32, 8))
    outward = torch.zeros(1, 32, 8, 4)
    outward[..., 0] = outward[..., 2] = 50.0  # far beyond x = 1
    moved = Transport((32, 8), WALLS)(as_field(torch.cos(pi * x)), outward)
    assert (moved + 1).abs().max() < 1e-5


def test_what_is_zero_on_the_walls_and_would_come_from_beyond_is_zero() -> None:
    outward = torch.zeros(1, 12, 16, 4)
    outward[..., 0] = outward[..., 2] = 50.0
    moved = Transport((12, 16), WALLS, parity="odd")(torch.randn(1, 12, 16, 1), outward)
    assert moved.abs().max() < 1e-12


def test_near_walls_where_it_is_zero_a_field_is_carried_to_fourth_order() -> None:
    """Mirrored, it would have a kink on the wall, and the error would be of first order there."""
    errors = []
    for n in (32, 64):
        x, y = mesh(WALLS, (n, n))
        # A shift by 1/192, a third of the way between the spline's points of one grid, two thirds of the other's.
        to_the_left = torch.zeros(1, n, n, 4)
        to_the_left[..., 0] = to_the_left[..., 2] = -(1 / 384) / REACH
        transport = Transport((n, n), WALLS, filter="none", parity="odd")
        moved = transport(as_field(torch.sin(3 * pi * x) * torch.sin(pi * y)), to_the_left)
        expected = as_field(torch.sin(3 * pi * (x - 1 / 192)) * torch.sin(pi * y))
        errors.append(float((moved - expected)[:, : n // 4].abs().max()))
    assert errors[0] < 1e-5
    assert 13 < errors[0] / errors[1] < 19


# Filter


@pytest.mark.parametrize("resolution", [(16, 16), (12, 20)])
def test_filters_on_the_torus_multiply_frequencies(resolution: tuple[int, int]) -> None:
    rows, columns = resolution
    transport = Transport(resolution, TORUS, fields=2)
    with torch.no_grad():
        transport.filters.normal_()
    expected = field = torch.randn(3, *resolution, 2)
    for filter in transport.filters.detach():
        multipliers = torch.zeros(rows, columns // 2 + 1, 2)
        multipliers[:, : columns // 2] = filter.view(columns // 2, rows, 2).transpose(0, 1)
        spectrum = torch.fft.rfft2(expected, dim=(1, 2))
        expected = expected + torch.fft.irfft2(spectrum * multipliers, s=resolution, dim=(1, 2))
    made = transport(field, torch.zeros(3, *resolution, 4))
    assert (made - expected).norm() < 1e-10 * expected.norm()


@pytest.mark.parametrize(("geometry", "parity"), [(TORUS, "even"), (WALLS, "even"), (WALLS, "odd")])
def test_one_filter_acts_before_the_field_is_carried_and_the_other_after(
    geometry: Box, parity: Parity
) -> None:
    size, rest = (12, 16), torch.zeros(2, 12, 16, 4)
    field, velocities = torch.randn(2, *size, 1), 0.3 * torch.randn(2, *size, 4)
    both, before, after, neither = (Transport(size, geometry, parity=parity) for _ in range(4))
    with torch.no_grad():
        both.filters.normal_()
        before.filters[0] = both.filters[0]
        after.filters[1] = both.filters[1]
        expected = after(neither(before(field, rest), velocities), rest)
        assert (both(field, velocities) - expected).norm() < 1e-10 * expected.norm()


def test_filters_multiply_sines_of_fields_that_are_zero_on_walls() -> None:
    """With the multipliers of diffusion it is the exact solution of the heat equation between cold walls."""
    rows, columns = resolution = (12, 16)
    transport = Transport(resolution, WALLS, parity="odd")
    k, m = torch.meshgrid(torch.arange(1.0, rows + 1), torch.arange(1.0, columns + 1), indexing="ij")
    decay = torch.exp(-0.002 * pi**2 * (k**2 + m**2))
    # Modes are (frequency of y, of x); the sines of y are by turns real and imaginary parts.
    by_mode = (decay.sqrt() - 1).view(rows, columns // 2, 2).transpose(0, 1)
    with torch.no_grad():
        transport.filters.copy_(by_mode.reshape(-1, 1, 1, 2))
    field = torch.randn(resolution)
    expected = torch.from_numpy(idstn(decay.numpy() * dstn(field.numpy(), type=2), type=2))
    made = transport(as_field(field), torch.zeros(1, *resolution, 4))[0, ..., 0]
    assert (made - expected).norm() < 1e-10 * expected.norm()


@pytest.mark.parametrize("finer", [True, False])
@pytest.mark.parametrize(
    ("geometry", "parity"),
    [
        (TORUS, "even"),
        (WALLS, "even"),
        (WALLS, "odd"),
        (Box("walls", "periodic"), "even"),
        (Box("walls", "periodic"), "odd"),
        (Box("periodic", "walls"), "even"),
        (Box("periodic", "walls"), "odd"),
    ],
)
def test_on_another_grid_the_filter_does_the_same_to_what_both_grids_hold(
    geometry: Box, parity: Parity, finer: bool
) -> None:
    coarse, fine = (12, 10), (36, 30)
    here, there = (coarse, fine) if finer else (fine, coarse)
    transport = Transport(here, geometry, parity=parity)
    with torch.no_grad():
        transport.filters.normal_()

    def smooth(x: Tensor, y: Tensor) -> Tensor:
        functions = []
        for axis, wall in zip((x, y), geometry.bounded, strict=True):
            if wall and parity == "odd":
                functions.append(0.7 * torch.sin(pi * axis) - torch.sin(4 * pi * axis))
            elif wall:
                functions.append(1 + 0.7 * torch.cos(pi * axis) - torch.cos(4 * pi * axis))
            else:
                functions.append(1 + torch.sin(2 * pi * axis + 0.4) - 0.6 * torch.cos(4 * pi * axis))
        return functions[0] * functions[1]

    made = {
        size: each(as_field(smooth(*mesh(geometry, size))), torch.zeros(1, *size, 4))[0]
        for size, each in ((here, transport), (there, transport.resampled(there)))
    }
    common = made[fine][Grid.of(geometry, *fine).kept(3)]
    assert (common - made[coarse]).norm() < 1e-9 * made[coarse].norm()


def monarch(resolution: tuple[int, int] = (12, 12), sheared: bool = False) -> Transport:
    """A Monarch filter that matters; its transforms are still the Fourier transform."""
    transport = Transport(resolution, TORUS, filter="monarch", sheared=sheared)
    with torch.no_grad():
        transport.filters.normal_()
    return transport


def test_the_transforms_of_a_monarch_filter_begin_as_those_of_a_diagonal_one() -> None:
    field, rest = torch.randn(2, 12, 12, 1), torch.zeros(2, 12, 12, 4)
    learning, diagonal = monarch(), Transport((12, 12), TORUS)
    diagonal.filters = learning.filters
    assert (learning(field, rest) - diagonal(field, rest)).norm() < 1e-12 * field.norm()
    assert {"filters"} == {name for name, _ in diagonal.named_parameters()}
    assert len(list(learning.parameters())) == 3  # there and back, along x


def test_a_sheared_monarch_filter_commutes_with_shifts_along_the_other_diagonal_only() -> None:
    field, rest = torch.randn(1, 12, 12, 1), torch.zeros(1, 12, 12, 4)
    transport = monarch(sheared=True)
    with torch.no_grad():
        for parameter in transport.transform.parameters():
            parameter.normal_(std=0.1)

    def error(*shifts: int) -> float:
        before = transport(field.roll(shifts, (1, 2)), rest)
        after = transport(field, rest).roll(shifts, (1, 2))
        return float(((before - after).norm() / after.norm()).detach())

    assert error(5, -5) < 1e-12
    assert error(5, 0) > 1e-2


def test_a_monarch_filter_moves_to_finer_grids_only() -> None:
    transport, fine = monarch(), (36, 24)
    finer = transport.resampled(fine)
    rest = [torch.zeros(1, *size, 4) for size in ((12, 12), fine)]
    here, there = (
        part(as_field(waves(*mesh(TORUS, size))), still)
        for part, size, still in ((transport, (12, 12), rest[0]), (finer, fine, rest[1]))
    )
    assert (there[:, ::3, ::2] - here).norm() < 1e-9 * here.norm()
    assert transport.not_resampled_because(fine) is None
    assert "6 modes need at least twice as many points" in str(transport.not_resampled_because((8, 8)))


# Gradients


@pytest.mark.parametrize(("geometry", "resolution"), [(TORUS, (4, 5)), (WALLS, (4, 4)), (Sphere(), (4, 6))])
def test_gradients_of_fields_velocities_and_filters_are_right(
    geometry: Geometry, resolution: tuple[int, int]
) -> None:
    transport = Transport(resolution, geometry)
    weight = transport.filters

    def made(field: Tensor, velocities: Tensor, filters: Tensor) -> Tensor:
        inputs = (field, velocities)
        result: Tensor = torch.func.functional_call(transport, {"filters": filters}, inputs)
        return result

    field = torch.randn(1, *resolution, 1, requires_grad=True)
    velocities = (0.4 * torch.randn(1, *resolution, 4)).requires_grad_()
    filters = (0.3 * torch.randn_like(weight)).requires_grad_()
    assert torch.autograd.gradcheck(made, (field, velocities, filters), eps=1e-7, atol=1e-5)


def test_a_gradient_at_rest_is_finite() -> None:
    """Where no point moves, roots of squares have no slope of their own."""
    transport = Transport((6, 12), Sphere())
    velocities = torch.zeros(1, 6, 12, 4, requires_grad=True)
    transport(torch.randn(1, 6, 12, 1), velocities).square().sum().backward()
    assert velocities.grad is not None
    assert velocities.grad.isfinite().all()
    assert velocities.grad.abs().max() > 0


# Precision


@pytest.mark.parametrize(
    ("geometry", "resolution"), [(TORUS, (16, 16)), (Box("walls", "walls"), (12, 16)), (Sphere(), (12, 24))]
)
def test_nothing_of_a_module_in_single_precision_is_double_and_nothing_is_lost_on_the_way(
    geometry, resolution
) -> None:
    """Some devices have no double precision; in double, constants are those of a module made in double."""
    exact = Transport(resolution, geometry)
    torch.set_default_dtype(torch.float32)
    single = Transport(resolution, geometry)
    assert {tensor.dtype for tensor in single.buffers() if tensor.is_floating_point()} == {torch.float32}
    field, velocities = torch.randn(1, *resolution, 1), 0.3 * torch.randn(1, *resolution, 4)
    near = single(field, velocities)
    double = single.double()(field.double(), velocities.double())
    assert near.dtype == torch.float32
    assert (near - double).abs().max() < 1e-3
    for name, value in exact.named_buffers():
        if "transform" not in name:
            assert torch.equal(value, dict(single.named_buffers())[name])


def test_without_its_filters_the_transport_only_carries() -> None:
    field, velocities = torch.randn(1, 16, 16, 1), 0.3 * torch.randn(1, 16, 16, 4)
    alone, filtered = Transport((16, 16), TORUS, filter="none"), Transport((16, 16), TORUS)
    assert torch.equal(alone(field, velocities), filtered(field, velocities))  # filters begin at zero
    assert not alone.filters.requires_grad
    with torch.no_grad():
        filtered.filters.fill_(0.5)
    assert not torch.allclose(alone(field, velocities), filtered(field, velocities))
    assert alone.resampled((12, 12)).kind == "none"


@pytest.mark.parametrize("geometry", [TORUS, WALLS, Sphere()])
def test_in_mixed_precision_points_come_from_where_they_came_from(geometry: Geometry) -> None:
    transport = Transport((16, 32), geometry, filter="none").float()
    field, velocities = torch.randn(1, 16, 32, 1).float(), (0.3 * torch.randn(1, 16, 32, 4)).float()
    with torch.autocast("cpu", torch.bfloat16):
        mixed = transport(field, velocities)
    assert torch.equal(mixed, transport(field, velocities))


def test_velocities_in_half_precision_lead_to_the_same_places() -> None:
    transport = Transport((64, 64), TORUS).float()
    field, velocities = torch.randn(1, 64, 64, 1).float(), (0.3 * torch.randn(1, 64, 64, 4)).bfloat16()
    assert torch.equal(transport(field, velocities), transport(field, velocities.float()))
