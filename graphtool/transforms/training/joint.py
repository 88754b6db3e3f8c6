"""Model → training graph: forward, backward and optimizer as one joint graph, its state donated.

Inputs: the model's, the target, the learning rate, then the state. Outputs: the loss, the new
state, then what the model gives in inference (`predict`) with its loss. It has no loop over steps
and no data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from graphtool import dtypes, transforms
from graphtool import ops as o
from graphtool.errors import InputError, UsageError, listed
from graphtool.io.weights import Weight
from graphtool.ir.bind import with_own_sizes
from graphtool.ir.graph import Graph, Module, TensorType, Value, is_constant
from graphtool.ir.replay import inline
from graphtool.ir.run_sizes import definitions, sizes_of
from graphtool.ir.text import value_names
from graphtool.ir.trace import Builder, Tracer
from graphtool.passes.arguments import PassCall
from graphtool.passes.remat import recomputed
from graphtool.symbolic import symbols
from graphtool.transforms.training import norms
from graphtool.transforms.training.marks import marked, segments, unmarked
from graphtool.transforms.training.norms import inference
from graphtool.transforms.training.optimizers import OPTIMIZERS, clipped, global_norm
from graphtool.transforms.training.recipe import (
    LOSSES,
    Recipe,
    check,
    group_call,
    loss_call,
    optimizer_call,
    target_type,
)
from graphtool.transforms.training.rounded import as_reals
from graphtool.transforms.training.state import State, holding, opened, renamed
from graphtool.transforms.training.weights import state_dict
from graphtool.transforms.training.wrt import check_hooks, selected

GRAD_NORM = "grad_norm"  # the state that has the norm of the last step's gradients


def training(module: Module, recipe: Recipe) -> Module:
    """The joint graph: loss and gradients, or with an optimizer loss and the new state.

    Raises InputError GT061x for a loss, name or model that does not fit, UsageError GT0624 for
    settings that only an optimizer uses if there is none, UnsupportedError GT0612 for ops without a
    gradient.
    """
    check(recipe)
    check_hooks(module)
    if recipe.batch_norm is False:
        module = norms.frozen(module)
    graph = transforms.lifted(as_reals(module.graph, recipe.wrt))
    if recipe.bound is not None:
        graph = transforms.bounded(graph, recipe.bound)
    return _Joint(replace(module, graph=graph), recipe).run()


class _Joint:
    def __init__(self, module: Module, recipe: Recipe) -> None:
        self.module, self.recipe, self.graph = module, recipe, module.graph
        self.names = value_names(module.graph)
        self.constants = {n.outputs[0]: n.attrs["data"] for n in module.graph.nodes
                          if is_constant(n)}
        self.initial: dict[Value, Weight] = {}
        self.statistics: list[tuple[Value, Value]] = []  # (running statistics, their new values)
        # the state of a model that was captured in training mode
        self.own_state = dict(module.donations)
        self.results = [i for i in range(len(module.output_names)) if i not in self.own_state]

    def run(self) -> Module:
        r = self.recipe
        wrt = self.chosen()
        trained = norms.trained(self.module, r)
        counts: dict[Value, tuple[Value, Weight]] = {}
        if r.optimizer is not None:
            foreign = [self.names[v] for v in wrt if v not in self.constants]
            if foreign:
                raise InputError("GT0614", f"{foreign[0]} is an input, but an optimizer can "
                                           f"change only parameters", hint="give --wrt params, or "
                                                                           "names of parameters")
            running = [v for n in trained for v in n.inputs[3:5] if isinstance(v, Value)]
            self.initial = {v: self.constants[v] for v in (*wrt, *running)}
            counts = norms.counters(self.module, trained)
            self.graph = opened(self.graph, (*self.initial, *(v for v, _ in counts.values())))
            self.initial |= dict(counts.values())
            self.names = {**self.names, **{v: v.hint for v, _ in counts.values()}}
        calm = self.graph if self.module.meta.get("mode") == "inference" else inference(
            self.graph, self.module.donations)
        calm = calm if calm is self.graph else unmarked(calm)
        if trained:
            self.graph, self.statistics = norms.by_batches(
                self.graph, frozenset(trained), r, {mean: v for mean, (v, _) in counts.items()})
        graph, target = self.with_loss()
        joint = transforms.grad(graph, 0, wrt, marked=r.optimizer is not None)
        again = segments(joint, r.checkpoint) | marked(joint)
        joint = unmarked(recomputed(joint, again))
        if again:
            meta = {**self.module.meta, "recomputed": len(again)}
            self.module = replace(self.module, meta=meta)
        return self.gradients(joint, wrt) if r.optimizer is None else self.step(
            joint, wrt, calm, target)

    def chosen(self) -> list[Value]:
        """The values that --wrt selects."""
        return selected(self.graph, self.names, self.recipe.wrt)

    # ---- the loss --------------------------------------------------------------------------

    def with_loss(self) -> tuple[Graph, Value | None]:
        """The graph with the loss before its own outputs; the target is a further input."""
        position = {n: i for i, n in enumerate(self.module.output_names)}
        moved = tuple(v for _, v in self.statistics)
        if self.recipe.loss in position and self.recipe.loss not in LOSSES:
            loss = self.graph.outputs[position[self.recipe.loss]]
            return replace(self.graph, outputs=(loss, *moved, *self.graph.outputs)), None
        call = loss_call(self.recipe.loss, position)
        builder = holding(self.graph)
        x = Tracer(self.graph.outputs[self.results[0]], builder)
        if self.recipe.target in set(self.names[v] for v in self.graph.inputs):
            raise InputError("GT0615", f"the model has an input {self.recipe.target!r} already",
                             hint="give the target another name: --target NAME")
        wanted = target_type(call, x.type)
        if unknown := sorted({s.name for d in wanted.shape for s in symbols(d)}
                            & definitions(self.graph).keys()):
            raise InputError("GT0625", f"the target would be {wanted}, but the run computes "
                                       f"{unknown[0]}",
                             hint="let the model compute its own loss, and name that output: "
                                  "--loss OUTPUT")
        y = builder.input(wanted, self.recipe.target)
        with builder.scope("loss"):
            loss = LOSSES[call.name](x, y, **call.arguments).value
        return Graph((*self.graph.inputs, y.value), tuple(builder.nodes),
                     (loss, *moved, *self.graph.outputs)), y.value

    def gradients(self, joint: Graph, wrt: list[Value]) -> Module:
        outputs = (joint.outputs[0], *joint.outputs[-len(wrt):])
        names = ("loss", *(f"grad.{self.names[v].lstrip('@')}" for v in wrt))
        meta = {**self.module.meta, "loss": self.recipe.loss}
        return replace(self.module, graph=Graph(joint.inputs, joint.nodes, outputs),
                       output_names=names, donations=(), meta=meta)

    # ---- the optimizer ---------------------------------------------------------------------

    def step(self, joint: Graph, wrt: list[Value], calm: Graph, target: Value | None) -> Module:
        loss, rest = joint.outputs[0], joint.outputs[1:]
        grads = rest[len(rest) - len(wrt):]
        moved = rest[:len(self.statistics)]
        builder = holding(joint)
        lr = builder.input(TensorType(wrt[0].type.dtype, ()), "lr")
        kept = {i: self.module.graph.inputs[i] for i in self.own_state.values()}
        state = State(builder, {self.names[v].lstrip("@"): v
                                 for v in (*self.initial, *kept.values())})
        self.initial |= {v: self.module.initial[i] for i, v in kept.items()
                         if i in self.module.initial}
        state.new.update({v: m for (v, _), m in zip(self.statistics, moved, strict=True)})
        state.new.update({kept[i]: rest[len(moved) + out] for out, i in self.own_state.items()})
        names = {v: n for n, v in state.named.items()}
        marked = [builder.emit(o.gradient, (Tracer(g, builder),), {"of": names[v]},
                               f"grad.{names[v]}") for v, g in zip(wrt, grads, strict=True)]
        with builder.scope("optimizer"):
            self.update(builder, state, lr, wrt, marked)
        predicted, eval_loss = self.predictions(builder, calm, joint, loss, target)
        donors = [v for v in state.inputs if v in state.new]
        held = set(state.inputs)
        inputs = (*(v for v in joint.inputs if v not in held), lr.value, *state.inputs)
        outputs = (loss, *(state.new[v] for v in donors), *predicted, eval_loss)
        state_names = {v: n for n, v in state.named.items()}
        model, unread = state_dict(self.module, self.constants, {
            n: v in self.initial and v.type.dtype is not dtypes.uint64  # not the random state
            for v, n in state_names.items()})
        meta = {**self.module.meta, "training": self.roles(model, target)}
        initial = {inputs.index(v): w for v, w in (self.initial | state.initial).items()}
        graph = renamed(Graph(inputs, tuple(builder.nodes), outputs), state_names)
        return replace(
            self.module, graph=graph, meta=meta, initial=initial, kept=unread,
            output_names=("loss", *(state_names[v] for v in donors),
                          *(f"predict.{self.module.output_names[i]}" for i in self.results),
                          "eval_loss"),
            donations=tuple((1 + i, inputs.index(v)) for i, v in enumerate(donors)))

    def update(self, builder: Builder, state: State, lr: Tracer, wrt: list[Value],
               grads: list[Tracer]) -> None:
        r = self.recipe
        call = optimizer_call(r.optimizer or "")
        row = OPTIMIZERS[call.name]
        counter = state.add("step", TensorType(dtypes.int64, ()), 0.0)
        apply, grads = self.accumulated(state, wrt, grads)
        t = o.cast(counter + 1, dtype=dtypes.float64)
        state.new[counter.value] = (
            counter + (1 if apply is None else o.cast(apply, dtype=dtypes.int64))).value
        if r.grad_norm:
            self.norm(state, apply, grads)
        names = {v: n for n, v in state.named.items()}
        arguments_of = self.own_arguments(call, {v: names[v] for v in wrt})
        for v, g in zip(wrt, clipped(grads, r.clip_value, r.clip_norm), strict=True):
            arguments = arguments_of[v]
            slots = {s: state.add(f"{names[v]}.{s}", v.type, start)
                     for s, start in row.slots(**arguments).items()}
            with builder.scope(f"{names[v]}.{call.name}"):
                p = Tracer(v, builder)
                rate = lr if lr.dtype is p.dtype else o.cast(lr, dtype=p.dtype)
                new, after = row.update(p, g, slots, t, rate, **arguments)
                for old, now in ((p, new), *((slots[s], x) for s, x in after.items())):
                    kept = now if apply is None else o.select(apply, now, old)
                    state.new[old.value] = kept.value

    def norm(self, state: State, apply: Any, grads: list[Any]) -> None:
        """Keeps the norm of the gradients in the state, for the trainer's log."""
        if GRAD_NORM in state.named:
            raise InputError("GT0615", f"the model has a parameter {GRAD_NORM!r} already",
                             hint="give it another name, or leave --grad-norm out")
        held = state.add(GRAD_NORM, TensorType(dtypes.float64, ()), 0.0)
        now = o.cast(global_norm(grads), dtype=dtypes.float64)
        state.new[held.value] = (now if apply is None else o.select(apply, now, held)).value

    def own_arguments(self, call: PassCall, names: Mapping[Value, str]) -> dict[
            Value, dict[str, Any]]:
        """The optimizer's arguments for each parameter, changed by those of its group; if several
        groups match its name, it is in the last one alone."""
        usual = {v: dict(call.arguments) for v in names}
        for v in names:
            if not self.recipe.decay_vectors and v.type.rank < 2:
                usual[v]["weight_decay"] = 0.0
        arguments_of = dict(usual)
        for pattern, arguments in (group_call(g, call.name) for g in self.recipe.groups):
            members = [v for v, name in names.items() if fnmatchcase(name, pattern)]
            if not members:
                raise UsageError("GT0623", f"no parameter is called {pattern!r}",
                                 hint=f"they are {listed(sorted(names.values()))}")
            arguments_of.update({v: {**usual[v], **arguments} for v in members})
        return arguments_of

    def accumulated(self, state: State, wrt: list[Value],
                    grads: list[Tracer]) -> tuple[Any, list[Any]]:
        """With accumulation: whether this call changes the parameters, and the mean gradients."""
        n = self.recipe.accumulate
        if n == 1:
            return None, list(grads)
        names = {v: k for k, v in state.named.items()}
        seen = state.add("micro", TensorType(dtypes.int64, ()), 0.0)
        apply = o.eq(seen, n - 1)
        state.new[seen.value] = o.select(apply, 0, seen + 1).value
        out = []
        for v, g in zip(wrt, grads, strict=True):
            held = state.add(f"{names[v]}.accumulated", v.type, 0.0)
            total = held + g
            state.new[held.value] = o.select(apply, 0.0, total).value
            out.append(total * (1.0 / n))
        return apply, out

    def predictions(self, builder: Builder, calm: Graph, joint: Graph, loss: Value,
                    target: Value | None) -> tuple[list[Value], Value]:
        """The model's outputs in inference, and their loss: those of the step's own forward pass
        if they are the same."""
        if calm is self.graph:
            outputs = joint.outputs[1 + len(self.statistics):]
            return [outputs[i] for i in self.results], loss
        with builder.scope("predict"):
            taken = {s.name for n in builder.nodes for s in sizes_of(n)}
            again = with_own_sizes(calm, taken)
            outs = inline(builder, again, [Tracer(v, builder) for v in calm.inputs])
            results = [outs[i].value for i in self.results]
            if target is None:
                return results, outs[self.module.output_names.index(self.recipe.loss)].value
            call = loss_call(self.recipe.loss, {})
            judged = LOSSES[call.name](outs[self.results[0]], Tracer(target, builder),
                                      **call.arguments)
        return results, judged.value

    def roles(self, model: Mapping[str, Sequence[str]], target: Value | None) -> dict[str, Any]:
        """The facts that a trainer needs about the graph, as JSON."""
        r = self.recipe
        call = optimizer_call(r.optimizer or "")
        return {"loss": r.loss, "optimizer": str(call), "target": r.target if target else "",
                "lr": r.lr if r.lr is not None else OPTIMIZERS[call.name].lr,
                "accumulate": r.accumulate,
                "model": model,
                "predict": [self.module.output_names[i] for i in self.results]}

