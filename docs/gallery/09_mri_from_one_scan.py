r"""
MRI from one scan
=================

A scanner that samples a quarter of k-space takes a quarter of the time; what is missing has to be filled in. Two
methods with Monarch matrices learn how, from **a single synthetic knee**: mSENSE, the paper's, is one linear step whose
inverse Fourier transform learns, and MCS is compressed sensing whose sparsifying transform learns. On a command line:
``python -m mri.train --model mcs --acc 4 --num-train 1``, then ``python -m mri.eval``.
"""

import matplotlib.pyplot as plt
import numpy as np

from data.knee.generate import ensure
from lab.paths import datasets_dir, runs_dir
from mri.config import TrainConfig
from mri.metrics import METRICS, quality
from mri.models import build
from mri.predictor import Predictor, load, target
from mri.sampling import evaluation_masks
from mri.sources import find_source
from mri.train import train

knees = ensure(4, datasets_dir() / "knees-gallery", shape=(8, 96, 40), jobs=1)
common = {"data": knees, "acc": 4.0, "num_train": 1, "echo": "1", "masks": 30}
recipe = {
    "samples": 120,
    "batch_size": 2,
    "lr": 1e-3,
    "val_slices": 6,
    "shift": 0.05,
    "threads": 1,
    "resume": True,
}
configs = {
    "mSENSE": TrainConfig(model="msense", name="gallery-msense", **common, **recipe),
    "MCS": TrainConfig(model="mcs", name="gallery-mcs", **common, **recipe, grad_clip=1.0),
}
for config in configs.values():
    train(config)

# %%
# Reconstruct a knee that neither method has seen. Zero-filled SENSE needs no training.

(scan, *_) = find_source(configs["MCS"]).scans("test")
mask = evaluation_masks([scan], 4.0, "poisson")[scan.scan_id]
methods = {"SENSE": Predictor(build("sense", scan.matrix_shape[1:]))}
for name, config in configs.items():
    methods[name] = load(runs_dir() / "mri" / str(config.name) / "weights.safetensors")
truth = target(scan, 0)
volumes = {name: method.reconstruct(scan, mask)[0] for name, method in methods.items()}
scores = {name: quality(volume, truth) for name, volume in volumes.items()}
for name, each in scores.items():
    print(name, *(f"{METRICS[key].title} {METRICS[key].shown(each[key])}" for key in ("psnr", "ssim")))

# %%
# The middle slice: full sampling, the quarter that was sampled, and the three reconstructions with their errors times
# five.

middle = scan.num_slices // 2
aspect = scan.voxel_spacing[2] / scan.voxel_spacing[1]
top = np.abs(truth[middle]).max()
figure, axes = plt.subplots(2, 4, figsize=(10, 4.4), layout="constrained")
axes[0, 0].imshow(np.abs(truth[middle]).T, cmap="gray", vmax=0.7 * top, aspect=aspect)
axes[0, 0].set_title("fully sampled")
axes[1, 0].imshow(mask.T, cmap="gray", aspect=aspect)
axes[1, 0].set_title("sampled points of k-space")
for column, (name, volume) in zip(axes.T[1:], volumes.items(), strict=True):
    column[0].imshow(np.abs(volume[middle]).T, cmap="gray", vmax=0.7 * top, aspect=aspect)
    column[0].set_title(f"{name}, {scores[name]['psnr']:.1f} dB")
    error = np.abs(np.abs(volume[middle]) - np.abs(truth[middle]))
    column[1].imshow(error.T, cmap="magma", vmin=0, vmax=top / 5, aspect=aspect)
    column[1].set_title("error x 5")
for panel in axes.flat:
    panel.set(xticks=[], yticks=[])
    panel.grid(False)
plt.show()
