r"""
A scan of your own
==================

Data need not come in a format that the suite knows: a slice of k-space as an array (coils, ky, kz), zero where nothing
was sampled, is enough. Here the array is simulated, with six coils and noise; put your own in its place.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
from skimage.data import shepp_logan_phantom
from skimage.transform import resize

from data.masks.generate import generate
from data.masks.spec import MaskSpec
from data.scans.espirit import MapEstimator
from data.scans.sense import Sense, centre, fft2c
from mri.models import build

rng = np.random.default_rng(0)
n, coils = 128, 6
phantom = torch.from_numpy(resize(shepp_logan_phantom(), (n, n), anti_aliasing=True)).to(torch.complex64)
y, x = np.mgrid[-1 : 1 : 1j * n, -1 : 1 : 1j * n]
angles = 2 * np.pi * np.arange(coils)[:, None, None] / coils
near = np.exp(-((x - 1.2 * np.cos(angles)) ** 2 + (y - 1.2 * np.sin(angles)) ** 2) / 1.5)
sensitivities = torch.from_numpy(near * np.exp(1j * (angles + x * np.sin(angles)))).to(torch.complex64)
full = fft2c(sensitivities * phantom)
noise = torch.from_numpy(rng.standard_normal((2, coils, n, n)))
full = full + 0.01 * torch.complex(*noise).to(torch.complex64)
mask = torch.from_numpy(generate(MaskSpec("poisson", (n, n), 5.0), seed=0))
kspace = full * mask

# %%
# Everything below needs only `kspace`. Where it is not zero it was sampled; coil sensitivities are estimated from the
# 24 x 24 points in the middle of k-space, which the mask samples fully (ESPIRiT).

sampled = (kspace != 0).any(0)
middle = centre(24, n)
maps = MapEstimator((n, n))(kspace[None, :, middle, middle])[0]
A = Sense(maps, sampled)
zero_filled = A.adjoint(kspace)

# %%
# `A` is a linear operator, so iterative SENSE, conjugate gradients on (A^H A + damping) x = A^H y, is a few lines.


def conjugate_gradients(b, iterations=12, damping=1e-3):
    x, r = torch.zeros_like(b), b.clone()
    p, size = r.clone(), torch.vdot(r.flatten(), r.flatten()).real
    for _ in range(iterations):
        q = A.normal(p) + damping * p
        step = size / torch.vdot(p.flatten(), q.flatten()).real
        x, r = x + step * p, r - step * q
        size, before = torch.vdot(r.flatten(), r.flatten()).real, size
        p = r + size / before * p
    return x


iterative = conjugate_gradients(zero_filled)

# %%
# Every method of ``mri.models`` takes the same arrays, with a batch axis in front. `mcs` works before any training: it
# starts as compressed sensing with cosines. Weights trained on any scans improve it, whatever their size:
# ``mri.predictor.load("weights.safetensors").method``.

method = build("mcs", (n, n)).eval()
with torch.no_grad():
    (sparse,) = method(kspace[None], maps[None], sampled[None], torch.zeros(1, dtype=torch.long))

# %%
truth = Sense(maps).adjoint(full).abs()
images = {"zero-filled SENSE": zero_filled, "iterative SENSE": iterative, "compressed sensing (MCS)": sparse}
figure, axes = plt.subplots(2, 4, figsize=(10.5, 5.4), layout="constrained")
axes[0, 0].imshow(truth, cmap="gray", vmax=truth.max())
axes[0, 0].set_title("fully sampled")
axes[1, 0].imshow(sampled, cmap="gray")
axes[1, 0].set_title(f"sampled: one point in {sampled.numel() / sampled.sum():.1f}")
for column, (name, image) in zip(axes.T[1:], images.items(), strict=True):
    error = (image.abs() - truth).abs()
    psnr = 20 * torch.log10(truth.max() / error.square().mean().sqrt())
    print(f"{name}: {psnr.item():.1f} dB")
    column[0].imshow(image.abs(), cmap="gray", vmax=truth.max())
    column[0].set_title(f"{name}\n{psnr.item():.1f} dB")
    column[1].imshow(error, cmap="magma", vmin=0, vmax=truth.max() / 5)
    column[1].set_title("error x 5")
for panel in axes.flat:
    panel.set(xticks=[], yticks=[])
    panel.grid(False)
plt.show()
