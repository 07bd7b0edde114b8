"""qDESS: the two echoes of the double-echo steady state, and the tissues of the knee at 3 T."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from data.scans.scan import Timing

REPETITION_MS: Final = 25.0
ECHO_MS: Final = (7.5, 42.5)
FLIP_DEGREES: Final = 30.0
TIMING: Final = Timing(REPETITION_MS, ECHO_MS[0], FLIP_DEGREES)


@dataclass(frozen=True)
class Tissue:
    """Relaxation times (ms), density of protons (water = 1) and what the sequence leaves of the signal.

    `kept` is the share of the signal left by the water excitation, which spares water and suppresses fat;
    `coherent` the share of the second echo left by flow, diffusion and the dephasing of fat.
    """

    t1: float
    t2: float
    density: float
    kept: float = 1.0
    coherent: float = 1.0


# Relaxation times at 3 T, rounded from Gold 2004 (AJR 183:343), Han 2003 and Jordan 2013 for the knee;
# meniscus, tendon and cortical bone from ultra-short echo time measurements.
TISSUES: Final[dict[str, Tissue]] = {
    "air": Tissue(1000.0, 10.0, 0.0),
    "muscle": Tissue(1400.0, 33.0, 0.73),
    "fat": Tissue(370.0, 130.0, 0.90, kept=0.165, coherent=0.6),
    "marrow": Tissue(365.0, 130.0, 0.80, kept=0.125, coherent=0.6),
    "cortex": Tissue(600.0, 1.0, 0.20),
    "cartilage": Tissue(1240.0, 39.0, 0.86),
    "meniscus": Tissue(950.0, 8.0, 0.60),
    "ligament": Tissue(900.0, 7.0, 0.55),
    "tendon": Tissue(800.0, 5.0, 0.55),
    "fluid": Tissue(3600.0, 500.0, 1.00, coherent=0.62),
    "synovium": Tissue(1300.0, 60.0, 0.80),
    "blood": Tissue(1900.0, 110.0, 0.90, kept=0.7, coherent=0.40),
    "nerve": Tissue(1100.0, 50.0, 0.75),
    "skin": Tissue(900.0, 20.0, 0.58),
}


def qdess_echoes(
    t1: ArrayLike, t2: ArrayLike, timing: Timing = TIMING
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Signals of both echoes for unit proton density; by default with the timing of the synthetic knees.

    With E1 = exp(-TR/T1), E2 = exp(-TR/T2) and flip angle a, the coherences just after and just before a
    pulse are (Gyngell, Magn Reson Imaging 6:415, 1988; Haenicke and Vogel, Magn Reson Med 49:771, 2003)

        S+ = tan(a/2) (1 - (E1 - cos a) r),        S- = tan(a/2) (1 - (1 - E1 cos a) r),
        r  = sqrt((1 - E2^2) / ((1 - E1 cos a)^2 - E2^2 (E1 - cos a)^2)).

    The first echo is read TE after a pulse, the second TE before the next one, so that it has decayed over
    2 TR - TE (42.5 ms here) in all: echo 1 = S+ exp(-TE/T2), echo 2 = S- exp(+TE/T2).

    >>> first, second = qdess_echoes(1240.0, 39.0)
    >>> print(f"{first:.3f} {second / first:.3f}")
    0.067 0.359
    """
    t1, t2 = np.asarray(t1, float), np.asarray(t2, float)
    repetition, echo, flip = timing
    e1, e2 = np.exp(-repetition / t1), np.exp(-repetition / t2)
    angle = np.deg2rad(flip)
    c = np.cos(angle)
    above, below = 1 - e1 * c, e1 - c
    r = np.sqrt((1 - e2**2) / (above**2 - e2**2 * below**2))
    after = np.tan(angle / 2) * (1 - below * r)
    before = np.tan(angle / 2) * (1 - above * r)
    return after * np.exp(-echo / t2), before * np.exp(echo / t2)


def signal(tissue: Tissue) -> tuple[float, float]:
    """Both echoes of a tissue, with its proton density, fat suppression and flow."""
    first, second = qdess_echoes(tissue.t1, tissue.t2)
    scale = tissue.density * tissue.kept
    return float(first * scale), float(second * scale * tissue.coherent)
