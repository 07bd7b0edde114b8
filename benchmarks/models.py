"""Layers of real models, dense against Monarch: time of a training step, parameters and operations of whole models.

    python -m benchmarks.models [--quick] [--threads 2] [--blocks 4] [--busy]

BERT, GPT-2, ViT and MLP-Mixer at their true widths; the steps run two layers of them, forward and backward, on the
inputs named in the table. The competitors take turns and the quickest of their runs counts; read the ratios. The paper
(Dao et al. 2022) measured on a V100. Two threads on a busy machine wait for each other more than they compute; --busy
measures the processor time of one.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.race import options, quickest, training_step
from lab.table import Column, Table
from monarch_core import MonarchLinear, monarchize


class Attention(nn.Module):
    """Query, key, value and output projections, as the paper's Monarch models have them: apart."""

    def __init__(self, d: int, heads: int, bias: bool = True, causal: bool = False) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(d, d, bias=bias) for _ in range(3))
        self.out = nn.Linear(d, d)
        self.heads, self.causal = heads, causal

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (p(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for p in (self.q, self.k, self.v))
        mixed = scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(mixed.transpose(1, 2).flatten(-2))


class Feedforward(nn.Sequential):
    def __init__(self, d: int, hidden: int) -> None:
        super().__init__(nn.Linear(d, hidden), nn.GELU(), nn.Linear(hidden, d))


class TokenMixing(nn.Module):
    """A perceptron over the tokens; it stays dense, with which the paper's figures for the Mixers agree."""

    def __init__(self, tokens: int, hidden: int) -> None:
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(tokens, hidden), nn.GELU(), nn.Linear(hidden, tokens))

    def forward(self, x: Tensor) -> Tensor:
        return self.mlp(x.mT).mT


class Layer(nn.Module):
    def __init__(self, d: int, mixing: nn.Module, hidden: int) -> None:
        super().__init__()
        self.mixing, self.feedforward = mixing, Feedforward(d, hidden)
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.mixing(self.norms[0](x))
        return x + self.feedforward(self.norms[1](x))


@dataclass(frozen=True)
class Model:
    """A model of the paper's tables: its layers, what it has around them, and the figures printed there."""

    name: str
    d: int
    depth: int
    hidden: int
    mixing: Callable[[], nn.Module]
    batch: int
    tokens: int
    around: int
    """Parameters outside the layers: embeddings, patches, head."""
    paper: tuple[float, float, float]
    """Dense and Monarch parameters in millions, and the speed-up on a V100."""

    def layers(self, depth: int) -> nn.Sequential:
        return nn.Sequential(*(Layer(self.d, self.mixing(), self.hidden) for _ in range(depth)))


def text(d: int, vocabulary: int, positions: int, extra: int = 0) -> int:
    return (vocabulary + positions) * d + extra


def image(d: int, positions: int) -> int:
    return (3 * 16 * 16 + 1) * d + positions * d + 2 * d + 1000 * (d + 1)


def attention(d: int, bias: bool = True, causal: bool = False) -> Callable[[], nn.Module]:
    return lambda: Attention(d, d // 64, bias, causal)


def bert(name: str, d: int, depth: int, paper: tuple[float, float, float]) -> Model:
    around = text(d, 30522, 512, 2 * d + 2 * d + d * (d + 1))  # token types, a norm, the pooler
    return Model(name, d, depth, 4 * d, attention(d), 8, 128, around, paper)


def gpt2(name: str, d: int, depth: int, paper: tuple[float, float, float]) -> Model:
    around = text(d, 50257, 1024, 2 * d)
    return Model(name, d, depth, 4 * d, attention(d, causal=True), 2, 512, around, paper)


def mixer(
    name: str, d: int, depth: int, tokens: int, channels: int, paper: tuple[float, float, float]
) -> Model:
    return Model(name, d, depth, channels, lambda: TokenMixing(196, tokens), 8, 196, image(d, 0), paper)


MODELS = [
    bert("BERT-base", 768, 12, (109, 55, 1.5)),
    bert("BERT-large", 1024, 24, (335, 144, 1.7)),
    gpt2("GPT-2-small", 768, 12, (124, 72, 1.8)),
    gpt2("GPT-2-medium", 1024, 24, (355, 165, 2.0)),
    Model("ViT-S/16", 768, 8, 2304, attention(768, bias=False), 8, 197, image(768, 198), (48.8, 19.6, 1.9)),
    Model("ViT-B/16", 768, 12, 3072, attention(768), 8, 197, image(768, 198), (86.6, 33.0, 2.0)),
    mixer("Mixer-S/16", 512, 8, 256, 2048, (18.5, 7.0, 1.7)),
    mixer("Mixer-B/16", 768, 12, 384, 3072, (59.9, 20.9, 1.9)),
]

SIZES = [(512, 512), (768, 768), (1024, 1024), (768, 3072), (3072, 768)]
"""(in, out) of single layers."""


def converted(layers: nn.Module, blocks: int) -> nn.Module:
    layers = copy.deepcopy(layers)
    monarchize(layers, (Attention, Feedforward), blocks=blocks)
    return layers


def whole_models(blocks: int, quick: bool) -> Table:
    """Parameters and operations (forward pass, one input) of whole models, beside the paper's parameters."""
    parameters = "dense (M)", "Monarch (M)", "paper, dense", "paper, Monarch"
    columns = [Column(title, digits=1) for title in (*parameters, "dense (GFLOP)", "Monarch (GFLOP)")]
    table = Table([Column("model"), *columns, Column("ratio", digits=2)])
    for model in MODELS:
        with torch.device("meta"):
            dense = model.layers(model.depth)
            sparse = converted(dense, blocks)
            x = torch.empty(1, model.tokens, model.d)
            flops = [operations(layers, x) / 1e9 for layers in (dense, sparse)]
        count = [(model.around + sum(p.numel() for p in m.parameters())) / 1e6 for m in (dense, sparse)]
        paper = map(float, model.paper[:2])
        table.add(f"{model.name}, {model.tokens} tokens", *count, *paper, *flops, flops[0] / flops[1])
    return table


def operations(layers: nn.Module, x: Tensor) -> int:
    """Operations of the layers' products and attention; 2 for a multiply-add."""
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        layers(x)
    return counter.get_total_flops()


def steps(blocks: int, quick: bool) -> Table:
    """Forward and backward of two layers, float32, dense against Monarch."""
    digits = {"dense (ms)": 1, "Monarch (ms)": 1, "against dense": 2, "FLOP limit": 2, "paper (V100)": 1}
    numbers = [Column(title, digits=number) for title, number in digits.items()]
    table = Table([Column("model"), Column("input"), *numbers])
    for model in [m for m in MODELS if not quick or m.name in ("BERT-base", "ViT-B/16")]:
        dense = model.layers(2)
        sparse = converted(dense, blocks)
        x = torch.randn(model.batch, model.tokens, model.d, requires_grad=True)
        times = compared(dense, sparse, x, seconds=4 if quick else 12)
        with torch.device("meta"):
            counted = [operations(m.to("meta"), x.to("meta")) for m in (dense, sparse)]
        limit, size = counted[0] / counted[1], f"{model.batch} x {model.tokens}"
        table.add(model.name, size, *times, times[0] / times[1], limit, model.paper[2])
    return table


def layers_from_512(blocks: int, quick: bool) -> Table:
    """MonarchLinear against nn.Linear, forward and backward, float32, 256 rows and more."""
    titles = "in", "out", "rows", "against dense", "FLOP limit"
    table = Table([Column(title, digits=2) for title in titles])
    for n_in, n_out in SIZES[:2] if quick else SIZES:
        for rows in (256,) if quick else (256, 1024, 4096):
            linear, layer = nn.Linear(n_in, n_out), MonarchLinear(n_in, n_out, blocks=blocks)
            x = torch.randn(rows, n_in, requires_grad=True)
            dense, monarch = compared(linear, layer, x, seconds=1 if quick else 3)
            table.add(n_in, n_out, rows, dense / monarch, n_in * n_out / layer.operator.num_parameters)
    return table


def half_precision(blocks: int, quick: bool) -> Table:
    """Forward and backward of 256 rows in float32 and in bfloat16, milliseconds."""
    titles = [f"{layer}, {dtype}" for dtype in ("float32", "bfloat16") for layer in ("dense", "Monarch")]
    table = Table([Column("in"), Column("out"), *(Column(title, digits=1) for title in titles)])
    for n_in, n_out in SIZES[:1] if quick else SIZES:
        times = []
        for dtype in (torch.float32, torch.bfloat16):
            linear = nn.Linear(n_in, n_out, dtype=dtype)
            layer = MonarchLinear(n_in, n_out, blocks=blocks, dtype=dtype)
            x = torch.randn(256, n_in, dtype=dtype, requires_grad=True)
            times += compared(linear, layer, x, seconds=1)
        table.add(n_in, n_out, *times)
    return table


def compared(dense: nn.Module, monarch: nn.Module, x: Tensor, seconds: float) -> list[float]:
    """Milliseconds of a training step of both."""
    best = quickest({"dense": training_step(dense, x), "monarch": training_step(monarch, x)}, seconds)
    return [1e3 * best[name] for name in ("dense", "monarch")]


def main() -> None:
    blocks = 4, "blocks of the Monarch matrices"
    chosen = options(__doc__, quick="two models and two layers, measured briefly", threads=2, blocks=blocks)
    note = f"{chosen.blocks} blocks, {chosen.threads} thread(s), torch {torch.__version__}."
    for measure in (whole_models, steps, layers_from_512, half_precision):
        print(f"\n{measure.__doc__} {note}\n\n{measure(chosen.blocks, chosen.quick).markdown()}", flush=True)


if __name__ == "__main__":
    main()
