"""Commands for scans: what is in one (info), what it looks like (show)."""

from data.scans.options import InfoConfig, ShowConfig
from lab.cli import main


def info(config: InfoConfig) -> None:
    """Print what is understood of FILE: size, coils, echoes, sampling, coil maps, geometry, sequence, memory."""
    from data.scans.info import info

    info(config)


def show(config: ShowConfig) -> None:
    """Draw a slice of FILE: its echoes, coil maps, k-space and what was sampled of it."""
    from data.scans.show import show

    show(config)


if __name__ == "__main__":
    main({"": info, "info": info, "show": show})
