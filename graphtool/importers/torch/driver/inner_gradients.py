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
from torch._functorch import eager_transforms as transforms
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
    with it; `x.backward()`, and transforms of torch.func of or by a gradient, are refused."""
    new = ((torch.autograd, "grad", _grad), (torch.Tensor, "backward", _backward),
           (transforms, "grad_and_value_impl", _of_function),
           (transforms, "_vjp_with_argnums", _no_vjp),
           (transforms, "_jvp_with_argnums", partial(_jvp, transforms._jvp_with_argnums)))
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


def _of_function(function: Callable[..., Any], argnums: int | tuple[int, ...], has_aux: bool,
                 args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """What `torch.func.grad` and `grad_and_value` call: (the gradients, the value), by copies of
    the arguments, since other uses of the arguments must not count."""
    _need_no_transform("a gradient")
    at = (argnums,) if isinstance(argnums, int) else argnums
    leaves, tree = pytree.tree_flatten([args[i] for i in at])
    copies = [x.clone().requires_grad_() for x in leaves]
    given = list(args)
    for i, copy in zip(at, pytree.tree_unflatten(copies, tree), strict=True):
        given[i] = copy
    out = function(*given, **kwargs)
    found = pytree.tree_unflatten(_grad(out[0] if has_aux else out, copies, create_graph=True),
                                  tree)
    return found[0] if isinstance(argnums, int) else tuple(found), out


def _backward(*_: Any, **__: Any) -> None:
    raise _refused("x.backward()", "parameters get no gradients while forward is captured")


def _no_vjp(*_: Any, **__: Any) -> None:
    raise _refused("torch.func.vjp, jacrev or hessian", "its products with a gradient are taken "
                   "inside torch, where they cannot be captured", _ALONE)


def _jvp(plain: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """torch's own jvp, which can be captured where it is the only transform."""
    _need_no_transform("a forward-mode derivative (jvp, jacfwd)")
    return plain(*args, **kwargs)


def _need_no_transform(what: str) -> None:
    """Refuses what is inside vmap or jvp: that torch raises there would also leave its own state
    of the transforms as it is."""
    if torch._C._functorch.peek_interpreter_stack() is not None:
        raise _refused(f"{what} inside vmap, jvp, jacfwd or hessian", "it cannot be captured "
                       "inside another transform of torch.func", _ALONE)


_ALONE = ("torch.func.grad can be nested, and may contain vmap: the gradient of each sample is "
          "grad(lambda x: vmap(f)(x).sum())(x), row i of a Hessian is "
          "grad(lambda x: grad(f)(x)[i])(x)")


def _refused(name: str, reason: str, hint: str = "torch.autograd.grad(y, x) is supported"
             ) -> UnsupportedError:
    return UnsupportedError("GT1102", "a gradient inside forward", (Unsupported(name, reason),),
                            hint=hint)
