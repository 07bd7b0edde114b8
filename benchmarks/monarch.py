"""Speed of the Monarch operator: against dense layers, two plain einsums, the FLOP limit, torch.fft and full SVDs.

    python -m benchmarks.monarch [--quick] [--threads 2] [--busy]

The competitors take turns and the quickest of their runs counts, so that other work on the machine disturbs all
alike; read the ratios.  Above 1 the Monarch form is the faster one.  The FLOP limit is the ratio of operations.
Two threads on a busy machine wait for each other more than they compute; --busy measures the processor time of one.
"""

import argparse
import copy
import time
from collections.abc import Callable

import torch
from torch import nn

import monarch_core as mc
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
    columns = [
        *(Column(key, key, digits=0) for key in ("n", "blocks", "batch")),
        Column("dense", "nn.Linear (ms)", digits=3),
        Column("monarch", "MonarchLinear (ms)", digits=3),
        Column("ratio", "against dense", digits=2),
        Column("limit", "FLOP limit", digits=1),
        Column("einsum", "against two einsums", digits=2),
    ]
    grid = [
        (n, b, batch) for n in (64, 256, 1024, 4096, 8192) for b in (4, 0) for batch in (1, 32, 1024, 4096)
    ]
    cases = HEADLINE if quick else [case for case in grid if case[0] * case[2] <= 4096 * 1024]
    table = Table(columns)
    for n, blocks, batch in cases:
        blocks = blocks or near_sqrt(n)[0]
        dense, monarch = nn.Linear(n, n), mc.MonarchLinear(n, n, blocks=blocks)
        plain = TwoEinsums(monarch)
        x, seed = torch.randn(batch, n, requires_grad=True), torch.randn(batch, n)
        leaves = [x, *dense.parameters(), *monarch.parameters(), *plain.parameters()]

        def step(layer, x=x, seed=seed, leaves=leaves):
            layer(x).backward(seed)
            for leaf in leaves:  # each frees its own gradients: left to the next, that would pay for them
                leaf.grad = None

        best = quickest(
            {
                "dense": lambda layer=dense: step(layer),
                "monarch": lambda layer=monarch: step(layer),
                "einsum": lambda layer=plain: step(layer),
            },
            seconds=15 if quick else 2,
        )
        table.rows.append(
            {
                "n": n,
                "blocks": blocks,
                "batch": batch,
                "dense": 1e3 * best["dense"],
                "monarch": 1e3 * best["monarch"],
                "ratio": best["dense"] / best["monarch"],
                "limit": n * n / monarch.operator.num_parameters,
                "einsum": best["einsum"] / best["monarch"],
            }
        )
    return table


def transforms(quick: bool) -> Table:
    """Forward DFTs as operators, complex64, against torch.fft and against the dense matrix."""
    columns = [
        *(Column(key, key, digits=0) for key in ("n", "batch")),
        Column("fft", "against torch.fft", digits=3),
        Column("dense", "against dense", digits=2),
    ]
    table = Table(columns)
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
        table.rows.append(
            {"n": n, "batch": batch, **{k: best[k] / best["monarch"] for k in ("fft", "dense")}}
        )
    return table


def projections(quick: bool) -> Table:
    """Projection of a dense float32 matrix against the full SVDs of its sub-blocks."""
    columns = [
        *(Column(key, key, digits=0) for key in ("n", "blocks", "rank")),
        Column("seconds", "project (s)", digits=3),
        Column("svd", "against full SVD", digits=2),
    ]
    table = Table(columns)
    sizes = (
        [(1024, 32, 1)]
        if quick
        else [(256, 16, 1), (1024, 32, 1), (4096, 64, 1), (1024, 32, 2), (1024, 4, 64)]
    )
    for n, b, rank in sizes:
        A = torch.randn(n, n)
        sub_blocks = A.reshape(n // b, b, b, n // b).movedim(0, 2)
        best = quickest(
            {
                "project": lambda A=A, b=b, rank=rank: project(A, b, rank),
                "svd": lambda s=sub_blocks: torch.linalg.svd(s, full_matrices=False),
            }
        )
        row = {"n": n, "blocks": b, "rank": rank, "seconds": best["project"]}
        table.rows.append({**row, "svd": best["svd"] / best["project"]})
    return table


clock = time.perf_counter


def quickest(runs: dict[str, Callable[[], object]], seconds: float = 2.0) -> dict[str, float]:
    """The quickest run of each competitor, in turns, for some seconds and at least three rounds after a first."""
    best = dict.fromkeys(runs, float("inf"))
    begin, rounds = time.perf_counter(), 0
    while rounds < 4 or time.perf_counter() - begin < seconds:
        # There and back: whoever follows the largest competitor finds the cache emptied.
        for name, run in sorted(runs.items(), reverse=bool(rounds % 2)):
            start = clock()
            run()
            if rounds:
                best[name] = min(best[name], clock() - start)
        rounds += 1
        if rounds > 1000:
            break
    return best


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="only the headline sizes")
    parser.add_argument("--threads", type=int, default=2, help="threads of torch (default 2)")
    parser.add_argument("--busy", action="store_true", help="one thread, by its processor time")
    arguments = parser.parse_args()
    if arguments.busy:
        global clock
        clock, arguments.threads = time.process_time, 1
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    for measure in (layers, transforms, projections):
        print(
            f"\n{measure.__doc__} {arguments.threads} threads, ratios above 1 favour Monarch.\n", flush=True
        )
        print(measure(arguments.quick).markdown(), flush=True)


if __name__ == "__main__":
    main()
