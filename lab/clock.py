"""The clock of budgets and comparisons of speed."""

import time

import torch


def busy(device: torch.device | str = "cpu") -> float:
    """Seconds of work: processor time per thread on a CPU, so that other work on the machine does not count.

    Elsewhere the host mostly waits for the device, and wall time is what there is.
    """
    if torch.device(device).type == "cpu":
        return time.process_time() / torch.get_num_threads()
    return time.monotonic()
