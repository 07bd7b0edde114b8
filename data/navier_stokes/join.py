"""Join the shards that several jobs have made into the file that one job would have made."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from data.generated import open_file, read_attributes
from data.navier_stokes.config import JoinConfig, shard_path
from data.navier_stokes.file import write_file
from lab.console import say
from lab.errors import UserError


def join(config: JoinConfig) -> Path:
    """Find the shards beside `config.file`, check that they belong together, and write it."""
    shards = find_shards(config.file)
    described = [read_attributes(shard) for shard in shards]
    for shard, attributes in zip(shards, described, strict=True):
        if attributes.get("fingerprint") != described[0].get("fingerprint"):
            raise UserError(f"{shard} was made with other parameters than {shards[0]}; make it again.")
    starts = np.cumsum([0] + [attributes["num_samples"] for attributes in described])
    for shard, attributes, start in zip(shards, described, starts, strict=False):
        if attributes["first_sample"] != start:
            raise UserError(
                f"{shard} begins with sample {attributes['first_sample']} where {start} was expected; "
                f"make all shards with the same --num-samples."
            )
    whole: dict[str, Any] = {**described[0], "num_samples": int(starts[-1])}
    write_file(config.file, whole, _trajectories(shards))
    say(f"wrote {config.file}: {starts[-1]} trajectories from {len(shards)} shards")
    if config.remove_shards:
        for shard in shards:
            shard.unlink()
    return config.file


def find_shards(whole: Path) -> list[Path]:
    """All shards of a file, in order; a missing one is named."""
    pattern = re.compile(re.escape(whole.stem) + r"\.shard-\d+-of-(\d+)" + re.escape(whole.suffix))
    counts = {int(m.group(1)) for file in whole.parent.glob("*") if (m := pattern.fullmatch(file.name))}
    if len(counts) != 1:
        found = f"shards of {len(counts)} divisions, {sorted(counts)}" if counts else "none"
        raise UserError(
            f"shards named {whole.stem}.shard-1-of-n{whole.suffix} were expected beside {whole}; found {found}."
        )
    parts = counts.pop()
    shards = [shard_path(whole, part, parts) for part in range(1, parts + 1)]
    if missing := [shard.name for shard in shards if not shard.is_file()]:
        raise UserError(
            f"{len(missing)} of {parts} shards are missing, the first {missing[0]}; make them first."
        )
    return shards


def _trajectories(shards: list[Path]) -> Iterator[npt.NDArray[np.float32]]:
    for shard in shards:
        with open_file(shard) as file:
            for a, u in zip(file["a"], file["u"], strict=True):
                yield np.concatenate((a[..., None], u), axis=-1)
