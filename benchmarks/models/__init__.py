"""The zoo: which models there are, where they are defined and what they need to be installed.

Definitions are in vision.py (torchvision, timm), dense.py and small.py (plain torch) and
language.py (transformers); seeded.py makes them. Nothing here imports torch.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """Where a model's definition is and what it needs to be installed besides torch."""

    module: str
    kind: str
    needs: tuple[str, ...] = ()


_VISION = Entry("vision", "cnn", ("torchvision",))
_LANGUAGE = Entry("language", "transformer", ("transformers",))
ZOO: dict[str, Entry] = {
    "resnet18": _VISION,
    "resnet50": _VISION,
    "mobilenet_v2": _VISION,
    "efficientnet_b0": _VISION,
    "densenet121": _VISION,
    "convnext_tiny": _VISION,
    "shufflenet_v2": _VISION,
    "vit_small": Entry("vision", "transformer", ("timm", "torchvision")),
    "unet_small": Entry("dense", "cnn"),
    "yolo_tiny": Entry("dense", "cnn"),
    "dcgan_gen": Entry("dense", "cnn"),
    "lenet": Entry("small", "small"),
    "mlp_b1": Entry("small", "small"),
    "mlp_b64": Entry("small", "small"),
    "tabular_mlp": Entry("small", "small"),
    "lstm": Entry("small", "recurrent"),
    "bert_base_128": _LANGUAGE,
    "gpt2_64": _LANGUAGE,
    "llama_tiny_64": _LANGUAGE,
    "llama_tiny_decode_kv128": _LANGUAGE,
    "whisper_tiny_enc": _LANGUAGE,
}
