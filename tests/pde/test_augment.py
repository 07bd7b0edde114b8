"""Symmetries: the solvers have them, and training draws every one of them for inputs and answers alike."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from data.burgers.solver import Burgers
from data.darcy.medium import permeability
from data.darcy.solver import solve
from data.fields.layout import Grid
from data.navier_stokes.solver import NavierStokes
from data.shallow_water.initial import initial_state
from data.shallow_water.solver import ShallowWater
from lab.errors import UserError
from pde.augment import random_images
from pde.config import TrainConfig
from pde.experiment import make_training
from pde.problems import PROBLEMS, Symmetry
from pde.sources import Samples

Map = Callable[[Tensor], Tensor]


def darcy_answers(media: Tensor) -> Tensor:
    answers = [solve(medium.numpy(), np.ones(medium.shape)) for medium in media[..., 0]]
    return torch.from_numpy(np.stack(answers))[..., None]


def burgers_later(flows: Tensor) -> Tensor:
    solver = Burgers(0.02, tuple(flows.shape[1:3]))  # type: ignore[arg-type]
    later = [solver.integrate(modes, 0.1, 20) for modes in solver.to_modes(flows.movedim(-1, 1))]
    return solver.to_field(torch.stack(later)).movedim(1, -1)


def water_later(states: Tensor) -> Tensor:
    _, rows, columns, _ = states.shape
    solver = ShallowWater(rows, columns, 600.0)
    spectra = solver.base.grid2spec(states.movedim(-1, 1))
    return solver.to_grid(solver.integrate(spectra, 6)).movedim(1, -1)


def burgers_flows() -> Tensor:
    """Smooth enough for 16 points: the square's own sines, of different sizes in every direction."""
    modes = torch.randn(2, 2, 10, 10, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    damped = modes * torch.exp(-torch.arange(10.0)[:, None] - 0.7 * torch.arange(10.0))
    return Burgers(0.02, (16, 16)).to_field(damped).movedim(1, -1)


def water_states() -> Tensor:
    """Strong flows with nothing symmetric about them; hours later they have changed."""
    solver = ShallowWater(16, 32, 600.0)
    return solver.to_grid(
        torch.stack([initial_state(solver, 0, i, mach=4.0, degree_scale=5.0) for i in range(2)])
    ).movedim(1, -1)


def flow_fields() -> Tensor:
    """Strong enough to have changed within a unit of time, and free of what the solver would cut off."""
    drawn = torch.randn(2, 32, 32, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    flow = NavierStokes(1e-3, 32)
    smooth = flow.integrate(flow.to_modes(drawn), 2.0, 200)
    return 4 * flow.to_field(smooth)[..., None]


def flow_later(fields: Tensor) -> Tensor:
    flow = NavierStokes(1e-3, 32)
    return flow.to_field(flow.integrate(flow.to_modes(fields[..., 0]), 1.0, 60))[..., None]


SOLVED: dict[str, tuple[Callable[[], Tensor], Map]] = {
    "darcy": (
        lambda: torch.from_numpy(np.stack([permeability(16, 0, i) for i in range(2)]))[..., None],
        darcy_answers,
    ),
    "burgers-walls": (burgers_flows, burgers_later),
    "shallow-water": (water_states, water_later),
    "navier-stokes": (flow_fields, flow_later),
}
IMAGES = {"darcy": 8, "burgers-walls": 8, "shallow-water": 2 * 32, "navier-stokes": 4 * 32}
"""How many images a sample has on those grids, with itself."""


def symmetries(problem: str) -> list[Map]:
    """Each symmetry as a map of two samples, by steps of their own where it has more than one."""
    return [
        lambda fields, own=own: own.image(fields, torch.tensor([1, 1] if own.order(fields) == 2 else [3, 11]))
        for own in PROBLEMS[problem].symmetries
    ]


@pytest.mark.parametrize("problem", SOLVED)
def test_the_answer_to_an_image_is_the_image_of_the_answer(problem: str) -> None:
    make, solver = SOLVED[problem]
    given = make()
    answer = solver(given)
    scale = answer.flatten(0, -2).std(0)
    rounding = 1e-10 if problem == "navier-stokes" else 1e-7
    assert problem == "darcy" or ((answer - given).flatten(0, -2).std(0) > 1e-3 * scale).all()
    for image in symmetries(problem):
        assert not torch.allclose(image(given), given)
        assert ((solver(image(given)) - image(answer)).abs() < rounding * scale).all()


@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_inverse_undoes_an_image(problem: str) -> None:
    fields = torch.randn(6, 8, 8, 3, 3 if problem == "shallow-water" else 2)
    for symmetry in PROBLEMS[problem].symmetries:
        steps = torch.arange(6) % symmetry.order(fields)
        image = symmetry.image(fields, steps)
        assert torch.equal(symmetry.image(image, steps, inverse=True), fields)
        assert [torch.equal(one, other) for one, other in zip(image, fields, strict=True)] == [
            step == 0 for step in steps.tolist()
        ]


def test_a_shifted_transpose_is_not_its_own_inverse() -> None:
    """So that the test of inverses can tell the two ways apart."""
    transpose = Symmetry("transpose", odd=(0,), shift=(0.25, 0.125))
    fields, once = torch.randn(2, 8, 8, 1), torch.ones(2, dtype=torch.int64)
    image = transpose.image(fields, once)
    x, y = torch.meshgrid(torch.arange(8), torch.arange(8), indexing="ij")
    assert torch.equal(image, -fields[:, (y + 2) % 8, (x + 1) % 8])  # -w(y + a, x + b)
    assert torch.equal(transpose.image(image, once, inverse=True), fields)
    assert not torch.equal(transpose.image(image, once), fields)


@pytest.mark.parametrize("problem", SOLVED)
def test_samples_keep_to_their_answers_and_every_image_is_drawn(problem: str) -> None:
    torch.manual_seed(0)
    make, solver = SOLVED[problem]
    given = make()[:1]
    count = max(400, 20 * IMAGES[problem])
    seen, answers = random_images(
        PROBLEMS[problem].symmetries,
        given.expand(count, *given.shape[1:]),
        solver(given).expand(count, -1, -1, -1),
    )
    kinds, which = torch.unique(seen.flatten(1), dim=0, return_inverse=True)
    assert len(kinds) == IMAGES[problem]
    assert torch.bincount(which).min() > 0.2 * count / len(kinds)
    some = torch.randperm(count)[:4]
    expected, scale = solver(seen[some]), answers.flatten(0, -2).std(0)
    assert ((expected - answers[some]).abs() < 1e-7 * scale).all()


def test_the_axis_of_frames_stays_where_it_is() -> None:
    """Fields with an axis of frames, as whole forecasts have, are seen as each frame is."""
    frames = torch.randn(6, 4, 4, 3, 2)
    torch.manual_seed(1)
    symmetries = PROBLEMS["burgers-walls"].symmetries
    whole = random_images(symmetries, frames)[0]
    torch.manual_seed(1)
    single = random_images(symmetries, *frames.unbind(3))
    assert torch.equal(whole, torch.stack(single, dim=3))
    assert not torch.equal(whole, frames)


def test_training_sees_them_and_validation_does_not() -> None:
    torch.manual_seed(0)
    samples = Samples(*torch.randn(2, 8, 16, 16, 1, 1))
    for symmetries in (True, False):
        config = TrainConfig(problem="darcy", model="fno", options={"modes": 4}, symmetries=symmetries)
        training, _ = make_training(config, samples, Grid.of(PROBLEMS["darcy"].geometry, 16))
        losses = {training.training_step(list(samples), 0).item() for _ in range(4)}
        assert len(losses) == (4 if symmetries else 1)
        errors = [training.scores(list(samples))["error"] for _ in range(2)]
        assert torch.equal(*errors)


@pytest.mark.parametrize("name", PROBLEMS)
def test_an_equation_keeps_symmetries_that_its_domain_has(name: str) -> None:
    problem = PROBLEMS[name]
    assert {symmetry.move for symmetry in problem.symmetries} <= set(problem.geometry.symmetries)


@pytest.mark.parametrize(
    ("problem", "resolution", "message"),
    [
        ("darcy", (8, 12), "the symmetry 'transpose' needs as many rows as columns, not 8 x 12"),
        ("navier-stokes", (8, 12), "the symmetry 'turn diagonally' needs as many rows as columns"),
        (
            "navier-stokes",
            (10, 10),
            "'half turn' shifts by 0.25 of a period, which is no whole number of 10 points",
        ),
    ],
)
def test_grids_that_a_symmetry_does_not_map_onto_themselves_are_refused(problem, resolution, message):
    config = TrainConfig(problem=problem, model="fno", options={"modes": 2}, symmetries=True)
    grid = Grid.of(PROBLEMS[problem].geometry, *resolution)
    field = torch.randn(2, *resolution, 1, 1)
    with pytest.raises(UserError, match=message):
        make_training(config, Samples(field, field), grid)
