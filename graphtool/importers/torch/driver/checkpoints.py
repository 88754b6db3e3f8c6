"""Records which nodes of a captured model are inside torch.utils.checkpoint.

torch.export traces through a checkpoint without a mark. During a capture, torch's entry function
is therefore replaced by one that annotates the nodes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch.utils.checkpoint as checkpoints
from torch.fx import traceback

from graphtool.importers.torch.driver.live import CHECKPOINT


@contextmanager
def annotated() -> Iterator[None]:
    """Within the block, nodes inside a checkpoint carry its number; of nested ones, the outer's."""
    numbers = itertools.count(1)
    own = checkpoints._checkpoint_without_reentrant_generator, checkpoints.CheckpointFunction

    @contextmanager
    def region() -> Iterator[None]:
        if CHECKPOINT in traceback.current_meta.get("custom", {}):
            yield
            return
        with traceback.annotate({CHECKPOINT: next(numbers)}):
            yield

    def around(*_: Any, **__: Any) -> Iterator[None]:
        with region():
            yield

    class Reentrant:
        @staticmethod
        def apply(function: Any, _preserve: bool, *args: Any) -> Any:
            with region():
                return function(*args)
    checkpoints._checkpoint_without_reentrant_generator = around
    checkpoints.CheckpointFunction = Reentrant
    try:
        with traceback.preserve_node_meta():
            yield
    finally:
        checkpoints._checkpoint_without_reentrant_generator, checkpoints.CheckpointFunction = own
