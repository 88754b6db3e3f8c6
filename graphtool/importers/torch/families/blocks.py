"""Blocks of pixels moved to channels and back, and channels shuffled between groups."""

from __future__ import annotations

from typing import Any

from graphtool.front import Array
from graphtool.importers.torch.driver.context import Context
from graphtool.importers.torch.driver.table import aten


@aten("pixel_shuffle")
def pixel_shuffle(c: Context, self: Array, upscale_factor: int) -> Any:
    """[..., C·r², H, W] → [..., C, H·r, W·r]: reshape, transpose, reshape."""
    r = upscale_factor
    *lead, channels, h, w = self.shape
    n = len(lead)
    x = self.reshape((*lead, channels // (r * r), r, r, h, w))
    x = x.transpose([*range(n), n, n + 3, n + 1, n + 4, n + 2])
    return x.reshape(c.out.shape)


@aten("pixel_unshuffle")
def pixel_unshuffle(c: Context, self: Array, downscale_factor: int) -> Any:
    """[..., C, H·r, W·r] → [..., C·r², H, W]: reshape, transpose, reshape."""
    r = downscale_factor
    *lead, channels, h, w = self.shape
    n = len(lead)
    x = self.reshape((*lead, channels, h // r, r, w // r, r))
    x = x.transpose([*range(n), n, n + 2, n + 4, n + 1, n + 3])
    return x.reshape(c.out.shape)


@aten("channel_shuffle", "native_channel_shuffle")
def channel_shuffle(c: Context, self: Array, groups: int) -> Any:
    """Channels as [groups, C / groups], transposed, flat again."""
    batch, channels, *space = self.shape
    x = self.reshape((batch, groups, channels // groups, *space))
    return x.transpose([0, 2, 1, *range(3, x.ndim)]).reshape(self.shape)
