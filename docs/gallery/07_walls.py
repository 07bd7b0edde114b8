r"""
Walls
=====

Water under pressure seeps through a porous medium between walls: Darcy's flow, whose pressure is zero on the boundary.
The Fourier transform assumes that the domain is periodic. A Monarch operator on the same grid may start at the Fourier
transform and learn what the boundary asks for, or start at the sine transform, which vanishes there.
"""

import matplotlib.pyplot as plt
import torch

from data.darcy.config import GenerateConfig
from data.fields.generator import ensure
from lab.paths import runs_dir
from pde.config import TrainConfig
from pde.metrics import error_profile, relative_error, squares_by_point
from pde.predictor import load
from pde.sources import Split
from pde.train import train

torch.manual_seed(0)
media = ensure(GenerateConfig(num_samples=270, resolution=32, workers=1))
data = {"problem": "darcy", "data": media, "num_train": 200, "num_val": 20, "num_test": 50}
recipe = {"symmetries": True, "epochs": 10, "batch_size": 20, "lr": 5e-3, "threads": 1, "resume": True}
grid_form = {"form": "grid", "modes": 8}
configs = {
    "FNO": TrainConfig(model="fno", options={"modes": 8}, name="gallery-walls-fno", **data, **recipe),
    "MNO from the DFT": TrainConfig(
        model="mno", options={**grid_form, "start": "dft"}, name="gallery-walls-dft", **data, **recipe
    ),
    "MNO from sines": TrainConfig(
        model="mno", options={**grid_form, "start": "dst"}, name="gallery-walls-dst", **data, **recipe
    ),
}
for config in configs.values():
    train(config)

# %%
# Test the three on media that none of them has seen.

split = Split(configs["FNO"])
given, truth = split.load(split.test)
answers, profiles = {}, {}
for name, config in configs.items():
    predictor = load(runs_dir() / "pde" / str(config.name) / "weights.safetensors")
    with torch.no_grad():
        answers[name] = predictor.predict(given, 1)
    profiles[name] = error_profile(squares_by_point(answers[name], truth), split.grid)
    print(f"{name}: relative error {relative_error(answers[name], truth).mean().item():.3f}")

# %%
# The medium, the pressure, and where each operator errs. The curve on the right is the error against the distance from
# the nearest wall: in these seconds of training MNO from the DFT is ahead at the wall and FNO in the middle. After
# minutes MNO is ahead in both; the results page has those runs.

sample = 0
wrong = {name: (answer - truth)[sample, :, :, 0, 0].abs() for name, answer in answers.items()}
limit = max(float(each.max()) for each in wrong.values())
medium, pressure = (each[sample, :, :, 0, 0] for each in (given, truth))
pictures = [("permeability", medium, "cividis", None), ("pressure", pressure, "viridis", None)]
pictures += [(f"|error|, {name}", each, "magma", limit) for name, each in wrong.items()]
figure = plt.figure(figsize=(10, 4.6), layout="constrained")
grid = figure.add_gridspec(2, 5)
for place, (title, field, colours, top) in zip((0, 5, 1, 2, 6), pictures, strict=True):
    panel = figure.add_subplot(grid[place // 5, place % 5])
    panel.imshow(field.T, origin="lower", cmap=colours, vmin=0 if top else None, vmax=top)
    panel.set(frame_on=False, xticks=[], yticks=[], title=title)
    panel.grid(False)
panel = figure.add_subplot(grid[:, 3:])
for name, (places, profile) in profiles.items():
    panel.semilogy(places, profile, label=name)
panel.set(xlabel="distance from the nearest wall", ylabel="r.m.s. error / spread of the pressure")
panel.legend()
plt.show()
