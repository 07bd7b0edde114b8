r"""
A DFT that learns
=================

A Monarch matrix can be *exactly* the Fourier transform, and still be trained. That is a good place to start from when
a measurement is almost, but not quite, a Fourier transform.

Here an instrument gives spectra of signals with n = 256 points, but its detector has gains and phases that nobody wrote
down: y = F D x with an unknown diagonal D. We have 60 calibration signals, too few to fit a dense 256 x 256 matrix.
"""

import matplotlib.pyplot as plt
import torch

import monarch_core as mc

torch.manual_seed(0)
n, examples = 256, 60
t = torch.arange(n) / n
detector = (1 + 0.5 * torch.cos(6 * t)) * torch.exp(1j * (3 * t**2 + torch.sin(9 * t)))


def measured(x):
    """What the instrument says, with a little noise."""
    return torch.fft.fft(detector * x, norm="ortho") + 0.02 * torch.randn_like(x)


x, x_test = (torch.randn(count, n, dtype=torch.complex64) for count in (examples, 200))
y, y_test = measured(x), measured(x_test)

# %%
# Three maps to fit: a Monarch matrix that starts at the DFT, one that starts at random, and a dense matrix that starts
# at the DFT, too. The first two have 16,384 real numbers, the dense one 131,072.

dense = torch.nn.Parameter(torch.view_as_real(mc.dft(n, norm="ortho").to_dense().detach().clone()))
operators = {
    "Monarch, from the DFT": mc.dft(n, norm="ortho"),
    "Monarch, from random": mc.Monarch(n, blocks=16, dtype=torch.complex64),
}
maps = {name: (operator, list(operator.parameters())) for name, operator in operators.items()}
maps["dense, from the DFT"] = (lambda x: x @ torch.view_as_complex(dense).T, [dense])


def train(apply, parameters, steps=400):
    """Adam on the mean square error; the relative error on signals that were not used for calibration."""
    optimizer = torch.optim.Adam(parameters, lr=0.02)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    errors = []
    for _ in range(steps):
        optimizer.zero_grad()
        (apply(x) - y).abs().square().mean().backward()
        optimizer.step()
        schedule.step()
        with torch.no_grad():
            errors.append(((apply(x_test) - y_test).norm() / y_test.norm()).item())
    return errors


curves = {name: train(*each) for name, each in maps.items()}
for name, errors in curves.items():
    print(f"{name}: relative error {errors[-1]:.3f} on new signals")

# %%
# The dense matrix fits the sixty signals and fails on others. The Monarch matrix from the DFT is down to the noise: the
# class of matrices is small, and it contains the answer. From a random start the same class is harder to search.

learned = operators["Monarch, from the DFT"].to_dense().detach()
recovered = (mc.dft(n, norm="ortho", inverse=True).to_dense().detach() @ learned).diagonal()

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
for name, errors in curves.items():
    left.semilogy(errors, label=name)
left.set(xlabel="step", ylabel="relative error on new signals")
left.legend()
right.plot(t, detector.angle(), color="black", linewidth=4, alpha=0.3, label="phase of the detector")
right.plot(t, recovered.angle(), label="phase that was learned")
right.plot(t, detector.abs(), color="black", linewidth=4, alpha=0.3, label="its gain")
right.plot(t, recovered.abs(), label="gain that was learned")
right.set(xlabel="time")
right.legend()
plt.show()
