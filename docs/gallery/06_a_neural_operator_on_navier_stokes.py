r"""
A neural operator on Navier-Stokes
==================================

The Monarch Neural Operator forecasts a turbulent flow, beside a Fourier Neural Operator that had the same data and the
same number of steps. The flows are simulated on the spot, on a coarse grid: this is the benchmark of the FNO paper
made small. On a command line it would be ``python -m pde.train --nu 1e-3 --model mno``, then ``python -m pde.eval``.
"""

import matplotlib.pyplot as plt
import torch

from data.fields.generator import ensure
from data.navier_stokes.config import GenerateConfig
from lab.paths import runs_dir
from pde.config import TrainConfig
from pde.metrics import error_per_frame
from pde.predictor import load
from pde.sources import Split
from pde.train import train

torch.manual_seed(0)
flows = ensure(
    GenerateConfig(nu=1e-3, num_samples=16, final_time=30, resolution=32, precision="float32", workers=1)
)

# %%
# Twelve flows to train on, two to choose the best weights, two to test. The options are those of the command line.

data = {"data": flows, "nu": 1e-3, "num_train": 12, "num_val": 2, "num_test": 2}
recipe = {"symmetries": True, "epochs": 6, "batch_size": 16, "lr": 4e-3, "threads": 1, "resume": True}
configs = {
    "MNO": TrainConfig(model="mno", name="gallery-mno", **data, **recipe),
    "FNO": TrainConfig(model="fno", options={"transport": False}, name="gallery-fno", **data, **recipe),
}
for config in configs.values():
    train(config)

# %%
# A trained model forecasts the rest of a flow from its tenth frame, step by step, each from the one before.

split = Split(configs["MNO"])
given, truth = split.load(split.test)
forecasts = {}
for name, config in configs.items():
    predictor = load(runs_dir() / "pde" / str(config.name) / "weights.safetensors")
    with torch.no_grad():
        forecasts[name] = predictor.predict(given, truth.shape[3])

# %%
# Vorticity of a test flow after 2, 10 and 20 steps, and the error as the forecast goes on. Seconds of training on
# twelve flows say little about who is better: the results page has longer runs.

steps, sample = (2, 10, 20), 0
figure = plt.figure(figsize=(9.5, 5), layout="constrained")
grid = figure.add_gridspec(3, 5)
limit = truth[sample].abs().max()
for row, (name, movie) in enumerate({"truth": truth, **forecasts}.items()):
    for column, step in enumerate(steps):
        panel = figure.add_subplot(grid[row, column])
        panel.imshow(
            movie[sample, :, :, step - 1, 0].T, origin="lower", cmap="RdBu_r", vmin=-limit, vmax=limit
        )
        panel.set(
            frame_on=False,
            xticks=[],
            yticks=[],
            title=f"step {step}" if row == 0 else "",
            ylabel="" if column else name,
        )
        panel.grid(False)
panel = figure.add_subplot(grid[:, 3:])
for name, movie in forecasts.items():
    panel.semilogy(range(1, truth.shape[3] + 1), error_per_frame(movie, truth).mean(0), label=name)
panel.set(xlabel="steps forecast", ylabel="relative error")
panel.legend()
plt.show()
