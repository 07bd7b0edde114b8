"""The registry of operators that the property tests run through, and the one table of tolerances."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.fft
import scipy.linalg
import torch
from torch import Tensor

import monarch_core as mc
from monarch_core import LinearOperator, Monarch

# Relative error of a result against its reference, by dtype.
TOLERANCE = {
    torch.float64: 1e-12,
    torch.complex128: 1e-12,
    torch.float32: 5e-6,
    torch.complex64: 5e-6,
    torch.bfloat16: 3e-2,
}


def assert_close(actual: Tensor, expected: Tensor, tolerance: float | None = None) -> None:
    """The relative error, in the Euclidean norm, lies within the tolerance of the less precise dtype."""
    assert actual.shape == expected.shape
    allowed = max(TOLERANCE.get(t.dtype, 0.0) for t in (actual, expected)) if tolerance is None else tolerance
    error = torch.linalg.vector_norm(actual - expected) / torch.linalg.vector_norm(expected).clamp(min=1e-300)
    assert error <= allowed, f"relative error {error:.2e} > {allowed:.0e}"


@pytest.fixture(scope="session", name="assert_close")
def _assert_close() -> Callable[..., None]:
    return assert_close


@dataclass(frozen=True)
class Case:
    """An operator in double precision and, where there is one, its matrix from an independent definition."""

    name: str
    make: Callable[[], LinearOperator]
    matrix: Callable[[], np.ndarray] | None = None
    compiled: bool = False  # also run under torch.compile, which is slow

    def operator(self) -> LinearOperator:
        torch.manual_seed(0)
        return self.make()


R64, C128 = torch.float64, torch.complex128
rng = np.random.default_rng(0)
A12, D12, A16, B16, G16 = (rng.standard_normal(n) for n in (12, 12, 16, 16, 16))
SHUFFLE = rng.permutation(16)
SPIN12 = A12 + 1j * D12
BUTTERFLY = [rng.standard_normal((16 // m, 2, 2, m // 2)) for m in (2, 4, 8, 16)]
LEGENDRE = rng.standard_normal((4, 3, 5))  # orders m, degrees l, latitudes


def real(a: np.ndarray) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(a))


def fourier(n: int, norm: str = "backward") -> np.ndarray:
    return np.fft.fft(np.eye(n), axis=0, norm=norm)


def shifted(F: np.ndarray) -> np.ndarray:
    return np.fft.fftshift(F)  # fftshift F ifftshift: rows and columns move by the same n // 2


def butterfly_matrix() -> np.ndarray:
    B = np.eye(16)
    for factor in BUTTERFLY:
        B = (
            scipy.linalg.block_diag(
                *(
                    np.block([[np.diag(D[0, 0]), np.diag(D[0, 1])], [np.diag(D[1, 0]), np.diag(D[1, 1])]])
                    for D in factor
                )
            )
            @ B
        )
    return B


def convolution_matrix(kernel: np.ndarray, n: int, mode: str) -> np.ndarray:
    return np.stack([np.convolve(e, kernel, mode) for e in np.eye(n)], axis=1)


def spherical_matrix() -> np.ndarray:
    waves = 2 * np.pi / 8 * np.exp(-2j * np.pi * np.outer(np.arange(4), np.arange(8)) / 8)
    return np.einsum("mla,mb->lmab", LEGENDRE, waves).reshape(12, 40)


SIGNED = [0, 1, -2, -1]  # the frequencies that the second axis of a plane keeps with 2 modes


def pairs(matrix: np.ndarray) -> np.ndarray:
    """A complex matrix (modes, points) as the real one from points to re and im, side by side."""
    return np.stack((matrix.real, matrix.imag), 1).reshape(-1, matrix.shape[1])


def plane_matrix(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """From the field (x, y) to the modes (k, l, 2) of matrices (l, x) and (k, y), y first."""
    full = np.einsum("lx,ky->klxy", x, y)
    return pairs(full.reshape(len(x) * len(y), -1))


def synthesis_matrix(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The way back of orthonormal transforms: all frequencies of y but the zeroth stand for two."""
    weight = np.array([1.0] + [2.0] * (len(y) - 1))
    return plane_matrix(x, weight[:, None] * y).T


def cosines(n: int, modes: int) -> tuple[np.ndarray, np.ndarray]:
    """The lowest cosines by themselves, and two neighbours as one complex number."""
    lowest = scipy.fft.dct(np.eye(n), norm="ortho", axis=0)[: 2 * modes]
    return lowest + 0j, lowest[0::2] + 1j * lowest[1::2]


def sheared(n: int) -> np.ndarray:
    """The permutation from f(x, y) to f(s - y, y)."""
    S = np.zeros((n, n, n, n))
    for s in range(n):
        for y in range(n):
            S[s, y, (s - y) % n, y] = 1
    return S.reshape(n * n, n * n)


def by_group(matrix: np.ndarray, groups: int) -> np.ndarray:
    return np.kron(np.eye(groups), matrix)


def plane(*args: object, **options: object) -> mc.PlaneTransform:
    return mc.PlaneTransform(*args, **options, dtype=R64)


def axis(*args: object, **options: object) -> mc.AxisTransform:
    return mc.AxisTransform(*args, **options, dtype=R64)


def truncated_cases() -> list[Case]:
    F = {n: fourier(n, "ortho") for n in (5, 6, 8)}
    line, cross = F[8][:3], F[6][SIGNED]
    down, over = F[5][SIGNED], F[8][:2]
    (cosine, _), (_, cosine_pairs) = cosines(6, 2), cosines(5, 2)
    kinds = {"matrix": "matrix", "monarch": "monarch", "frequency": ("per-frequency", "fixed")}
    kinds |= {"grid": ("per-frequency", "per-point"), "mixed": ("monarch", "matrix")}
    return [
        Case("axis", lambda: axis(8, 3, learn="matrix").analysis, lambda: pairs(line), compiled=True),
        Case(
            "axis-back",
            lambda: axis(8, 3, learn="monarch").synthesis,
            lambda: pairs(line * np.array([[1], [2], [2]])).T,
        ),
        Case(
            "axis-groups",
            lambda: axis(8, 3, learn="matrix", groups=2).analysis,
            lambda: by_group(pairs(line), 2),
        ),
        Case("axis-back-groups", lambda: axis(8, 3, learn="matrix", groups=2).synthesis),
        *(
            Case(
                f"plane-{name}",
                lambda learn=learn: plane((6, 8), 2, learn=learn).analysis,
                lambda: plane_matrix(cross, over),
                compiled=name == "matrix",
            )
            for name, learn in kinds.items()
        ),
        *(
            Case(
                f"plane-back-{name}",
                lambda learn=learn: plane((6, 8), 2, learn=learn).synthesis,
                lambda: synthesis_matrix(cross, over),
            )
            for name, learn in kinds.items()
        ),
        Case(
            "plane-x-first",
            lambda: plane((8, 5), 2, learn=("fixed", "per-frequency")).analysis,
            lambda: pairs(np.einsum("kx,ly->klxy", over, down).reshape(8, 40)),
        ),
        Case("plane-x-first-back", lambda: plane((8, 5), 2, learn=("per-point", "matrix")).synthesis),
        Case(
            "plane-groups",
            lambda: plane((6, 8), 2, learn="matrix", groups=2).analysis,
            lambda: by_group(plane_matrix(cross, over), 2),
        ),
        Case("plane-back-groups", lambda: plane((6, 8), 2, learn="matrix", groups=2).synthesis),
        Case(
            "plane-dct",
            lambda: plane((6, 5), 2, start="dct", learn="matrix").analysis,
            lambda: plane_matrix(cosine, cosine_pairs),
        ),
        Case(
            "plane-sheared",
            lambda: plane((8, 8), 2, learn=("per-frequency", "fixed"), shear=True).analysis,
            lambda: plane_matrix(F[8][SIGNED], over) @ sheared(8),
        ),
        Case(
            "plane-sheared-back",
            lambda: plane((8, 8), 2, learn=("per-frequency", "fixed"), shear=(False, True)).synthesis,
            lambda: sheared(8).T @ synthesis_matrix(F[8][SIGNED], over),
        ),
        Case("plane-sht", lambda: plane((8, 8), 2, start="sht", learn=("per-frequency", "fixed")).analysis),
        Case("plane-sht-back", lambda: plane((8, 8), 2, start="sht", learn=kinds["grid"]).synthesis),
    ]


def random_mm_star(dtype: torch.dtype) -> Tensor:
    torch.manual_seed(0)
    return mc.mm_star(12, dtype=dtype).to_dense().detach()


def trigonometric_cases() -> list[Case]:
    cases = []
    for name, make, reference in (("dct", mc.dct, scipy.fft.dct), ("dst", mc.dst, scipy.fft.dst)):
        for type in (1, 2, 3, 4):
            n, norm = {1: 8, 2: 12, 3: 15, 4: 9}[type], "backward" if name == "dct" else "ortho"
            cases.append(
                Case(
                    f"{name}-{type}",
                    lambda make=make, n=n, type=type, norm=norm: make(n, type=type, norm=norm, dtype=R64),
                    lambda f=reference, n=n, type=type, norm=norm: f(np.eye(n), type, axis=0, norm=norm),
                    compiled=name == "dct" and type == 1,
                )
            )
    return cases


H16 = scipy.linalg.hadamard(16)
H16_ORTHO = H16 / 4
DCT12 = scipy.fft.dct(np.eye(12), norm="ortho", axis=0)

CASES = [
    Case("monarch", lambda: Monarch(12, dtype=R64), compiled=True),
    Case("monarch-complex", lambda: Monarch(12, dtype=C128), compiled=True),
    Case("monarch-rectangular", lambda: Monarch(12, 20, (3, 4), 2, dtype=R64)),
    Case("monarch-narrowing-complex", lambda: Monarch(20, 6, (4, 2), 3, dtype=C128)),
    Case("monarch-padded", lambda: Monarch(11, 13, (4, 3), dtype=R64), compiled=True),
    Case("monarch-prime", lambda: Monarch(13, 7, pad=True, dtype=C128)),
    Case("monarch-one-block", lambda: Monarch(6, 4, 1, dtype=R64)),
    Case("adjoint", lambda: Monarch(12, 20, (3, 4), 2, dtype=C128).H),
    Case("transpose", lambda: Monarch(12, 20, (3, 4), 2, dtype=C128).T),
    Case("conjugate", lambda: Monarch(12, 20, (3, 4), 2, dtype=C128).conj()),
    Case(
        "sum", lambda: Monarch(12, 20, (3, 4), 2, dtype=C128) + Monarch(12, 20, 2, dtype=R64), compiled=True
    ),
    Case(
        "difference",
        lambda: mc.dft(12, dtype=C128) - mc.identity(12, dtype=R64),
        lambda: fourier(12) - np.eye(12),
    ),
    Case("multiple", lambda: -2.5 * mc.hadamard(16, dtype=R64), lambda: -2.5 * H16),
    Case(
        "multiple-complex", lambda: 2j * mc.dct(12, dtype=R64), lambda: 2j * scipy.fft.dct(np.eye(12), axis=0)
    ),
    Case("dft", lambda: mc.dft(12, dtype=C128), lambda: fourier(12), compiled=True),
    Case("dft-odd-ortho", lambda: mc.dft(15, norm="ortho", dtype=C128), lambda: fourier(15, "ortho")),
    Case("dft-inverse", lambda: mc.dft(8, inverse=True, dtype=C128), lambda: np.linalg.inv(fourier(8))),
    Case("dft-centered", lambda: mc.dft(9, centered=True, dtype=C128), lambda: shifted(fourier(9))),
    Case("dft-blocks", lambda: mc.dft(12, blocks=(6, 2), dtype=C128), lambda: fourier(12)),
    Case("dft-prime", lambda: mc.dft(7, pad=True, dtype=C128), lambda: fourier(7)),
    Case("hartley", lambda: mc.hartley(12, dtype=R64), lambda: fourier(12).real - fourier(12).imag),
    *trigonometric_cases(),
    Case("dct-prime", lambda: mc.dct(7, pad=True, dtype=R64), lambda: scipy.fft.dct(np.eye(7), axis=0)),
    Case("hadamard", lambda: mc.hadamard(16, dtype=R64), lambda: H16),
    Case("identity", lambda: mc.identity(12, dtype=R64), lambda: np.eye(12)),
    Case("identity-prime", lambda: mc.identity(7, pad=True, dtype=C128), lambda: np.eye(7)),
    Case(
        "kronecker",
        lambda: mc.kronecker(real(A12.reshape(3, 4)), real(D12.reshape(2, 6)), dtype=R64),
        lambda: np.kron(A12.reshape(3, 4), D12.reshape(2, 6)),
    ),
    Case("butterfly", lambda: mc.butterfly([real(f) for f in BUTTERFLY], 8), butterfly_matrix),
    Case("circulant", lambda: mc.circulant(real(A12)), lambda: scipy.linalg.circulant(A12), compiled=True),
    Case("circulant-complex", lambda: mc.circulant(real(SPIN12)), lambda: scipy.linalg.circulant(SPIN12)),
    Case(
        "circulant-prime",
        lambda: mc.circulant(real(A12[:7]), pad=True),
        lambda: scipy.linalg.circulant(A12[:7]),
    ),
    Case(
        "toeplitz", lambda: mc.toeplitz(real(A12), real(D12[:5])), lambda: scipy.linalg.toeplitz(A12, D12[:5])
    ),
    Case("toeplitz-hermitian", lambda: mc.toeplitz(real(SPIN12)), lambda: scipy.linalg.toeplitz(SPIN12)),
    *(
        Case(
            f"convolution-{mode}",
            lambda mode=mode: mc.convolution(real(A12[:4]), 9, mode),
            lambda mode=mode: convolution_matrix(A12[:4], 9, mode),
        )
        for mode in ("full", "same", "valid")
    ),
    Case(
        "convolution-circular",
        lambda: mc.convolution(real(A12[:4]), 9),
        lambda: scipy.linalg.circulant(np.r_[A12[:4], np.zeros(5)]),
    ),
    Case(
        "afdf",
        lambda: mc.afdf(real(A12), real(SPIN12), dtype=C128),
        lambda: np.diag(A12) @ fourier(12) @ np.diag(SPIN12) @ np.linalg.inv(fourier(12)),
    ),
    Case(
        "acdc",
        lambda: mc.acdc(real(A12), real(D12), dtype=R64),
        lambda: np.diag(A12) @ DCT12 @ np.diag(D12) @ DCT12.T,
    ),
    Case(
        "fastfood",
        lambda: mc.fastfood(real(A16), real(G16), real(B16), real(SHUFFLE), dtype=R64),
        lambda: np.diag(A16) @ H16 @ np.diag(G16) @ np.eye(16)[SHUFFLE] @ H16 @ np.diag(B16),
    ),
    Case(
        "hd3",
        lambda: mc.hd3(real(A16), real(G16), real(B16), dtype=R64),
        lambda: H16_ORTHO @ np.diag(A16) @ H16_ORTHO @ np.diag(G16) @ H16_ORTHO @ np.diag(B16),
    ),
    Case("mm-star", lambda: mc.mm_star(12, dtype=C128)),
    Case("mm-star-squared", lambda: mc.mm_star(8, power=2, dtype=R64)),
    Case("m-star-m", lambda: mc.m_star_m(12, dtype=C128)),
    Case("factorized", lambda: mc.factorize(random_mm_star(R64)), lambda: random_mm_star(R64).numpy()),
    Case(
        "factorized-complex", lambda: mc.factorize(random_mm_star(C128)), lambda: random_mm_star(C128).numpy()
    ),
    Case(
        "mm-star-factors",
        lambda: mc.MMStar(*(torch.randn(s, dtype=R64) for s in ((3, 4, 4), (4, 3, 3), (3, 4, 4)))),
    ),
    Case("hierarchy", lambda: mc.hierarchy(4, width=2, expansion=2, dtype=R64)),
    Case("dft2", lambda: mc.dft2((4, 6), dtype=C128), lambda: np.kron(fourier(4), fourier(6)), compiled=True),
    Case(
        "dftn",
        lambda: mc.dftn((4, 4, 3), inverse=True, norm="ortho", pad=True, dtype=C128),
        lambda: np.kron(fourier(4, "ortho"), np.kron(fourier(4, "ortho"), fourier(3, "ortho"))).conj(),
    ),
    Case("dctn", lambda: mc.dctn((4, 9), norm="ortho", dtype=R64)),
    Case("dstn", lambda: mc.dstn((4, 6), type=3, dtype=R64)),
    Case("separable", lambda: mc.Separable(Monarch(4, 6, dtype=R64), Monarch(9, 4, dtype=R64))),
    Case("grid", lambda: mc.GridMonarch((4, 5), (3, 6), rank=2, dtype=R64)),
    Case("grid-columns-first", lambda: mc.GridMonarch((4, 5), (3, 6), columns_first=True, dtype=C128)),
    Case("grid-dft", lambda: mc.grid_dft((4, 5), dtype=C128), lambda: np.kron(fourier(4), fourier(5))),
    Case(
        "grid-dft-modes",
        lambda: mc.grid_dft((6, 5), keep=(range(-2, 2), range(3)), dtype=C128),
        lambda: np.kron(fourier(6)[[-2, -1, 0, 1]], fourier(5)[:3]),
        compiled=True,
    ),
    Case(
        "grid-dct",
        lambda: mc.grid_dct((4, 5), dtype=R64),
        lambda: np.kron(scipy.fft.dct(np.eye(4), axis=0), scipy.fft.dct(np.eye(5), axis=0)),
    ),
    Case(
        "grid-dst-inverse",
        lambda: mc.grid_dst((4, 5), type=1, inverse=True, dtype=R64),
        lambda: np.kron(scipy.fft.idst(np.eye(4), 1, axis=0), scipy.fft.idst(np.eye(5), 1, axis=0)),
    ),
    *truncated_cases(),
    Case("grid-spherical", lambda: mc.grid_spherical(real(LEGENDRE), 8, dtype=C128), spherical_matrix),
]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test with an argument `case` runs for the whole registry, `defined_case` where the matrix is known
    independently, `compiled_case` where compilation is tried, `single_case` for operators that are one Monarch."""
    chosen = {
        "case": CASES,
        "defined_case": [case for case in CASES if case.matrix is not None],
        "compiled_case": [case for case in CASES if case.compiled],
        "single_case": [case for case in CASES if type(case.operator()) is Monarch],
    }
    for name, cases in chosen.items():
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, cases, ids=lambda case: case.name)
