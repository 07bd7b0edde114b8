"""N-dimensional and grid operators, products, and the parameter counts that the paper states for them."""

import numpy as np
import pytest
import scipy.fft
import torch

import monarch_core as mc
from monarch_core import GridMonarch, Monarch


def test_msense_has_57472_parameters():
    assert mc.dft2((512, 160), inverse=True, norm="ortho", centered=True).num_parameters == 57_472


@pytest.mark.parametrize("shape", [(512, 160), (12, 15)])
def test_dft2_equals_torch(shape, assert_close):
    x = torch.randn(2, *shape, dtype=torch.complex128)
    assert_close(mc.dft2(shape, norm="ortho", dtype=torch.complex128)(x), torch.fft.fft2(x, norm="ortho"))
    axes = (-2, -1)
    centered = torch.fft.fftshift(torch.fft.ifft2(torch.fft.ifftshift(x, axes)), axes)
    assert_close(mc.dft2(shape, inverse=True, centered=True, dtype=torch.complex128)(x), centered)


def test_dftn_dctn_dstn_equal_their_references(assert_close):
    x = torch.randn(2, 4, 6, 9, dtype=torch.float64)
    axes = (1, 2, 3)
    assert_close(mc.dftn((4, 6, 9), dtype=torch.complex128)(x), torch.fft.fftn(x, dim=axes))
    expected = scipy.fft.dctn(x.numpy(), 2, axes=axes, norm="ortho")
    assert_close(mc.dctn((4, 6, 9), norm="ortho", dtype=torch.float64)(x), torch.from_numpy(expected))
    expected = scipy.fft.idstn(x.numpy(), 3, axes=axes)
    assert_close(mc.dstn((4, 6, 9), type=3, inverse=True, dtype=torch.float64)(x), torch.from_numpy(expected))


def test_separable_counts_operations_line_by_line():
    A, B = Monarch(4, 6), Monarch(9, 4)
    assert mc.Separable(A, B).flops(batch=2) == B.flops(2 * 4) + A.flops(2 * 4)


@pytest.mark.parametrize("shape", [(8, 12), (7, 5)])
def test_grid_transforms_equal_their_references(shape, assert_close):
    x = torch.randn(3, *shape, dtype=torch.float64)
    assert_close(mc.grid_dft(shape, dtype=torch.complex128)(x), torch.fft.fft2(x))
    for type in (1, 2, 3, 4):
        expected = scipy.fft.dctn(x.numpy(), type, axes=(1, 2))
        assert_close(mc.grid_dct(shape, type=type, dtype=torch.float64)(x), torch.from_numpy(expected))
        expected = scipy.fft.idstn(x.numpy(), type, axes=(1, 2), norm="ortho")
        operator = mc.grid_dst(shape, type=type, norm="ortho", inverse=True, dtype=torch.float64)
        assert_close(operator(x), torch.from_numpy(expected))


def test_grid_is_the_monarch_convention_itself(assert_close):
    G = GridMonarch((4, 5), (3, 6), rank=2, dtype=torch.complex128)
    x = torch.randn(2, 4, 5, dtype=torch.complex128)
    R, L = G.monarch.factors()
    expected = torch.einsum("jlar,ajrb,nab->nlj", L, R, x)
    assert_close(G(x), expected)
    assert G.monarch.blocks == (4, 6)


def test_grid_columns_first_mirrors_rows_first(assert_close):
    rows, columns = torch.randn(3, 6, 5, dtype=torch.float64), torch.randn(5, 3, 4, dtype=torch.float64)
    G = GridMonarch.from_tables(rows, columns, columns_first=True, dtype=torch.float64)
    x = torch.randn(2, 4, 5, dtype=torch.float64)
    assert_close(G(x), torch.einsum("lcb,bla,nab->nlc", rows, columns, x))


def test_truncated_grid_keeps_the_modes_and_its_inverse_puts_them_back(assert_close):
    rows, columns = list(range(-3, 3)), list(range(4))
    x = torch.randn(2, 12, 10, dtype=torch.float64)
    forward = mc.grid_dft((12, 10), keep=(rows, columns), dtype=torch.complex128)
    spectrum = torch.fft.fft2(x)
    assert forward.out_shape == (6, 4)
    assert_close(forward(x), spectrum[:, rows][:, :, columns])
    inverse = mc.grid_dft((12, 10), inverse=True, keep=(rows, columns), dtype=torch.complex128)
    kept = torch.zeros_like(spectrum)
    kept[:, np.ix_(rows, columns)[0], columns] = spectrum[:, rows][:, :, columns]
    assert_close(inverse(forward(x)), torch.fft.ifft2(kept))


def test_trained_grid_is_not_separable():
    G = mc.grid_dft((4, 4), dtype=torch.complex128)

    def kronecker_rank() -> int:
        dense = G.to_dense().detach().reshape(4, 4, 4, 4)
        return int(torch.linalg.matrix_rank(dense.permute(0, 2, 1, 3).reshape(16, 16)))

    assert kronecker_rank() == 1
    x, target = torch.randn(8, 4, 4, dtype=torch.complex128), torch.randn(8, 4, 4, dtype=torch.complex128)
    (G(x) - target).abs().square().sum().backward()
    with torch.no_grad():
        for parameter in G.parameters():
            parameter.sub_(1e-2 * parameter.grad)
    assert kronecker_rank() > 4


@pytest.mark.parametrize("longitudes", [8, 9])
def test_inverse_spherical_transform_is_legendre_then_real_fourier(longitudes, assert_close):
    orders = longitudes // 2 + 1  # up to the Nyquist order, which an even number of longitudes has
    legendre = torch.randn(orders, 6, 3, dtype=torch.float64)
    coefficients = torch.randn(3, orders, dtype=torch.complex128)
    synthesis = mc.grid_spherical(legendre, longitudes, inverse=True, dtype=torch.complex128)
    waves = torch.einsum("mal,lm->am", legendre.to(torch.complex128), coefficients)
    assert_close(synthesis(coefficients).real, torch.fft.irfft(waves, longitudes, norm="forward"))


@pytest.mark.parametrize("grid", ["equiangular", "legendre-gauss"])
def test_spherical_harmonic_transform_is_a_grid_monarch(grid, assert_close):
    harmonics = pytest.importorskip("torch_harmonics")
    forward = harmonics.RealSHT(16, 32, grid=grid)
    backward = harmonics.InverseRealSHT(16, 32, grid=grid, lmax=forward.lmax, mmax=forward.mmax)
    x = torch.randn(3, 16, 32, dtype=torch.float64)
    G = mc.grid_spherical(forward.weights.double(), 32, dtype=torch.complex128)
    coefficients = forward.double()(x)
    assert_close(G(x), coefficients)
    synthesis = mc.grid_spherical(backward.pct.mT.double(), 32, inverse=True, dtype=torch.complex128)
    assert_close(synthesis(coefficients).real, backward.double()(coefficients))


@pytest.mark.parametrize(("n", "b"), [(16, 4), (24, 3), (24, 8)])
def test_paper_parameter_counts_of_products(n, b):
    one = n * n // b + n * b
    assert mc.mm_star(n, b).num_parameters == 2 * one
    assert mc.m_star_m(n, b).num_parameters == 2 * one
    assert mc.mm_star(n, b, power=2).num_parameters == 4 * one


@pytest.mark.parametrize(("n", "w", "e", "b"), [(8, 2, 2, 4), (12, 3, 1, 3), (6, 1, 4, 8)])
def test_paper_parameter_count_of_the_hierarchy(n, w, e, b):
    assert mc.hierarchy(n, w, e, b).num_parameters == 2 * w * e * e * n * n // b + 2 * w * e * n * b


def test_hierarchy_is_the_corner_of_the_larger_product(assert_close):
    operator = mc.hierarchy(4, width=2, expansion=3, dtype=torch.float64)
    inner = mc.Product(*operator.links[1:-1])
    assert inner.in_features == 12
    assert_close(operator.to_dense(), inner.to_dense()[:4, :4])


def test_mm_star_is_block_times_block_diagonal_times_block(assert_close):
    # Appendix C: M_1 M_2^* = L_1 (R_1 R_2^*) L_2^*, where the middle is block-diagonal with blocks b x b.
    product = mc.mm_star(12, 3, dtype=torch.float64)
    (R1, L1), (R2, L2) = product.links[0].factors(), product.links[1].base.factors()
    middle = torch.block_diag(*(R1[:, :, 0] @ R2[:, :, 0].mT))
    left, right = (
        torch.einsum("jlk,jm->ljkm", L[..., 0], torch.eye(3, dtype=torch.float64)).reshape(12, 12)
        for L in (L1, L2)
    )
    assert_close(product.to_dense(), left @ middle @ right.T)


def test_convolution_families_are_mm_star_without_permutations():
    a, d = torch.randn(12), torch.randn(12)
    for operator in (mc.circulant(a.to(torch.complex64)), mc.toeplitz(a * 1j), mc.afdf(a, d), mc.acdc(a, d)):
        M1, M2 = operator.links
        assert type(M1) is Monarch
        assert type(M2.base) is Monarch


def test_one_number_of_blocks_of_a_toeplitz_matrix_is_that_of_both(assert_close):
    column = torch.randn(4, dtype=torch.float64)
    assert_close(mc.toeplitz(column, blocks=3).to_dense(), mc.toeplitz(column, blocks=(3, 3)).to_dense())
