"""Damaged files in front of the readers: each answers in one sentence or reads what is there, and soon."""

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.crash.malformed import Damage, damages
from tests.crash.specimens import SPECIMENS, Specimen
from tests.crash.trial import Outcome, in_child

MEMORY = 2**30
"""Bytes that reading a file of some kilobytes may take."""
OURS = {"place", "specimens", "journal", "mail", "output", "links", "alone"}
"""What the campaign itself has in the folder of a worker."""
OTHER_NUMBERS, IMPOSSIBLE = 71, 72
"""Exit statuses of a child: it got numbers which the file's checksums should have refused; there is no such file."""


def count_malformed(inputs: Path, work: Path) -> dict[str, int]:
    """How many malformed files there are of each specimen."""
    return {specimen.name: len(_damages(specimen, inputs, work)) for specimen in SPECIMENS}


def _damages(specimen: Specimen, inputs: Path, work: Path) -> list[tuple[str, Damage]]:
    found = list(damages(_path(specimen, inputs, work)))
    if specimen.most is None or len(found) <= specimen.most:
        return found
    return [found[number * len(found) // specimen.most] for number in range(specimen.most)]


def try_malformed(name: str, numbers: range, inputs: Path, work: Path) -> list[str]:
    """Read the malformed files of these numbers; a line for each that can be made, empty if all was well."""
    specimen = named(name)
    lines = []
    for label, damage in _damages(specimen, inputs, work)[numbers.start : numbers.stop : numbers.step]:
        done = _trial(specimen, damage, inputs, work, same_numbers=False)
        must_refuse = specimen.finite and label.endswith("all NaN") and not label.startswith(specimen.unused)
        complaint = "NaN was read, without a word" if must_refuse and done.status == 0 else ""
        complaint = complaint or _complaint(done, work)
        if done.status != IMPOSSIBLE:
            lines.append(f"{name}, {label}: {complaint}" if complaint else "")
    return lines


def try_mutations(name: str, numbers: range, seed: int, inputs: Path, work: Path) -> list[str]:
    """Read mutations of a specimen; those of one number and seed are always the same. As for malformed files."""
    specimen = named(name)
    lines = []
    for number in numbers:
        done = _trial(
            specimen, mutation(f"{name}-{seed}-{number}"), inputs, work, same_numbers=specimen.checked
        )
        complaint = _complaint(done, work)
        lines.append(f"{name}, mutation {number} of seed {seed}: {complaint}" if complaint else "")
    return lines


def named(name: str) -> Specimen:
    """The specimen of this name."""
    return next(specimen for specimen in SPECIMENS if specimen.name == name)


def mutation(seed: str) -> Callable[[Path], None]:
    """Change some bytes of a file: bits, bytes, numbers, blocks, its length."""

    def damage(path: Path) -> None:
        rng = random.Random(seed)
        if path.is_dir():
            path = rng.choice(sorted(each for each in path.rglob("*") if each.is_file()))
        content = bytearray(path.read_bytes())
        for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
            _mutate(rng, content)
        path.write_bytes(content)

    return damage


NUMBERS = (0, 1, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**62, 2**63 - 1, 2**64 - 1)
"""Integers at which programs break."""


def _mutate(rng: random.Random, content: bytearray) -> None:
    if not content:
        return
    # Headers decide more than data, and stand at the beginning.
    room = len(content) if rng.random() < 0.5 else min(len(content), 2048)
    at, size = rng.randrange(room), rng.choice((1, 2, 4, 8, 16, 64))
    kind = rng.randrange(7)
    if kind == 0:
        content[at] ^= 1 << rng.randrange(8)
    elif kind == 1:
        content[at : at + size] = rng.randbytes(size)
    elif kind == 2:
        content[at : at + size] = bytes([rng.choice((0, 0xFF))]) * size
    elif kind == 3:
        width = rng.choice((1, 2, 4, 8))
        number = rng.choice(NUMBERS) % 2 ** (8 * width)
        content[at : at + width] = number.to_bytes(width, rng.choice(("little", "big")))
    elif kind == 4:
        start = rng.randrange(len(content))
        content[at : at + size] = content[start : start + size]
    elif kind == 5:
        del content[at : at + size]
    else:
        del content[rng.randrange(len(content)) :]


def _trial(
    specimen: Specimen, damage: Callable[[Path], None], inputs: Path, work: Path, *, same_numbers: bool
) -> Outcome:
    kept = _path(specimen, inputs, work)
    source, place = _folder(specimen, work), work / "place"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(source, place)
    path = place / kept.relative_to(source)

    def read() -> int:
        wanted = specimen.read(path) if same_numbers else None
        shutil.rmtree(place / "datasets", ignore_errors=True)
        try:
            damage(path)
        except Exception:  # whatever the libraries say of what they cannot write
            return IMPOSSIBLE
        found = specimen.read(path)
        if wanted is not None and found != wanted:
            return OTHER_NUMBERS
        return found if isinstance(found, int) else 0

    return in_child(read, place, seconds=specimen.seconds, memory=MEMORY)


def _complaint(done: Outcome, work: Path) -> str:
    if done.status == OTHER_NUMBERS:
        return "other numbers were read, without a word"
    if done.status == IMPOSSIBLE:
        return ""
    if done.complaint:
        return done.complaint
    if next((work / "place").rglob("exploded"), None):
        return "code in the file was executed"
    strangers = {path.name for path in work.iterdir()} - OURS
    return f"{strangers} was written outside" if strangers or Path("/elsewhere").exists() else ""


def _folder(specimen: Specimen, work: Path) -> Path:
    return work / "specimens" / str(SPECIMENS.index(specimen))


def _path(specimen: Specimen, inputs: Path, work: Path) -> Path:
    """The specimen's file; made when it is first asked for."""
    folder = _folder(specimen, work)
    told = folder.with_suffix(".path")
    if not told.exists():
        folder.mkdir(parents=True)
        told.write_text(str(specimen.make(inputs, folder).relative_to(folder)))
    return folder / told.read_text()


def rounds(seed: int, size: int) -> Iterator[tuple[str, range]]:
    """Specimens in turn, `size` mutations of each at a time, without end."""
    begin = 0
    while True:
        for specimen in SPECIMENS:
            yield specimen.name, range(begin, begin + size)
        begin += size
