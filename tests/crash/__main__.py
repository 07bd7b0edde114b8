"""`python -m tests.crash`: kills, full disks, damaged files, odd surroundings; a table of what held."""

from lab.cli import main
from tests.crash.campaign import campaign

if __name__ == "__main__":
    main(campaign)
