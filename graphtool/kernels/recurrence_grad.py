"""recurrence_grad.h: the gradient of a recurrence, from the values that its steps kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from graphtool import ops as o
from graphtool.kernels.kit import (
    Area, Contract, Instance, Lowered, Numbers, Pointer, Record, Use, anywhere, register)
from graphtool.kernels.recurrence import (
    COMMON, STATE, STEP, WEIGHTS, WORK, Arguments, checked, distances, gathered, part_area,
    results, spread, ways, weights_area, work_area)

GIVEN = (Pointer("Y", "the states of all steps", STEP),
         Pointer("KEPT", "the values that the forward pass kept", STEP),
         Pointer("GY", "cotangents of y, or 0", STEP, False),
         Pointer("GH", "cotangents of the last state, or 0", STATE, False),
         Pointer("H0", "first states, or 0", STATE, False),
         Pointer("GC", "cotangents of the last cell, or 0", STATE, False),
         Pointer("C0", "first cells, or 0", STATE, False))
MADE = (Pointer("DP", "gradients of the projections", STEP, False, True),
        Pointer("DH", "gradients of the first state", STATE, False, True),
        Pointer("DC", "gradients of the first cell", STATE, False, True))


def meaning(t: Instance) -> None:
    """The op, from the last step to the first."""
    given: list[Any] = [gathered(t, x) for x in GIVEN]
    gradients = o.recurrence_grad(t.read_all("R"), *given, **ways(t))
    for pointer, values in zip(MADE, gradients, strict=False):
        spread(t, pointer, values)


def touches(t: Numbers) -> Iterator[Area]:
    """What the C touches."""
    h, wide = checked(t)
    yield weights_area(t, wide, h) if t.get("PANEL") else weights_area(t, h, wide)
    for pointer in (*GIVEN, *MADE):
        yield from part_area(t, pointer, wide if pointer.name == "DP" else h)
    yield work_area(t, 4)


def lower(use: Use) -> Lowered:
    """The gradients of the projections and of the first states; outputs without readers are left
    out."""
    r, y, *rest = use.given()
    assert r is not None and y is not None
    given = Arguments(use, r, y)
    given.macros["H"] = y.shape[-1]
    given.add(GIVEN, [y, *rest])
    given.add(MADE, results(use))
    return given.lowered("recurrence_grad", y.shape[-1], 4)


register(Record(
    Contract("recurrence_grad", "the gradient of a recurrence",
             (*COMMON, *distances((*GIVEN, *MADE)), WORK[0]), (WEIGHTS, *GIVEN, *MADE, WORK[1]),
             meaning, touches=touches, grain="pieces"), {"recurrence_grad": lower}, anywhere))
