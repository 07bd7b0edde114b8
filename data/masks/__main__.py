"""`python -m data.masks`: fill a pool of sampling masks, and say what is in it."""

from data.masks.config import FillConfig
from lab.cli import main


def fill(config: FillConfig) -> None:
    """Make the sampling masks that training will draw from, so that no run has to wait for them."""
    from data.masks.summary import draw_picture, summarise
    from lab.console import say
    from lab.errors import UserError

    if config.count < 1:
        raise UserError(f"--count takes at least 1 mask, not {config.count}.")
    say(summarise(config.spec, config.count, config.out))
    if config.picture is not None:
        say(f"wrote {draw_picture(config.spec, config.count, config.out, config.picture)}")


if __name__ == "__main__":
    main(fill)
