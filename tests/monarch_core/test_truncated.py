"""Truncated transforms as networks use them: against torch.fft, scipy.fft and the Monarch operators of the core."""

import pytest
import scipy.fft
import scipy.linalg
import torch

import monarch_core as mc
from monarch_core import AxisTransform, PlaneTransform
from monarch_core.transforms.starts import PerAxis, RealWaves, _starts

SHAPE, MODES = (16, 24), 5
FORMS = {
    "fixed": "fixed",
    "matrix": "matrix",
    "monarch": "monarch",
    "frequency": ("per-frequency", "fixed"),
    "grid": ("per-frequency", "per-point"),
}


def double(*args, **options):
    return PlaneTransform(*args, **options, dtype=torch.float64)


def draw(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def modes_by_fft(field, m):
    """(mode, channel, batch, 2) with mode = (k, l), by torch.fft."""
    spectrum = torch.fft.rfft2(field, dim=(1, 2), norm="ortho")
    kept = torch.cat((spectrum[:, :m, :m], spectrum[:, -m:, :m]), dim=1)
    return torch.view_as_real(kept.permute(2, 1, 3, 0).flatten(0, 1).contiguous())


def modes_by_scipy(field, start, m):
    """The lowest 2m x 2m cosines or sines, two neighbours along y packed into a complex number."""
    transform = {"dct": scipy.fft.dctn, "dst": scipy.fft.dstn}[start]
    waves = torch.from_numpy(transform(field.numpy(), axes=(1, 2), norm="ortho"))[:, : 2 * m, : 2 * m]
    pairs = torch.stack((waves[:, :, 0::2], waves[:, :, 1::2]), -1)  # batch, l, k, channel, 2
    return pairs.permute(2, 1, 3, 0, 4).flatten(0, 1)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("start", ["dft", "dct", "dst"])
def test_analysis_is_the_truncated_transform(start, form, assert_close):
    field = draw(3, *SHAPE, 2)
    made = double(SHAPE, MODES, start=start, learn=FORMS[form]).analyse(field)
    expected = modes_by_fft(field, MODES) if start == "dft" else modes_by_scipy(field, start, MODES)
    assert_close(made, expected)


@pytest.mark.parametrize(
    ("grid", "modes"), [((8, 12), (4, 6)), ((7, 9), (3, 4)), ((8, 12), (3, 4)), ((8, 1), 4)]
)
@pytest.mark.parametrize("start", ["dft", "dct", PerAxis("dft", "dst")])
def test_filtered_modes_are_those_between_analysis_and_synthesis(start, grid, modes, assert_close):
    """Of whole planes, with one frequency left out, truncated, and of a line: by FFT or by matrices."""
    plane, field = double(grid, modes, start=start), draw(3, *grid, 2)
    for parts in (1, 2):
        numbers = draw(plane.num_modes, 2, 1, parts)
        assert_close(plane.filtered(field, numbers), plane.synthesise(numbers * plane.analyse(field)))


@pytest.mark.parametrize(
    "options", [{"learn": ("per-frequency", "fixed")}, {"shear": True}, {"out": (12, 12)}]
)
def test_filtered_modes_of_what_learns_or_moves_are_not_those_of_an_fft(options, assert_close):
    plane, field = double((8, 8), 4, **options), draw(3, 8, 8, 1)
    for parameter in plane.parameters():
        torch.nn.init.normal_(parameter)
    numbers = draw(plane.num_modes, 1, 1, 1)
    assert_close(plane.filtered(field, numbers), plane.synthesise(numbers * plane.analyse(field)))


def test_filtered_fields_have_the_points_of_the_plane():
    with pytest.raises(ValueError, match=r"takes fields \(batch, 8, 8, channel\)"):
        double((8, 8), 4).filtered(draw(1, 8, 16, 1), draw(32, 1, 1, 1))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("start", ["dct", "dst"])
def test_synthesis_undoes_analysis_of_cosines_and_sines(start, form, assert_close):
    inverse = {"dct": scipy.fft.idctn, "dst": scipy.fft.idstn}[start]
    waves = torch.zeros(2, *SHAPE, 1, dtype=torch.float64)
    waves[:, : 2 * MODES, : 2 * MODES] = draw(2, 2 * MODES, 2 * MODES, 1)
    field = torch.from_numpy(inverse(waves.numpy(), axes=(1, 2), norm="ortho"))
    plane = double(SHAPE, MODES, start=start, learn=FORMS[form])
    assert_close(plane.synthesise(plane.analyse(field)), field)


@pytest.mark.parametrize("learn", [*FORMS.values(), ("fixed", "per-frequency")])
def test_synthesis_undoes_analysis_of_kept_waves(learn, assert_close):
    plane = double((32, 32), 5, learn=learn)
    t = torch.arange(32, dtype=torch.float64) * 2 * torch.pi / 32
    waves = [torch.cos(3 * t[:, None] - 2 * t), torch.sin(-4 * t[:, None] + 4 * t), torch.ones(32, 32)]
    field = torch.stack(waves)[..., None].double()
    assert_close(plane.synthesise(plane.analyse(field)), field)


@pytest.mark.parametrize("learn", ["matrix", ("per-frequency", "fixed"), ("per-frequency", "per-point")])
def test_each_direction_is_one_monarch_matrix_of_rank_2(learn, assert_close):
    plane = double((6, 8), 2, learn=learn)
    with torch.no_grad():
        for parameter in plane.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    x, modes = draw(3, 6, 8), draw(3, 2, 4, 2)
    there, back = plane.analysis.monarch(), plane.synthesis.monarch()
    assert (there.rank, back.rank) == (2, 2)
    assert_close(there(x.flatten(1)).view(3, 4, 2, 2).permute(0, 3, 1, 2), plane.analysis(x))
    assert_close(back(modes.flatten(1)).view(3, 8, 6).mT, plane.synthesis(modes))


def test_free_plane_is_the_grid_operator(assert_close):
    keep = ([*range(4), *range(-4, 0)], range(4))
    grid = mc.grid_dft((16, 16), norm="ortho", keep=keep, dtype=torch.complex128)
    field = draw(2, 16, 16)
    made = double((16, 16), 4, learn=FORMS["grid"]).analysis(field)
    assert_close(torch.view_as_complex(made.contiguous()), grid(field).mT)


def test_networks_and_operators_see_the_same(assert_close):
    for groups in (1, 2):
        plane = double((8, 8), 2, learn="matrix", groups=groups)
        with torch.no_grad():
            for parameter in plane.parameters():
                parameter += 0.1 * torch.randn_like(parameter)
        field = draw(3, 8, 8, groups)
        modes = plane.analyse(field)
        as_operator = plane.analysis(
            field.permute(0, 3, 1, 2).squeeze(1) if groups == 1 else field.permute(0, 3, 1, 2)
        )
        assert_close(
            modes.view(2, 4, groups, 3, 2).permute(3, 2, 0, 1, 4).reshape(as_operator.shape), as_operator
        )
        assert_close(
            plane.synthesis(as_operator).reshape(3, groups, 8, 8), plane.synthesise(modes).permute(0, 3, 1, 2)
        )


@pytest.mark.parametrize("order", [(3, 0, 1, 2), (1, 3, 0, 2), (0, 1, 2, 3)])
@pytest.mark.parametrize("learn", FORMS.values())
def test_fields_are_taken_in_any_order_of_memory(learn, order, assert_close):
    plane = double((8, 6), 2, learn=learn)
    field = draw(3, 8, 6, 4)
    inverse = [order.index(axis) for axis in range(4)]
    assert_close(plane.analyse(field.permute(order).contiguous().permute(inverse)), plane.analyse(field))


def test_channels_that_share_matrices_stay_slowest_in_memory():
    plane = PlaneTransform((8, 6), 2)
    assert plane.synthesise(plane.analyse(torch.randn(3, 8, 6, 4))).permute(3, 0, 1, 2).is_contiguous()


def test_groups_of_channels_use_their_own_matrices():
    plane = PlaneTransform((16, 16), 3, learn="matrix", groups=2)
    field = torch.randn(1, 16, 16, 4)
    before = plane.analyse(field)
    with torch.no_grad():
        plane.analysis.first.change[1] += 1.0
    after = plane.analyse(field)
    assert torch.equal(before[:, :2], after[:, :2])
    assert not torch.allclose(before[:, 2:], after[:, 2:])


def test_frequencies_of_the_other_axis_use_their_own_matrices():
    plane = PlaneTransform((16, 16), 3, learn=("per-frequency", "fixed"))
    field = torch.randn(1, 16, 16, 4)
    before = plane.analyse(field)
    with torch.no_grad():
        plane.analysis.second.change[1] += 1.0
    changed = (plane.analyse(field) - before).abs().amax((1, 2, 3)).view(3, 6) > 0
    assert changed.tolist() == [[k == 1] * 6 for k in range(3)]


@pytest.mark.parametrize(
    ("learn", "shapes"),
    [
        ("fixed", []),
        (("matrix", "fixed"), [(1, 16, 8, 2), (1, 8, 16, 2)]),
        (("per-frequency", "fixed"), [(3, 16, 8, 2), (3, 8, 16, 2)]),
        (("fixed", "per-frequency"), [(4, 20, 6, 2), (4, 6, 20, 2)]),
        (("fixed", "per-point"), [(16, 20, 3, 2), (16, 3, 20, 2)]),
    ],
)
def test_only_what_is_asked_for_learns(learn, shapes):
    plane = PlaneTransform((16, 20), (4, 3), learn=learn)
    assert [tuple(p.shape) for p in plane.parameters()] == shapes


def test_axis_that_learns_per_frequency_goes_second():
    assert not PlaneTransform((8, 8), 2, learn=("per-frequency", "matrix")).analysis.x_first
    assert PlaneTransform((8, 8), 2, learn=("matrix", "per-frequency")).analysis.x_first
    with pytest.raises(ValueError, match="one axis is transformed before the other"):
        PlaneTransform((8, 8), 2, learn="per-frequency")
    with pytest.raises(ValueError, match="one group of channels, not 2"):
        PlaneTransform((8, 8), 2, learn=("per-frequency", "fixed"), groups=2)
    with pytest.raises(ValueError, match="no other to learn per-frequency"):
        AxisTransform(8, 2, learn="per-frequency")


def shifted_along_the_antidiagonal(field, steps):
    return field.roll((steps, -steps), dims=(1, 2))


@pytest.mark.parametrize("first", ["fixed", "matrix"])
def test_sheared_transform_with_a_fixed_axis_commutes_with_antidiagonal_shifts(first, assert_close):
    """f(x + a, y - a) has the same s = x + y: it is a shift along y in sheared coordinates, which a DFT keeps."""
    plane = double((16, 16), 4, learn=("per-frequency", first), shear=True)
    with torch.no_grad():
        for parameter in plane.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    field, weight = draw(2, 16, 16, 3), draw(plane.num_modes, 3, 3, 2)

    def layer(x):
        return plane.synthesise(mc.pairs.product(weight, plane.analyse(x)))

    made = layer(shifted_along_the_antidiagonal(field, 5))
    expected = shifted_along_the_antidiagonal(layer(field), 5)
    if first == "fixed":
        assert_close(made, expected)
    else:
        assert (made - expected).norm() > 0.01 * expected.norm()


def test_shear_permutes_the_modes_of_a_torus(assert_close):
    """exp(i (p x + q y)) = exp(i (p s + (q - p) y)): frequency p along s, q - p along y."""
    t = torch.arange(16, dtype=torch.float64) * 2 * torch.pi / 16
    field = torch.cos(2 * t[:, None] + 5 * t)[None, ..., None]
    modes = double((16, 16), 4, shear=True).analyse(field).view(4, 8, 2)
    assert modes[3, 2, 0].item() == pytest.approx(8.0)
    assert (modes.abs() > 1e-12).sum() == 1


def test_shear_needs_a_square():
    with pytest.raises(ValueError, match="as many rows as columns; got 16 x 24"):
        PlaneTransform((16, 24), 3, shear=True)


def test_staying_in_sheared_coordinates_is_shear_then_the_plain_transform(assert_close):
    field = draw(2, 16, 16, 1)
    there = double((16, 16), 4, shear=(True, False))
    sheared = mc.shear((16, 16))(field[..., 0].flatten(1)).view(2, 16, 16, 1)
    plain = double((16, 16), 4)
    assert_close(there.synthesise(there.analyse(field)), plain.synthesise(plain.analyse(sheared)))


HELD = {
    "dft": lambda t: 0.3 + torch.cos(2 * torch.pi * t) + torch.sin(6 * torch.pi * t),
    "dct": lambda t: 0.3 + torch.cos(torch.pi * t) + torch.cos(5 * torch.pi * t),
    "dst": lambda t: torch.sin(torch.pi * t) + torch.sin(5 * torch.pi * t),
}


def points(start, n):
    # Cosines and sines belong to points in the middle of cells, and Fourier series to points at their beginning.
    return (torch.arange(n, dtype=torch.float64) + (0.0 if start == "dft" else 0.5)) / n


@pytest.mark.parametrize("start", HELD)
@pytest.mark.parametrize("learn", ["fixed", "matrix", "monarch"])
@pytest.mark.parametrize(("n", "out"), [(32, 16), (16, 24)])
def test_way_back_to_other_points_resamples_what_the_modes_hold(learn, start, n, out, assert_close):
    axis = AxisTransform(n, 4, start=start, out=out, learn=learn, dtype=torch.float64)
    made = axis.synthesis(axis.analysis(HELD[start](points(start, n))))
    assert_close(made, HELD[start](points(start, out)))


@pytest.mark.parametrize("start", HELD)
def test_way_back_leads_to_another_grid(start, assert_close):
    def field(rows, columns):
        return (HELD[start](points(start, rows))[:, None] * HELD[start](points(start, columns)))[
            None, ..., None
        ]

    plane = double((16, 24), 4, start=start, out=(20, 12), learn="matrix")
    assert_close(plane.synthesise(plane.analyse(field(16, 24))), field(20, 12))


@pytest.mark.parametrize("learn", ["matrix", "monarch"])
@pytest.mark.parametrize("n", [48, 64])
def test_resampled_axis_sees_the_same_modes(n, learn, assert_close):
    axis = AxisTransform(32, 4, learn=learn, dtype=torch.float64)
    with torch.no_grad():  # a deviation that is smooth along the axis, as a trained one is
        if learn == "matrix":
            smooth = torch.cos(2 * torch.pi * 3 * points("dft", 32))
            axis.analysis.table.change += 0.05 * smooth[:, None, None] * draw(4, 2)
            axis.synthesis.table.change += 0.05 * smooth[:, None] * draw(4, 1, 2)
    finer = axis.resampled(n)
    coarse_field, fine_field = HELD["dft"](points("dft", 32)), HELD["dft"](points("dft", n))
    assert_close(finer.analysis(fine_field) * n**-0.5, axis.analysis(coarse_field) * 32**-0.5)
    both = axis.synthesis(axis.analysis(coarse_field)), finer.synthesis(finer.analysis(fine_field))
    if n == 64:
        assert_close(both[1][::2], both[0])


@pytest.mark.parametrize(
    "options",
    [
        {"learn": "matrix", "groups": 2},
        {"learn": ("per-frequency", "fixed"), "shear": True},
        {"learn": ("fixed", "per-frequency")},
    ],
)
def test_resampled_plane_treats_a_smooth_field_alike(options, assert_close):
    plane = double((16, 16), 3, **options)
    with torch.no_grad():
        for name, parameter in plane.named_parameters():
            axis = 1 if "analysis" in name else 2  # that of the points
            wave = torch.cos(2 * torch.pi * 2 * points("dft", 16)).view(
                [16 if i == axis else 1 for i in range(4)]
            )
            parameter += 0.05 * wave * torch.randn_like(parameter.select(axis, 0).unsqueeze(axis))
    t = points("dft", 32) * 2 * torch.pi
    field = (torch.sin(t)[:, None] * torch.cos(2 * t))[None, ..., None].expand(1, 32, 32, 2)
    finer = plane.resampled((32, 32))
    coarse = plane.synthesise(plane.analyse(field[:, ::2, ::2]))
    assert_close(finer.synthesise(finer.analyse(field))[:, ::2, ::2], coarse)


def test_transforms_that_cannot_move_say_why():
    for options, reason in (
        ({"start": "dct"}, "cosines"),
        ({"learn": FORMS["grid"]}, "row of its grid"),
        ({"start": "sht"}, "harmonics"),
    ):
        with pytest.raises(ValueError, match=reason):
            PlaneTransform((16, 16), 3, **options).resampled((32, 32))
    assert "twice as many points" in PlaneTransform((16, 16), 5).not_resampled_because((8, 8))


def test_what_stays_on_its_grid_is_not_resampled():
    with pytest.raises(ValueError, match="not periodic"):
        AxisTransform(32, 4, start="dct").resampled(16)
    assert AxisTransform(32, 4, start="random", learn="matrix").resampled(16).n == 16
    assert PlaneTransform((32, 1), 4, start="random", learn=("matrix", "fixed")).resampled((16, 1)).grid == (
        16,
        1,
    )
    for fixed in (
        lambda: AxisTransform(32, 4, start="random").resampled(16),
        lambda: PlaneTransform((32, 32), 4, start="random", learn=("matrix", "fixed")).resampled((16, 16)),
    ):
        with pytest.raises(ValueError, match="drawn for one grid"):
            fixed()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"learn": ("fixed", "per-frequency")}, "x goes first"),
        ({"shear": True}, "sheared"),
        ({"learn": "matrix", "groups": 2}, "groups"),
    ],
)
def test_a_transform_that_is_no_single_monarch_matrix_says_so(options, reason):
    plane = PlaneTransform((8, 8), 2, **options)
    for direction in (plane.analysis, plane.synthesis):
        with pytest.raises(ValueError, match=reason):
            direction.monarch()


def test_deviations_are_zero_at_the_start_and_only_they_are_stored():
    plane = PlaneTransform((16, 16), 3, learn=("monarch", "matrix"))
    assert all(not parameter.any() for parameter in plane.parameters())
    assert set(plane.state_dict()) == {name for name, _ in plane.named_parameters()}


@pytest.mark.parametrize("start", ["random", PerAxis("random", "dft")], ids=["both axes", "x alone"])
def test_random_start_is_stored_with_the_deviations(start):
    source, other = (PlaneTransform((16, 16), 3, start=start, learn="matrix") for _ in range(2))
    field = torch.randn(1, 16, 16, 1)
    assert not torch.allclose(source.analyse(field), other.analyse(field))
    other.load_state_dict(source.state_dict())
    assert torch.equal(source.analyse(field), other.analyse(field))


def test_new_start_is_one_class_with_a_name(monkeypatch, assert_close):
    class Hadamard(RealWaves):
        def monarch(self, n, inverse):
            return mc.hadamard(n, norm="ortho", dtype=torch.float64)

    monkeypatch.setitem(_starts, "hadamard", Hadamard)
    H = torch.from_numpy(scipy.linalg.hadamard(16) / 4.0)
    field = draw(1, 16, 16, 1)
    expected = (H @ field[0, ..., 0] @ H.T)[:6, :6].T.reshape(3, 2, 6).transpose(1, 2).reshape(-1, 1, 1, 2)
    for learn in ("fixed", "monarch"):
        assert_close(double((16, 16), 3, start="hadamard", learn=learn).analyse(field), expected)


def test_each_axis_may_have_a_start_of_its_own(assert_close):
    field = draw(3, *SHAPE, 2)
    made = double(SHAPE, MODES, start=PerAxis("dct", "dft")).analyse(field)
    along_y = torch.fft.rfft(field, dim=2, norm="ortho")[:, :, :MODES]
    both = [scipy.fft.dct(part.numpy(), axis=1, norm="ortho") for part in (along_y.real, along_y.imag)]
    pairs = torch.stack(
        [torch.from_numpy(part)[:, : 2 * MODES] for part in both], -1
    )  # batch, l, k, channel, 2
    assert_close(made, pairs.permute(2, 1, 3, 0, 4).flatten(0, 1))


@pytest.mark.parametrize("learn", [("per-point", "fixed"), ("fixed", "per-frequency")])
def test_starts_stay_with_their_axes_where_x_goes_first(assert_close, learn):
    field = draw(3, *SHAPE, 2)
    x_first = double(SHAPE, MODES, start=PerAxis("dct", "dft"), learn=learn)
    y_first = double(SHAPE[::-1], MODES, start=PerAxis("dft", "dct"), learn=learn[::-1])
    assert_close(x_first.analyse(field), y_first.analyse(field.transpose(1, 2)))


def test_unknown_start_is_refused_by_name():
    with pytest.raises(ValueError, match="one of dct, dft, dst, random, sht; got 'dtf'"):
        PlaneTransform((16, 16), 3, start="dtf")


def test_too_many_modes_are_refused():
    with pytest.raises(ValueError, match="12 modes need at least 24 points per side; there are 16"):
        PlaneTransform((16, 16), 12)


def test_operations_are_counted():
    plane = PlaneTransform((64, 64), 12)
    one_way = 2 * 64 * 64 * 24 + 8 * 12 * 64 * 24
    assert plane.analysis.flops() == plane.synthesis.flops() == one_way
    assert plane.flops(20, 10) == 30 * one_way + 8 * 288 * 200
    assert PlaneTransform((64, 64), 12, learn="matrix", groups=5).flops(20, 10) == plane.flops(20, 10)
