"""Commands: make synthetic knees, turn images into scans, show what is there."""

from data.knee.config import FromImagesConfig, GenerateConfig, ShowConfig
from lab.cli import main


def generate(config: GenerateConfig) -> None:
    """Make synthetic knees in SKM-TEA's layout; finished subjects are kept."""
    from data.knee.generate import generate as make
    from lab.console import say

    say(f"{config.subjects} synthetic knees are in {make(config)}")


def from_images(config: FromImagesConfig) -> None:
    """Turn real magnitude images into scans with simulated coils, phase and noise."""
    from data.knee.from_images import from_images as convert
    from lab.console import say

    say(f"scans with simulated coils are in {convert(config)}")


def show(config: ShowConfig) -> None:
    """Draw both echoes, the coil maps and the masks of a scan."""
    from data.knee.show import show as draw
    from lab.console import say

    for path in draw(config):
        say(str(path))


if __name__ == "__main__":
    main({"": generate, "from-images": from_images, "show": show})
