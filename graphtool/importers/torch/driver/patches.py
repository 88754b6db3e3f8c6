"""What stands in for parts of torch while a model is captured: shape functions that torch lacks,
sizes of poolings, batch norms with plain averages, regions of torch.utils.checkpoint,
`torch.autograd.grad` inside a forward."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
import torch.utils.checkpoint as checkpoints
from torch import _meta_registrations, fx
from torch._functorch import eager_transforms as transforms
from torch.fx import traceback
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils import _pytree as pytree

from graphtool.errors import Unsupported, UnsupportedError
from graphtool.importers.torch.driver.live import CHECKPOINT
from graphtool.importers.torch.families.norm import AVERAGE

# ---- shape functions that torch lacks -----------------------------------------------------------

def _lstsq(a: Any, b: Any, rcond: Any = None, *, driver: Any = None) -> Any:
    """(solution, residuals, ranks, singular values); all but the solution are empty."""
    vector = b.ndim == a.ndim - 1
    lead = torch.broadcast_shapes(a.shape[:-2], b.shape[:-1] if vector else b.shape[:-2])
    wide = () if vector else (b.shape[-1],)
    return (a.new_empty((*lead, a.shape[-1], *wide)), a.new_empty(0),
            a.new_empty(0, dtype=torch.int64), a.new_empty(0))


def _ctc_loss(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any,
              blank: int = 0, zero_infinity: bool = False) -> Any:
    """(a loss for each sequence, log α [n, time, 2·longest target + 1] for the gradient)."""
    n = log_probs.shape[1] if log_probs.ndim == 3 else 1
    return (log_probs.new_empty(n if log_probs.ndim == 3 else ()),
            log_probs.new_empty((n, log_probs.shape[0], 2 * targets.shape[-1] + 1)))


_FAKES: dict[str, Callable[..., Any]] = {
    "aten::linalg_lstsq": _lstsq, "aten::_ctc_loss": _ctc_loss,
    "aten::_ctc_loss.Tensor": _ctc_loss}


@contextmanager
def fakes() -> Iterator[None]:
    """Registers the shape functions within the `with` block, and removes them after it."""
    library = torch.library.Library("aten", "FRAGMENT")
    try:
        for name, fake in _FAKES.items():
            torch.library.register_fake(name, fake, lib=library, allow_override=True)
        yield
    finally:
        library._destroy()


# ---- sizes of poolings --------------------------------------------------------------------------

@contextmanager
def pooling() -> Iterator[None]:
    """Within the block, the size of a pooling with ceil_mode is a formula in an open size. torch
    asks whether the last window begins inside, and takes the answer as a condition of every
    run."""
    saved = _meta_registrations.pooling_output_shape_pad_lr

    def size(n: Any, window: int, before: int, behind: int, stride: int, dilation: int,
             ceil_mode: bool) -> Any:
        span = dilation * (window - 1) + 1
        if not ceil_mode:
            return saved(n, window, before, behind, stride, dilation, ceil_mode)
        most = (n + before + behind - span + stride - 1) // stride + 1
        if behind + stride <= span:  # the last window always begins before n + before
            return most
        return torch.sym_min(most, (n + before + stride - 1) // stride)
    _meta_registrations.pooling_output_shape_pad_lr = size
    try:
        yield
    finally:
        _meta_registrations.pooling_output_shape_pad_lr = saved


# ---- batch norms with plain averages ------------------------------------------------------------

_forward = _BatchNorm.forward


@contextmanager
def averaging() -> Iterator[None]:
    """Within the block, such a norm updates its statistics by 1 / (number of batches), a tensor;
    or says AVERAGE for its momentum."""
    _BatchNorm.forward = _averaged
    try:
        yield
    finally:
        _BatchNorm.forward = _forward


def _averaged(norm: _BatchNorm, input: torch.Tensor) -> torch.Tensor:
    if norm.momentum is not None or norm.running_mean is None:
        normed: torch.Tensor = _forward(norm, input)
        return normed
    if not norm.training:
        norm._check_input_dim(input)
        return F.batch_norm(input, norm.running_mean, norm.running_var, norm.weight, norm.bias,
                            False, AVERAGE, norm.eps)
    norm._check_input_dim(input)
    norm.num_batches_tracked.add_(1)
    # with the momentum 1 the statistics of the batch, as those of any other norm
    mean, var = torch.zeros_like(norm.running_mean), torch.zeros_like(norm.running_var)
    y = F.batch_norm(input, mean, var, norm.weight, norm.bias, True, 1.0, norm.eps)
    with torch.no_grad():
        share = 1.0 / norm.num_batches_tracked.to(mean.dtype)
        norm.running_mean.copy_(norm.running_mean + (mean - norm.running_mean) * share)
        norm.running_var.copy_(norm.running_var + (var - norm.running_var) * share)
    return y


# ---- regions of torch.utils.checkpoint ----------------------------------------------------------

@contextmanager
def annotated() -> Iterator[None]:
    """Within the block, nodes inside a checkpoint carry its number; of nested ones, the outer's."""
    numbers = itertools.count(1)
    saved = checkpoints._checkpoint_without_reentrant_generator, checkpoints.CheckpointFunction

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
        checkpoints._checkpoint_without_reentrant_generator, checkpoints.CheckpointFunction = saved


# ---- torch.autograd.grad inside a forward -------------------------------------------------------

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
    originals = [(owner, name, getattr(owner, name)) for owner, name, _ in new]
    try:
        for owner, name, function in new:
            setattr(owner, name, function)
        yield
    finally:
        for owner, name, function in originals:
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
        gradients = proxies[0].tracer.create_proxy("call_function", _grad, (ys, xs, grad_outputs),
                                         {"create_graph": create_graph})
        return tuple(gradients[i] for i in range(len(xs)))
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
    gradients = pytree.tree_unflatten(_grad(out[0] if has_aux else out, copies, create_graph=True),
                                      tree)
    return gradients[0] if isinstance(argnums, int) else tuple(gradients), out


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
