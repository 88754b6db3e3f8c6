"""Transformers over tokens and sound, by the classes of the transformers library, untrained.

Each is wrapped so that it takes and returns tensors only.
"""

from __future__ import annotations

from typing import Any

import torch
import transformers
from torch import Tensor, nn

from benchmarks.models.vision import declare_operators

declare_operators()  # transformers imports torchvision where it is installed
ATTENTION = "sdpa"
Sample = tuple[nn.Module, tuple[Tensor, ...]]
LAYERS, HEADS, WIDTH, PAST = 8, 2, 64, 128  # of the llama: layers, key heads, head width, cache


class Output(nn.Module):
    """One output of a model that returns a record."""

    def __init__(self, model: nn.Module, key: str, **options: Any) -> None:
        super().__init__()
        self.model, self.key, self.options = model, key, options

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = getattr(self.model(x, **self.options), self.key)
        return out


class Encoder(nn.Module):
    """Token ids and a padding mask to the hidden states and the pooled one."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        out = self.model(input_ids=ids, attention_mask=mask)
        return out.last_hidden_state, out.pooler_output


class Step(nn.Module):
    """One token after a past: (ids, position, k0, v0, k1, v1, …) to logits and the longer past."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor, position: Tensor, *past: Tensor) -> tuple[Tensor, ...]:
        cache = transformers.DynamicCache()
        for layer, (k, v) in enumerate(zip(past[::2], past[1::2], strict=True)):
            cache.update(k, v, layer)
        out = self.model(input_ids=ids, position_ids=position, past_key_values=cache,
                         use_cache=True)
        return out.logits, *(t for row in cache.layers for t in (row.keys, row.values))


def _bert() -> Sample:
    model = transformers.BertModel(transformers.BertConfig(attn_implementation=ATTENTION))
    mask = torch.ones(1, 128, dtype=torch.int64)
    mask[:, 100:] = 0
    return Encoder(model), (torch.randint(0, 30522, (1, 128)), mask)


def _gpt2() -> Sample:
    config = transformers.GPT2Config(attn_implementation=ATTENTION, use_cache=False)
    model = Output(transformers.GPT2LMHeadModel(config), "logits", use_cache=False)
    return model, (torch.randint(0, 50257, (1, 64)),)


def _llama() -> nn.Module:
    model: nn.Module = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        hidden_size=8 * WIDTH, intermediate_size=1408, num_hidden_layers=LAYERS,
        num_attention_heads=8, num_key_value_heads=HEADS, vocab_size=8000,
        max_position_embeddings=1024, attn_implementation=ATTENTION, use_cache=False,
        tie_word_embeddings=False))
    return model


def _prefill() -> Sample:
    model = Output(_llama(), "logits", use_cache=False)
    return model, (torch.randint(0, 8000, (1, 64)),)


def _decode() -> Sample:
    model = Step(_llama())
    past = [torch.randn(1, HEADS, PAST, WIDTH) for _ in range(2 * LAYERS)]
    return model, (torch.randint(0, 8000, (1, 1)), torch.full((1, 1), PAST), *past)


def _whisper() -> Sample:
    from transformers.models.whisper.modeling_whisper import WhisperEncoder
    config = transformers.WhisperConfig(
        d_model=384, encoder_layers=4, encoder_attention_heads=6, encoder_ffn_dim=1536,
        attn_implementation=ATTENTION)
    return Output(WhisperEncoder(config), "last_hidden_state"), (torch.randn(1, 80, 3000),)


MODELS = {
    "bert_base_128": _bert,
    "gpt2_64": _gpt2,
    "llama_tiny_64": _prefill,
    "llama_tiny_decode_kv128": _decode,
    "whisper_tiny_enc": _whisper,
}
