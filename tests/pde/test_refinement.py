"""Fields carried on a finer grid than that of the data: the grid, transport, and the way into a forecast."""

from math import pi
from typing import Any

import pytest
import torch
from torch import Tensor

from data.fields.geometry import Box
from lab.errors import UserError
from pde.config import TableConfig, TrainConfig
from pde.models import build
from pde.models.parts.model import Model
from pde.models.parts.refinement import Refinement, nearest
from pde.models.parts.transport import REACH, Transport
from pde.predictor import Forecaster
from pde.problems import PROBLEMS, Symmetry
from pde.table import planned

TORUS = Box()
pytestmark = pytest.mark.usefixtures("double_precision")


def wave(kx: int, ky: int, resolution: tuple[int, int], shift: tuple[float, float] = (0.0, 0.0)) -> Tensor:
    x, y = torch.meshgrid(*TORUS.coordinates(*resolution), indexing="ij")
    return torch.cos(2 * pi * (kx * (x + shift[0]) + ky * (y + shift[1])) + 0.4)[None, ..., None]


# The grid


@pytest.mark.parametrize("times", [2, 3])
def test_a_refined_field_is_its_fourier_series_between_the_points(times: int) -> None:
    resolution = 8, 9
    finer = Refinement(resolution, times)
    field = wave(3, -2, resolution) + wave(1, 4, resolution)
    expected = wave(3, -2, finer.resolution) + wave(1, 4, finer.resolution)
    assert (finer.refined(field) - expected).abs().max() < 1e-12
    assert (finer.seen(expected) - field).abs().max() < 1e-12
    assert finer.seen(field) is field


def test_the_nearest_mode_is_the_nearest_one() -> None:
    finer, coarser = (5, 4), (3, 2)

    def modes(along_x: int, along_y: int) -> list[tuple[int, int]]:
        rows = [*range(along_x), *range(-along_x, 0)]
        return [(kx, ky) for ky in range(along_y) for kx in rows]

    known = modes(*coarser)
    for (kx, ky), index in zip(modes(*finer), nearest(finer, coarser).tolist(), strict=True):
        found = known[index]
        distance = max(abs(found[0] - kx), abs(found[1] - ky))
        assert distance == min(max(abs(other[0] - kx), abs(other[1] - ky)) for other in known)


@pytest.mark.parametrize("symmetry", PROBLEMS["navier-stokes"].symmetries, ids=lambda symmetry: symmetry.move)
def test_the_image_of_a_refined_field_is_the_refined_image(symmetry: Symmetry) -> None:
    """So forecasts on the finer grid can be averaged over images."""
    finer, field, once = (
        Refinement((16, 16), 2),
        torch.randn(3, 16, 16, 1, 1),
        torch.ones(3, dtype=torch.long),
    )
    fine = finer.refined(field)
    image = symmetry.image(fine, once * symmetry.order(fine) // symmetry.order(field))
    assert torch.equal(finer.seen(image), symmetry.image(finer.seen(fine), once))
    assert (image - finer.refined(symmetry.image(field, once))).abs().max() < 1e-12


# Transport


def test_a_wave_that_the_data_does_not_resolve_is_carried() -> None:
    """Of 16 points and a wave of ten periods the coarser grid makes one of six, which goes elsewhere."""
    transport = Transport((16, 16), TORUS, filter="none", refine=2)
    velocities = torch.tensor([0.31, -0.7, 0.44, 0.83])
    shift = REACH * (0.31 + 0.44), REACH * (-0.7 + 0.83)
    with torch.no_grad():
        moved = transport(wave(10, 3, (32, 32)), velocities.expand(1, 16, 16, 4))
        seen = transport(wave(10, 3, (16, 16)), velocities.expand(1, 16, 16, 4))
    expected = wave(10, 3, (32, 32), shift)
    assert (moved - expected).norm() < 0.05 * expected.norm()  # a spline through three points per period
    assert (seen - expected[:, ::2, ::2]).norm() > 0.5 * seen.norm()


def test_what_both_grids_hold_is_carried_alike() -> None:
    coarse, velocities = (16, 16), 0.3 * (wave(1, 0, (16, 16)) * torch.tensor([1.0, -1.0, 0.5, 0.2]))
    transport = Transport(coarse, TORUS, refine=2)
    with torch.no_grad():
        transport.filters.copy_(-0.2 * torch.rand_like(transport.filters))
        transport.filters[1] = 0.0  # after the way there are waves that only the finer grid holds
        here, there = (transport(wave(2, 1, grid), velocities) for grid in (coarse, (32, 32)))
    assert (there[:, ::2, ::2] - here).norm() < 2e-3 * here.norm()


def test_filters_of_the_finer_grid_are_those_of_the_nearest_frequency_and_what_was_learned() -> None:
    transport = Transport((8, 8), TORUS, refine=2)
    assert transport.finer is not None
    modes = [(kx, ky) for ky in range(8) for kx in (*range(8), *range(-8, 0))]
    known = [(kx, ky) for ky in range(4) for kx in (*range(4), *range(-4, 0))]
    with torch.no_grad():
        transport.filters[0].copy_(torch.randn_like(transport.filters[0]))
        transport.finer.filters[0].copy_(torch.randn_like(transport.finer.filters[0]))
        for kx, ky, like in ((2, 3, (2, 3)), (7, 1, (3, 1)), (-6, 5, (-4, 3))):
            made = transport(wave(kx, ky, (16, 16)), torch.zeros(1, 8, 8, 4))
            own = transport.finer.filters[0, modes.index((kx, ky))]
            factor = 1 + transport.filters[0, known.index(like)] + own
            assert (made - factor.squeeze() * wave(kx, ky, (16, 16))).abs().max() < 1e-10


def test_gradients_on_the_finer_grid_are_right() -> None:
    transport = Transport((4, 4), TORUS, refine=2)
    names = "filters", "finer.filters"

    def made(field: Tensor, velocities: Tensor, *filters: Tensor) -> Tensor:
        found = dict(zip(names, filters, strict=True))
        result: Tensor = torch.func.functional_call(transport, found, (field, velocities))
        return result

    filters = [(0.3 * torch.randn_like(transport.get_parameter(name))).requires_grad_() for name in names]
    field = torch.randn(1, 8, 8, 1, requires_grad=True)
    velocities = (0.4 * torch.randn(1, 4, 4, 4)).requires_grad_()
    assert torch.autograd.gradcheck(made, (field, velocities, *filters), eps=1e-7, atol=1e-5)


@pytest.mark.parametrize("model", ["mno", "lfno", "fno", "ffno"])
def test_a_model_steps_on_both_grids(model: str) -> None:
    """Of a smooth field both steps are the same at the points of the data, until the finer filters learn."""
    options = {"width": 4, "modes": 3, "depth": 2, "transport": True, "filter": "diagonal", "refine": 2}
    net = build(model, 1, 16, **options)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.mul_(1.3)
        here, there = (net.step(wave(2, 1, grid)) for grid in ((16, 16), (32, 32)))
        refined = net.refined(here[1])
    assert there[1].shape == (1, 32, 32, 1)
    assert (there[1] - refined).norm() < 1e-2 * refined.norm()
    assert (net.seen(there[0]) - here[0]).norm() < 1e-2 * here[0].norm()


# Forecasts


def small() -> Forecaster:
    design = {**PROBLEMS["navier-stokes"].design, "modes_y": 4}
    net = build("mno", 1, 16, **{**design, "width": 4, "modes": 4, "depth": 2, "refine": 2})
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            if "decoder" in name:
                parameter.mul_(30.0)  # velocities of some points
    return Forecaster(net, in_frames=1, residual=True).eval()


def test_a_forecast_is_led_in_by_a_step_through_a_known_frame() -> None:
    """At its points the frame is the known one; between them it is what the model has made of the frame before."""
    forecaster, given = small(), torch.randn(2, 16, 16, 3, 1)
    with torch.no_grad():
        begun = forecaster.begin(given)
        made = forecaster(forecaster.net.refined(given[..., 1:2, :]))
        assert begun.shape == (2, 32, 32, 1, 1)
        assert (begun[:, ::2, ::2] - given[..., 2:, :]).abs().max() < 1e-12
        own, shown = begun - made, given[..., 2:, :] - made[:, ::2, ::2]
        assert (own - forecaster.net.refined(shown)).abs().max() < 1e-12
        assert (begun - forecaster.net.refined(given[..., 2:, :])).norm() > 0.01 * begun.norm()
        alone = forecaster.begin(given[..., 2:, :])
        assert torch.equal(alone, forecaster.net.refined(given[..., 2:, :]))


def test_a_forecast_keeps_to_the_finer_grid_and_shows_the_points_of_the_data() -> None:
    forecaster, given = small(), torch.randn(2, 16, 16, 2, 1)
    with torch.no_grad():
        state, expected = forecaster.begin(given), []
        for _ in range(3):
            state = forecaster(state)
            expected.append(state[:, ::2, ::2])
        assert torch.equal(forecaster.predict(given, 3), torch.cat(expected, 3))


# Options


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"problem": "burgers-walls", "options": {"refine": 2}}, "--refine 2 is for a box that is periodic"),
        ({"options": {"refine": 2, "transport": False}}, "--refine 2 is for fields that are carried"),
        ({"options": {"refine": 2, "filter": "monarch"}}, "leave --refine out"),
    ],
)
def test_what_cannot_be_refined_is_refused_with_a_sentence(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        TrainConfig(**given)


def test_another_resolution_is_refused_with_a_sentence() -> None:
    with pytest.raises(UserError, match="what it carries has a finer grid of its own"):
        small().at_resolution(32)


def test_without_transport_there_is_nothing_to_refine() -> None:
    with pytest.raises(UserError, match="--refine 2 is for fields that are carried: add --transport true"):
        build("mno", 1, 16, width=4, modes=4, refine=2)


def test_rows_of_a_table_that_are_not_carried_are_not_refined() -> None:
    table = TableConfig(nus=[1e-5], models=["mno", "fno", "fno-transport"], options={"refine": 2})
    assert [run.options["refine"] for run in planned(table)] == [2, None, 2]


def test_a_model_without_a_finer_grid_has_one_grid() -> None:
    net: Model = build("mno", 1, 16, modes=4)
    field = torch.randn(2, 16, 16, 3)
    assert net.refined(field) is field
    assert net.seen(field) is field
    assert (net.lead, net.refine_from) == (0, 0.0)
