"""The qDESS signal against an independent simulation, and the order of contrasts in a knee."""

import numpy as np
import pytest

from data.knee.tissue import ECHO_MS, FLIP_DEGREES, REPETITION_MS, TISSUES, qdess_echoes, signal


def extended_phase_graph(
    t1: float, t2: float, *, orders: int = 60, pulses: int = 1500
) -> tuple[float, float]:
    """Both echoes by brute force: configuration states, one gradient cycle a repetition, to the steady state."""
    angle = np.deg2rad(FLIP_DEGREES)
    c, s = np.cos(angle / 2) ** 2, np.sin(angle / 2) ** 2
    mix = np.array(
        [
            [c, s, -1j * np.sin(angle)],
            [s, c, 1j * np.sin(angle)],
            [-0.5j * np.sin(angle), 0.5j * np.sin(angle), np.cos(angle)],
        ]
    )
    e1, e2 = np.exp(-REPETITION_MS / t1), np.exp(-REPETITION_MS / t2)
    plus, minus, along = (np.zeros(orders, complex) for _ in range(3))
    along[0] = 1
    for _ in range(pulses):
        before = minus[0]
        plus, minus, along = mix @ np.stack([plus, minus, along])
        after = plus[0]
        plus, minus, along = plus * e2, minus * e2, along * e1
        along[0] += 1 - e1
        plus, minus = np.roll(plus, 1), np.roll(minus, -1)
        minus[-1], plus[0] = 0, np.conj(minus[0])
    echo = ECHO_MS[0]
    return abs(after) * np.exp(-echo / t2), abs(before) * np.exp(echo / t2)


@pytest.mark.parametrize(
    ("t1", "t2"), [(1240.0, 39.0), (1400.0, 33.0), (370.0, 130.0), (950.0, 8.0), (900.0, 90.0)]
)
def test_echoes_agree_with_extended_phase_graphs(t1: float, t2: float) -> None:
    np.testing.assert_allclose(qdess_echoes(t1, t2), extended_phase_graph(t1, t2), rtol=1e-5)


def echo_ratio(t1: float, t2: float) -> float:
    """The ratio of the echoes to first order in exp(-2 TR/T2), from which qDESS maps T2.

    exp(-2 (TR - TE)/T2) sin^2(a/2) (1 + E1) / (1 - E1 cos a) (Sveinsson et al., Magn Reson Imaging 38:63, 2017).
    """
    e1, angle = np.exp(-REPETITION_MS / t1), np.deg2rad(FLIP_DEGREES)
    decay = np.exp(-2 * (REPETITION_MS - ECHO_MS[0]) / t2)
    return float(decay * np.sin(angle / 2) ** 2 * (1 + e1) / (1 - e1 * np.cos(angle)))


@pytest.mark.parametrize("t2", [6.0, 10.0, 15.0])
def test_echo_ratio_is_sveinssons_where_t2_is_short(t2: float) -> None:
    first, second = qdess_echoes(1200.0, t2)
    ratio = echo_ratio(1200.0, t2)
    assert second / first == pytest.approx(ratio, rel=0.02)


def test_second_echo_time_is_two_repetitions_less_the_first() -> None:
    assert ECHO_MS[1] == 2 * REPETITION_MS - ECHO_MS[0]


def test_contrasts_order_as_in_water_excited_qdess() -> None:
    first = {name: signal(tissue)[0] for name, tissue in TISSUES.items()}
    second = {name: signal(tissue)[1] for name, tissue in TISSUES.items()}
    order = ("fluid", "cartilage", "muscle", "fat", "marrow", "tendon", "cortex")
    assert sorted(order, key=first.__getitem__, reverse=True) == list(order)
    assert second["fluid"] > 2 * second["cartilage"] > 2 * second["muscle"] > 20 * second["tendon"]
    assert second["fluid"] / first["fluid"] > second["cartilage"] / first["cartilage"]
    assert second["cartilage"] / first["cartilage"] > second["meniscus"] / first["meniscus"]


def test_fat_is_suppressed() -> None:
    fat = TISSUES["fat"]
    assert signal(fat)[0] < 0.2 * fat.density * qdess_echoes(fat.t1, fat.t2)[0]
