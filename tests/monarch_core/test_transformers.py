"""Models of Hugging Face's transformers: converted, stored, loaded, turned back, and adapted by PEFT."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

from monarch_core import (
    MonarchExperts,
    MonarchLinear,
    attach_adapter,
    densify,
    load_converted,
    merge_adapter,
    monarchize,
)

transformers = pytest.importorskip("transformers", reason="transformers is not installed")
SIZES = {
    "hidden_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "intermediate_size": 128,
}
TEXT = {**SIZES, "vocab_size": 100, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
GROUPED = {**TEXT, "num_key_value_heads": 2}
EXPERTS = {**GROUPED, "num_local_experts": 4}
# Name: class of the model, class of its configuration, its options, layers replaced, parameters named in the report.
MODELS: dict[str, tuple[str, str, dict[str, Any], int]] = {
    "bert": ("BertForMaskedLM", "BertConfig", TEXT, 7),
    "gpt2": (
        "GPT2LMHeadModel",
        "GPT2Config",
        {"n_embd": 64, "n_layer": 1, "n_head": 4, "vocab_size": 100, "bos_token_id": 1, "eos_token_id": 2},
        4,
    ),
    "vit": ("ViTForImageClassification", "ViTConfig", {**SIZES, "image_size": 32, "patch_size": 8}, 6),
    "llama": ("LlamaForCausalLM", "LlamaConfig", GROUPED, 7),
    "t5": (
        "T5ForConditionalGeneration",
        "T5Config",
        {"d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 1, "num_heads": 4, "vocab_size": 100},
        16,
    ),
    "mixtral": ("MixtralForCausalLM", "MixtralConfig", EXPERTS, 5),
    "qwen-moe": (
        "Qwen3MoeForCausalLM",
        "Qwen3MoeConfig",
        {**GROUPED, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 64, "head_dim": 16},
        5,
    ),
    "gpt-oss": ("GptOssForCausalLM", "GptOssConfig", {**EXPERTS, "head_dim": 16}, 5),
}


def make(name: str) -> Any:
    model, config, options, _ = MODELS[name]
    torch.manual_seed(0)
    made = getattr(transformers, model)(getattr(transformers, config)(**options)).eval()
    with torch.no_grad():
        for parameter in made.parameters():  # biases that start at zero would hide mistakes
            parameter.add_(0.02 * torch.randn_like(parameter))
    return made


def logits(model: Any) -> torch.Tensor:
    torch.manual_seed(1)
    if model.main_input_name == "pixel_values":
        inputs = {"pixel_values": torch.randn(2, 3, 32, 32)}
    else:
        inputs = {"input_ids": torch.randint(3, 100, (2, 7))}
    if model.config.is_encoder_decoder:
        inputs["decoder_input_ids"] = inputs["input_ids"]
    return model(**inputs).logits


@pytest.fixture(params=MODELS)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


def test_attention_and_feedforward_are_replaced_and_the_head_is_left(name):
    model = make(name)
    report = monarchize(model)
    assert len(report.replaced) == MODELS[name][3]
    assert len(report.left) == 1
    assert all("an output head" in reason for reason in report.left.values())
    assert report.parameters < report.dense_parameters
    logits(model).square().mean().backward()
    unused = [n for n, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    assert [n for n in unused if n.endswith((".R", ".L"))] == []


def test_densify_gives_the_same_function_and_the_layout_of_the_original(name):
    model = make(name)
    shapes = {key: value.shape for key, value in model.state_dict().items()}
    monarchize(model)
    expected = logits(model)
    densify(model)
    assert {key: value.shape for key, value in model.state_dict().items()} == shapes
    assert getattr(model.config, "quantization_config", None) is None
    torch.testing.assert_close(logits(model), expected, rtol=1e-4, atol=1e-5)


def test_from_pretrained_and_load_converted_rebuild_it_exactly(name, tmp_path):
    model = make(name)
    monarchize(model, blocks=(4, 2))
    model.save_pretrained(tmp_path)
    again = type(model).from_pretrained(tmp_path)
    assert torch.equal(logits(again.eval()), logits(model))
    assert len(load_converted(make(name), tmp_path).state_dict()) == len(model.state_dict())
    assert torch.equal(logits(load_converted(make(name), tmp_path)), logits(model))


def test_a_model_loaded_from_disk_is_like_any_other_to_transformers(tmp_path):
    """The quantiser that puts the layers in place leaves no mark: what is quantised is neither cast nor trained."""
    model = make("bert")
    monarchize(model)
    model.save_pretrained(tmp_path / "first")
    again = type(model).from_pretrained(tmp_path / "first")
    logits(again).square().mean().backward()
    assert all(p.grad is not None for n, p in again.named_parameters() if n.endswith((".R", ".L")))
    assert logits(again.half().float().eval()).isfinite().all()
    assert not getattr(again, "is_quantized", False)
    assert not hasattr(again, "hf_quantizer")
    assert not hasattr(again.config, "_is_quantized")
    again.save_pretrained(tmp_path / "second")
    third = type(model).from_pretrained(tmp_path / "second")
    assert torch.equal(logits(third.eval()), logits(again))
    densify(third)
    assert getattr(third.config, "quantization_config", None) is None


def test_a_part_with_a_configuration_of_the_whole_is_stored_with_it(tmp_path):
    model = make("llama")
    monarchize(model.model, select="mlp")
    monarchize(model, select="self_attn")
    model.save_pretrained(tmp_path)
    assert torch.equal(logits(type(model).from_pretrained(tmp_path).eval()), logits(model))
    headless = type(model.model).from_pretrained(tmp_path).eval()
    tokens = torch.arange(3, 9)[None]
    assert torch.equal(headless(tokens).last_hidden_state, model.model(tokens).last_hidden_state)


def test_a_headless_structure_serves_a_model_with_a_head(tmp_path):
    model = make("llama")
    monarchize(model.model)
    model.save_pretrained(tmp_path)
    assert torch.equal(logits(type(model).from_pretrained(tmp_path).eval()), logits(model))


def test_a_part_that_knows_of_no_model_is_warned_of():
    with pytest.warns(UserWarning, match="a part of a transformers model"):
        monarchize(make("llama").model.layers)


def test_a_copy_tells_of_its_own_layers():
    model = make("llama")
    monarchize(model)
    other = copy.deepcopy(model)
    densify(other)
    assert getattr(other.config, "quantization_config", None) is None
    assert len(model.config.quantization_config.layers) == MODELS["llama"][3]


def test_a_merged_adapter_is_stored_with_the_model(tmp_path):
    model = make("llama")
    monarchize(model)
    attach_adapter(model, select="q_proj", rank=2)
    merge_adapter(model)
    model.save_pretrained(tmp_path)
    assert torch.equal(logits(type(model).from_pretrained(tmp_path).eval()), logits(model))


def test_a_stack_of_experts_of_zeros_trains():
    model = make("mixtral")
    experts = next(m for n, m in model.named_modules() if n.endswith("experts"))
    torch.nn.init.zeros_(experts.down_proj)
    monarchize(model, select="experts")
    stack = next(m for m in model.modules() if isinstance(m, MonarchExperts))
    assert not stack.down.to_dense().any()
    logits(model).square().mean().backward()
    assert stack.down.L.grad.any()


def test_heads_of_transformers_are_converted_when_named():
    model = make("llama")
    assert monarchize(model, select="lm_head").replaced == ("lm_head",)
    assert isinstance(model.lm_head, MonarchLinear)


@pytest.fixture
def peft() -> Any:
    return pytest.importorskip("peft", reason="peft is not installed")


def test_adapters_of_peft_are_left_and_so_are_the_layers_they_merge_into(peft):
    model = peft.get_peft_model(make("llama"), peft.LoraConfig(r=8, target_modules=["q_proj"]))
    report = monarchize(model, select="self_attn")
    assert {name.rpartition(".")[2] for name in report.replaced} == {"k_proj", "v_proj", "o_proj"}
    assert {reason.partition(",")[0] for name, reason in report.left.items() if "lora_" in name} == {
        "an adapter"
    }
    assert any("PEFT" in reason for reason in report.left.values())


@pytest.mark.parametrize(
    ("name", "layers"), [("llama", ["q_proj", "down_proj"]), ("gpt2", ["c_attn", "c_proj"])]
)
def test_peft_adapts_and_merges_monarch_layers(peft, name, layers, tmp_path):
    from monarch_core.integrations.peft import with_monarch

    model = make(name)
    monarchize(model)
    expected = logits(model)
    config = with_monarch(peft.LoraConfig(r=4, target_modules=layers))
    adapted = peft.get_peft_model(copy.deepcopy(model), config).eval()
    assert torch.equal(logits(adapted), expected)
    with torch.no_grad():
        for name, parameter in adapted.named_parameters():
            if "lora_" in name:
                parameter.add_(0.1 * torch.randn_like(parameter))
    trained = logits(adapted)
    assert not torch.allclose(trained, expected, atol=1e-3)
    adapted.save_pretrained(tmp_path / "adapter")
    stored = with_monarch(peft.PeftConfig.from_pretrained(tmp_path / "adapter"))
    again = peft.PeftModel.from_pretrained(copy.deepcopy(model), tmp_path / "adapter", config=stored)
    assert torch.equal(logits(again.eval()), trained)
    merged = adapted.merge_and_unload()
    torch.testing.assert_close(logits(merged), trained, rtol=1e-4, atol=1e-5)
    merged.save_pretrained(tmp_path / "merged")  # some layers are dense by now
    assert torch.equal(logits(type(model).from_pretrained(tmp_path / "merged").eval()), logits(merged))
