"""Branches and loops of TorchScript: run where Python knows the answer, ops of torch where the data
decide (`cond`, `while_loop`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import torch
from torch._higher_order_ops.cond import cond_op
from torch._higher_order_ops.while_loop import while_loop_op
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.utils import _pytree as pytree

from graphtool.importers.torch.torchscript.plain import NotSupported

Env = dict[str, Any]


class BlockRunner(Protocol):
    """What branches and loops need of the interpreter that comes to them."""

    lifted: Mapping[int, torch.Tensor]

    def block(self, block: Any, env: Env, module: Any, name: str) -> list[Any]:
        """The values that a block returns."""

    def tensor(self, x: Any) -> Any:
        """A weight, or inside a region the region's own copy of it."""


def branch(run: BlockRunner, node: Any, env: Env, module: Any, name: str) -> tuple[Any, ...]:
    """The results of `prim::If`."""
    flag = env[node.inputsAt(0).debugName()]
    blocks = list(node.blocks())
    if not late(flag):
        return tuple(run.block(blocks[0 if flag else 1], env, module, name))
    for i, block in enumerate(blocks):
        if any(n.kind() == "prim::RaiseException" for n in block.nodes()):
            holds = flag if i else _not(flag)
            if isinstance(holds, torch.Tensor):
                torch.ops.aten._assert_async.default(holds)
            return tuple(run.block(blocks[1 - i], env, module, name))
    lift = Lifted(run, env, node)
    shapes: list[Any] = []

    def side(block: Any) -> Callable[..., Any]:
        def region(*operands: Any) -> Any:
            with lift.entered(operands) as inner:
                returned = run.block(block, inner, module, name)
            leaves, tree = pytree.tree_flatten(returned)
            shapes.append(tree)
            return _fresh(leaves)
        return region
    pred = flag if isinstance(flag, torch.SymBool) else flag.reshape(())
    results = cond_op(pred, side(blocks[0]), side(blocks[1]), lift.operands)
    return tuple(pytree.tree_unflatten(list(results), shapes[0]))


def loop(run: BlockRunner, node: Any, env: Env, module: Any, name: str) -> tuple[Any, ...]:
    """The results of `prim::Loop`: (most iterations, whether to begin, carried…)."""
    most, going, *carried = (env[v.debugName()] for v in node.inputs())
    body, = node.blocks()
    names = [v.debugName() for v in _parameters(body)]
    i = 0
    while not (late(going) or late(most)):
        if not (i < most and going):
            return tuple(carried)
        env.update(zip(names, (i, *carried), strict=True))
        going, *carried = run.block(body, env, module, name)
        i += 1
    return _while(run, node, env, module, name, i, most, going, carried)


def _while(run: BlockRunner, node: Any, env: Env, module: Any, name: str, first: int, most: Any,
           going: Any, carried: Sequence[Any]) -> tuple[Any, ...]:
    """The rest of a loop as torch's while_loop; numbers are carried as tensors."""
    body, = node.blocks()
    names = [v.debugName() for v in _parameters(body)]
    lift = Lifted(run, env, node)
    leaves, tree = pytree.tree_flatten(list(carried))
    start = (_as_tensor(first), _as_tensor(going), *map(_as_tensor, leaves))
    bounded = not (isinstance(most, int) and most >= 1 << 62)
    limit = (_as_tensor(most),) if bounded else ()

    def test(i: Any, on: Any, *rest: Any) -> Any:
        on = on.reshape(())
        return torch.logical_and(on, i < rest[len(leaves)]) if bounded else on.clone()

    def step(i: Any, _: Any, *rest: Any) -> Any:
        values = pytree.tree_unflatten(list(rest[:len(leaves)]), tree)
        operands = rest[len(leaves) + len(limit):]
        with lift.entered(operands) as inner:
            inner.update(zip(names, (i, *values), strict=True))
            on, *after = run.block(body, inner, module, name)
        return (i + 1, _fresh([on])[0].reshape(()), *_fresh(pytree.tree_leaves(after)))
    _, _, *results = while_loop_op(test, step, start, (*limit, *lift.operands))
    return tuple(pytree.tree_unflatten(list(results), tree))


class Lifted:
    """The tensors that the blocks of a node read from outside, which torch's ops take as operands:
    values of the environment, and weights."""

    def __init__(self, run: BlockRunner, env: Env, node: Any) -> None:
        self.run, self.env = run, env
        read = {v.debugName() for n in _all(node) for v in n.inputs()} | {
            v.debugName() for b in _blocks(node) for v in b.returnNode().inputs()}
        self.leaves: dict[str, tuple[list[Any], Any]] = {
            key: pytree.tree_flatten(env[key]) for key in sorted(read & env.keys())
            if not hasattr(env[key], "script")}
        weights = {id(t): t for t in _weights(env, node)}
        self.weights = list(weights)
        held = [x for xs, _ in self.leaves.values() for x in xs if isinstance(x, torch.Tensor)]
        self.operands = (*held, *(run.tensor(t) for t in weights.values()))

    @contextmanager
    def entered(self, operands: Sequence[Any]) -> Iterator[Env]:
        """The environment of a region whose operands these are."""
        given, inner = iter(operands), dict(self.env)
        for key, (xs, tree) in self.leaves.items():
            inner[key] = pytree.tree_unflatten(
                [next(given) if isinstance(x, torch.Tensor) else x for x in xs], tree)
        before = self.run.lifted
        self.run.lifted = {**before, **dict(zip(self.weights, given, strict=True))}
        lists = {key: (inner[key], list(x for x in pytree.tree_leaves(inner[key])))
                 for key in self.leaves if isinstance(inner[key], (list, dict))}
        try:
            yield inner
        finally:
            self.run.lifted = before
        for new, old in lists.values():
            now = pytree.tree_leaves(new)
            if len(now) != len(old) or any(a is not b for a, b in zip(now, old, strict=True)):
                raise NotSupported("a list or dict that a branch or a loop on data changes is not "
                                   "supported; give its elements as values of the branch")


def _weights(env: Env, node: Any) -> Iterator[torch.Tensor]:
    """The weights that the blocks of a node read: by name, or in a module that they call."""
    for n in _all(node):
        if n.kind() == "prim::GetAttr":
            owner, name = _module(n.inputsAt(0), env), n.s("name")
            for table in (owner._parameters, owner._buffers) if owner is not None else ():
                if table.get(name) is not None:
                    yield table[name]
        elif n.kind() == "prim::CallMethod" and (
                owner := _module(n.inputsAt(0), env)) is not None:
            yield from (*owner.parameters(), *owner.buffers())


def _module(value: Any, env: Env) -> Any:
    """The module that a value stands for: one of the environment, or an attribute of one."""
    if value.debugName() in env:
        receiver = env[value.debugName()]
        return receiver if hasattr(receiver, "script") else None
    node = value.node()
    owner = _module(node.inputsAt(0), env) if node.kind() == "prim::GetAttr" else None
    return None if owner is None else owner._modules.get(node.s("name"))


def late(x: Any) -> bool:
    """Whether only the run will know the value."""
    if isinstance(x, torch.Tensor):
        return True
    return isinstance(x, (torch.SymInt, torch.SymBool, torch.SymFloat)) and bool(
        free_unbacked_symbols(x))


def _not(flag: Any) -> Any:
    return torch.logical_not(flag) if isinstance(flag, torch.Tensor) else torch.sym_not(flag)


def _as_tensor(x: Any) -> Any:
    """A number as a tensor of rank 0, as results and carried values of an op must be."""
    match x:
        case torch.Tensor():
            return x
        case bool():
            return torch.full((), x, dtype=torch.bool)
        case int() | torch.SymInt():
            return torch.full((), x, dtype=torch.int64)
        case float() | torch.SymFloat():
            return torch.full((), x, dtype=torch.float64)
        case torch.SymBool():
            return torch.scalar_tensor(torch.sym_ite(x, 1, 0), dtype=torch.int64) != 0
        case _:
            raise NotSupported(f"a {type(x).__name__} that depends on the data is not supported")


def _fresh(results: Sequence[Any]) -> tuple[Any, ...]:
    """The results as tensors of their own: torch's ops refuse operands, views of them, and one
    tensor twice. A copy is no node of our graph."""
    return tuple(_as_tensor(x).clone() for x in results)


def _parameters(block: Any) -> list[Any]:
    return list(block.paramNode().outputs())


def _blocks(node: Any) -> Iterator[Any]:
    for block in node.blocks():
        yield block
        for inner in block.nodes():
            yield from _blocks(inner)


def _all(node: Any) -> Iterator[Any]:
    for block in _blocks(node):
        yield from block.nodes()
