"""What lies within the cells of a coarse grid: nothing lost, nothing gained, the same on any number of points."""

import pytest
import torch

from pde.config import TrainConfig
from pde.models import build
from pde.models.parts.cells import Cells, shares
from pde.models.parts.latent import LatentOperator


@pytest.mark.parametrize(("points", "parts"), [(64, 64), (85, 84), (64, 72), (5, 12), (1, 1)])
def test_shares_are_means_that_keep_the_integral(points: int, parts: int) -> None:
    matrix = shares(points, parts)
    assert (matrix >= 0).all()
    assert torch.allclose(matrix.sum(1), torch.ones(parts, dtype=torch.float64))
    assert torch.allclose(matrix.sum(0), torch.full((points,), parts / points, dtype=torch.float64))


def test_of_twice_as_many_points_every_value_is_kept_in_its_cell() -> None:
    field = torch.randn(2, 8, 12, 3, dtype=torch.float64)
    found = Cells((8, 12), (4, 6)).double()(field)
    assert found.shape == (2, 4, 6, 12)
    for row, column in ((0, 0), (3, 5), (1, 4)):
        within = field[:, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2]
        assert torch.equal(found[:, row, column], within.permute(0, 3, 1, 2).flatten(1))


def test_a_field_on_more_points_has_the_same_means() -> None:
    field = torch.randn(1, 8, 8, 2, dtype=torch.float64)
    finer = field.repeat_interleave(3, 1).repeat_interleave(3, 2)
    same = Cells((8, 8), (4, 4)).double()(field), Cells((24, 24), (4, 4)).double()(finer)
    assert torch.allclose(*same)


def test_cells_of_a_line_have_two_halves() -> None:
    assert Cells((16, 1), (8, 1))(torch.randn(2, 16, 1, 3)).shape == (2, 8, 1, 6)


def test_with_cells_the_layers_see_what_the_modes_do_not_hold() -> None:
    t = torch.arange(32) / 32 * 2 * torch.pi
    fine = torch.cos(9 * t)[None, :, None, None] * torch.ones(1, 32, 32, 1)
    x = torch.randn(1, 32, 32, 1)
    for cells in (False, True):
        model = build("lfno", 1, 32, width=4, modes=3, cells=cells)
        seen: list[torch.Tensor] = []
        model.layers[0].register_forward_pre_hook(lambda _, given, seen=seen: seen.append(given[0]))
        model(x), model(x + fine)
        assert ((seen[1] - seen[0]).norm() > 1e-2 * seen[0].norm()) == cells


def test_sheared_cells_commute_with_shifts_along_the_antidiagonal() -> None:
    """By an even number of points: by an odd one, cells become others."""
    options = {"width": 4, "modes": 3, "shear": True, "coordinates": "diagonal", "cells": True}
    model = build("lfno", 1, 16, **options).double()
    x = torch.randn(1, 16, 16, 1, dtype=torch.float64)
    made, of_shifted = model(x), model(x.roll((6, -6), (1, 2)))
    assert (of_shifted - made.roll((6, -6), (1, 2))).norm() < 1e-6 * made.norm()


def test_a_model_with_cells_sees_the_same_on_a_finer_grid() -> None:
    model = build("lfno", 1, 16, width=4, modes=3, cells=True, coordinates="geometry")
    assert isinstance(model, LatentOperator)
    x = torch.randn(1, 16, 16, 1)
    before = model._coarse_channels(x)
    after = model.resampled(32)._coarse_channels(x.repeat_interleave(2, 1).repeat_interleave(2, 2))
    assert torch.allclose(before, after, atol=1e-6)


@pytest.mark.parametrize(("problem", "cells"), [("darcy", True), ("navier-stokes", None)])
def test_the_design_of_a_problem_says_whether_layers_see_cells(problem: str, cells: bool | None) -> None:
    for model in ("mno", "lfno"):
        assert TrainConfig(problem=problem, model=model).options["cells"] is cells
    assert TrainConfig(problem="darcy", options={"twin": "fno"}).options["cells"] is None
