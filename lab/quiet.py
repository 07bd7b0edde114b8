"""The one place that silences what Lightning and torch print about tips, deprecations and obvious things."""

import logging
import warnings

# Each pattern is the start of a warning that says nothing a user of this suite could act on.
NOISE = (
    r".*does not have many workers.*",  # num_workers is an option; small data loads faster without
    r".*srun.*command is available.*",  # running without SLURM on a SLURM machine is fine
    r".*The number of training batches .* is smaller than the logging interval.*",  # lab logs by epoch
    r".*Found .* module\(s\) in eval mode.*",
    r".*treespec, LeafSpec.*",  # a deprecation inside Lightning
    r".*isinstance\(treespec, LeafSpec\).*",
    r".*Checkpoint directory .* exists and is not empty.*",
    r".*GPU available but not used.*",  # --accelerator cpu was asked for
    r".*Grad strides do not match bucket view strides.*",  # an axis of length 1 has no meaningful stride
    r".*barrier\(\) is using the device under current context.*",
    r".*barrier\(\): using the device under current context.*",
)


def quiet_lightning() -> None:
    """Keep warnings that matter, drop the known noise."""
    for name in ("lightning.pytorch", "lightning.fabric", "lightning", "pytorch_lightning"):
        logging.getLogger(name).setLevel(logging.WARNING)
    for pattern in NOISE:
        warnings.filterwarnings("ignore", message=pattern)
