"""Learning rates by step, equal to torch's schedulers. A schedule is written with arguments like
a pass."""

from __future__ import annotations

import math
from collections.abc import Callable

from graphtool.errors import UsageError
from graphtool.passes.arguments import one

Rate = Callable[[int], float]


def constant(lr: float, total: int, epoch: int) -> Rate:
    """The same rate at every step."""
    return lambda step: lr


def step(lr: float, total: int, epoch: int, *, every: int = 10, factor: float = 0.1) -> Rate:
    """The rate is multiplied by `factor` after each `every` epochs."""
    if every < 1:
        raise UsageError("GT3070", f"the schedule step cannot change the rate every {every} epochs",
                         hint="every must be 1 or more")
    return lambda step: float(lr * factor ** (step // epoch // every))


def cosine(lr: float, total: int, epoch: int, *, floor: float = 0.0) -> Rate:
    """Half a period of a cosine, from lr to `floor` over all steps."""
    return lambda step: _annealed(lr, floor, min(step, total) / total)


def onecycle(lr: float, total: int, epoch: int, *, rise: float = 0.3, start: float = 25.0,
             end: float = 1e4) -> Rate:
    """From lr/start up to lr in the first part of the steps, `rise`, then down to lr/start/end."""
    top = rise * total - 1
    low, last = lr / start, lr / start / end

    def rate(step: int) -> float:
        if step <= top:
            return _annealed(low, lr, step / top)
        return _annealed(lr, last, min((step - top) / (total - 1 - top), 1.0))
    return rate


def _annealed(a: float, b: float, share: float) -> float:
    return b + (a - b) / 2 * (1 + math.cos(math.pi * share))


SCHEDULES: dict[str, Callable[..., Rate]] = {
    "constant": constant, "step": step, "cosine": cosine, "onecycle": onecycle}


def schedule(text: str, lr: float, total: int, epoch: int, warmup: int = 0) -> Rate:
    """The learning rate as a function of the step, counted from 0; it rises linearly in the first
    `warmup` steps.

    `total` and `epoch` are numbers of steps. Raises UsageError GT3070 for an unknown schedule, and
    for arguments that lead to a division by 0.
    """
    call = one("schedule", "GT3070", text, SCHEDULES, ", as in step{every=5,factor=0.5}")
    try:
        rate = SCHEDULES[call.name](lr, max(total, 1), max(epoch, 1), **call.arguments)
        rate(0)
    except ZeroDivisionError:
        raise UsageError("GT3070", f"the schedule {text!r} divides by 0") from None
    return lambda s: rate(s) * min(1.0, (s + 1) / warmup) if warmup else rate(s)
