"""What lies within the cells of a coarse grid: nothing lost, nothing gained, the same on any number of points."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from pde.config import TrainConfig
from pde.models import build
from pde.models.parts.cells import Cells, shares
from pde.problems import PROBLEMS


@pytest.mark.parametrize(("points", "parts"), [(64, 64), (85, 84), (64, 72), (5, 12), (1, 1)])
def test_shares_are_means_that_keep_the_integral(points: int, parts: int) -> None:
    matrix = shares(points, parts)
    assert (matrix >= 0).all()
    assert torch.allclose(matrix.sum(1), torch.ones(parts, dtype=torch.float64))
    assert torch.allclose(matrix.sum(0), torch.full((points,), parts / points, dtype=torch.float64))


@pytest.mark.parametrize("bounded", [(True, True), (False, False), (True, False)])
def test_of_twice_as_many_points_every_value_is_kept_in_its_cell(bounded: tuple[bool, bool]) -> None:
    field = torch.randn(2, 8, 12, 3, dtype=torch.float64)
    found = Cells((8, 12), (4, 6), bounded).double()(field)
    assert found.shape == (2, 4, 6, 12)
    for row, column in ((0, 0), (3, 5), (1, 4)):
        within = field[:, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2]
        assert torch.allclose(found[:, row, column], within.permute(0, 3, 1, 2).flatten(1), atol=1e-14)


def test_between_walls_a_field_on_more_points_has_the_same_means() -> None:
    field = torch.randn(1, 8, 8, 2, dtype=torch.float64)
    finer = field.repeat_interleave(3, 1).repeat_interleave(3, 2)
    walls = True, True
    same = Cells((8, 8), (4, 4), walls).double()(field), Cells((24, 24), (4, 4), walls).double()(finer)
    assert torch.allclose(*same)


def test_on_a_torus_a_field_on_more_points_has_the_same_values() -> None:
    def wave(n: int) -> torch.Tensor:
        t = torch.arange(n, dtype=torch.float64) / n * 2 * torch.pi
        return (torch.sin(3 * t + 1)[:, None] * torch.cos(2 * t))[None, ..., None]

    around = False, False
    found = [Cells((n, n), (4, 4), around).double()(wave(n)) for n in (8, 11, 24)]
    assert torch.allclose(found[0], found[1], atol=1e-12)
    assert torch.allclose(found[0], found[2], atol=1e-12)


def test_cells_of_a_line_have_two_halves() -> None:
    assert Cells((16, 1), (8, 1), (True, False))(torch.randn(2, 16, 1, 3)).shape == (2, 8, 1, 6)


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


def test_operations_are_those_that_torch_counts() -> None:
    cells = Cells((12, 10), (4, 6), (True, False))
    with FlopCounterMode(display=False) as counter:
        cells(torch.randn(1, 12, 10, 3))
    assert cells.flops(3) == counter.get_total_flops()


@pytest.mark.parametrize("problem", PROBLEMS)
def test_layers_see_cells_wherever_they_have_a_coarse_grid(problem: str) -> None:
    for model in ("mno", "lfno"):
        assert TrainConfig(problem=problem, model=model).options["cells"] is True
        assert TrainConfig(problem=problem, model=model, options={"cells": False}).options["cells"] is False
    assert TrainConfig(problem=problem, options={"twin": "fno"}).options["cells"] is None
