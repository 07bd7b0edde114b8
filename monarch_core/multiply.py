"""The Monarch product, as one obvious formula and as one fast path.

With x laid out as (k, i) and the output as (l, j),

    y[k, j, r] = sum_i      R[k, j, r, i] x[k, i]        (a block of R for every k)
    z[l, j]    = sum_{k, r} L[j, l, k, r] y[k, j, r]     (a block of L for every j)

R has shape (K, J, r, I), L has shape (J, O, K, r); x has K * I entries on its last axis, z has O * J.

The fast path computes the same two batched products, but (1) it keeps the rows of x on the *last* axis of y,
so that both products read their operands in place, (2) it walks over the rows in chunks that stay in the
cache, which also spares the page faults of large temporaries, and (3) it has a backward pass written by hand:
the one that autograd derives hands strided gradients to `bmm`, which then copies them block by block.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import ceil
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

CHUNK_ELEMENTS = 250_000
"""Elements of x in one chunk: 1 MB of float32, the size of an L2 cache.  Deliberately no power of two, so
that the strides of y are none either and its columns do not compete for the same cache sets."""

FEW_ELEMENTS = {"training": 2_000, "inference": 100_000}
"""Below this size of x the plain formula wins: it has a few microseconds less of bookkeeping."""


def is_traced() -> bool:
    """Whether torch.jit.trace is recording."""
    return bool(torch.jit.is_tracing())  # type: ignore[no-untyped-call]


def multiply_reference(x: Tensor, R: Tensor, L: Tensor, bias: Tensor | None = None) -> Tensor:
    """Multiply the last axis of x by the Monarch matrix M[(l j), (k i)] = sum_r L[j, l, k, r] R[k, j, r, i].

    >>> R, L = torch.ones(2, 3, 1, 2), torch.ones(3, 5, 2, 1)
    >>> multiply_reference(torch.ones(7, 4), R, L).shape
    torch.Size([7, 15])
    """
    K, I = R.shape[0], R.shape[3]
    y = torch.einsum("kjri,...ki->...kjr", R, x.reshape(*x.shape[:-1], K, I))
    z = torch.einsum("jlkr,...kjr->...lj", L, y).flatten(-2)
    return z if bias is None else z + bias


def multiply(x: Tensor, R: Tensor, L: Tensor, bias: Tensor | None = None) -> Tensor:
    """Multiply the last axis of x by a Monarch matrix and add the bias: `multiply_reference`, fast.

    Real and complex, any batch shape, gradients of every order, `torch.func` and `torch.compile`; a real
    product under autocast is computed in the autocast type, except in double precision, as torch's own are.
    """
    if torch.compiler.is_compiling() or is_traced():  # whoever records wants plain operations
        return multiply_reference(x, R, L, bias)
    exempt = x.is_complex() or x.is_meta or x.dtype == R.dtype == torch.float64
    if not exempt and torch.is_autocast_enabled(x.device.type):
        low = torch.get_autocast_dtype(x.device.type)
        x, R, L, bias = x.to(low), R.to(low), L.to(low), None if bias is None else bias.to(low)
    check_types(x, R)
    training = torch.is_grad_enabled() and any(t.requires_grad for t in (x, R, L))
    if x.numel() <= FEW_ELEMENTS["training" if training else "inference"]:
        return multiply_reference(x, R, L, bias)
    z: Tensor = _Multiply.apply(x.reshape(-1, x.shape[-1]), R, L, bias)[0]  # type: ignore[no-untyped-call]
    return z.view(*x.shape[:-1], z.shape[-1]) if x.dim() != 2 else z


def check_types(x: Tensor, matrix: Tensor) -> None:
    """Input and matrix have one dtype; products of torch would mix some of them in silence."""
    if x.dtype != matrix.dtype and (x.is_meta or not torch.is_autocast_enabled(x.device.type)):
        # The parameters of a complex operator are real, and so is the type to convert it with.
        other = (
            f", or the operator with .to({x.dtype.to_real()})"
            if x.is_complex() == matrix.is_complex() and (x.is_floating_point() or x.is_complex())
            else ""
        )
        raise TypeError(
            f"the input is {x.dtype}, the operator {matrix.dtype}; convert the input with .to({matrix.dtype}){other}."
        )


HALF_INSTRUCTIONS = {
    torch.bfloat16: ("avx512_bf16", "amx_bf16"),
    torch.float16: ("avx512_fp16", "amx_fp16"),
}


@cache
def _is_fast(half: torch.dtype) -> bool:
    """Whether this processor multiplies half types itself. If not, torch emulates it, several times slower than
    float32. Where torch does not tell, it is trusted."""
    ask = getattr(torch.cpu, "get_capabilities", None)
    features = ask() if ask is not None else {}
    return features.get("architecture") != "x86_64" or any(features.get(f) for f in HALF_INSTRUCTIONS[half])


def _working_type(x: Tensor) -> torch.dtype:
    """The type of the products: that of x, except on processors that only emulate it."""
    emulated = x.device.type == "cpu" and x.dtype in HALF_INSTRUCTIONS and not _is_fast(x.dtype)
    return torch.float32 if emulated else x.dtype


def _rows_per_chunk(x: Tensor, R: Tensor, L: Tensor) -> int:
    if x.device.type != "cpu":
        return len(x)  # other devices want large launches
    K, J, r, I = R.shape
    O = L.shape[1]
    in_cache = CHUNK_ELEMENTS // max(K * I, K * J * r, J * O)
    worth_reading_the_factors = max(I, O, J * r, K * r) if r > 1 else 32
    chunks = max(1, round(len(x) / max(in_cache, worth_reading_the_factors)))
    return ceil(len(x) / chunks)


def _forward(x: Tensor, R: Tensor, L: Tensor, bias: Tensor | None) -> tuple[Tensor, ...]:
    """Return z, and for every chunk of c rows the intermediate y as (J, K r, c)."""
    K, J, r, I = R.shape
    O, work = L.shape[1], _working_type(x)
    R_blocks, L_blocks = R.reshape(K, J * r, I).to(work), L.reshape(J, O, K * r).to(work)
    z = x.new_empty(len(x), O, J)
    rows = _rows_per_chunk(x, R, L)
    intermediates = []
    for x_chunk, z_chunk in zip(torch.split(x.reshape(-1, K, I), rows), torch.split(z, rows), strict=True):
        y = torch.bmm(R_blocks, x_chunk.permute(1, 2, 0).to(work)).view(K, J, r, -1)
        y = y.transpose(0, 1).reshape(J, K * r, -1)
        product = torch.bmm(y.mT, L_blocks.mT).permute(1, 2, 0)
        if bias is None:
            z_chunk.copy_(product)
        else:
            torch.add(product, bias.view(O, J), out=z_chunk)
        intermediates.append(y.to(x.dtype))
    return z.flatten(1), *intermediates


DIRECT_BLOCKS = 16
"""Up to this number of blocks, the gradient of x is written where it belongs, one product for each block; with more
of them, the calls cost more than the copy that they spare."""


def _backward(
    grad: Tensor, x: Tensor, R: Tensor, L: Tensor, intermediates: Sequence[Tensor], needed: Sequence[bool]
) -> tuple[Tensor | None, ...]:
    """Return the gradients of x, R and L that are needed, given that of z."""
    K, J, r, I = R.shape
    O, work = L.shape[1], _working_type(x)
    R_blocks, L_blocks = R.reshape(K, J * r, I).conj().to(work), L.reshape(J, O, K * r).mH.to(work)
    # Half types would lose digits when the gradients of the factors add up over the chunks.
    total = torch.float32 if x.dtype in HALF_INSTRUCTIONS else x.dtype
    grad_x = x.new_empty(len(x), K, I)
    grad_R, grad_L = x.new_empty(K, J * r, I, dtype=total), x.new_empty(J, O, K * r, dtype=total)
    rows = _rows_per_chunk(x, R, L)
    direct = K <= DIRECT_BLOCKS and work == x.dtype and not x.is_complex()
    chunks = (torch.split(t, rows) for t in (x.reshape(-1, K, I), grad_x, grad.reshape(-1, O, J)))
    for at, (x_chunk, grad_x_chunk, grad_chunk, y) in enumerate(zip(*chunks, intermediates, strict=True)):
        grad_z = grad_chunk.permute(2, 0, 1).to(work).contiguous().mT
        if needed[2]:
            _add_product(grad_L, grad_z, y.to(work).mH, first=at == 0)
        if not (needed[0] or needed[1]):
            continue
        grad_y = torch.bmm(L_blocks, grad_z).view(J, K, r, -1).transpose(0, 1).reshape(K, J * r, -1)
        if needed[1]:
            _add_product(grad_R, grad_y, x_chunk.transpose(0, 1).conj().to(work), first=at == 0)
        if needed[0] and direct:
            for k in range(K):
                torch.mm(grad_y[k].T, R_blocks[k], out=grad_x_chunk[:, k])
        elif needed[0]:
            grad_x_chunk.copy_(torch.bmm(grad_y.mT, R_blocks).transpose(0, 1))
    grads = grad_x.flatten(1), grad_R.to(R.dtype).view(R.shape), grad_L.to(L.dtype).view(L.shape)
    return tuple(grad if need else None for grad, need in zip(grads, needed, strict=False))


def _add_product(total: Tensor, a: Tensor, b: Tensor, first: bool) -> None:
    """total += a b, or total = a b for the first."""
    if total.dtype == a.dtype:
        total.baddbmm_(a, b, beta=0 if first else 1)
    elif first:
        total.copy_(torch.bmm(a, b))
    else:
        total.add_(torch.bmm(a, b))


def _gradients_reference(grad: Tensor, x: Tensor, R: Tensor, L: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What `_backward` computes, in differentiable operations of x, R and L alone."""
    K, J, _, I = R.shape
    x, grad = x.reshape(-1, K, I), grad.reshape(-1, L.shape[1], J)
    y = torch.einsum("kjri,bki->bkjr", R, x)
    grad_y = torch.einsum("jlkr,blj->bkjr", L.conj(), grad)
    grad_x = torch.einsum("kjri,bkjr->bki", R.conj(), grad_y).flatten(1)
    grad_R = torch.einsum("bkjr,bki->kjri", grad_y, x.conj())
    grad_L = torch.einsum("blj,bkjr->jlkr", grad, y.conj())
    return grad_x, grad_R, grad_L


class _Multiply(Function):
    """z, then the intermediates (not differentiable, kept for the backward pass)."""

    @staticmethod
    def forward(x: Tensor, R: Tensor, L: Tensor, bias: Tensor | None) -> tuple[Tensor, ...]:
        return _forward(x, R, L, bias)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(*inputs[:3], *output[1:])
        ctx.save_for_forward(*inputs[:3])
        ctx.intermediates = len(output) - 1

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        grad = grads[0]
        if grad is None:
            return None, None, None, None
        x, R, L, *intermediates = ctx.saved_tensors
        # A second derivative must reach x, R and L, which it cannot through the stored intermediates.
        factors: tuple[Tensor | None, ...]
        if torch.is_grad_enabled():
            factors = _gradients_reference(grad, x, R, L)
        else:
            factors = _backward(grad, x, R, L, intermediates, ctx.needs_input_grad)
        return *factors, grad.sum(0) if ctx.needs_input_grad[3] else None

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor | None) -> tuple[Tensor | None, ...]:
        (x, R, L), (dx, dR, dL, dbias) = ctx.saved_tensors[:3], tangents
        terms = [
            multiply_reference(*factors)
            for tangent, factors in ((dx, (dx, R, L)), (dR, (x, dR, L)), (dL, (x, R, dL)))
            if tangent is not None
        ]
        if dbias is not None:
            terms.append(dbias.expand(len(x), -1))
        return sum(terms[1:], terms[0]), *[None] * ctx.intermediates

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[tuple[Tensor], tuple[int]]:
        x, *factors = inputs
        if any(dim is not None for dim in in_dims[1:]):
            return (torch.vmap(multiply_reference, in_dims)(x, *factors),), (0,)
        return (multiply(x.movedim(in_dims[0], 0), *factors),), (0,)  # just one more batch axis
