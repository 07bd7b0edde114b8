"""Make files of fields: one piece for all equations.

An equation's package has a module `generate` with two functions:

    layout(settings)                   what its files hold
    solve_samples(settings, samples)   the samples of these numbers, (sample, row, column, frame, field); inputs of
                                       a static problem are the first fields, a field at the time 0 the first frame
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from data.fields import file
from data.fields.layout import Array, Layout
from data.fields.options import GeneratorOptions
from data.parallel import Job, make
from lab.errors import UserError
from lab.paths import datasets_dir


def ensure(config: GeneratorOptions[Any]) -> Path:
    """Return a file that holds these samples, making what is missing with a progress bar.

    A file in datasets/ with the same settings and more samples serves as well; its first ones are these.
    """
    settings = config.settings
    others = datasets_dir().glob(f"{settings.problem.replace('-', '_')}_*.h5")
    for path in [config.path] if config.path.exists() else sorted(others):
        with suppress(UserError):  # a damaged file is no concern of this one
            if file.holds(path, settings.fingerprint, config.samples):
                return path
    return generate(config)


def generate(config: GeneratorOptions[Any]) -> Path:
    """Make the file at `config.path`, or finish it, and return its path."""
    settings, equation = config.settings, import_module(f"{config.package}.generate")
    origin = {"parameters": settings.parameters, "fingerprint": settings.fingerprint}
    layout = replace(equation.layout(settings), **origin)
    nu = f" nu = {settings.nu:g}" if hasattr(settings, "nu") else ""
    return make(
        Job(
            path=config.path,
            fingerprint=settings.fingerprint,
            label=settings.problem + nu,
            samples=config.samples,
            shape=_shape(layout),
            solve=partial(equation.solve_samples, settings, **config.solver_options()),
            write=partial(_write, config.path, layout, config.samples),
            is_there=partial(file.holds, config.path, settings.fingerprint, config.samples),
            batch_size=config.at_once,
            workers=config.processes,
        )
    )


def _shape(layout: Layout) -> tuple[int, ...]:
    """The shape of a sample as `solve_samples` makes it."""
    rows, columns, frames, fields = layout.shape
    if layout.static:
        return rows, columns, frames, fields + len(layout.inputs)
    return rows, columns, frames + (1 if layout.inputs else 0), fields


def _write(path: Path, layout: Layout, numbers: range, samples: Iterable[Array]) -> None:
    file.write(path, layout, numbers, (_divided(layout, sample) for sample in samples))


def _divided(layout: Layout, sample: Array) -> file.Sample:
    if layout.static:
        given = len(layout.inputs)
        return file.Sample(sample[..., 0, :given], sample[..., given:])
    if layout.inputs:
        return file.Sample(sample[..., 0, :], sample[..., 1:, :])
    return file.Sample(None, sample)
