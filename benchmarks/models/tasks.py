"""What the training benchmark trains: names, optimizers and learning rates. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass

RATES = {"sgd": 0.01, "adam": 1e-3}
RECIPES = {"sgd": "sgd{momentum=0.9}", "adam": "adam"}


@dataclass(frozen=True)
class Task:
    """`small` ones are judged one by one; `overhead` is only what a call costs."""

    optimizer: str
    small: bool = True
    overhead: bool = False
    needs: tuple[str, ...] = ()

    @property
    def rate(self) -> float:
        return RATES[self.optimizer]

    @property
    def recipe(self) -> str:
        return RECIPES[self.optimizer]


TASKS: dict[str, Task] = {
    "mlp_b64": Task("sgd"),
    "lenet_b64": Task("sgd"),
    "resnet8_cifar_b32": Task("sgd"),
    "resnet18_b8": Task("sgd", small=False, needs=("torchvision",)),
    "transformer_enc_b16": Task("adam"),
    "gpt2_tiny_b4": Task("adam"),
    "lstm_b32": Task("adam"),
    "linear_b1": Task("sgd", small=False, overhead=True),
}
