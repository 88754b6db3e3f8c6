"""Blocks of pixels moved to channels and back, and channels shuffled between groups."""

from __future__ import annotations

from typing import Any

from graphtool.importers.torch.driver.context import Context
from graphtool.importers.torch.driver.table import aten
from graphtool.ir.trace import Tracer


@aten("pixel_shuffle")
def pixel_shuffle(c: Context, self: Tracer, upscale_factor: int) -> Any:
    """[..., C·r², H, W] → [..., C, H·r, W·r]: reshape, transpose, reshape."""
    r = upscale_factor
    *lead, channels, h, w = self.shape
    n = len(lead)
    x = c.reshape(self, (*lead, channels // (r * r), r, r, h, w))
    x = c.transpose(x, [*range(n), n, n + 3, n + 1, n + 4, n + 2])
    return c.reshape(x, c.out.shape)


@aten("pixel_unshuffle")
def pixel_unshuffle(c: Context, self: Tracer, downscale_factor: int) -> Any:
    """[..., C, H·r, W·r] → [..., C·r², H, W]: reshape, transpose, reshape."""
    r = downscale_factor
    *lead, channels, h, w = self.shape
    n = len(lead)
    x = c.reshape(self, (*lead, channels, h // r, r, w // r, r))
    x = c.transpose(x, [*range(n), n, n + 2, n + 4, n + 1, n + 3])
    return c.reshape(x, c.out.shape)


@aten("channel_shuffle", "native_channel_shuffle")
def channel_shuffle(c: Context, self: Tracer, groups: int) -> Any:
    """Channels as [groups, C / groups], transposed, flat again."""
    batch, channels, *space = self.shape
    x = c.reshape(self, (batch, groups, channels // groups, *space))
    return c.reshape(c.transpose(x, [0, 2, 1, *range(3, x.ndim)]), self.shape)
