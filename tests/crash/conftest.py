"""The campaign forks and reads /proc: it is for Linux."""

import sys

collect_ignore_glob = [] if sys.platform.startswith("linux") else ["*.py"]
