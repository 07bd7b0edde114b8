"""The Monarch operator itself: its convention, sizes, padding, defaults, start, and what it says to wrong input."""

import copy
import math
import re
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import monarch_core as mc
from monarch_core import Monarch, dft, project
from monarch_core.sizes import near_sqrt

dtypes = st.sampled_from([torch.float64, torch.complex128])


@st.composite
def monarchs(draw: st.DrawFn, largest: int = 30) -> Monarch:
    n_in, n_out = draw(st.integers(1, largest)), draw(st.integers(1, largest))
    blocks = draw(st.tuples(st.integers(1, n_in), st.integers(1, n_out)))
    return Monarch(n_in, n_out, blocks, draw(st.integers(1, 4)), dtype=draw(dtypes))


def entries(M: Monarch) -> torch.Tensor:
    """M[(l j), (k i)] = sum_r L[j, l, k, r] R[k, j, r, i], entry by entry."""
    R, L = M.factors()
    (K, J, r, I), O = R.shape, L.shape[1]
    dense = torch.zeros(M.out_features, M.in_features, dtype=M.dtype)
    for row in range(M.out_features):
        for column in range(M.in_features):
            (l, j), (k, i) = divmod(row, J), divmod(column, I)
            dense[row, column] = sum(L[j, l, k, q] * R[k, j, q, i] for q in range(r))
    assert M.in_features <= K * I < M.in_features + K
    assert M.out_features <= J * O < M.out_features + J
    return dense


@settings(max_examples=25, deadline=None)
@given(monarchs(largest=9))
def test_convention_holds_entry_by_entry(assert_close, M):
    with torch.no_grad():
        assert_close(M.to_dense(), entries(M))


@settings(max_examples=60, deadline=None)
@given(monarchs(), st.lists(st.integers(0, 3), max_size=2))
def test_any_size_blocks_rank_and_batch(assert_close, M, batch):
    dense = M.to_dense().detach()
    x = torch.randn(*batch, M.in_features, dtype=M.dtype)
    y = torch.randn(*batch, M.out_features, dtype=M.dtype)
    assert_close(M(x), x @ dense.mT)
    assert_close(M.adjoint(y), y @ dense.conj())
    assert_close(M.T(y), y @ dense)


@settings(max_examples=40, deadline=None)
@given(monarchs())
def test_projection_recovers_any_monarch_matrix(assert_close, M):
    dense = M.to_dense().detach()
    assert_close(Monarch.from_dense(dense, M.blocks, M.rank).to_dense(), dense, tolerance=1e-11)


@settings(max_examples=60, deadline=None)
@given(monarchs())
def test_parameters_and_operations_are_counted(M):
    K, J = M.blocks
    I, O = math.ceil(M.in_features / K), math.ceil(M.out_features / J)
    numbers = K * J * M.rank * (I + O)
    complex = M.dtype.is_complex
    assert M.num_parameters == numbers * (2 if complex else 1)
    assert M.flops(batch=3) == 3 * numbers * (8 if complex else 2)


@pytest.mark.parametrize("n", [4, 16, 64, 1024])
def test_paper_parameter_count_of_section_3_2(n):
    assert Monarch(n).num_parameters == 2 * n * math.isqrt(n)


@pytest.mark.parametrize(("n", "b"), [(12, 3), (12, 4), (64, 2), (64, 32), (160, 10)])
def test_paper_parameter_count_of_general_block_sizes(n, b):
    assert Monarch(n, blocks=(n // b, b)).num_parameters == n * n // b + n * b


@pytest.mark.parametrize(
    ("n1", "n2", "n3", "k", "b2"), [(12, 6, 9, 2, 3), (20, 20, 30, 4, 5), (16, 8, 32, 4, 2)]
)
def test_paper_parameter_count_of_rectangular_matrices(n1, n2, n3, k, b2):
    # k blocks b2 x b1 in R hold n1 b2 entries; L with square diagonal sub-blocks b3 = b2 holds n2 n3 / b2.
    assert k * b2 == n2
    assert Monarch(n1, n3, (k, b2), rank=1).num_parameters == n1 * b2 + n2 * n3 // b2


def test_default_blocks_and_rank_are_the_papers():
    assert (Monarch(512).blocks, Monarch(512).rank) == ((16, 32), 1)
    assert (Monarch(4096, blocks=4, device="meta").rank) == 256
    assert Monarch(1024, 4096, 4, device="meta").rank == 64
    assert near_sqrt(160) == (10, 16)


def test_start_keeps_the_variance_of_the_input():
    for dtype in (torch.float32, torch.complex64):
        M = Monarch(256, 1024, (8, 16), 4, dtype=dtype)
        y = M(torch.randn(512, 256, dtype=dtype)).detach()
        assert y.abs().square().mean() == pytest.approx(1.0, abs=0.05)


def test_padding_reads_zeros_after_the_end(assert_close):
    M = Monarch(11, 13, (4, 3), dtype=torch.float64)
    whole = Monarch.from_factors(*M.factors())
    assert (whole.in_features, whole.out_features) == (12, 15)
    x = torch.randn(11, dtype=torch.float64)
    assert_close(M(x), whole(torch.nn.functional.pad(x, (0, 1)))[:13])


def test_prime_size_names_the_cure_and_pads_on_request():
    for without_the_option in (lambda: project(torch.eye(97)), lambda: mc.mm_star(97)):
        with pytest.raises(ValueError, match=r"Pad to 98 = 7 x 14\.$"):
            without_the_option()
    with pytest.raises(ValueError, match=r"of size 97 .* 97 is prime\. Pad to 98 = 7 x 14, or pass pad=True"):
        Monarch(97)
    with pytest.raises(ValueError, match="31 is prime"):
        Monarch(64, 31)
    with pytest.raises(ValueError, match=r"Pad to 4 = 2 x 2"):
        mc.dft(2)
    M = Monarch(97, pad=True)
    assert (M.in_features, M.out_features, M.blocks) == (97, 97, (7, 14))


def test_scaled_real_part_and_mapped_factors(assert_close):
    M = Monarch(11, 13, (4, 3), 2, dtype=torch.complex128)
    left, right = torch.randn(13, dtype=torch.complex128), torch.randn(11, dtype=torch.complex128)
    assert_close(M.scaled(left, right).to_dense(), left[:, None] * M.to_dense() * right)
    assert_close(M.map_factors(torch.conj).to_dense(), M.to_dense().conj())
    assert_close(M.real_part().to_dense(), M.to_dense().real)
    assert M.real_part().rank == 2 * M.rank
    assert M.real_part().num_parameters == M.num_parameters


def test_dense_form_is_cached_until_a_factor_changes(assert_close):
    M = Monarch(16, dtype=torch.float64).eval()
    x = torch.randn(3, 16, dtype=torch.float64)
    with torch.no_grad():
        M(x)
        cached = M._dense_for_inference()
        assert cached is M._dense_for_inference()
        assert copy.deepcopy(M)._cached_dense is None
        M.R.mul_(2)
        assert_close(M(x), x @ M.to_dense().mT)
        assert M._dense_for_inference() is not cached
        M.load_state_dict(Monarch(16, dtype=torch.float64).state_dict())
        assert_close(M(x), x @ M.to_dense().mT)
        M.double().float()
        assert M(x.float()).dtype == torch.float32
    assert M(x.float()).requires_grad
    assert M.train()._cached_dense is None


def test_the_dense_form_follows_fused_optimisers(assert_close):
    M = Monarch(16, dtype=torch.float64).eval()
    x = torch.randn(3, 16, dtype=torch.float64)
    optimizer = torch.optim.AdamW(M.parameters(), lr=0.1, fused=True)
    M(x).square().sum().backward()
    with torch.no_grad():
        M(x)
    optimizer.step()
    with torch.no_grad():
        assert_close(M(x), x @ M.to_dense().mT)


def test_the_dense_form_made_under_autocast_stays_there(assert_close):
    M, x = Monarch(64, blocks=4).eval(), torch.randn(3, 64)
    with torch.no_grad():
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert M(x).dtype == torch.bfloat16
        assert_close(M(x), x @ M.to_dense().mT, 1e-5)


@pytest.mark.filterwarnings("ignore:Complex modules are a new feature:UserWarning")  # torch's, of any module
def test_a_complex_dtype_converts_the_numbers_that_are_stored_as_pairs(assert_close):
    F = dft(12)
    assert F.to(torch.complex128).dtype == torch.complex128
    assert all(p.dtype == torch.float64 for p in F.parameters())
    x = torch.randn(12, dtype=torch.complex128)
    assert_close(F(x), torch.fft.fft(x), 1e-5)


@pytest.mark.filterwarnings("ignore:Complex modules are a new feature")
def test_a_complex_entry_counts_as_two_parameters_however_it_is_stored():
    M = Monarch(12)
    real = M.num_parameters
    assert (
        M.to(torch.complex64).num_parameters == 2 * real == Monarch(12, dtype=torch.complex64).num_parameters
    )


def test_a_large_operator_has_no_dense_form():
    M = Monarch(4096).eval()
    with torch.no_grad():
        M(torch.ones(4096))
    assert M._cached_dense is None


def test_building_from_factors_draws_no_random_numbers():
    before = torch.get_rng_state()
    mc.dft(16)
    Monarch.from_factors(torch.ones(2, 3, 1, 4), torch.ones(3, 5, 2, 1))
    assert torch.equal(before, torch.get_rng_state())


def test_repr_shows_the_sizes():
    assert repr(Monarch(64, 32)) == "Monarch(64 -> 32, blocks=(8, 8), rank=1, torch.float32, 768 parameters)"


def test_half_types_under_autocast(assert_close):
    M = Monarch(64)
    x = torch.randn(5, 64)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = M(x)
    assert y.dtype == torch.bfloat16
    assert_close(y.float(), M(x), tolerance=3e-2)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Monarch(0), ValueError, "size of at least 1; got 0"),
        (lambda: Monarch(12, blocks=13), ValueError, r"R can have 1 to 12 blocks"),
        (lambda: Monarch(12, blocks=(0, 2)), ValueError, "blocks of R should be at least 1; got 0"),
        (lambda: Monarch(12, rank=0), ValueError, "at least 1; got 0"),
        (
            lambda: Monarch(12, dtype=torch.int64),
            TypeError,
            "floating or complex dtype; got dtype=torch.int64",
        ),
        (
            lambda: Monarch.from_factors(torch.ones(2, 3, 1, 4), torch.ones(3, 5, 3, 1)),
            ValueError,
            "the same K, J",
        ),
        (
            lambda: Monarch.from_factors(torch.ones(2, 3, 4), torch.ones(3, 5, 2)),
            ValueError,
            r"R \(2, 3, 4\)",
        ),
        (
            lambda: Monarch.from_factors(torch.ones(2, 3, 1, 4), torch.ones(3, 5, 2, 1), 20),
            ValueError,
            "not 20 -> 15",
        ),
        (lambda: Monarch(12.0), TypeError, "whole number; got 12.0"),
        (
            lambda: Monarch(12, blocks="4"),
            TypeError,
            "the number of blocks of R should be a whole number; got '4'",
        ),
        (lambda: Monarch(12, blocks=(2, 3, 2)), ValueError, "one number or a pair"),
        (lambda: Monarch(12, rank=1.5), TypeError, "rank .* whole number; got 1.5"),
        (lambda: mc.dft(12.0), TypeError, "whole number; got 12.0"),
        (
            lambda: Monarch(12)([1.0] * 12),
            TypeError,
            "Monarch 12 -> 12: the input should be a tensor; got list",
        ),
        (
            lambda: Monarch(12).adjoint(None),
            TypeError,
            "the input of the adjoint should be a tensor; got None",
        ),
        (lambda: Monarch.from_dense(torch.full((4, 4), torch.nan)), ValueError, r"not finite \(NaN or inf\)"),
        (lambda: Monarch.from_dense(torch.full((5, 4), torch.inf), 2), ValueError, "not finite"),
        (lambda: Monarch.from_dense(torch.ones(4)), ValueError, r"a matrix; got .* \(4,\)"),
        (lambda: Monarch.from_dense([[1.0]]), TypeError, "should be a tensor; got list"),
        (lambda: Monarch.from_dense(torch.ones(4, 4, dtype=torch.int64)), TypeError, "got dtype=torch.int64"),
        (lambda: mc.acdc(torch.ones(4) * 1j, torch.ones(4)), TypeError, "is real; got complex"),
        (lambda: mc.dft(12, dtype=torch.float32), TypeError, r"is complex; got dtype=torch.float32"),
        (lambda: mc.dct(12, dtype=torch.complex64), TypeError, "is real"),
        (lambda: mc.dft(12, blocks=(5, 2)), ValueError, r"whose product is 12; got \(5, 2\)"),
        (lambda: mc.dft(12, norm="unitary"), ValueError, '"backward", "ortho" or "forward"'),
        (lambda: mc.dft(0), ValueError, "at least 1; got 0"),
        (lambda: mc.dct(-4), ValueError, "at least 1; got -4"),
        (lambda: mc.dct(12, type=5), ValueError, "types 1, 2, 3 and 4; got type=5"),
        (lambda: mc.dct(1, type=1), ValueError, "at least 2 points"),
        (lambda: mc.dct(97), ValueError, "97 is prime"),
        (lambda: mc.hadamard(12), ValueError, "power of two"),
        (lambda: mc.hadamard(16, blocks=(3, 5)), ValueError, "whose product is 16"),
        (lambda: mc.toeplitz(torch.ones(2, 2)), ValueError, r"a vector; got a tensor of shape \(2, 2\)"),
        (lambda: mc.toeplitz(torch.ones(9), blocks=(2, 2)), ValueError, "period 17 or more"),
        (lambda: mc.circulant(torch.ones(4) * 1j, dtype=torch.float32), TypeError, "is complex"),
        (lambda: mc.convolution(torch.ones(5), 4), ValueError, "at most 4; got 5"),
        (lambda: mc.convolution(torch.ones(5), 4, "wrap"), ValueError, "got 'wrap'"),
        (
            lambda: mc.acdc(torch.ones(4), torch.ones(6)),
            ValueError,
            r"one length; got shapes \[\(4,\), \(6,\)\]",
        ),
        (lambda: mc.butterfly([torch.ones(2, 2, 2, 1)] * 2), ValueError, r"factor 1 .* got \(2, 2, 2, 1\)"),
        (lambda: mc.mm_star(12, block_size=5), ValueError, "divides 12; got 5"),
        (lambda: mc.Permutation(torch.tensor([0, 0])), ValueError, "each of 0 ... n-1 once"),
        (lambda: mc.dft2((4, 4, 4)), ValueError, "use dftn"),
        (lambda: mc.dftn((4, 4), blocks=[None]), ValueError, "each of the 2 axes; got 1"),
        (lambda: mc.Separable(), ValueError, "at least one operator"),
        (lambda: mc.grid_dft((4, 4), keep=([9], None)), ValueError, "keep lists 9"),
        (lambda: mc.grid_spherical(torch.ones(9, 3, 4), 8), ValueError, "orders 0 to 4; got 9"),
        (lambda: mc.GridMonarch.from_tables(torch.ones(3, 4), torch.ones(5, 2, 2)), ValueError, "do not fit"),
    ],
)
def test_wrong_input_is_explained(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_product_names_the_links_that_do_not_fit():
    with pytest.raises(
        ValueError, match=r"links 1 and 2 of a product of 4 .*Monarch 16 -> 12 takes 16.*gives 9"
    ):
        Monarch(12) @ Monarch(16, 12) @ mc.hartley(9)


def test_product_names_the_link_that_failed():
    class Broken(Monarch):
        def multiply(self, x: torch.Tensor) -> torch.Tensor:
            raise RuntimeError("out of luck")

    with pytest.raises(
        RuntimeError, match=r"link 1 of a product of 3, Broken 12 -> 12, failed on shape \(2, 12\).*luck"
    ):
        (Monarch(12) @ Broken(12) @ Monarch(12))(torch.ones(2, 12))


def test_only_operators_compose():
    with pytest.raises(TypeError, match=r"call it: A\(x\)"):
        Monarch(12) @ torch.ones(12, 12)
    for wrong in (lambda: Monarch(12) + 1, lambda: Monarch(12) - torch.ones(12), lambda: "2" * Monarch(12)):
        with pytest.raises(TypeError):
            wrong()


def test_sums_flatten_and_add_up(assert_close):
    A, B = (Monarch(12, dtype=torch.float64) for _ in range(2))
    total = 2 * (A + 3 * B) - B / 4
    assert total.numbers == (2, 6, -0.25)
    assert len(total.terms) == 3
    assert_close(total.to_dense(), 2 * A.to_dense() + 5.75 * B.to_dense())
    assert_close(sum([A, B, A]).to_dense(), 2 * A.to_dense() + B.to_dense())
    assert (np.float64(2) * A).numbers == (2,)


def test_multiples_by_numbers_of_other_libraries(assert_close):
    M = Monarch(16, dtype=torch.float64)
    for number in (np.complex64(2j), np.float32(0.5), np.int64(3), Fraction(1, 4)):
        A, expected = number * M, complex(number) * M.to_dense()
        assert A.dtype.is_complex == isinstance(number, np.complex64)
        assert_close(A.to_dense(), expected if A.dtype.is_complex else expected.real)
        assert_close(A.H.to_dense(), (expected if A.dtype.is_complex else expected.real).mH)


def test_a_sum_names_the_term_that_does_not_fit():
    with pytest.raises(ValueError, match="term 0 is Monarch 12 -> 12, term 2 is Monarch 16 -> 12"):
        Monarch(12) + Monarch(12) + Monarch(16, 12)


def test_multiples_of_a_permutation_fit_operands_of_any_dtype():
    P = 2 * mc.Permutation(torch.tensor([1, 0]))
    assert P(torch.ones(2, dtype=torch.float64)).dtype == torch.float64
    assert (P @ mc.identity(2, pad=True, dtype=torch.float64)).dtype == torch.float64
    assert (1j * P).dtype == torch.complex64


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_constructors_keep_the_dtype_of_the_arrays_they_are_given(dtype):
    v, w, table = torch.rand(16).to(dtype), torch.rand(16).to(dtype), torch.rand(3, 4, 5).to(dtype)
    shuffle = torch.randperm(16)
    matrix = mc.mm_star(12, dtype=dtype).to_dense().detach()
    real = [
        Monarch.from_dense(torch.outer(v, w)),
        mc.kronecker(torch.outer(v, w), torch.outer(w, v)),
        mc.butterfly([torch.rand(16 // m, 2, 2, m // 2).to(dtype) for m in (2, 4, 8, 16)]),
        *(mc.circulant(v), mc.toeplitz(v), mc.convolution(v, 20, "full"), mc.acdc(v, w)),
        *(mc.fastfood(v, w, v, shuffle), mc.hd3(v, w, v), mc.factorize(matrix)),
        mc.GridMonarch.from_tables(table[0], table[1]),
    ]
    assert {operator.dtype for operator in real} == {dtype}
    assert {mc.afdf(v, w).dtype, mc.grid_spherical(table, 8).dtype} == {dtype.to_complex()}


def test_constructors_take_integers_as_the_default_dtype():
    numbers = torch.arange(1, 5)
    assert mc.kronecker(numbers.reshape(2, 2), numbers.reshape(2, 2)).dtype == torch.float32
    assert mc.circulant(numbers).dtype == torch.float32


def test_every_public_constructor_is_in_the_registry(root):
    text = (root / "tests/monarch_core/conftest.py").read_text()
    elsewhere = {"MonarchLinear", "monarchize", "densify", "param_groups", "LinearOperator"}
    elsewhere |= {
        "real_arithmetic",
        "SphereTransform",
        "Start",
        "find_start",
        "register_start",
        "start_names",
    }
    elsewhere |= {"project", "projection_report", "ProjectionReport", "ConversionReport", "LayerReport"}
    elsewhere |= {"MonarchAdapter", "attach_adapter", "load_adapter", "merge_adapter", "save_adapter"}
    elsewhere |= {"MonarchConv1d", "MonarchConv2d", "in_pairs"}
    elsewhere |= {"MonarchAttention", "MonarchExperts", "load_converted", "save_converted", "structure"}
    # reached through the constructors
    parts = {"Permutation", "Resize", "Stride", "RealPart", "Product", "Combination"}
    parts |= {"Transform", "AxisAnalysis", "AxisSynthesis", "PlaneAnalysis", "PlaneSynthesis", "shear"}
    missing = [
        name
        for name in set(mc.__all__) - elsewhere - parts
        if not re.search(rf"\bmc\.{name}\b|\b{name}\(", text)
    ]
    assert missing == []
