"""How numbers are written in the names of files."""


def short(value: float) -> str:
    """A number in as few characters as possible.

    >>> short(1e-4), short(2.5e-3)
    ('1e-4', '2.5e-3')
    """
    mantissa, exponent = f"{value:.6e}".split("e")
    return f"{float(mantissa):g}e{int(exponent)}"
