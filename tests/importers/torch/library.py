"""Small models of libraries, built from configurations and seeded: name → model and inputs.

No weights are fetched; every size is as small as the architecture takes it.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

# torchvision built for another torch has no operators of its own, which it wants to describe
_LIBRARY = torch.library.Library("torchvision", "DEF") if (
    importlib.util.find_spec("torchvision")) else None
if _LIBRARY is not None:
    _LIBRARY.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _LIBRARY.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

Built = tuple[nn.Module, tuple[torch.Tensor, ...]]
TEXT = {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 48}
LLAMA = {**TEXT, "num_key_value_heads": 2, "max_position_embeddings": 64}
GPT = {"vocab_size": 99, "max_position_embeddings": 64}


class First(nn.Module):
    """A library model by position, whose result is the first tensor it gives, or a named field."""

    def __init__(self, model: nn.Module, *names: str, field: str = "", **fixed: Any) -> None:
        super().__init__()
        self.model, self.names, self.field, self.fixed = model, names, field, fixed

    def forward(self, *xs: torch.Tensor) -> torch.Tensor:
        y = self.model(**dict(zip(self.names, xs, strict=True)), **self.fixed)
        return getattr(y, self.field) if self.field else y[0]


def ids(*shape: int) -> torch.Tensor:
    return torch.randint(3, 90, shape)


def pixels(*shape: int) -> torch.Tensor:
    return torch.randn(shape)


def _hf(kind: str, config: str, inputs: Callable[[], tuple[torch.Tensor, ...]],
        names: tuple[str, ...], field: str = "", fixed: dict[str, Any] | None = None,
        **settings: Any) -> Callable[[], Built]:
    def build() -> Built:
        import transformers
        torch.manual_seed(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = getattr(transformers, kind)(getattr(transformers, config)(**settings)).eval()
        return First(model, *names, field=field, **(fixed or {})).eval(), inputs()
    return build


def _text(kind: str, config: str, **settings: Any) -> Callable[[], Built]:
    """A model of token ids with a mask, whose second line is padded."""
    def inputs() -> tuple[torch.Tensor, ...]:
        mask = torch.ones(2, 10, dtype=torch.int64)
        mask[1, 7:] = 0
        return ids(2, 10), mask
    return _hf(kind, config, inputs, ("input_ids", "attention_mask"), **settings)


def _causal(kind: str, config: str, **settings: Any) -> Callable[[], Built]:
    return _hf(kind, config, lambda: (ids(2, 10),), ("input_ids",), fixed={"use_cache": False},
               **settings)


def _image(kind: str, config: str, size: int, field: str = "",
           **settings: Any) -> Callable[[], Built]:
    return _hf(kind, config, lambda: (pixels(1, 3, size, size),), ("pixel_values",), field,
               **settings)


def _sound(kind: str, config: str, **settings: Any) -> Callable[[], Built]:
    return _hf(kind, config, lambda: (pixels(1, 2000),), ("input_values",), **settings)


SEQ2SEQ = {"vocab_size": 99, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2,
           "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 48,
           "decoder_ffn_dim": 48, "max_position_embeddings": 64}
T5 = {"vocab_size": 99, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}
WAVE = {**TEXT, "conv_dim": (16, 16, 16), "conv_stride": (5, 2, 2), "conv_kernel": (10, 3, 2),
        "num_feat_extract_layers": 3, "num_conv_pos_embeddings": 16,
        "num_conv_pos_embedding_groups": 4}


def _detr() -> Built:
    import transformers
    torch.manual_seed(0)
    backbone = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16, 32, 64],
                                         depths=[1, 1, 1, 1], out_features=["stage4"])
    config = transformers.DetrConfig(
        backbone_config=backbone, use_timm_backbone=False, use_pretrained_backbone=False,
        num_queries=8, d_model=32, encoder_layers=2, decoder_layers=2, encoder_ffn_dim=48,
        decoder_ffn_dim=48, encoder_attention_heads=4, decoder_attention_heads=4, num_labels=5)
    model = transformers.DetrForObjectDetection(config).eval()
    return First(model, "pixel_values", field="logits").eval(), (pixels(1, 3, 64, 64),)


def _clip() -> Built:
    import transformers
    torch.manual_seed(0)
    part = {k: v for k, v in TEXT.items() if k != "vocab_size"}
    config = transformers.CLIPConfig(
        text_config={**TEXT, "max_position_embeddings": 16, "eos_token_id": 98},
        vision_config={**part, "image_size": 32, "patch_size": 8}, projection_dim=16)
    model = transformers.CLIPModel(config).eval()
    return (First(model, "input_ids", "pixel_values", field="logits_per_image").eval(),
            (ids(2, 10), pixels(1, 3, 32, 32)))


def _vits() -> Built:
    """Its text encoder: the rest draws durations and ends in a length that they decide."""
    import transformers
    torch.manual_seed(0)
    config = transformers.VitsConfig(
        vocab_size=40, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, ffn_dim=48,
        flow_size=32, upsample_initial_channel=32, spectrogram_bins=33)
    model = transformers.VitsModel(config).eval()
    mask = torch.ones(1, 12, 1)
    return First(model.text_encoder, "input_ids", "padding_mask").eval(), (
        torch.randint(1, 39, (1, 12)), mask)


LIBRARY: dict[str, Callable[[], Built]] = {
    "bert": _text("BertModel", "BertConfig", **TEXT),
    "roberta": _text("RobertaModel", "RobertaConfig", **TEXT),
    "distilbert": _text("DistilBertModel", "DistilBertConfig", vocab_size=99, dim=32, n_layers=2,
                        n_heads=4, hidden_dim=48),
    "deberta_v2": _text("DebertaV2Model", "DebertaV2Config", **TEXT, relative_attention=True,
                        position_buckets=8, pos_att_type=["p2c", "c2p"], norm_rel_ebd="layer_norm",
                        share_att_key=True),
    "electra": _text("ElectraModel", "ElectraConfig", **TEXT, embedding_size=32),
    "t5_encoder": _text("T5EncoderModel", "T5Config", **T5),
    "t5": _hf("T5Model", "T5Config", lambda: (ids(2, 10), ids(2, 6)),
              ("input_ids", "decoder_input_ids"), fixed={"use_cache": False}, **T5),
    "bart": _hf("BartModel", "BartConfig", lambda: (ids(2, 10), ids(2, 6)),
                ("input_ids", "decoder_input_ids"), fixed={"use_cache": False}, **SEQ2SEQ),
    "gpt_neo": _causal("GPTNeoForCausalLM", "GPTNeoConfig", **GPT, hidden_size=32, num_layers=2,
                       num_heads=4, attention_types=[[["global", "local"], 1]], window_size=4),
    "opt": _causal("OPTForCausalLM", "OPTConfig", **GPT, hidden_size=32, num_hidden_layers=2,
                   num_attention_heads=4, ffn_dim=48, word_embed_proj_dim=32),
    "phi": _causal("PhiForCausalLM", "PhiConfig", **LLAMA),
    "qwen2": _causal("Qwen2ForCausalLM", "Qwen2Config", **LLAMA),
    "qwen3": _causal("Qwen3ForCausalLM", "Qwen3Config", **LLAMA, head_dim=8),
    "gemma": _causal("GemmaForCausalLM", "GemmaConfig", **LLAMA, head_dim=8),
    "gemma2": _causal("Gemma2ForCausalLM", "Gemma2Config", **LLAMA, head_dim=8, sliding_window=4),
    "mistral": _causal("MistralForCausalLM", "MistralConfig", **LLAMA, sliding_window=4),
    "mixtral": _causal("MixtralForCausalLM", "MixtralConfig", **LLAMA, num_local_experts=4),
    "bloom": _causal("BloomForCausalLM", "BloomConfig", vocab_size=99, hidden_size=32, n_layer=2,
                     n_head=4),
    "falcon": _causal("FalconForCausalLM", "FalconConfig", vocab_size=99, hidden_size=32,
                      num_hidden_layers=2, num_attention_heads=4, alibi=False),
    "mamba": _causal("MambaForCausalLM", "MambaConfig", vocab_size=99, hidden_size=16,
                     state_size=4, num_hidden_layers=2, time_step_rank=2),
    "vit": _image("ViTModel", "ViTConfig", 32, image_size=32, patch_size=8,
                  **{k: v for k, v in TEXT.items() if k != "vocab_size"}),
    "swin": _image("SwinModel", "SwinConfig", 32, image_size=32, patch_size=2, embed_dim=16,
                   depths=[2, 2], num_heads=[2, 4], window_size=4),
    "convnextv2": _image("ConvNextV2Model", "ConvNextV2Config", 32, hidden_sizes=[8, 16, 24, 32],
                         depths=[1, 1, 2, 1]),
    "segformer": _image("SegformerForSemanticSegmentation", "SegformerConfig", 64,
                        hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], decoder_hidden_size=16,
                        num_attention_heads=[1, 2, 3, 4]),
    "dinov2": _image("Dinov2Model", "Dinov2Config", 28, image_size=28, patch_size=14,
                     hidden_size=32, num_hidden_layers=2, num_attention_heads=4),
    "detr": _detr,
    "clip": _clip,
    "wav2vec2": _sound("Wav2Vec2Model", "Wav2Vec2Config", **WAVE),
    "hubert": _sound("HubertModel", "HubertConfig", **WAVE),
    "vits_text": _vits,
}
