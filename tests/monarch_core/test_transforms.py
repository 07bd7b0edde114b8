"""Closed-form transforms against torch.fft and scipy, at sizes of every kind."""

import numpy as np
import pytest
import scipy.fft
import scipy.linalg
import torch

import monarch_core as mc
from monarch_core import Monarch, Product
from monarch_core.transforms.fourier import dft_spec
from monarch_core.transforms.fourier_factors import root_of_unity
from monarch_core.transforms.trigonometric import trigonometric_spec

# odd, square of a prime, twice an odd prime, the paper's image sizes, a power of two, and a large one
SIZES = [15, 49, 62, 160, 416, 512, 4096]
NORMS = ["backward", "ortho", "forward"]


def complex_batch(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.complex128)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("norm", NORMS)
def test_dft_equals_torch_fft(n, norm, assert_close):
    x = complex_batch(2, n)
    kwargs = {"norm": norm, "dtype": torch.complex128}
    assert_close(mc.dft(n, **kwargs)(x), torch.fft.fft(x, norm=norm))
    assert_close(mc.dft(n, inverse=True, **kwargs)(x), torch.fft.ifft(x, norm=norm))


@pytest.mark.parametrize("n", SIZES)
def test_centered_dft_is_shift_transform_shift(n, assert_close):
    x = complex_batch(2, n)
    plain, centered = mc.dft(n, dtype=torch.complex128), mc.dft(n, centered=True, dtype=torch.complex128)
    fft = torch.fft
    assert_close(centered(x), fft.fftshift(fft.fft(fft.ifftshift(x, -1)), -1))
    inverse = mc.dft(n, inverse=True, norm="ortho", centered=True, dtype=torch.complex128)
    assert_close(inverse(x), fft.fftshift(fft.ifft(fft.ifftshift(x, -1), norm="ortho"), -1))
    assert centered.num_parameters == inverse.num_parameters == plain.num_parameters


@pytest.mark.parametrize(("n", "error"), [(512, 1e-6), (160, 1e-6), (64, 1e-6)])
def test_dft_in_single_precision(n, error, assert_close):
    x = complex_batch(4, n)
    assert_close(mc.dft(n)(x.to(torch.complex64)), torch.fft.fft(x).to(torch.complex64), tolerance=error)


def test_angles_are_reduced_before_any_rounding():
    power = torch.arange(-20, 20)
    assert torch.equal(root_of_unity(power + 12 * 10**15, 12), root_of_unity(power, 12))


@pytest.mark.parametrize("blocks", [(2, 30), (30, 2), (6, 10), (12, 5), 4, (1, 60), (60, 1)])
def test_dft_is_exact_for_every_pair_of_blocks(blocks, assert_close):
    x = complex_batch(2, 60)
    assert_close(mc.dft(60, blocks=blocks, dtype=torch.complex128)(x), torch.fft.fft(x))


def test_dft_is_one_monarch_behind_a_stride_permutation_with_unitary_blocks(assert_close):
    F = mc.dft(60, norm="ortho", dtype=torch.complex128)
    assert isinstance(F, Product)
    M, P = F.links
    assert type(M) is Monarch
    assert M.rank == 1
    assert not list(P.parameters())
    R, L = M.factors()
    for block in (*R[:, :, 0], *L[..., 0]):
        assert_close(block @ block.mH, torch.eye(len(block), dtype=torch.complex128))


@pytest.mark.parametrize("n", [2, 7, 97, 509])
def test_prime_sizes_are_exact_when_padded(n, assert_close):
    x = complex_batch(2, n)
    for inverse, reference in ((False, torch.fft.fft), (True, torch.fft.ifft)):
        F = mc.dft(n, inverse=inverse, centered=True, pad=True, dtype=torch.complex128)
        assert_close(F(x), torch.fft.fftshift(reference(torch.fft.ifftshift(x, -1)), -1))
    real = x.real
    assert_close(
        mc.dct(n, pad=True, dtype=torch.float64)(real), torch.from_numpy(scipy.fft.dct(real.numpy()))
    )
    assert_close(
        mc.dst(n, type=3, pad=True, dtype=torch.float64)(real),
        torch.from_numpy(scipy.fft.dst(real.numpy(), 3)),
    )


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("type", [1, 2, 3, 4])
@pytest.mark.parametrize("family", ["dct", "dst"])
def test_cosine_and_sine_transforms_equal_scipy(family, type, n, assert_close):
    x = torch.randn(2, n, dtype=torch.float64)
    make = getattr(mc, family)
    norms = NORMS if n < 4096 else ["ortho"]
    for norm in norms:
        for prefix in ("", "i"):
            operator = make(n, type=type, norm=norm, inverse=prefix == "i", dtype=torch.float64)
            expected = getattr(scipy.fft, prefix + family)(x.numpy(), type, norm=norm)
            assert_close(operator(x), torch.from_numpy(expected))


@pytest.mark.parametrize("make", [mc.dct, mc.dst, mc.hartley])
def test_real_transforms_are_one_real_monarch_of_rank_2(make):
    links = [link for link in make(36).links if isinstance(link, Monarch)]
    assert [(link.rank, link.dtype) for link in links] == [(2, torch.float32)]
    assert make(36).num_parameters == mc.dft(36).num_parameters


@pytest.mark.parametrize("n", SIZES)
def test_hartley_equals_its_definition(n, assert_close):
    x = torch.randn(2, n, dtype=torch.float64)
    spectrum = torch.fft.fft(x)
    assert_close(mc.hartley(n, dtype=torch.float64)(x), spectrum.real - spectrum.imag)


@pytest.mark.parametrize("n", [4, 32, 512, 4096])
def test_hadamard_equals_scipy(n, assert_close):
    H = torch.from_numpy(scipy.linalg.hadamard(n, dtype=np.float64))
    x = torch.randn(2, n, dtype=torch.float64)
    assert_close(mc.hadamard(n, dtype=torch.float64)(x), x @ H.T)
    assert_close(mc.hadamard(n, norm="ortho", dtype=torch.float64)(x), x @ H.T / n**0.5)


@pytest.mark.parametrize("n", [15, 160, 416, 512])
def test_circulant_and_toeplitz_equal_scipy(n, assert_close):
    column, row = np.random.default_rng(0).standard_normal((2, n))
    C, T = scipy.linalg.circulant(column), scipy.linalg.toeplitz(column, row)
    assert_close(mc.circulant(torch.from_numpy(column)).to_dense(), torch.from_numpy(C))
    operator = mc.toeplitz(torch.from_numpy(column), torch.from_numpy(row))
    assert_close(operator.to_dense(), torch.from_numpy(T))


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize(("n", "m"), [(20, 5), (5, 20), (16, 16), (97, 1)])
def test_convolution_equals_numpy(n, m, mode, assert_close):
    x, kernel = torch.randn(n, dtype=torch.float64), torch.randn(m, dtype=torch.float64)
    expected = torch.from_numpy(np.convolve(x.numpy(), kernel.numpy(), mode))
    assert_close(mc.convolution(kernel, n, mode)(x), expected)


@pytest.mark.parametrize("block_size", [None, 2, 4, 8, 16])
def test_butterfly_condenses_to_the_same_matrix_for_every_block_size(block_size, assert_close):
    complex_factors = [complex_batch(32 // m, 2, 2, m // 2) for m in (2, 4, 8, 16, 32)]
    reference = mc.butterfly(complex_factors, 4).to_dense()
    assert_close(mc.butterfly(complex_factors, block_size).to_dense(), reference)


def test_butterfly_holds_the_fft_up_to_bit_reversal(assert_close):
    factors = []
    for m in (2, 4, 8, 16):
        twiddle = torch.exp(-2j * torch.pi * torch.arange(m // 2, dtype=torch.float64) / m)
        one = torch.ones_like(twiddle)
        block = torch.stack((torch.stack((one, twiddle)), torch.stack((one, -twiddle))))
        factors.append(block.expand(16 // m, 2, 2, m // 2))
    reversal = torch.tensor([int(f"{i:04b}"[::-1], 2) for i in range(16)])
    F = mc.butterfly(factors) @ mc.Permutation(reversal)
    x = complex_batch(16)
    assert_close(F(x), torch.fft.fft(x))


@pytest.mark.parametrize("n", [6, 7, 12, 97])
def test_formulas_hold_densely_for_any_size(n, assert_close):
    identity = np.eye(n)
    for inverse in (False, True):
        for type in (1, 2, 3, 4):
            for sine, family in ((False, "dct"), (True, "dst")):
                reference = getattr(scipy.fft, "i" * inverse + family)(identity, type, axis=0, norm="ortho")
                spec = trigonometric_spec(n, type, "ortho", inverse, sine=sine)
                assert_close(spec.dense(), torch.from_numpy(reference))
        fft = torch.fft.ifft if inverse else torch.fft.fft
        assert_close(dft_spec(n, inverse).dense(), fft(torch.eye(n, dtype=torch.complex128), dim=0))


def test_transforms_are_trainable_away_from_their_start():
    F = mc.dft(16)
    x, target = torch.randn(64, 16), torch.randn(64, 16, dtype=torch.complex64)
    optimizer = torch.optim.AdamW(F.parameters(), lr=1e-2, fused=True)
    losses = []
    for _ in range(20):
        loss = (F(x) - target).abs().square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]
