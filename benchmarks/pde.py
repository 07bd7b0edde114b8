"""Training steps of the neural operators, against the FNO of the neuraloperator package; and what transport costs.

    python -m benchmarks.pde [--quick] [--busy]

One step is forward, loss and backward, float32: on 20 fields of 64 x 64 points with ten frames in, and for transport on
ten samples of a problem with one frame in, as the Markov recipe trains. The models take turns and the quickest of their
steps counts, so that other work on the machine disturbs all alike; read the ratios. neuraloperator is used by nothing
else here: pip install neuraloperator tensorly tensorly-torch, in an environment of its own, adds it to the comparison.
"""

import warnings
from collections.abc import Callable

import torch
from torch import Tensor, nn

from benchmarks.race import options, quickest
from data.fields.layout import Grid
from lab.table import Column, Table
from pde.config import TrainConfig
from pde.models import build

BATCH, POINTS, FRAMES = 20, 64, 10
CARRIED = {
    "navier-stokes": ((64, 64, 1), ("mno", "lfno", "fno", "ffno")),
    "burgers-walls": ((64, 64, 2), ("mno", "fno")),
    "shallow-water": ((32, 64, 3), ("mno", "fno")),
}
"""Problems, each with a geometry of its own: points and fields, and models whose steps transport makes longer."""


def neuraloperator_fno() -> nn.Module | None:
    """The package's FNO with the size of ours: 12 modes of each sign, width 20, 4 layers, 20 -> 128 -> 1."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from neuralop.models import FNO
    except ImportError:
        return None
    sizes = {"in_channels": FRAMES, "out_channels": 1, "hidden_channels": 20, "n_layers": 4}
    like_ours = {"use_channel_mlp": False, "lifting_channel_ratio": 1, "projection_channel_ratio": 6.4}
    return FNO(n_modes=(24, 24), **sizes, **like_ours)


class WithFFT(nn.Module):
    """Our FNO's plane transform by torch.fft: what the small matrices replace."""

    def __init__(self, modes: int) -> None:
        super().__init__()
        self.m = modes

    def analyse(self, field: Tensor) -> Tensor:
        spectrum = torch.fft.rfft2(field, dim=(1, 2), norm="ortho")
        kept = torch.cat((spectrum[:, : self.m, : self.m], spectrum[:, -self.m :, : self.m]), dim=1)
        return torch.view_as_real(kept.permute(2, 1, 3, 0).flatten(0, 1).contiguous())

    def synthesise(self, modes: Tensor) -> Tensor:
        m, (_, channels, batch, _) = self.m, modes.shape
        kept = torch.view_as_complex(modes).view(m, 2 * m, channels, batch).permute(3, 1, 0, 2)
        spectrum = kept.new_zeros(batch, POINTS, POINTS // 2 + 1, channels)
        spectrum[:, :m, :m], spectrum[:, -m:, :m] = kept[:, :m], kept[:, m:]
        return torch.fft.irfft2(spectrum, s=(POINTS, POINTS), dim=(1, 2), norm="ortho")


def fno_with_fft() -> nn.Module:
    model = build("fno", FRAMES, POINTS)
    for layer in model.layers:
        layer.spectral.plane = WithFFT(12)
    return model


def training_step(name: str, model: nn.Module) -> Callable[[], None]:
    """Forward, loss and backward; the package has its channels in front."""
    frames = torch.randn(BATCH, POINTS, POINTS, FRAMES)
    field = frames.permute(0, 3, 1, 2).contiguous() if name == "neuraloperator" else frames

    def step() -> None:
        model(field).square().mean().backward()
        model.zero_grad()

    return step


def markov_step(problem: str, name: str, **options: object) -> Callable[[], None]:
    """A step as in the Markov recipe: one frame in and, on a finer grid, the steps that lead there."""
    config = TrainConfig(problem=problem, model=name, options=options)
    rows, columns, fields = CARRIED[problem][0]
    grid = Grid.of(config.about.geometry, rows, columns)
    model = build(name, fields, grid, fields, **config.options)
    with torch.no_grad():
        frames = model.refined(torch.randn(BATCH // 2, rows, columns, fields))

    def step() -> None:
        with torch.no_grad():
            for _ in range(model.lead):
                model.step(frames)
        there, new = model.step(frames)
        (there + new).square().mean().backward()
        model.zero_grad()

    return step


def architectures(rounds: int) -> Table:
    """Training steps of all operators, without transport."""
    makers: dict[str, Callable[[], nn.Module | None]] = {
        "neuraloperator": neuraloperator_fno,
        "fno, by FFT": fno_with_fft,
        "fno": lambda: build("fno", FRAMES, POINTS),
        "lfno": lambda: build("lfno", FRAMES, POINTS),
        "mno": lambda: build("mno", FRAMES, POINTS),
        "mno, twin fno": lambda: build("mno", FRAMES, POINTS, twin="fno"),
        "ffno": lambda: build("ffno", FRAMES, POINTS),
        "mno, twin ffno": lambda: build("mno", FRAMES, POINTS, twin="ffno"),
    }
    made = {name: make() for name, make in makers.items()}
    models = {name: model for name, model in made.items() if model is not None}
    if "neuraloperator" not in models:
        print("neuraloperator is not installed: its column is empty (see the top of this file)")
    steps = {name: training_step(name, model) for name, model in models.items()}
    times = quickest(steps, seconds=0, rounds=rounds)
    digits = {"parameters": 0, "ms per step": 1, "against neuraloperator": 2, "against fno": 2}
    table = Table([Column("model"), *(Column(title, digits=number) for title, number in digits.items())])
    for name, model in models.items():
        package = times["neuraloperator"] / times[name] if "neuraloperator" in times else None
        parameters = sum(p.numel() for p in model.parameters())
        table.add(name, parameters, 1e3 * times[name], package, times["fno"] / times[name])
    return table


def transport(rounds: int) -> Table:
    """What carrying the fields adds to a training step, with and without a finer grid for them."""
    digits = {
        "without (ms)": 1,
        "transport (ms)": 1,
        "ratio": 2,
        "with --refine 2 (ms)": 1,
        "ratio to without": 2,
    }
    columns = [Column("problem"), Column("model")]
    table = Table([*columns, *(Column(title, digits=number) for title, number in digits.items())])
    for problem, (_, names) in CARRIED.items():
        for name in names:
            steps = {
                "without": markov_step(problem, name, transport=False),
                "with": markov_step(problem, name, transport=True),
            }
            if problem == "navier-stokes":
                steps["finer"] = markov_step(problem, name, transport=True, refine=2)
            times = {key: 1e3 * value for key, value in quickest(steps, seconds=0, rounds=rounds).items()}
            plain, finer = times["without"], times.get("finer")
            ratio = None if finer is None else finer / plain
            table.add(problem, name, plain, times["with"], times["with"] / plain, finer, ratio)
    return table


def main() -> None:
    chosen = options(__doc__, quick="fewer rounds", threads=torch.get_num_threads())
    rounds = 5 if chosen.quick else 25
    print(f"{chosen.threads} thread(s), torch {torch.__version__}")
    print(f"\nTraining steps, batch {BATCH} of {POINTS} x {POINTS}, {FRAMES} in\n")
    print(architectures(rounds).markdown())
    print(f"\nWhat transport costs, batch {BATCH // 2}, one in\n")
    print(transport(rounds).markdown())


if __name__ == "__main__":
    main()
