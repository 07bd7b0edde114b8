"""Join the shards that several jobs have made into the file that one job would have made."""

import re
from collections.abc import Iterator
from pathlib import Path

from data.fields import file
from data.fields.layout import Source
from data.fields.options import JoinConfig, shard_path
from data.fields.reader import open_fields
from lab.console import say
from lab.errors import UserError


def join(config: JoinConfig) -> Path:
    """Find the shards beside `config.file`, check that they belong together, and write it."""
    if config.remove_shards and _is_joined(config.file):
        return config.file
    paths = find_shards(config.file)
    shards = [open_fields(path).source for path in paths]
    expected = 0
    for shard in shards:
        if shard.layout.fingerprint != shards[0].layout.fingerprint:
            raise UserError(f"{shard.path} was made with other parameters than {paths[0]}; make it again.")
        if shard.samples.start != expected:
            raise UserError(
                f"{shard.path} begins with sample {shard.samples.start} where {expected} was expected; "
                f"make all shards with the same --num-samples."
            )
        expected = shard.samples.stop
    file.write(config.file, shards[0].layout, range(expected), _samples(shards))
    say(f"wrote {config.file}: {expected} samples from {len(shards)} shards")
    if config.remove_shards:
        for path in paths:
            path.unlink()
    return config.file


def _is_joined(whole: Path) -> bool:
    """Whether the shards were joined before but not all removed, because the command was killed; removes the rest."""
    if not whole.is_file():
        return False
    joined = open_fields(whole).source
    left = [path for path in whole.parent.glob("*") if _shard_pattern(whole).fullmatch(path.name)]
    shards = [open_fields(path).source for path in left]
    if any(
        shard.layout.fingerprint != joined.layout.fingerprint or shard.samples.stop > joined.samples.stop
        for shard in shards
    ):
        return False
    for path in left:
        path.unlink()
    say(f"{whole} is complete already: {len(joined.samples)} samples; removed {len(left)} shards")
    return True


def _shard_pattern(whole: Path) -> re.Pattern[str]:
    return re.compile(re.escape(whole.stem) + r"\.shard-\d+-of-(\d+)" + re.escape(whole.suffix))


def find_shards(whole: Path) -> list[Path]:
    """All shards of a file, in order; a missing one is named."""
    pattern = _shard_pattern(whole)
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


def _samples(shards: list[Source]) -> Iterator[file.Sample]:
    for shard in shards:
        for i in range(len(shard.samples)):
            yield file.Sample(shard.read_inputs(i) if shard.layout.inputs else None, shard.read(i))
