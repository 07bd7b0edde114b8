"""Long convolutions: equal to torch's FFT convolution and to numpy's, at any length, without an FFT."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from monarch_core import MonarchConv1d, MonarchConv2d


def fft_convolution(x: torch.Tensor, kernel: torch.Tensor, axes: tuple[int, ...]) -> torch.Tensor:
    """The full linear convolution by torch.fft."""
    sizes = [x.shape[a] + kernel.shape[a] - 1 for a in axes]
    return torch.fft.irfftn(
        torch.fft.rfftn(x, sizes, axes) * torch.fft.rfftn(kernel, sizes, axes), sizes, axes
    )


LENGTHS = [(1, 1), (2, 1), (7, 3), (97, 97), (100, 31), (257, 256), (1000, 1500), (4096, 4096)]


@pytest.mark.parametrize(("n", "m"), LENGTHS)
def test_causal_convolution_equals_that_of_torch_fft(n, m, assert_close):
    layer = MonarchConv1d(3, n, m, bias=False, dtype=torch.float64)
    x = torch.randn(2, 3, n, dtype=torch.float64)
    assert_close(layer(x), fft_convolution(x, layer.kernel, (-1,))[..., :n])


@pytest.mark.parametrize(("n", "m"), [(n, m) for n, m in LENGTHS if m <= n])
def test_same_and_circular_equal_numpy_and_torch_fft(n, m, assert_close):
    x = torch.randn(2, n, dtype=torch.float64)
    same = MonarchConv1d(2, n, m, mode="same", bias=False, dtype=torch.float64)
    kernel = same.kernel.detach()
    expected = np.stack([np.convolve(a, b, "same") for a, b in zip(x.numpy(), kernel.numpy(), strict=True)])
    assert_close(same(x), torch.from_numpy(expected))
    circular = MonarchConv1d(2, n, m, mode="circular", bias=False, dtype=torch.float64)
    circular.load_state_dict(same.state_dict())
    assert_close(circular(x), torch.fft.irfft(torch.fft.rfft(x) * torch.fft.rfft(kernel, n), n))


@pytest.mark.parametrize(
    ("size", "kernel"), [((6, 7), (3, 3)), ((13, 32), (13, 5)), ((9, 4), (9, 4)), ((1, 5), (1, 2))]
)
def test_images_equal_torch_fft(size, kernel, assert_close):
    x = torch.randn(2, 3, *size, dtype=torch.float64)
    (h, w), (kh, kw) = size, kernel
    for mode in ("causal", "same", "circular"):
        layer = MonarchConv2d(3, size, kernel, mode=mode, bias=False, dtype=torch.float64)
        full = fft_convolution(x, layer.kernel[None], (-2, -1))
        if mode == "circular":
            expected = torch.fft.irfft2(torch.fft.rfft2(x) * torch.fft.rfft2(layer.kernel, size), size)
        else:
            top, left = ((kh - 1) // 2, (kw - 1) // 2) if mode == "same" else (0, 0)
            expected = full[..., top : top + h, left : left + w]
        assert_close(layer(x), expected)


def test_single_precision_is_as_exact_as_the_fft(assert_close):
    layer = MonarchConv1d(2, 2048)
    x = torch.randn(2, 2, 2048)
    exact = (
        fft_convolution(x.double(), layer.kernel.double(), (-1,))[..., :2048] + layer.bias.double()[:, None]
    )
    assert_close(layer(x).double(), exact, tolerance=3e-6)


def test_no_fft_and_no_complex_tensor_is_used():
    class Watch(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            assert "fft" not in getattr(function, "__name__", "")
            assert not (isinstance(result, torch.Tensor) and result.is_complex())
            return result

    layer = MonarchConv2d(2, (8, 9))
    with Watch():
        layer(torch.randn(2, 8, 9)).sum().backward()


def test_gradients_bias_and_shorter_signals(assert_close):
    layer = MonarchConv1d(2, 20, 7, dtype=torch.float64)
    x = torch.randn(2, 2, 20, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, k: layer.convolve(x, k), (x, layer.kernel))
    for n in range(1, 20):
        assert_close(layer(x[..., :n]), layer(x)[..., :n])
    assert_close(layer(x) - layer.convolve(x, layer.kernel), layer.bias[:, None].expand(2, 2, 20))
    assert set(layer.state_dict()) == {"kernel", "bias"}


def test_it_learns_a_delay():
    torch.manual_seed(0)
    layer = MonarchConv1d(1, 64)
    x = torch.randn(32, 1, 64)
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.02)
    for _ in range(150):
        optimizer.zero_grad()
        loss = (layer(x)[..., 5:] - x[..., :-5]).square().mean()
        loss.backward()
        optimizer.step()
    assert loss < 0.01
    assert layer.kernel[0].argmax() == 5


def test_tables_are_exact_after_a_cast_and_after_the_meta_device(assert_close):
    exact = MonarchConv1d(2, 100, dtype=torch.float64)
    x = torch.randn(3, 2, 100, dtype=torch.float64)
    cast = MonarchConv1d(2, 100).half().double()
    empty = MonarchConv1d(2, 100, device="meta", dtype=torch.float64).to_empty(device="cpu")
    with torch.device("meta"):
        bare = MonarchConv1d(2, 100, dtype=torch.float64)
    assert bare(x.to("meta")).shape == x.shape
    for layer in (cast, empty, bare):
        layer.load_state_dict(exact.state_dict(), assign=True)
        assert torch.equal(layer(x), exact(x))


def test_one_number_stands_for_both_sides():
    assert MonarchConv2d(2, 9, 3)(torch.ones(2, 9, 9)).shape == (2, 9, 9)
    with pytest.raises(TypeError, match="a tuple of 2 whole numbers"):
        MonarchConv2d(2, (9, 9), (3, 3, 3))


def test_bfloat16_runs():
    layer = MonarchConv1d(2, 100).bfloat16()
    assert layer(torch.randn(2, 100, dtype=torch.bfloat16)).dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MonarchConv1d(2, 8, mode="wrap"), "got 'wrap'"),
        (
            lambda: MonarchConv1d(2, 8, 9, mode="circular"),
            "no longer than the signal; got length 8 and kernel_size 9",
        ),
        (lambda: MonarchConv1d(2, 0), "at least 1"),
        (lambda: MonarchConv1d(2, 8)(torch.ones(2, 9)), r"or shorter signals; got shape \(2, 9\)"),
        (lambda: MonarchConv1d(2, 8)(torch.ones(3, 8)), r"takes \(2 channels, 8\)"),
        (lambda: MonarchConv1d(2, 8, mode="circular")(torch.ones(2, 7)), "wraps at"),
    ],
)
def test_wrong_sizes_are_explained(make, message):
    with pytest.raises(ValueError, match=message):
        make()
