"""Whether two methods differ on the same test samples by more than chance."""

import math
from collections.abc import Sequence


def p_value(mine: Sequence[float], theirs: Sequence[float]) -> float | None:
    """Wilcoxon's signed-rank test of paired scores, two-sided: how often chance alone differs as much.

    None where it says nothing: a single pair, no difference at all, or scores that are not finite.

    >>> p_value([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.1, 2.2, 3.1, 4.3, 5.1, 6.4])
    0.03125
    >>> p_value([1.0, 2.0], [1.0, 2.0]) is None
    True
    """
    from scipy.stats import wilcoxon

    differences = [one - other for one, other in zip(mine, theirs, strict=True)]
    if len(differences) < 2 or not any(differences) or not all(map(math.isfinite, differences)):
        return None
    return float(wilcoxon(differences).pvalue)
