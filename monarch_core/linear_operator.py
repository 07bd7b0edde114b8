"""The interface every operator shares: forward and adjoint; everything else follows from these two."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import pairwise
from math import prod
from numbers import Number, Real
from typing import Any, cast

import torch
from torch import Tensor, nn

from .multiply import is_traced

Shape = tuple[int, ...]


class LinearOperator(nn.Module, ABC):
    """A linear map A on the last axes of a tensor, with its adjoint.

    A subclass sets `in_shape` and `out_shape` (one axis each for an operator on vectors) and overrides `multiply`,
    `multiply_adjoint`, `dtype` and `flops`; the rest follows. Leading axes are a batch of any shape, or none.

    >>> class Reversal(LinearOperator):
    ...     dtype = torch.float32
    ...     def __init__(self, n):
    ...         super().__init__()
    ...         self.in_shape = self.out_shape = (n,)
    ...     def multiply(self, x):
    ...         return x.flip(-1)
    ...     def multiply_adjoint(self, y):
    ...         return y.flip(-1)
    ...     def flops(self, batch=1):
    ...         return 0
    >>> (2 * Reversal(3) - Reversal(3)).to_dense()
    tensor([[0., 0., 1.],
            [0., 1., 0.],
            [1., 0., 0.]])
    """

    in_shape: Shape
    out_shape: Shape
    __array_ufunc__ = None  # numpy's numbers leave `number * operator` to us

    @abstractmethod
    def multiply(self, x: Tensor) -> Tensor:
        """A x, for x whose last axes are known to be `in_shape`. Override this; call the operator itself."""

    @abstractmethod
    def multiply_adjoint(self, y: Tensor) -> Tensor:
        """A^H y, for y whose last axes are known to be `out_shape`. Override this; call `adjoint`."""

    @property
    @abstractmethod
    def dtype(self) -> torch.dtype:
        """The dtype of the matrix: a complex one if the entries are complex, however they are stored."""

    @abstractmethod
    def flops(self, batch: int = 1) -> int:
        """Real operations of one forward pass: 2 for a real multiply-add, 8 for a complex one."""

    @property
    def in_features(self) -> int:
        return prod(self.in_shape)

    @property
    def out_features(self) -> int:
        return prod(self.out_shape)

    @property
    def num_parameters(self) -> int:
        """Real numbers trained; a complex entry counts as two."""
        return sum(p.numel() * (2 if p.is_complex() else 1) for p in self.parameters())

    def forward(self, x: Tensor) -> Tensor:
        """A x, on the last axes of x."""
        return self.multiply(self.checked_input(x))

    def adjoint(self, y: Tensor) -> Tensor:
        """A^H y, on the last axes of y."""
        return self.multiply_adjoint(self._expect(y, self.out_shape, "input of the adjoint"))

    @property
    def H(self) -> LinearOperator:
        """The conjugate transpose, sharing this operator's parameters."""
        return View(self, transposes=True, conjugates=True).simplified()

    @property
    def T(self) -> LinearOperator:
        """The transpose without conjugation, sharing this operator's parameters."""
        return View(self, transposes=True, conjugates=False).simplified()

    def conj(self) -> LinearOperator:
        """The entrywise conjugate, sharing this operator's parameters."""
        return View(self, transposes=False, conjugates=True).simplified()

    def __matmul__(self, other: LinearOperator) -> LinearOperator:
        """The composition A B: (A @ B)(x) = A(B(x))."""
        if isinstance(other, Tensor):
            raise TypeError(f"{label(self)}: @ composes operators; to apply one to a tensor, call it: A(x).")
        if not isinstance(other, LinearOperator):
            return NotImplemented
        return Product(self, other)

    def __add__(self, other: LinearOperator | int) -> LinearOperator:
        """The sum A + B. Adding the number 0 changes nothing, so that `sum` works on a list of operators."""
        if isinstance(other, int) and other == 0:
            return self
        return Combination((1, self), (1, other)) if isinstance(other, LinearOperator) else NotImplemented

    __radd__ = __add__

    def __sub__(self, other: LinearOperator) -> LinearOperator:
        return Combination((1, self), (-1, other)) if isinstance(other, LinearOperator) else NotImplemented

    def __mul__(self, number: complex) -> LinearOperator:
        """The multiple c A by a real or complex number."""
        return Combination((number, self)) if isinstance(number, Number) else NotImplemented

    __rmul__ = __mul__

    def __truediv__(self, number: complex) -> LinearOperator:
        return self * (1 / number) if isinstance(number, Number) else NotImplemented

    def __neg__(self) -> LinearOperator:
        return -1 * self

    def to_dense(self) -> Tensor:
        """The matrix, out_features x in_features, differentiable in the parameters."""
        some = next(iter((*self.parameters(), *self.buffers())), None)
        dtype = torch.get_default_dtype() if self.dtype == torch.bool else self.dtype
        eye = torch.eye(self.in_features, dtype=dtype, device=None if some is None else some.device)
        columns: Tensor = self(eye.reshape(-1, *self.in_shape))
        return columns.reshape(self.in_features, self.out_features).T

    def checked_input(self, x: Tensor) -> Tensor:
        """x, after making sure that it is one."""
        return self._expect(x, self.in_shape, "input")

    def _expect(self, x: Tensor, shape: Shape, what: str) -> Tensor:
        if not isinstance(x, Tensor):
            raise TypeError(f"{label(self)}: the {what} should be a tensor; got {type(x).__name__}.")
        if not (x.is_floating_point() or x.is_complex()) and self.dtype != torch.bool:
            raise TypeError(f"{label(self)}: the {what} should be floating or complex; got {x.dtype}.")
        # In a trace sizes are recorded values, which have no truth.
        if not is_traced() and x.shape[-len(shape) :] != shape:
            raise ValueError(
                f"{label(self)}: the {what} should end in {shape_text(shape)}, "
                f"but its shape is {tuple(x.shape)}."
            )
        return x

    def extra_repr(self) -> str:
        return arrow(self)


class View(LinearOperator):
    """A^H, A^T or the conjugate of A, held as a reference to A: what trains one trains the other."""

    base: LinearOperator
    transposes: bool
    conjugates: bool

    def __init__(self, base: LinearOperator, transposes: bool, conjugates: bool) -> None:
        super().__init__()
        if isinstance(base, View):
            transposes, conjugates = transposes != base.transposes, conjugates != base.conjugates
            base = base.base
        self.base = base
        self.transposes = transposes
        self.conjugates = conjugates and base.dtype.is_complex
        self.in_shape, self.out_shape = base.in_shape, base.out_shape
        if transposes:
            self.in_shape, self.out_shape = self.out_shape, self.in_shape

    def simplified(self) -> LinearOperator:
        return self if self.transposes or self.conjugates else self.base

    @property
    def dtype(self) -> torch.dtype:
        return self.base.dtype

    def flops(self, batch: int = 1) -> int:
        return self.base.flops(batch)

    def multiply(self, x: Tensor) -> Tensor:
        return self._base_to(x, adjoint=self.transposes)

    def multiply_adjoint(self, y: Tensor) -> Tensor:
        return self._base_to(y, adjoint=not self.transposes)

    def _base_to(self, x: Tensor, adjoint: bool) -> Tensor:
        # The four views are A, conj A, A^T and A^H; base.adjoint conjugates, base() does not.
        conjugate = self.conjugates != self.transposes
        x = x.conj() if conjugate else x
        y: Tensor = self.base.adjoint(x) if adjoint else self.base(x)
        return y.conj() if conjugate else y

    def extra_repr(self) -> str:
        name = {(True, True): "H", (True, False): "T", (False, True): "conj"}[
            self.transposes, self.conjugates
        ]
        return f"{name}, {arrow(self)}"


class Product(LinearOperator):
    """The composition A_1 A_2 ... A_m; the last link acts first, as in writing."""

    def __init__(self, *links: LinearOperator) -> None:
        super().__init__()
        check_operators(links, "a product")
        flat = [inner for link in links for inner in _links(link)]
        for at, (left, right) in enumerate(pairwise(flat)):
            if left.in_shape != right.out_shape:
                raise ValueError(
                    f"links {at} and {at + 1} of a product of {len(flat)} do not fit: {label(left)} takes "
                    f"{shape_text(left.in_shape)}, {label(right)} gives {shape_text(right.out_shape)}."
                )
        self.links = nn.ModuleList(flat)
        self.in_shape, self.out_shape = flat[-1].in_shape, flat[0].out_shape

    @property
    def dtype(self) -> torch.dtype:
        return common_dtype(_links(self))

    def flops(self, batch: int = 1) -> int:
        return sum(link.flops(batch) for link in _links(self))

    def multiply(self, x: Tensor) -> Tensor:
        for at in reversed(range(len(self.links))):
            x = self._through(at, x, adjoint=False)
        return x

    def multiply_adjoint(self, y: Tensor) -> Tensor:
        for at in range(len(self.links)):
            y = self._through(at, y, adjoint=True)
        return y

    def _through(self, at: int, x: Tensor, adjoint: bool) -> Tensor:
        link = _links(self)[at]
        if torch.compiler.is_compiling():
            return link.adjoint(x) if adjoint else cast(Tensor, link(x))
        try:
            return link.adjoint(x) if adjoint else cast(Tensor, link(x))
        except (RuntimeError, ValueError, TypeError) as error:
            raise type(error)(
                f"link {at} of a product of {len(self.links)}, {label(link)}, failed "
                f"{'in its adjoint ' if adjoint else ''}on shape {tuple(x.shape)}, {x.dtype}: {error}"
            ) from error


class Combination(LinearOperator):
    """The linear combination c_1 A_1 + ... + c_m A_m with fixed numbers c: sums, differences and multiples."""

    def __init__(self, *terms: tuple[complex, LinearOperator]) -> None:
        super().__init__()
        check_operators([operator for _, operator in terms], "a sum")
        flat = [(_plain(c) * inner, operator) for c, term in terms for inner, operator in _terms(term)]
        operators = [operator for _, operator in flat]
        for at, operator in enumerate(operators):
            if (operator.in_shape, operator.out_shape) != (operators[0].in_shape, operators[0].out_shape):
                raise ValueError(
                    f"the terms of a sum have one size; term 0 is {label(operators[0])}, "
                    f"term {at} is {label(operator)}."
                )
        self.numbers = tuple(c for c, _ in flat)
        self.terms = nn.ModuleList(operators)
        self.in_shape, self.out_shape = operators[0].in_shape, operators[0].out_shape

    @property
    def dtype(self) -> torch.dtype:
        dtype = common_dtype([term for _, term in _terms(self)])
        if not any(isinstance(c, complex) for c in self.numbers):
            return dtype
        return (
            default_dtype(complex=True)
            if dtype == torch.bool
            else torch.promote_types(dtype, torch.complex32)
        )

    def flops(self, batch: int = 1) -> int:
        per_entry = len(self.terms) * (8 if self.dtype.is_complex else 2)
        return sum(term.flops(batch) for _, term in _terms(self)) + batch * self.out_features * per_entry

    def multiply(self, x: Tensor) -> Tensor:
        return _added([_times(c, term(x)) for c, term in _terms(self)])

    def multiply_adjoint(self, y: Tensor) -> Tensor:
        return _added([_times(c.conjugate(), term.adjoint(y)) for c, term in _terms(self)])

    def extra_repr(self) -> str:
        return f"{arrow(self)}, numbers={self.numbers}"


class RealPart(LinearOperator):
    """Re A, a real operator: x -> Re(A x) for real x."""

    def __init__(self, base: LinearOperator) -> None:
        super().__init__()
        check_operators([base], "a real part")
        self.base: LinearOperator = base
        self.in_shape, self.out_shape = base.in_shape, base.out_shape

    @property
    def dtype(self) -> torch.dtype:
        return self.base.dtype.to_real()

    def flops(self, batch: int = 1) -> int:
        return self.base.flops(batch)

    def multiply(self, x: Tensor) -> Tensor:
        if x.is_complex():
            return torch.complex(self.multiply(x.real), self.multiply(x.imag))
        y: Tensor = self.base(x)
        return y.real

    def multiply_adjoint(self, y: Tensor) -> Tensor:
        if y.is_complex():
            return torch.complex(self.multiply_adjoint(y.real), self.multiply_adjoint(y.imag))
        return self.base.adjoint(y).real


def _links(operator: LinearOperator) -> list[LinearOperator]:
    return cast(list[LinearOperator], list(operator.links)) if isinstance(operator, Product) else [operator]


def _terms(operator: LinearOperator) -> list[tuple[complex, LinearOperator]]:
    if not isinstance(operator, Combination):
        return [(1, operator)]
    return list(zip(operator.numbers, cast(list[LinearOperator], list(operator.terms)), strict=True))


def _plain(number: Any) -> complex:
    """A number of any type, as numpy's or a fraction, as one of Python's own, which torch multiplies tensors by."""
    if isinstance(number, (int, float, complex)):
        return number
    return float(number) if isinstance(number, Real) else complex(number)


def _times(number: complex, x: Tensor) -> Tensor:
    return x if number == 1 else number * x


def _added(tensors: list[Tensor]) -> Tensor:
    return reduce(torch.add, tensors)


def check_operators(operators: Sequence[LinearOperator], what: str) -> None:
    """At least one, and operators all of them."""
    if not operators:
        raise ValueError(f"{what} needs at least one operator; got none.")
    for operator in operators:
        if not isinstance(operator, LinearOperator):
            raise TypeError(f"{what} is made of linear operators; got {type(operator).__name__}.")


def common_dtype(operators: Sequence[LinearOperator]) -> torch.dtype:
    """The dtype that holds the entries of all of them."""
    return reduce(torch.promote_types, (operator.dtype for operator in operators))


def label(operator: LinearOperator) -> str:
    return f"{type(operator).__name__} {arrow(operator)}"


def arrow(operator: LinearOperator) -> str:
    """The sizes of an operator as text, input first: `64 -> 32`, `(8, 8) -> (8, 5)`."""
    return f"{shape_text(operator.in_shape)} -> {shape_text(operator.out_shape)}"


def shape_text(shape: Shape) -> str:
    return str(shape[0]) if len(shape) == 1 else str(tuple(shape))


def as_complex_if(x: Tensor, needed: bool) -> Tensor:
    """x itself, or x as a complex tensor where the operator that meets it is complex."""
    return x.to(torch.promote_types(x.dtype, torch.complex32)) if needed and not x.is_complex() else x


def complex_factor(pairs: Tensor) -> Tensor:
    """Pairs (re, im) that a parameter holds, as complex numbers."""
    if pairs.dtype == torch.bfloat16:
        raise TypeError(
            "torch has no complex numbers in bfloat16, so a complex operator cannot be used in it; convert the "
            "operator back, or take its real form, in_pairs(operator), before the conversion."
        )
    return torch.view_as_complex(pairs)


def keeping_pairs(fn: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """A conversion for parameters that hold complex numbers as pairs: a complex dtype converts their real parts."""

    def convert(pairs: Tensor) -> Tensor:
        converted = fn(pairs)
        return converted.real.contiguous() if converted.is_complex() else converted

    return convert


def default_dtype(complex: bool) -> torch.dtype:
    """torch's default floating dtype, or its complex companion."""
    dtype = torch.get_default_dtype()
    return dtype.to_complex() if complex else dtype


def dtype_of(*arrays: Tensor, complex: bool = False) -> torch.dtype:
    """The dtype of an operator built from these arrays: theirs; torch's default one for integers."""
    dtype = reduce(torch.promote_types, (array.dtype for array in arrays))
    if not (dtype.is_floating_point or dtype.is_complex):
        return default_dtype(complex)
    return torch.promote_types(dtype, torch.complex32) if complex else dtype


def checked_dtype(dtype: torch.dtype | None, complex: bool, what: str) -> torch.dtype:
    """`dtype`, or the default, after making sure that `what` can live in it."""
    if dtype is None:
        return default_dtype(complex)
    if not isinstance(dtype, torch.dtype):
        raise TypeError(f"dtype should be a torch.dtype, such as torch.float32; got {dtype!r}.")
    if complex and not dtype.is_complex:
        raise TypeError(f"{what} is complex; got dtype={dtype}. Pass torch.complex64 or torch.complex128.")
    if not (dtype.is_complex or dtype.is_floating_point):
        raise TypeError(f"{what} needs a floating or complex dtype; got dtype={dtype}.")
    return dtype
