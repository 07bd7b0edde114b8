"""The models: what a token sees, how many parameters there are, and what is asked."""

import pytest
import torch
from torch.nn import functional as F

from monarch_core import MonarchLinear, densify
from text.augment import HIDDEN, IGNORED, hidden_tokens, next_tokens
from text.models import MODELS, build
from text.models.parts.cost import cost

MATRICES = [None, 4]
each_model = pytest.mark.parametrize("name", MODELS)
each_matrix = pytest.mark.parametrize("blocks", MATRICES)


def small(name: str, blocks: int | None, **options):
    return build(name, vocabulary=50, context=12, size="tiny", blocks=blocks, **options).eval()


@each_matrix
def test_a_later_token_does_not_change_what_gpt_says_of_earlier_ones(blocks):
    model, tokens = small("gpt", blocks), torch.randint(50, (2, 12))
    changed = tokens.clone()
    changed[:, 7] = (tokens[:, 7] + 1) % 50
    before, after = model(tokens), model(changed)
    assert torch.allclose(before[:, :7], after[:, :7], atol=1e-6)
    assert not torch.allclose(before[:, 7:], after[:, 7:], atol=1e-3)


@each_matrix
def test_bert_sees_both_sides(blocks):
    model, tokens = small("bert", blocks), torch.randint(50, (2, 12))
    changed = tokens.clone()
    changed[:, 7] = (tokens[:, 7] + 1) % 50
    assert (model(tokens) - model(changed)).abs().amax((0, 2)).min() > 1e-5


@each_model
def test_the_output_layer_is_the_embedding(name):
    model = small(name, None)
    hidden = torch.randn(3, 64)
    before = model.logits(hidden)
    with torch.no_grad():
        model.tokens.weight[5] *= 2
    after = model.logits(hidden)
    bias = getattr(model, "bias", torch.zeros(50))
    assert torch.allclose(after[:, 5] - bias[5], 2 * (before[:, 5] - bias[5]), atol=1e-5)
    assert torch.equal(after[:, :5], before[:, :5])
    assert before.shape == (3, 50)


# GPT-2's true sizes; with Monarch matrices the paper's, which it rounds. BERT's are those of Hugging Face's models.
@pytest.mark.parametrize(
    ("name", "size", "dense", "monarch"),
    [
        ("gpt", "small", 124_439_808, 72e6),
        ("gpt", "medium", 354_823_168, 165e6),
        ("bert", "small", 109.5e6, 56.4e6),
        ("bert", "medium", 335.1e6, 146.4e6),
    ],
)
def test_the_sizes_are_those_of_gpt2_and_bert_and_of_the_paper(name, size, dense, monarch):
    shape = {"gpt": (50257, 1024), "bert": (30522, 512)}[name]
    for blocks, expected in ((None, dense), (4, monarch)):
        with torch.device("meta"):
            model = build(name, *shape, size=size, blocks=blocks)
        found = sum(each.numel() for each in model.parameters())
        assert (
            found == dense if (name, blocks) == ("gpt", None) else found == pytest.approx(expected, rel=0.01)
        )


def test_multiply_adds_are_those_that_the_paper_counts():
    assert cost("gpt", 50257, 1024, size="small", blocks=None).multiply_adds / 1e9 == pytest.approx(
        106, rel=0.005
    )
    assert cost("gpt", 50257, 1024, size="small", blocks=4).multiply_adds / 1e9 == pytest.approx(51, rel=0.02)


@each_model
def test_only_attention_and_feed_forward_are_monarch(name):
    model = small(name, 4)
    layers = {key for key, module in model.named_modules() if isinstance(module, MonarchLinear)}
    assert len(layers) == 2 * 6
    assert all(key.startswith("layers.") for key in layers)
    assert model.is_monarch
    assert not densify(model).is_monarch


@each_model
def test_dense_and_monarch_start_alike(name):
    tokens, spread = torch.randint(50, (16, 12)), {}
    for blocks in MATRICES:
        model = build(name, 50, 12, size="mini", blocks=blocks)
        block = model.layers[0]
        with torch.no_grad():
            spread[blocks] = block.feed_forward(block.feed_forward_norm(model.tokens(tokens))).std().item()
        assert all(not layer.bias.any() for layer in block.feed_forward.children())
    assert spread[4] == pytest.approx(spread[None], rel=0.1)


def test_dropout_acts_in_training_only():
    model, tokens = small("gpt", None, dropout=0.5), torch.randint(50, (2, 12))
    assert torch.equal(model(tokens), model(tokens))
    model.train()
    assert not torch.equal(model(tokens), model(tokens))


def test_gpt_is_asked_for_the_next_token():
    window = torch.arange(10).view(2, 5)
    inputs, targets = next_tokens(window)
    assert torch.equal(targets, inputs + 1)
    assert inputs.shape == (2, 4)


def test_every_window_hides_the_same_share_most_of_it_behind_the_mask():
    window = torch.randint(1, 256, (400, 101))
    inputs, targets = hidden_tokens(window, mask_token=256)
    asked = targets != IGNORED
    assert (asked.sum(1) == round(HIDDEN * 100)).all()
    assert torch.equal(targets[asked], window[:, :-1][asked])
    assert torch.equal(inputs[~asked], window[:, :-1][~asked])
    masked = (inputs[asked] == 256).float().mean().item()
    kept = (inputs[asked] == targets[asked]).float().mean().item()
    assert masked == pytest.approx(0.8, abs=0.03)
    assert kept == pytest.approx(0.1, abs=0.03)
    assert inputs.max() == 256


def test_what_is_hidden_in_a_window_is_its_generators_choice():
    window = torch.randint(256, (3, 33))

    def hidden(seeds):
        return hidden_tokens(window, 256, [torch.Generator().manual_seed(seed) for seed in seeds])[0]

    first, again = hidden([1, 2, 3]), hidden([1, 5, 3])
    assert torch.equal(first[[0, 2]], again[[0, 2]])
    assert not torch.equal(first[1], again[1])


@each_matrix
def test_the_model_is_the_textbook_transformer(blocks):
    """Written out once more, in float64 and with explicit softmax."""
    model = small("gpt", blocks).double()
    tokens = torch.randint(50, (2, 12))
    x = model.tokens.weight[tokens] + model.positions.weight[:12]

    def norm(layer, x):
        centred = x - x.mean(-1, keepdim=True)
        return centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt() * layer.weight + layer.bias

    def apply(layer, x):
        return x @ layer.weight.T + layer.bias

    for block in model.layers:
        y, attention = norm(block.attention_norm, x), block.attention
        heads = []
        for head in range(2):
            part = slice(32 * head, 32 * head + 32)
            q, k, v = (
                apply(layer, y)[..., part] for layer in (attention.query, attention.key, attention.value)
            )
            scores = q @ k.mT / 32**0.5 + torch.full((12, 12), -torch.inf, dtype=x.dtype).triu(1)
            heads.append(scores.softmax(-1) @ v)
        x = x + apply(attention.out, torch.cat(heads, -1))
        y = apply(block.feed_forward.up, norm(block.feed_forward_norm, x))
        x = x + apply(block.feed_forward.down, F.gelu(y, approximate="tanh"))
    expected = norm(model.norm, x) @ model.tokens.weight.T
    assert torch.allclose(model(tokens), expected, atol=1e-10)
