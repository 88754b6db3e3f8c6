"""More image models of torchvision and timm: the kinds that the zoo itself does not hold."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.models.vision import declare_operators

Sample = tuple[nn.Module, tuple[Tensor, ...]]


def _torchvision(name: str, *shape: int, part: str = "models", **options: Any) -> Sample:
    declare_operators()
    make = getattr(import_module(f"torchvision.{part}"), name)
    return make(weights=None, **options), (torch.randn(*shape or (1, 3, 224, 224)),)


def _timm(name: str) -> Sample:
    declare_operators()
    return import_module("timm").create_model(name), (torch.randn(1, 3, 224, 224),)


class Mask(nn.Module):
    """A segmentation model's scores, without the dict around them."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.model(x)["out"]
        return out


def _lraspp() -> Sample:
    model, inputs = _torchvision("lraspp_mobilenet_v3_large", part="models.segmentation",
                                 weights_backbone=None)
    return Mask(model), inputs


_PLAIN = ("resnet34", "resnet101", "regnet_y_400mf", "vgg11_bn", "alexnet", "mobilenet_v3_small")
MODELS = {
    **{name: partial(_torchvision, name) for name in _PLAIN},
    "resnext50": partial(_torchvision, "resnext50_32x4d"),
    "inception_v3": partial(_torchvision, "inception_v3", 1, 3, 299, 299, init_weights=False,
                            aux_logits=False),
    "googlenet": partial(_torchvision, "googlenet", init_weights=False, aux_logits=False),
    "squeezenet": partial(_torchvision, "squeezenet1_1"),
    "mnasnet": partial(_torchvision, "mnasnet1_0"),
    "lraspp_mobilenet_v3": _lraspp,
    "r3d_18_small": partial(_torchvision, "r3d_18", 1, 3, 8, 56, 56, part="models.video"),
    "swin_tiny": partial(_torchvision, "swin_t"),
    "resnet18_b8": partial(_torchvision, "resnet18", 8, 3, 128, 128),
    "deit_tiny": partial(_timm, "deit_tiny_patch16_224"),
    "mixer_s16": partial(_timm, "mixer_s16_224"),
    **{name: partial(_timm, name) for name in (
        "edgenext_x_small", "resnest14d", "hrnet_w18_small", "repvgg_a0")},
}
