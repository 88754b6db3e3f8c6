"""Language models of transformers, small and untrained: compiled logits beside transformers' own,
and decoding with a cache that is kept in place beside reading the whole text."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from torch import Tensor, nn

import graphtool
from benchmarks.models.language import Output, Step
from graphtool.errors import GraphtoolError
from graphtool.ir.graph import Module
from graphtool.native.arguments import numbers

Array = np.ndarray[Any, Any]
VOCAB, WIDTH, LAYERS, HEADS, GROUPS, TOKENS, ROOM = 96, 64, 2, 4, 2, 12, 32
_COMMON: dict[str, Any] = {
    "vocab_size": VOCAB, "hidden_size": WIDTH, "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS, "max_position_embeddings": 64, "pad_token_id": 0,
    "bos_token_id": 1, "eos_token_id": 2, "attn_implementation": "sdpa"}
_GROUPED = {**_COMMON, "num_key_value_heads": GROUPS, "intermediate_size": 96}
MIXED = {"num_local_experts": 4, "num_experts_per_tok": 2}
ARCHITECTURES: dict[str, tuple[str, Mapping[str, Any]]] = {
    "llama": ("Llama", _GROUPED),
    "qwen": ("Qwen3", {**_GROUPED, "head_dim": 16}),
    "mistral": ("Mistral", {**_GROUPED, "sliding_window": None}),
    "gemma": ("Gemma", {**_GROUPED, "head_dim": 16}),
    "phi": ("Phi", {**_COMMON, "intermediate_size": 96}),
    "gpt2": ("GPT2", {"vocab_size": VOCAB, "n_embd": WIDTH, "n_layer": LAYERS, "n_head": HEADS,
                      "n_positions": 64, "bos_token_id": 1, "eos_token_id": 2,
                      "attn_implementation": "sdpa"}),
    "falcon": ("Falcon", {**_COMMON, "new_decoder_architecture": True, "num_kv_heads": GROUPS}),
    "olmo": ("Olmo2", _GROUPED),
    "mamba": ("Mamba", {"vocab_size": VOCAB, "hidden_size": WIDTH, "num_hidden_layers": LAYERS,
                        "state_size": 8, "pad_token_id": 0, "bos_token_id": 1,
                        "eos_token_id": 2}),
    "mixtral": ("Mixtral", {**_GROUPED, **MIXED, "sliding_window": None}),
}
_CLASSES = {"GPT2": "GPT2LMHeadModel"}


def network(name: str) -> nn.Module:
    """The model with random weights, in eval mode; the same at every call."""
    stem, options = ARCHITECTURES[name]
    torch.manual_seed(0)
    config = getattr(transformers, f"{stem}Config")(**options)
    made: nn.Module = getattr(transformers, _CLASSES.get(stem, f"{stem}ForCausalLM"))(config)
    return made.eval()


def tokens() -> Tensor:
    return torch.randint(3, VOCAB, (1, TOKENS), generator=torch.Generator().manual_seed(1))


def whole(name: str) -> Module:
    """The graph that reads all tokens, without a cache."""
    return graphtool.import_model(Output(network(name), "logits", use_cache=False), (tokens(),))


def step(name: str) -> Module:
    """The graph of one token behind a past of open length, with its cache kept in place; of a
    mamba, behind its states."""
    model = network(name)
    with torch.no_grad():
        made = model(input_ids=tokens(), use_cache=True)
    if name == "mamba":
        states = [t for layer in made.cache_params.layers
                  for t in (layer.conv_states[0], layer.recurrent_states[0])]
        module = graphtool.import_model(States(model), (tokens()[:, :1], *states))
        pairs = tuple((i + 1, i + 1) for i in range(len(states)))
        return replace(module, donations=pairs)
    past = [t[:, :, :5] for layer in made.past_key_values.layers
            for t in (layer.keys, layer.values)]
    module = graphtool.import_model(
        Step(model), (tokens()[:, :1], torch.full((1, 1), 5), *past),
        dynamic={"P@" + ",".join(f"past_{i}.2" for i in range(len(past))): (1, ROOM - 1)})
    return graphtool.optimize(module, f"cache{{max={ROOM},position=at}}")


class States(nn.Module):
    """One token after the states of a mamba: (ids, conv0, ssm0, …) to logits and new states."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor, *states: Tensor) -> tuple[Tensor, ...]:
        cache = transformers.DynamicCache(config=self.model.config)
        for layer, conv, ssm in zip(cache.layers, states[::2], states[1::2], strict=True):
            layer.device, layer.dtype = conv.device, conv.dtype
            layer.conv_states[0], layer.recurrent_states[0] = conv.clone(), ssm.clone()
            layer.conv_kernel_size[0] = conv.shape[-1]
            for ready in (layer.is_conv_states_initialized, layer.is_recurrent_states_initialized,
                          layer.has_previous_state):
                ready[0] = True
        out = self.model(input_ids=ids, cache_params=cache, use_cache=True)
        return out.logits, *(t for layer in out.cache_params.layers for t in (
            layer.conv_states[0], layer.recurrent_states[0]))


# ---- what is compared --------------------------------------------------------------------------

def wanted(name: str) -> Array:
    """transformers' own logits of all tokens, f32[1, TOKENS, VOCAB]."""
    with torch.no_grad():
        made: Array = network(name)(input_ids=tokens(), use_cache=False).logits.numpy()
    return made


def read_whole(module: Module, folder: Path) -> Array:
    """The logits of compiled code that reads all tokens."""
    out, = graphtool.load(graphtool.build(module, folder))(x=tokens().numpy()).values()
    return out


def decoded(module: Module, folder: Path) -> Array:
    """The logits of compiled code that reads one token after the other; its caches stay where they
    are."""
    model = graphtool.load(graphtool.build(module, folder))
    names = [p.name for p in model.inputs]
    state = {names[i]: np.zeros(numbers(model.inputs[i].shape, {}), np.float32)
             for _, i in module.donations}
    out = {module.output_names[o]: state[names[i]] for o, i in module.donations}
    rows = []
    for at, token in enumerate(tokens().numpy()[0]):
        given = {"ids": token.reshape(1, 1), "position": np.full((1, 1), at), "at": np.array(at)}
        rows.append(next(iter(model.run({k: v for k, v in given.items() if k in names} | state,
                                        out=out).values())))
    return np.concatenate(rows, 1)


def apart(found: Array, want: Array) -> float:
    """The largest difference, of the largest logit."""
    return float(np.abs(found - want).max() / np.abs(want).max())


def row(name: str) -> dict[str, Any]:
    """The figures of one architecture, or why there are none."""
    want = wanted(name)
    found: dict[str, Any] = {"name": name, "why": ""}
    try:
        with tempfile.TemporaryDirectory(prefix="graphtool-") as folder:
            module, one = whole(name), step(name)
            found["parameters"] = sum(p.numel() for p in network(name).parameters())
            found["nodes"] = len(one.graph.nodes)
            found["logits"] = apart(read_whole(module, Path(folder) / "whole"), want)
            found["decode"] = apart(decoded(one, Path(folder) / "step"), want)
    except GraphtoolError as error:
        found["why"] = error.message
    return found
