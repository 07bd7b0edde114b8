r"""
The sphere
==========

Shallow water on a rotating planet, simulated on a coarse grid of 32 x 64 points. The spherical harmonic transform is a
Fourier matrix for every latitude and a Legendre matrix for every order: a Monarch matrix on the grid. So the Monarch
Neural Operator can start exactly there, and learn.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch

from data.fields.generator import ensure
from data.shallow_water.config import GenerateConfig
from lab.paths import runs_dir
from pde.config import TrainConfig
from pde.metrics import error_per_frame
from pde.predictor import load
from pde.sources import Split
from pde.train import train

torch.manual_seed(0)
config = TrainConfig(
    problem="shallow-water",
    data=ensure(GenerateConfig(num_samples=10, resolution=32, frames=14, workers=1)),
    model="mno",
    options={"start": "sht", "modes": 8},
    num_train=7,
    num_val=1,
    num_test=2,
    symmetries=True,
    epochs=5,
    batch_size=8,
    lr=4e-3,
    threads=1,
    name="gallery-sphere",
    resume=True,
)
train(config)

# %%
# A forecast of the hours after the first, and the error if one forecasts no change at all.

split = Split(config)
given, truth = split.load(split.test)
predictor = load(runs_dir() / "pde" / str(config.name) / "weights.safetensors")
with torch.no_grad():
    forecast = predictor.predict(given, truth.shape[3])
weights = split.grid.weights
measured = [predictor.measured(each) for each in (forecast, given.expand_as(truth), truth)]
errors = {
    "MNO": error_per_frame(measured[0], measured[2], weights).mean(0),
    "no change": error_per_frame(measured[1], measured[2], weights).mean(0),
}

# %%
# Vorticity after four hours on a map of the whole planet that keeps areas (Mollweide's).

hour, sample = 4, 0
vorticity = split.test.names.index("vorticity")
latitudes = np.pi / 2 - split.grid.rows.numpy()
longitudes = np.linspace(-np.pi, np.pi, truth.shape[2] + 1)
edges = np.concatenate(([np.pi / 2], (latitudes[1:] + latitudes[:-1]) / 2, [-np.pi / 2]))
shown = {"truth": truth, "MNO": forecast, "error": forecast - truth}
limit = float(truth[sample, :, :, hour - 1, vorticity].abs().max())
figure = plt.figure(figsize=(11, 5.2), layout="constrained")
for place, (name, movie) in enumerate(shown.items(), start=1):
    panel = figure.add_subplot(2, 2, place, projection="mollweide")
    field = movie[sample, :, :, hour - 1, vorticity].numpy()
    drawn = panel.pcolormesh(
        longitudes, edges, field, cmap="RdBu_r", vmin=-limit, vmax=limit, rasterized=True
    )
    panel.set(title=f"vorticity, {name}", xticklabels=[], yticklabels=[])
figure.colorbar(drawn, ax=figure.axes, shrink=0.6, location="left")
panel = figure.add_subplot(2, 2, 4)
for name, curve in errors.items():
    panel.semilogy(range(1, len(curve) + 1), curve, label=name)
panel.set(xlabel="hours forecast", ylabel="relative error, all fields")
panel.legend()
plt.show()
