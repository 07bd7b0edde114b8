"""What the benchmarks share: their options, and a race that other work on the machine disturbs little."""

import argparse
import time
from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

clock = time.perf_counter


def options(
    text: str, *, quick: str, threads: int | None = None, **numbers: tuple[int, str]
) -> argparse.Namespace:
    """The options of a benchmark, and torch set up by them: --quick and, if it has a number of threads, --threads and
    --busy. `numbers` are further ones: the default and the help of each."""
    global clock
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=quick)
    if threads is not None:
        numbers = {"threads": (threads, "threads of torch"), **numbers}
        parser.add_argument("--busy", action="store_true", help="one thread, by its processor time")
    for name, (default, help) in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default, help=f"{help} (default {default})")
    chosen = parser.parse_args()
    if threads is not None:
        if chosen.busy:
            clock, chosen.threads = time.process_time, 1
        torch.set_num_threads(chosen.threads)
    torch.manual_seed(0)
    return chosen


def quickest(
    runs: Mapping[str, Callable[[], object]], seconds: float = 2.0, rounds: int = 3
) -> dict[str, float]:
    """The quickest run of each competitor, in turns, for some seconds and at least so many rounds after a first."""
    best = dict.fromkeys(runs, float("inf"))
    begin, done = time.perf_counter(), 0
    while done <= rounds or (time.perf_counter() - begin < seconds and done < 1000):
        # There and back: whoever follows the largest competitor finds the cache emptied.
        for name, run in sorted(runs.items(), reverse=bool(done % 2)):
            start = clock()
            run()
            if done:
                best[name] = min(best[name], clock() - start)
        done += 1
    return best


def training_step(layers: nn.Module, x: Tensor) -> Callable[[], None]:
    """Forward and backward of some layers, without an optimiser."""
    leaves = [x, *layers.parameters()]
    with torch.no_grad():
        seed = torch.randn_like(layers(x))

    def step() -> None:
        layers(x).backward(seed)
        for leaf in leaves:  # each frees its own gradients: left to the next, that would pay for them
            leaf.grad = None

    return step
