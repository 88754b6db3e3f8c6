"""Transformers that the zoo has no kind of: sound, layouts, biases of positions, windows of keys,
decoding with a batch, selective states; by the transformers library, untrained.
"""

from __future__ import annotations

from typing import Any

import torch
import transformers
from torch import Tensor, nn

from benchmarks.models.language import ATTENTION, Output, Sample, Step

WIDTH, HEADS, LAYERS, WORDS, PAST = 384, 6, 4, 16000, 1024
SIZES: dict[str, Any] = {"hidden_size": WIDTH, "num_hidden_layers": LAYERS,
                         "num_attention_heads": HEADS, "intermediate_size": 4 * WIDTH}
GROUPED: dict[str, Any] = {
    "hidden_size": 512, "num_hidden_layers": LAYERS, "num_attention_heads": 8,
    "num_key_value_heads": 2, "intermediate_size": 1408, "vocab_size": WORDS,
    "max_position_embeddings": 2048, "attn_implementation": ATTENTION}


def _ids(batch: int, length: int) -> Tensor:
    return torch.randint(3, WORDS, (batch, length))


def _states(model: nn.Module, *inputs: Tensor) -> Sample:
    return Output(model, "last_hidden_state"), inputs


def _logits(model: nn.Module, *inputs: Tensor) -> Sample:
    return Output(model, "logits", use_cache=False), inputs


def _deberta() -> Sample:
    config = transformers.DebertaV2Config(
        **SIZES, relative_attention=True, position_buckets=64, pos_att_type=["p2c", "c2p"],
        share_att_key=True, norm_rel_ebd="layer_norm", vocab_size=WORDS,
        max_relative_positions=-1, position_biased_input=False)
    return _states(transformers.DebertaV2Model(config), _ids(1, 128))


def _mpnet() -> Sample:
    return _states(transformers.MPNetModel(transformers.MPNetConfig(**SIZES)), _ids(1, 384))


def _bloom() -> Sample:
    config = transformers.BloomConfig(hidden_size=WIDTH, n_layer=LAYERS, n_head=HEADS,
                                      vocab_size=WORDS, use_cache=False)
    return _logits(transformers.BloomForCausalLM(config), _ids(1, 128))


def _mistral() -> Sample:
    config = transformers.MistralConfig(**GROUPED, sliding_window=128, use_cache=False)
    return _logits(transformers.MistralForCausalLM(config), _ids(1, 512))


def _qwen() -> Sample:
    model = transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**GROUPED))
    past = [torch.randn(1, 2, PAST, 64) for _ in range(2 * LAYERS)]
    return Step(model), (_ids(1, 1), torch.full((1, 1), PAST), *past)


def _gpt2() -> Sample:
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
        n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS, vocab_size=WORDS, n_positions=2 * PAST,
        attn_implementation=ATTENTION))
    past = [torch.randn(8, HEADS, PAST, WIDTH // HEADS) for _ in range(2 * LAYERS)]
    return Step(model), (_ids(8, 1), torch.full((8, 1), PAST), *past)


def _mamba() -> Sample:
    config = transformers.MambaConfig(hidden_size=256, num_hidden_layers=2, state_size=16,
                                      vocab_size=WORDS, use_cache=False)
    return _logits(transformers.MambaForCausalLM(config), _ids(1, 16))


def _wav2vec2() -> Sample:
    config = transformers.Wav2Vec2Config(
        **SIZES, conv_dim=(128,) * 7, feat_extract_norm="layer", do_stable_layer_norm=True,
        attn_implementation=ATTENTION)
    return _states(transformers.Wav2Vec2Model(config), torch.randn(1, 16000))


MODELS = {
    "deberta_v2_128": _deberta,
    "mpnet_384": _mpnet,
    "bloom_128": _bloom,
    "mistral_window_512": _mistral,
    "qwen2_decode_kv1024": _qwen,
    "gpt2_decode_b8_kv1024": _gpt2,
    "mamba_16": _mamba,
    "wav2vec2": _wav2vec2,
}
