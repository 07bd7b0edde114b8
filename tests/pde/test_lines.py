"""Operators on lines: the transforms of one axis, and models against their definition in one dimension."""

import pytest
import torch
from torch.nn.functional import gelu

from data.fields.geometry import Box, Line, from_dict
from data.fields.layout import Grid
from lab.errors import UserError
from monarch_core import PlaneTransform
from pde.models import build, check_geometry, comparison

N, MODES, WIDTH = 32, 5, 4
SMALL = {"width": WIDTH, "modes": MODES, "depth": 2}


@pytest.mark.parametrize("learn", ["fixed", "matrix", "monarch"])
def test_the_transform_of_a_line_is_the_real_fourier_transform(learn) -> None:
    plane = PlaneTransform((N, 1), MODES, learn=(learn, "fixed"), dtype=torch.float64)
    field = torch.randn(3, N, 1, 2, dtype=torch.float64)
    modes = plane.analyse(field)  # (mode, channel, batch, 2)
    expected = torch.fft.rfft(field[:, :, 0], dim=1, norm="ortho")[:, :MODES].permute(1, 2, 0)
    tolerance = 1e-12 if learn != "monarch" else 1e-6
    assert modes.shape == (MODES, 2, 3, 2)
    assert torch.allclose(torch.view_as_complex(modes.contiguous()), expected, atol=tolerance)
    low = torch.zeros(3, N // 2 + 1, 2, dtype=torch.complex128)
    low[:, :MODES] = expected.permute(2, 0, 1)
    back = torch.fft.irfft(low, n=N, dim=1, norm="ortho")[:, :, None]
    assert torch.allclose(plane.synthesise(modes), back, atol=tolerance)


def test_the_line_of_a_transform_has_its_adjoint() -> None:
    plane = PlaneTransform((N, 1), MODES, start="dct", out=(2 * N, 1), dtype=torch.float64)
    for operator in (plane.analysis, plane.synthesis):
        x = torch.randn(operator.in_shape, dtype=torch.float64)
        y = torch.randn(operator.out_shape, dtype=torch.float64)
        assert float((operator(x) * y).sum()) == pytest.approx(
            float((x * operator.adjoint(y)).sum()), rel=1e-12
        )


def test_fno_on_a_line_is_fno_1d() -> None:
    """Lift, spectral layers of rfft with a complex matrix per mode plus a linear map, projection."""
    net = build("fno", 2, (N, 1), **SMALL, coordinates="plain").double()
    x = torch.randn(3, N, 2, dtype=torch.float64)
    where = torch.linspace(0, 1, N, dtype=torch.float64)[None, :, None].expand(3, -1, -1)
    y = net.lift(torch.cat((x, where), -1))
    for number, layer in enumerate(net.layers):
        weight = torch.view_as_complex(layer.spectral.weight.detach().contiguous())
        spectrum = torch.zeros(3, N // 2 + 1, WIDTH, dtype=torch.complex128)
        kept = torch.fft.rfft(y, dim=1)[:, :MODES]
        spectrum[:, :MODES] = torch.einsum("koi,bki->bko", weight, kept)
        made = torch.fft.irfft(spectrum, n=N, dim=1) + layer.pointwise(y)
        y = made if number else gelu(made)
    expected = net.project.second(gelu(net.project.first(y)))
    assert torch.allclose(net(x[:, :, None])[:, :, 0], expected, atol=1e-6)


@pytest.mark.parametrize(("name", "twin"), [("fno", "fno"), ("ffno", "ffno"), ("lfno", "latent")])
def test_mno_on_a_line_begins_as_its_twin(name, twin) -> None:
    torch.manual_seed(1)
    fixed = build(name, 1, (N, 1), **SMALL)
    torch.manual_seed(1)
    learning = build("mno", 1, (N, 1), **SMALL, twin=twin)
    x = torch.randn(2, N, 1, 1)
    assert torch.allclose(fixed(x), learning(x), atol=1e-5)
    assert learning.transform_parameters()
    learning(x).square().sum().backward()
    assert all(parameter.grad is not None for parameter in learning.parameters())


@pytest.mark.parametrize("geometry", [Line(), Line("walls")])
def test_every_row_of_the_table_of_lines_runs(geometry) -> None:
    rows = comparison(geometry)
    assert {model for model, _ in rows.values()} == {"mno", "lfno", "fno", "ffno"} - (
        {"ffno"} if geometry.transforms else set()
    )
    for model, options in rows.values():
        net = build(model, 3, Grid.of(geometry, N), 2, **{**options, "width": WIDTH, "modes": MODES})
        assert net(torch.randn(2, N, 1, 3)).shape == (2, N, 1, 2)
        assert net.flops() > 0


@pytest.mark.parametrize("name", ["mno", "fno", "ffno"])
def test_a_model_moves_to_a_finer_line(name) -> None:
    net = build(name, 1, (N, 1), **SMALL, coordinates="geometry").double()
    x = torch.arange(2 * N, dtype=torch.float64) / (2 * N)
    smooth = (torch.sin(2 * torch.pi * x) + torch.cos(4 * torch.pi * x))[None, :, None, None]
    assert net.not_resampled_because((2 * N, 2 * N))
    if name == "ffno":  # what happens at points only agrees at points
        coarse = net(smooth[:, ::2])
        assert net.resampled((2 * N, 1))(smooth).shape == (1, 2 * N, 1, 1)
        assert coarse.shape == (1, N, 1, 1)
        return
    coarse = net(smooth[:, ::2])
    fine = net.resampled((2 * N, 1))(smooth)
    assert torch.allclose(fine[:, ::2], coarse, atol=2e-2 * float(coarse.detach().abs().max()))


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        ("unet", {}, "--model unet needs a plane, and the data lies on a line; take one of mno"),
        ("mno", {"form": "grid"}, "--form grid needs a plane"),
        ("mno", {"modes_y": 3}, "--modes-y 3 needs a plane"),
        ("mno", {"learn_x": "per-point"}, "--learn-x per-point needs a plane"),
        ("fno", {"transport": True}, "--transport needs a plane"),
        ("fno", {"start": "sht"}, "only works on the sphere"),
    ],
)
def test_what_needs_a_plane_is_refused(model, options, message) -> None:
    with pytest.raises(UserError, match=message):
        check_geometry(model, options, Line())


def test_a_line_is_an_axis_of_a_box() -> None:
    for boundary in ("periodic", "walls"):
        line, box = Line(boundary), Box(boundary, "periodic")
        rows, columns = line.coordinates(8, 1)
        assert torch.equal(rows, box.coordinates(8, 1)[0])
        assert line.bounded[0] == box.bounded[0]
        assert torch.equal(line.positions(rows, columns), box.positions(rows, columns))
        assert line.features(8, 1).shape == (8, 1, 2 if boundary == "periodic" else 1)
        assert from_dict(line.to_dict()) == line
        assert Grid.of(line, 9).every(3).resolution == (3, 1)
