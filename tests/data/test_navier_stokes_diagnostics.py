"""The viewer and the quantities it prints."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from data.darcy.config import GenerateConfig as DarcyConfig
from data.fields.generator import generate
from data.fields.options import ShowConfig
from data.fields.show import show
from data.navier_stokes.config import GenerateConfig
from data.navier_stokes.diagnostics import energy, enstrophy, spectrum, summary
from lab.errors import UserError


def test_energy_is_that_of_the_velocity_and_the_spectrum_sums_to_it() -> None:
    from data.navier_stokes.initial import initial_field
    from data.navier_stokes.solver import NavierStokes

    flow = NavierStokes(1e-3, 32)
    modes = flow.to_modes(torch.from_numpy(initial_field(32, 0, 0))[None])
    w = flow.to_field(modes)
    u, v = flow.velocity(modes)
    assert torch.allclose(energy(w), (u**2 + v**2).mean((1, 2)) / 2, rtol=1e-12)
    assert torch.allclose(spectrum(w).sum(-1), energy(w), rtol=1e-12)  # its modes are all inside |k| <= 16


def test_a_single_mode_is_in_its_shell() -> None:
    x = torch.arange(16, dtype=torch.float64) / 16
    w = torch.cos(2 * math.pi * 3 * x)[None, :].expand(16, 16)
    shells = spectrum(w)
    assert shells.argmax() == 3
    assert float(shells[3]) == pytest.approx(1 / (4 * (2 * math.pi * 3) ** 2))
    assert float(enstrophy(w)) == pytest.approx(0.25)


@pytest.mark.parametrize("resolution", [(16, 24), (24, 16)])
def test_a_grid_need_not_be_square(resolution: tuple[int, int]) -> None:
    x, y = (torch.arange(n, dtype=torch.float64) / n for n in resolution)
    w = torch.cos(2 * math.pi * 3 * x)[:, None] + 2 * torch.cos(2 * math.pi * 5 * y)
    shells = spectrum(w)
    assert len(shells) == 9
    for k, amplitude in ((3, 1), (5, 2)):
        assert float(shells[k]) == pytest.approx(amplitude**2 / (4 * (2 * math.pi * k) ** 2))
    assert float(energy(w)) == pytest.approx(float(shells.sum()))


def test_show_writes_a_sheet_and_an_animation_of_the_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = generate(
        GenerateConfig(num_samples=3, final_time=4, grid=16, resolution=16, workers=1, out=tmp_path / "x.h5")
    )
    sheet, movie = show(ShowConfig(path, samples=2, frames=3, out=tmp_path / "pictures"), summary)
    assert np.asarray(Image.open(sheet).convert("RGB")).std() > 10
    with Image.open(movie) as frames:
        assert getattr(frames, "n_frames", 1) == 4
        first = np.asarray(frames.convert("RGB")).copy()
        frames.seek(3)
        assert not np.array_equal(first, np.asarray(frames.convert("RGB")))
    printed = capsys.readouterr().out
    assert "3 samples of 4 frames" in printed
    assert "enstrophy" in printed


def test_fields_of_another_equation_have_no_such_summary(tmp_path: Path) -> None:
    path = generate(DarcyConfig(num_samples=1, resolution=8, grid=8, workers=1, out=tmp_path / "x.h5"))
    with pytest.raises(UserError, match=r"holds samples of darcy, .* python -m data.fields show"):
        show(ShowConfig(path, out=tmp_path), summary)
