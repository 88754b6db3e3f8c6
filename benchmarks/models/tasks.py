"""What the training benchmark trains: names, optimizers and learning rates. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass

RATES = {"sgd": 0.01, "adam": 1e-3, "adamw": 3e-4, "adam_gan": 2e-4}
RECIPES = {"sgd": "sgd{momentum=0.9}", "adam": "adam", "adamw": "adamw{weight_decay=0.01}",
           "adam_gan": "adam{beta1=0.5}"}
OWN = "own"  # the loss of a model that takes both inputs and computes it itself


@dataclass(frozen=True)
class Task:
    """`small` ones are judged one by one; `overhead` is only what a call costs. `loss` is of
    class scores, of logits, or the model's own."""

    optimizer: str
    loss: str = "cross_entropy"
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
    "mobilenet_b8": Task("sgd", small=False, needs=("torchvision",)),
    "transformer_enc_b16": Task("adam"),
    "gpt2_tiny_b4": Task("adam"),
    "lstm_b32": Task("adam"),
    "vit_tiny_b8": Task("adamw", small=False, needs=("timm",)),
    "lm_14m": Task("adamw", small=False),
    "lm_49m": Task("adamw", small=False),
    "lstm_lm_b16": Task("adamw", small=False),
    "unet_b8": Task("adamw", small=False),
    "convnext_b8": Task("adamw", small=False, needs=("timm",)),
    "gan_b32": Task("adam_gan", OWN, small=False),
    "vae_b64": Task("adam", OWN),
    "gcn_cora": Task("adam"),
    "dlrm_b256": Task("sgd", "bce{from_logits=true}"),
    "speech_b4": Task("adamw", small=False),
    "linear_b1": Task("sgd", small=False, overhead=True),
}
