"""The settings of a training graph: loss, optimizer and their arguments, written like passes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.errors import InputError, UsageError
from graphtool.ir.graph import TensorType
from graphtool.passes.arguments import PassCall, one
from graphtool.transforms.training.optimizers import OPTIMIZERS


@dataclass(frozen=True)
class Recipe:
    """The settings. `loss` and `optimizer` are written like passes: adam{weight_decay=0.01}."""

    loss: str
    wrt: Sequence[str] = ("params",)
    optimizer: str | None = None
    target: str = "y"
    lr: float | None = None
    clip_value: float | None = None
    clip_norm: float | None = None
    grad_norm: bool = False  # the norm of all gradients before clipping is kept in the state
    accumulate: int = 1
    decay_vectors: bool = True  # whether weight decay also applies to biases and norms
    # whether batch norms use the statistics of the batch, or the statistics of the model; None: as
    # the model was captured in training mode, or all of the batch if it was captured in inference
    batch_norm: bool | None = None
    batch_norm_momentum: float | None = None  # None: each norm's own
    # modules whose inner values are computed again in the backward pass
    checkpoint: Sequence[str] = ()
    bound: int | None = None  # the greatest number of iterations of loops that have no bound
    # the optimizer's arguments for some parameters, as head.*{momentum=0}; of several groups that
    # match a name, the last one alone counts
    groups: Sequence[str] = ()


# ---- losses ------------------------------------------------------------------------------------

def mse(x: Any, y: Any) -> Any:
    """Mean of (x − y)²."""
    return o.mse_loss(x, y)


def huber(x: Any, y: Any, *, delta: float = 1.0) -> Any:
    """Quadratic up to delta, linear beyond."""
    return o.huber_loss(x, y, delta=delta)


def bce(x: Any, y: Any, *, from_logits: bool = False) -> Any:
    """Binary cross entropy of probabilities, or of logits."""
    return o.bce_loss(x, y, from_logits=from_logits)


def cross_entropy(x: Any, y: Any, *, axis: int = 1, label_smoothing: float = 0.0,
                  ignore_index: int = -100) -> Any:
    """Log-softmax over the class axis, then the mean negative log-likelihood of int64 labels."""
    return o.cross_entropy(x, y, axis=axis, label_smoothing=label_smoothing,
                           ignore_index=ignore_index)


LOSSES: dict[str, Callable[..., Any]] = {
    "mse": mse, "cross_entropy": cross_entropy, "bce": bce, "huber": huber}


def target_type(call: PassCall, x: TensorType) -> TensorType:
    """The type of the targets for an output x: x's own, or i64 without the class axis for
    cross_entropy.

    Raises InputError GT0613 if x has no such axis.
    """
    if call.name != "cross_entropy":
        return x
    axis = int(call.arguments.get("axis", 1))
    if not -x.rank <= axis < x.rank:
        raise InputError("GT0613", f"cross_entropy over axis {axis} of {x}",
                         hint="give the axis of the classes: cross_entropy{axis=-1}")
    axis %= x.rank
    return TensorType(dtypes.int64, (*x.shape[:axis], *x.shape[axis + 1:]))


# ---- reading them ------------------------------------------------------------------------------

def check(recipe: Recipe) -> None:
    """Raise UsageError GT0624 for settings of a step if there is no optimizer."""
    of_a_step = ("lr", "clip_value", "clip_norm", "grad_norm", "accumulate", "decay_vectors",
                 "groups")
    usual = {f.name: f.default for f in fields(Recipe)}
    idle = [n for n in of_a_step if getattr(recipe, n) not in (usual[n], [])]
    if recipe.optimizer is None and idle:
        raise UsageError("GT0624", f"there is no optimizer, so these have no effect: "
                                   f"{', '.join(idle)}",
                         hint="give one, for example --optimizer adamw")


def loss_call(text: str, outputs: Mapping[str, int]) -> PassCall:
    """The loss with its arguments. Raises UsageError GT0616 if there is no such loss."""
    also = f", or an output: {', '.join(outputs)}" if outputs else ""
    return one("loss", "GT0616", text, LOSSES, also)


def optimizer_call(text: str) -> PassCall:
    """The optimizer with its arguments. Raises UsageError GT0616 if there is no such optimizer."""
    return one("optimizer", "GT0616", text, {n: row.update for n, row in OPTIMIZERS.items()})


def group_call(text: str, optimizer: str) -> tuple[str, Mapping[str, Any]]:
    """A pattern of parameter names, and the optimizer's arguments for these parameters."""
    pattern, brace, rest = text.partition("{")
    return pattern.strip(), optimizer_call(optimizer + brace + rest).arguments
