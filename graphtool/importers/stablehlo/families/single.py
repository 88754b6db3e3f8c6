"""Operations between devices, in a program for one device: they hand their operands on."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool.front import Array, Refused
from graphtool.importers.stablehlo.driver.context import Context
from graphtool.importers.stablehlo.driver.registry import stablehlo
from graphtool.importers.stablehlo.text.attributes import Dense


def _rows(x: Any) -> list[list[int]]:
    """`dense<[[0, 1]]>` or nested lists, as rows of numbers; none for anything else."""
    rows = x.elements if isinstance(x, Dense) else x
    if isinstance(rows, list):
        return [[int(v) for v in (r if isinstance(r, list) else [r])] for r in rows]
    return [[int(rows)]] if str(rows).isdecimal() else []


def _alone(ctx: Context, groups: Any) -> None:
    """Raises Refused if a group has more than one member."""
    if any(len(row) > 1 for row in _rows(groups)):
        raise Refused("a program for several devices is not supported")


@stablehlo("all_gather", "all_reduce", "all_to_all", "collective_broadcast", "reduce_scatter",
           "cross-replica-sum")
def among(ctx: Context, *xs: Any, replica_groups: Any, channel_handle: Any = None,
          use_global_device_ids: Any = None, all_gather_dim: Any = None,
          scatter_dimension: Any = None, split_dimension: Any = None, concat_dimension: Any = None,
          split_count: Any = None) -> list[Any]:
    """What one device computes with itself: its own values."""
    _alone(ctx, replica_groups)
    return list(xs)


@stablehlo("collective_permute")
def collective_permute(ctx: Context, *xs: Any, source_target_pairs: Any,
                       channel_handle: Any = None) -> list[Any]:
    """The values themselves if the device sends to itself, else zeros."""
    pairs = _rows(source_target_pairs)
    if any(n for row in pairs for n in row):
        raise Refused("a program for several devices is not supported")
    return list(xs) if pairs else [ctx.builder.constant(np.zeros(
        ctx.result(i).shape, ctx.element(i).numpy)) for i in range(len(xs))]


@stablehlo("sdy.sharding_constraint")
def sharding_constraint(ctx: Context, x: Any, *, sharding: Any = None) -> Any:
    """x: where its parts lie is no matter of one device."""
    return x


@stablehlo("replica_id", "partition_id")
def number(ctx: Context) -> Array:
    """The device's number: 0."""
    return ctx.builder.number(0, ctx.dtype)
