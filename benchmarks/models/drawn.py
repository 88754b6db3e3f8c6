"""Models of timm that nothing was tuned on: drawn by seed among all that are small enough.

`python -m benchmarks zoo -m drawn:2026:10 --name drawn` times ten of them. The rule is to measure
first and look afterwards. The number of parameters is found without making them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import torch

from benchmarks.models import ALL, DRAWN
from benchmarks.models.vision import declare_operators

LARGEST = 60_000_000  # parameters
SIDES = (32, 256)  # of an image, in pixels


def draw(seed: int, count: int) -> list[str]:
    """So many names, each `timm.` and a name of timm's; other than those of the zoo."""
    declare_operators()
    timm = import_module("timm")
    names = sorted(timm.list_models())
    random.Random(seed).shuffle(names)
    found: list[str] = []
    for name in names:
        if len(found) == count:
            break
        if name not in ALL and _fits(timm, name):
            found.append(DRAWN + name)
    return found


def _fits(timm: Any, name: str) -> bool:
    with torch.device("meta"):
        try:
            model = timm.create_model(name, pretrained=False)
        except (NotImplementedError, RuntimeError, TypeError):  # needs numbers as it is made
            return False
    side = _side(model)
    return SIDES[0] <= side <= SIDES[1] and sum(p.numel() for p in model.parameters()) <= LARGEST


def _side(model: Any) -> int:
    return int(model.pretrained_cfg["input_size"][-1])


def _made(name: str) -> tuple[Any, tuple[torch.Tensor, ...]]:
    declare_operators()
    model = import_module("timm").create_model(name.removeprefix(DRAWN), pretrained=False)
    side = _side(model)
    return model, (torch.randn(1, 3, side, side),)


class _Models(Mapping[str, Any]):
    """A definition for every name."""

    def __getitem__(self, name: str) -> Any:
        return lambda: _made(name)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


MODELS = _Models()
