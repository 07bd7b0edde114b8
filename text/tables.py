"""From scores to tables."""

import math
from collections.abc import Sequence
from statistics import fmean

import torch

from lab.table import Cell, Column, Score, Table
from text.metrics import perplexity
from text.scores import Result, baseline, time_to_reach

BASELINES = "dense, or dense fine-tuning for a projected model or one with adapters"


def results_table(results: Sequence[Result]) -> Table:
    """One row per model, setting and length: cost, speed, bits per byte, and how they compare with the dense run."""
    subword = any(result.row.config["vocabulary"] != "bytes" for result in results)
    table = Table(
        [
            Column("model"),
            Column("size"),
            Column("setting"),
            Column("bits", "bits per byte", better="lower", digits=3),
            *([Column("perplexity", better="lower", digits=2, extra=True)] if subword else []),
            Column("change", "against dense (%)", digits=1),
            Column("speedup", "speed-up", digits=2),
            Column("minutes", digits=1),
            Column("time", digits=2, extra=True),
            Column("reach", "time to dense loss", digits=2, extra=True),
            Column("steps", digits=0, extra=True),
            Column("tokens", "tokens per second", digits=0, extra=True),
            Column("parameters", extra=True),
            Column("trained", extra=True),
            Column("multiply_adds", "multiply-adds (G)", digits=2, extra=True),
            Column("seeds", extra=True),
        ],
        caption="Language models on held-out text: mean ± standard error over seeds. Change, speed-up, time and "
        f"time to the same validation loss are relative to {BASELINES}; minutes are processor minutes of training.",
        group="group",
    )
    table.rows += [_row(result, results) for result in sorted(results, key=_order)]
    return table


def sequences_table(results: Sequence[Result]) -> Table:
    """The score of every run on every test sequence, for tests of one's own."""
    names = ("run", "model", "setting", "minutes", "seed", "sequence", "bits per byte")
    table = Table([Column(name, digits=6) for name in names])
    for result in results:
        config = result.row.config
        for run, bits in zip(result.row.runs, result.bits, strict=True):
            told = run.name, result.row.label, config["setting"], config["minutes"], run.seed
            for sequence, value in enumerate(bits):
                table.add(*told, sequence, value)
    return table


def _group(result: Result) -> str:
    """Rows that compete: one model, from scratch or fine-tuned."""
    return f"{result.row.model}, {result.row.config['size']}, {result.setting.part}"


def _order(result: Result) -> tuple[str, float]:
    return _group(result), result.row.config["minutes"] or 0.0


def _row(result: Result, results: Sequence[Result]) -> dict[str, Cell]:
    bits = Score.of(fmean(each) for each in result.bits)
    config = result.row.config
    cells: dict[str, Cell] = {
        "group": _group(result),
        "model": result.row.label,
        "size": config["size"],
        "setting": config["setting"],
        "bits": bits,
        "steps": result.steps,
        "minutes": fmean(result.seconds) / 60,
        "tokens": result.tokens_per_second,
        "parameters": result.cost.parameters,
        "trained": result.cost.trained,
        "multiply_adds": result.cost.multiply_adds / 1e9,
        "seeds": len(result.bits),
    }
    if config["vocabulary"] != "bytes":
        cells["perplexity"] = float(perplexity(torch.tensor(bits.mean), result.bytes_per_token))
    other = baseline(result, results)
    if other is not None:
        cells["change"] = 100 * (bits.mean / fmean(fmean(each) for each in other.bits) - 1)
        cells["speedup"] = result.tokens_per_second / other.tokens_per_second
        cells["time"] = fmean(result.seconds) / (fmean(other.seconds) or math.nan)
        cells["reach"] = time_to_reach(result, other)
    return cells
