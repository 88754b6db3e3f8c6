"""Image models of torchvision and timm, without their trained weights."""

from __future__ import annotations

from functools import cache, partial
from importlib import import_module
from typing import Any

import torch
from torch import nn

_KEPT: list[Any] = []


@cache
def declare_operators() -> None:
    """Lets torchvision be imported where its compiled operators do not fit the torch at hand.

    Its import looks up two operators that only those bring; declaring them is enough for models.
    """
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        if not hasattr(torch.ops.torchvision, name):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _KEPT.append(library)  # an operator lives as long as its library


def _image() -> tuple[torch.Tensor, ...]:
    return (torch.randn(1, 3, 224, 224),)


def _torchvision(name: str) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    declare_operators()
    return getattr(import_module("torchvision.models"), name)(weights=None), _image()


def _timm(name: str) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    declare_operators()
    return import_module("timm").create_model(name, pretrained=False), _image()


MODELS = {
    **{name: partial(_torchvision, name) for name in (
        "resnet18", "resnet50", "mobilenet_v2", "efficientnet_b0", "densenet121",
        "convnext_tiny")},
    "shufflenet_v2": partial(_torchvision, "shufflenet_v2_x1_0"),
    "vit_small": partial(_timm, "vit_small_patch16_224"),
}
