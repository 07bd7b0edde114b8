"""How a size is cut into blocks: default block counts, prime sizes, and the padding rule."""

from math import ceil, isqrt

from .checks import whole

Blocks = int | tuple[int, int]


def near_sqrt(n: int) -> tuple[int, int]:
    """The two factors of n that lie nearest its square root, smaller first.

    >>> near_sqrt(512), near_sqrt(160), near_sqrt(97)
    ((16, 32), (10, 16), (1, 97))
    """
    small = next(d for d in range(isqrt(n), 0, -1) if n % d == 0)
    return small, n // small


def is_prime(n: int) -> bool:
    return n > 1 and near_sqrt(n)[0] == 1


def composite_size(n: int, pad: bool | None = False) -> int:
    """n if it has factors; if it is prime the next size that has, or without `pad` an error that says so.

    None for `pad` is for functions without that option, whose error does not offer it.
    """
    n = whole(n, "the size of a Monarch operator")
    if n < 1:
        raise ValueError(f"a Monarch operator needs a size of at least 1; got {n}.")
    if not is_prime(n):
        return n
    padded = n + 1 if n > 2 else 4
    if pad:
        return padded
    a, b = near_sqrt(padded)
    option = "" if pad is None else ", or pass pad=True"
    raise ValueError(
        f"a Monarch operator of size {n} needs a composite size; {n} is prime. "
        f"Pad to {padded} = {a} x {b}{option}."
    )


def resolve_blocks(
    in_features: int, out_features: int, blocks: Blocks | None = None, pad: bool | None = False
) -> tuple[int, int]:
    """Block counts (K, J) of R and L: as given, or near the square roots of the two sizes.

    By default K is the divisor of in_features just below its square root and J the divisor of out_features
    just above its own, so that a square operator has K * J = n, the paper's case.
    """
    if blocks is None:
        return near_sqrt(composite_size(in_features, pad))[0], near_sqrt(composite_size(out_features, pad))[1]
    in_features, out_features = whole(in_features, "in_features", 1), whole(out_features, "out_features", 1)
    K, J = block_pair(blocks)
    if not (1 <= K <= in_features and 1 <= J <= out_features):
        raise ValueError(
            f"blocks=({K}, {J}) do not fit a Monarch operator {in_features} -> {out_features}: R can have "
            f"1 to {in_features} blocks (the first number), L 1 to {out_features} (the second)."
        )
    return K, J


def block_pair(blocks: Blocks) -> tuple[int, int]:
    """(K, J) as given, or one number for both.

    >>> block_pair(4), block_pair((2, 8))
    ((4, 4), (2, 8))
    """
    pair = tuple(blocks) if isinstance(blocks, (tuple, list)) else (blocks, blocks)
    if len(pair) != 2:
        raise ValueError(f"blocks is one number or a pair (K, J); got {blocks!r}.")
    return whole(pair[0], "the number of blocks of R", 1), whole(pair[1], "the number of blocks of L", 1)


def resolve_rank(
    in_features: int, out_features: int, blocks: tuple[int, int], rank: int | None = None
) -> int:
    """The rank as given, or such that the middle width K * J * r is at least min(in, out): the paper's choice."""
    K, J = blocks
    if rank is None:
        return ceil(min(in_features, out_features) / (K * J))
    return whole(rank, "the rank of a Monarch operator", 1)
