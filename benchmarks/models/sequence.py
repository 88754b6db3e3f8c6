"""More transformers over tokens, of the transformers library, untrained."""

from __future__ import annotations

import torch
import transformers
from torch import Tensor, nn

from benchmarks.models.language import ATTENTION, Output, Sample, Step

PAST, WIDTH, HEADS, LAYERS = 64, 384, 6, 4  # of the decoder


def _ids(words: int, length: int) -> Tensor:
    return torch.randint(0, words, (1, length))


def _distilbert() -> Sample:
    config = transformers.DistilBertConfig(attn_implementation=ATTENTION)
    model = Output(transformers.DistilBertModel(config), "last_hidden_state")
    return model, (_ids(30522, 64),)


def _roberta() -> Sample:
    config = transformers.RobertaConfig(
        hidden_size=384, num_hidden_layers=6, num_attention_heads=6, intermediate_size=1536,
        max_position_embeddings=514, attn_implementation=ATTENTION)
    model = Output(transformers.RobertaModel(config), "last_hidden_state")
    return model, (_ids(30000, 256) + 2,)


def _t5() -> Sample:
    model: nn.Module = transformers.T5EncoderModel(transformers.T5Config())
    return Output(model, "last_hidden_state"), (_ids(32000, 64),)


def _decode() -> Sample:
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
        n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS, vocab_size=16000,
        attn_implementation=ATTENTION))
    past = [torch.randn(1, HEADS, PAST, WIDTH // HEADS) for _ in range(2 * LAYERS)]
    return Step(model), (_ids(16000, 1), torch.full((1, 1), PAST), *past)


MODELS = {"distilbert_64": _distilbert, "roberta_small_256": _roberta, "t5_small_enc": _t5,
          "gpt2_small_decode_kv64": _decode}
