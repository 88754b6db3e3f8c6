"""`torch.autograd.grad` inside a model's forward, as one call in the captured graph.

torch.export cannot trace autograd's engine; the handler in families/inner_gradient.py computes
the gradient by our own reverse mode. The operator exists in this process only and is never run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from graphtool.errors import Unsupported, UnsupportedError

_LIBRARY = torch.library.Library("graphtool", "DEF")
_LIBRARY.define("inner_gradient(Tensor[] outputs, Tensor[] inputs, Tensor[] seeds, bool kept) "
                "-> Tensor[]")


def _like(outputs: Any, inputs: Any, seeds: Any, kept: bool) -> list[torch.Tensor]:
    return [torch.empty_like(x) for x in inputs]


_LIBRARY.impl("inner_gradient", _like, "CompositeExplicitAutograd")
torch.library.register_fake("graphtool::inner_gradient", _like, lib=_LIBRARY)


@contextmanager
def inner_gradients() -> Iterator[None]:
    """Within the block, `torch.autograd.grad` is recorded as one call, `torch.func.grad` is written
    with it, and `x.backward()` is refused."""
    new = ((torch.autograd, "grad", _grad), (torch.Tensor, "backward", _backward),
           (torch.func, "grad", _of_function),
           (torch.func, "grad_and_value", partial(_of_function, value=True)))
    own = [(owner, name, getattr(owner, name)) for owner, name, _ in new]
    try:
        for owner, name, function in new:
            setattr(owner, name, function)
        yield
    finally:
        for owner, name, function in own:
            setattr(owner, name, function)


def _grad(outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool | None = None,
          create_graph: bool = False, only_inputs: bool = True, allow_unused: bool | None = None,
          is_grads_batched: bool = False, materialize_grads: bool = False
          ) -> tuple[torch.Tensor, ...]:
    """torch.autograd.grad; an input on which no output depends has a gradient of zeros."""
    if is_grads_batched:
        raise _refused("torch.autograd.grad(is_grads_batched=True)",
                       "gradients of a batch of outputs are not supported")
    ys, xs = _several(outputs), _several(inputs)
    proxies = [t for t in (*ys, *xs) if isinstance(t, fx.Proxy)]
    if proxies:
        made = proxies[0].tracer.create_proxy("call_function", _grad, (ys, xs, grad_outputs),
                                         {"create_graph": create_graph})
        return tuple(made[i] for i in range(len(xs)))
    given = [None] * len(ys) if grad_outputs is None else _several(grad_outputs)
    seeds = [torch.ones_like(y) if g is None else g for y, g in zip(ys, given, strict=True)]
    return tuple(torch.ops.graphtool.inner_gradient(ys, xs, seeds, create_graph))


def _several(x: Any) -> Sequence[Any]:
    return [x] if x is None or isinstance(x, (torch.Tensor, fx.Proxy)) else list(x)


def _of_function(function: Callable[..., Any], argnums: int | tuple[int, ...] = 0,
                 has_aux: bool = False, value: bool = False) -> Callable[..., Any]:
    """`torch.func.grad` and `grad_and_value`, by copies of the arguments: other uses of the
    arguments must not count."""
    def gradients(*args: Any, **kwargs: Any) -> Any:
        at = (argnums,) if isinstance(argnums, int) else argnums
        leaves, tree = pytree.tree_flatten([args[i] for i in at])
        copies = [x.clone().requires_grad_() for x in leaves]
        given = list(args)
        for i, copy in zip(at, pytree.tree_unflatten(copies, tree), strict=True):
            given[i] = copy
        out = function(*given, **kwargs)
        y, aux = out if has_aux else (out, None)
        found = pytree.tree_unflatten(_grad(y, copies, create_graph=True), tree)
        slopes = found[0] if isinstance(argnums, int) else tuple(found)
        if value:
            return slopes, ((y, aux) if has_aux else y)
        return (slopes, aux) if has_aux else slopes
    return gradients


def _backward(*_: Any, **__: Any) -> None:
    raise _refused("x.backward()", "parameters get no gradients while forward is captured")


def _refused(name: str, reason: str) -> UnsupportedError:
    return UnsupportedError("GT1102", "a gradient inside forward", (Unsupported(name, reason),),
                            hint="torch.autograd.grad(y, x) is supported")
