"""Samples stay what they were, bit for bit: whoever changes a number raises `numbers_version` and the values here."""

import hashlib
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import torch
from scipy.fft import dstn

CASES: dict[str, tuple[str, dict[str, Any], str, str, float]] = {
    # package, options, fingerprint of the settings, hash of samples 0 and 5, sum of their absolute values
    "navier-stokes": (
        "navier_stokes",
        {"final_time": 3, "grid": 16, "resolution": 8},
        "0b7c05fee313bc87",
        "7d4dd6967f8e0a79",
        128.124316,
    ),
    "navier-stokes, float32": (
        "navier_stokes",
        {"final_time": 3, "grid": 16, "resolution": 8, "precision": "float32"},
        "f5360b86725de932",
        "871e9b1b7ea70f47",
        128.124336,
    ),
    "darcy": ("darcy", {"resolution": 8}, "8e1d45d2475e9c02", "ac7861cacf29dcb7", 951.812933),
    "burgers": (
        "burgers",
        {"resolution": 8, "frames": 4},
        "152ece7cbb345d35",
        "24774fd1f468071e",
        249.693380,
    ),
    "shallow water": (
        "shallow_water",
        {"resolution": 16, "frames": 3, "spin_up": 1, "steps_per_hour": 4},
        "8ff8679476c6b569",
        "7b9ba3731f223369",
        3249.84748,
    ),
}

NAMES = {
    "navier_stokes_nu1e-5_N1220_T20_64x64_seed0_float32": (
        "navier_stokes",
        {"nu": 1e-5, "precision": "float32"},
    ),
    "navier_stokes_nu1e-5_N1220_T20_64x64_seed0_grid128_std0.185": (
        "navier_stokes",
        {"nu": 1e-5, "max_grid": 128, "initial_std": 0.185},
    ),
    "burgers_walls_nu2e-2_N1220_T20_64x64_seed0_dt0.1_grid99_std1_float64": (
        "burgers",
        {"nu": 0.02, "interval": 0.1, "grid": 99, "initial_std": 1.0, "precision": "float64"},
    ),
    "darcy_N1220_64x64_seed3_grid320_a10-3": ("darcy", {"high": 10.0, "grid": 320, "seed": 3}),
    "shallow_water_N1220_T24_64x128_seed0_spin2_mach3_scale9_steps3": (
        "shallow_water",
        {"spin_up": 2, "mach": 3.0, "degree_scale": 9.0, "steps_per_hour": 3},
    ),
}


ROUNDING = "33eb0622678fa887"
"""The hash of `probes` where the hashes above were taken."""


def probes() -> Iterator[np.ndarray]:
    """Transforms and products as the solvers use them, whose last bits depend on the CPU and its libraries."""
    for dtype in (torch.float64, torch.float32):
        field = torch.sin(torch.arange(24.0 * 24, dtype=dtype)).reshape(24, 24)
        yield torch.fft.fft2(field).numpy()
        yield (field @ field).numpy()
        yield torch.view_as_complex(torch.stack((field, field.T), -1)).mT.contiguous().exp().numpy()
    yield dstn(field.double().numpy(), type=2, norm="ortho")


def digest_of(*arrays: np.ndarray) -> str:
    return hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()[:16]


def options(package: str, **chosen: Any) -> Any:
    return import_module(f"data.{package}.config").GenerateConfig(**chosen)


@pytest.mark.parametrize("case", CASES)
def test_samples_are_those_of_their_version(case: str) -> None:
    package, chosen, fingerprint, digest, total = CASES[case]
    settings = options(package, **chosen).settings
    assert settings.fingerprint == fingerprint
    made = import_module(f"data.{package}.generate").solve_samples(settings, [0, 5])
    np.testing.assert_allclose(np.abs(made).sum(dtype=np.float64), total, rtol=1e-5)
    if digest_of(*probes()) != ROUNDING:
        pytest.skip("this CPU, or its libraries, round sums in another order than those of the stored hashes")
    assert digest_of(made) == digest


@pytest.mark.parametrize("name", NAMES)
def test_files_keep_their_names(name: str) -> None:
    package, chosen = NAMES[name]
    assert options(package, num_samples=1220, **chosen).default_name == f"{name}.h5"
