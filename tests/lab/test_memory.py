"""Memory is kept for the arrays that follow."""

import subprocess
import sys

import pytest

PAGES_OF_TEN_ARRAYS = """
import resource, sys
import torch
from lab.memory import keep_freed

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

if sys.argv[1] == "keep":
    keep_freed()
torch.set_num_threads(1)
for round in range(2):  # the first few take new places
    before = faults()
    for _ in range(10):
        torch.empty(16 * 2**20).fill_(1)  # 64 MB, which malloc returns whatever it has learned about sizes
print(faults() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other allocators")
def test_freed_memory_is_used_again() -> None:
    kept, returned = (_faults(how) for how in ("keep", "return"))
    assert kept < 0.1 * returned


def _faults(how: str) -> int:
    command = [sys.executable, "-c", PAGES_OF_TEN_ARRAYS, how]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
