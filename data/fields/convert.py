"""From a file of any known format to one in the format of this suite."""

from collections.abc import Iterator
from pathlib import Path

from data.fields import file
from data.fields.info import summary
from data.fields.options import ConvertConfig
from data.fields.reader import Fields, open_fields
from data.fields.told import require_geometry
from lab.console import say
from lab.errors import UserError


def convert(config: ConvertConfig) -> Path:
    """Write `config.out`, one sample after the other."""
    if config.out.exists() and config.out.samefile(config.file):
        raise UserError(f"{config.out} is the file to read; give another path to write.")
    fields = open_fields(config.file, told=config)
    require_geometry(fields.path, fields.source.layout)
    say(summary(fields))
    file.write(config.out, fields.source.layout, fields.source.samples, _samples(fields))
    say(f"wrote {config.out}: {len(fields)} samples")
    return config.out


def _samples(fields: Fields) -> Iterator[file.Sample]:
    for i in range(len(fields)):
        one = fields.one(i)
        inputs = one.load_inputs()[0].numpy() if fields.inputs else None
        constants = one.load_constants()[0].numpy() if fields.constants else None
        yield file.Sample(inputs, fields[i].numpy(), constants)
