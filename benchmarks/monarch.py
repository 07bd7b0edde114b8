"""Speed of the Monarch operator: against dense layers, two plain einsums, the FLOP limit, torch.fft and full SVDs.

    python -m benchmarks.monarch [--quick] [--threads 2] [--busy]

The competitors take turns and the quickest of their runs counts, so that other work on the machine disturbs all
alike; read the ratios.  Above 1 the Monarch form is the faster one.  The FLOP limit is the ratio of operations.
Two threads on a busy machine wait for each other more than they compute; --busy measures the processor time of one.
"""

import copy

import torch
from torch import nn

import monarch_core as mc
from benchmarks.race import options, quickest, training_step
from lab.table import Column, Table
from monarch_core.multiply import multiply_reference
from monarch_core.projection import project
from monarch_core.sizes import near_sqrt

HEADLINE = [(4096, 4, 1024), (4096, 64, 1024)]


class TwoEinsums(nn.Module):
    """The obvious layer: two einsums with copies of the factors (shared ones would be in the cache already)."""

    def __init__(self, layer: mc.MonarchLinear) -> None:
        super().__init__()
        self.R, self.L, self.bias = copy.deepcopy((layer.operator.R, layer.operator.L, layer.bias))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return multiply_reference(x, self.R, self.L, self.bias)


def layers(quick: bool) -> Table:
    """Forward and backward of MonarchLinear against nn.Linear, float32."""
    digits = {
        "n": 0,
        "blocks": 0,
        "batch": 0,
        "nn.Linear (ms)": 3,
        "MonarchLinear (ms)": 3,
        "against dense": 2,
    }
    digits |= {"FLOP limit": 1, "against two einsums": 2}
    sizes, batches = (64, 256, 512, 1024, 4096, 8192), (1, 32, 256, 1024, 4096)
    grid = [(n, b, batch) for n in sizes for b in (4, 0) for batch in batches]
    cases = HEADLINE if quick else [case for case in grid if case[0] * case[2] <= 4096 * 1024]
    table = Table([Column(title, digits=number) for title, number in digits.items()])
    for n, blocks, batch in cases:
        blocks = blocks or near_sqrt(n)[0]
        dense, monarch = nn.Linear(n, n), mc.MonarchLinear(n, n, blocks=blocks)
        plain = TwoEinsums(monarch)
        x = torch.randn(batch, n, requires_grad=True)
        rivals = {"dense": dense, "monarch": monarch, "einsum": plain}
        runs = {name: training_step(layer, x) for name, layer in rivals.items()}
        best = quickest(runs, seconds=15 if quick else 2)
        times = 1e3 * best["dense"], 1e3 * best["monarch"]
        limit = n * n / monarch.operator.num_parameters
        table.add(n, blocks, batch, *times, times[0] / times[1], limit, best["einsum"] / best["monarch"])
    return table


def transforms(quick: bool) -> Table:
    """Forward DFTs as operators, complex64, against torch.fft and against the dense matrix."""
    ratios = [Column("against torch.fft", digits=3), Column("against dense", digits=2)]
    table = Table([Column("n"), Column("batch"), *ratios])
    for n, batch in [(512, 1280)] if quick else [(n, b) for n in (64, 160, 512, 4096) for b in (1, 64, 1280)]:
        transform = mc.dft(n, dtype=torch.complex64).eval()
        x = torch.randn(batch, n, dtype=torch.complex64)
        with torch.no_grad():
            matrix = transform.to_dense()
            best = quickest(
                {
                    "monarch": lambda t=transform, x=x: t(x),
                    "fft": lambda x=x: torch.fft.fft(x),
                    "dense": lambda m=matrix, x=x: x @ m.mT,
                }
            )
        table.add(n, batch, best["fft"] / best["monarch"], best["dense"] / best["monarch"])
    return table


def projections(quick: bool) -> Table:
    """Projection of a dense float32 matrix against the full SVDs of its sub-blocks."""
    columns = [Column(key) for key in ("n", "blocks", "rank")]
    table = Table([*columns, Column("project (s)", digits=3), Column("against full SVD", digits=2)])
    sizes = [(4096, 64, 1), (256, 16, 1), (1024, 32, 1), (1024, 32, 2), (1024, 4, 64), (4096, 4, 256)]
    for n, b, rank in sizes[:1] if quick else sizes:
        A = torch.randn(n, n)
        sub_blocks = A.reshape(n // b, b, b, n // b).movedim(0, 2)
        best = quickest(
            {
                "project": lambda A=A, b=b, rank=rank: project(A, b, rank),
                "svd": lambda s=sub_blocks: torch.linalg.svd(s, full_matrices=False),
            },
            rounds=2,
        )
        table.add(n, b, rank, best["project"], best["svd"] / best["project"])
    return table


def main() -> None:
    chosen = options(__doc__, quick="only the headline sizes", threads=2)
    for measure in (layers, transforms, projections):
        print(f"\n{measure.__doc__} {chosen.threads} threads, ratios above 1 favour Monarch.\n", flush=True)
        print(measure(chosen.quick).markdown(), flush=True)


if __name__ == "__main__":
    main()
