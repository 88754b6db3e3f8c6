"""Which layers are quantised, and how: the mix that stays below an error, a size or a time.

One layer at a time gives its error; the gain is known by cost or measured. Moves with much gain for
little error come first. How many of them are made is found by bisection, on the whole model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from graphtool.ir.graph import Module
from graphtool.passes.quantise.calibrate import Batch
from graphtool.passes.quantise.layers import Layer
from graphtool.passes.quantise.rewrite import LayerChoice
from graphtool.passes.quantise.weights import BITS, HALVES, Form
from graphtool.report.quantised import Effects, LayerTimes, QuantiseReport, expected, measured, row
from graphtool.target import Target
from graphtool.transforms.quantising import Prepared, float_bytes

_EXAMPLES = 8  # batches or examples that errors are computed on
_SLOWER = 1.1  # a layer stays in floats if it would take so many times as long
_GAIN = 0.95  # one without a weight, which does not become smaller, must take less than this part
_LEAST = 1e-12


@dataclass(frozen=True)
class Goals:
    """What the result must keep: a relative error, bytes of constants, microseconds in kernels."""

    error: float | None = None
    size: int | None = None
    time: float | None = None

    @property
    def any(self) -> bool:
        """Whether something is asked for."""
        return (self.error, self.size, self.time) != (None, None, None)


@dataclass(frozen=True, eq=False)
class Move:
    """One layer in one form, and what that gains: bytes, microseconds (None: unknown), error."""

    chosen: LayerChoice
    saved: int
    gained: float | None
    error: float


def mixed(ready: Prepared, goals: Goals, target: Target, data: Sequence[Batch],
          measure: bool = False, each: bool = True,
          sizes: Mapping[str, int] | None = None) -> tuple[Module, QuantiseReport]:
    """The module with the layers that the goals allow, and the report.

    `data` are the examples for errors (and one of them for `measure`); without `each`, errors of
    single layers are left out where no goal needs them. The cost model takes `sizes` for the
    symbols that they name.
    """
    search = _Mix(ready, target, _few(data, ready.module), measure, each or goals.any, sizes or {})
    taken = search.by_goals(goals) if goals.any else search.that_pay()
    return search.result(taken, goals)


def _few(data: Sequence[Batch], module: Module) -> list[Batch]:
    """Few examples: all batches, cut to some rows where they have many and the model leaves their
    number open."""
    rows = max(1, _EXAMPLES // max(len(data), 1))
    if any(isinstance(d, int) for v in module.graph.inputs for d in v.type.shape[:1]):
        return list(data[:_EXAMPLES])
    out: list[Batch] = []
    for batch in data[:_EXAMPLES]:
        heads = {n: len(a) if a.ndim else 0 for n, a in batch.items()}
        same = len(set(heads.values())) == 1 and next(iter(heads.values())) > _EXAMPLES
        out.append({n: a[:max(rows, 2)] for n, a in batch.items()} if same else batch)
    return out


class _Mix:
    def __init__(self, ready: Prepared, target: Target, data: Sequence[Batch], measure: bool,
                 each: bool, sizes: Mapping[str, int]) -> None:
        self.ready, self.target, self.data, self.measure = ready, target, data, measure
        self.sizes = sizes
        self.layers = [*ready.forms, *ready.left]
        self.effects = Effects(ready.module, data)
        self.before = self.times(ready.module)
        self.after: dict[Form, LayerTimes] = {}
        for form in dict.fromkeys(f for forms in ready.forms.values() for f in forms):
            every = [forms.get(form) or next(iter(forms.values()))
                     for forms in ready.forms.values()]
            self.after[form] = self.times(ready.with_layers(every))
        self.errors: dict[LayerChoice, float] = {
            c: self.effects.of(ready.with_layers([c]))
            for forms in ready.forms.values() for c in forms.values()} if each else {}
        self.why: dict[Layer, str] = dict(ready.left)

    def times(self, module: Module) -> LayerTimes:
        if self.measure:
            return measured(module, self.layers, self.target, self.data[0])
        return expected(module, self.layers, self.target, self.sizes)

    def gained(self, c: LayerChoice) -> float | None:
        """Microseconds that the layer takes less; None if one of the times is unknown."""
        name = c.layer.name
        old, new = self.before.layers.get(name), self.after[c.form].layers.get(name)
        return None if old is None or new is None else old - new

    def that_pay(self) -> list[LayerChoice]:
        """Every layer in the first form in which it does not become slower."""
        out = []
        for layer, forms in self.ready.forms.items():
            why = [self.slower(c) for c in forms.values()]
            fit = [c for c, no in zip(forms.values(), why, strict=True) if not no]
            out += fit[:1]
            if not fit:
                self.why[layer] = why[0]
        return out

    def slower(self, c: LayerChoice) -> str:
        """Why the layer should not have the form; empty if it may. Weights in blocks make products
        smaller, whatever their time is."""
        layer = c.layer
        old, new = self.before.layers.get(layer.name), self.after[c.form].layers.get(layer.name)
        if old is None or new is None:
            return "its time is not known" if layer.weight is None else ""
        small = c.form in HALVES or (c.form in BITS and layer.kind != "conv")
        if small or new <= old * (_GAIN if layer.weight is None else _SLOWER):
            return ""
        return f"{'slower' if new > old else 'hardly faster'} in {c.form}: {new:.2f} µs"

    # ---- goals ---------------------------------------------------------------------------------

    def by_goals(self, goals: Goals) -> list[LayerChoice]:
        """The first moves that reach the goals; all that the error allows if that is the only
        one."""
        moves = self.moves(goals)
        for c in (c for forms in self.ready.forms.values() for c in forms.values()):
            self.why.setdefault(c.layer, "gains nothing" if not any(
                m.chosen.layer is c.layer for m in moves) else "")

        def kept(count: int) -> list[LayerChoice]:
            return list({m.chosen.layer: m.chosen for m in moves[:count]}.values())
        if goals.size is None and goals.time is None:
            count = _most(len(moves), lambda n: self.effects.of(
                self.ready.with_layers(kept(n))) <= (goals.error or 0.0))
            words = f"its error would exceed {goals.error:g}"
        else:
            count = _least(len(moves), lambda n: self.reached(kept(n), goals))
            words = "not needed"
        taken = kept(count)
        for m in moves[count:]:
            if not any(c.layer is m.chosen.layer for c in taken):
                self.why[m.chosen.layer] = words
        return taken

    def moves(self, goals: Goals) -> list[Move]:
        """The moves that gain something, those with the most gain for their error first. A later
        form of a layer saves more than the earlier ones."""
        by_size = goals.size is not None
        moves = []
        for forms in self.ready.forms.values():
            for c in forms.values():
                saved = c.layer.nbytes - c.stored.nbytes
                move = Move(c, saved, self.gained(c), self.errors[c])
                if _gain(move, by_size) > 0:
                    moves.append(move)
        moves.sort(key=lambda m: -_gain(m, by_size) / (m.error ** 2 + _LEAST))
        out: list[Move] = []
        best: dict[Layer, float] = {}
        for m in moves:
            gain = _gain(m, by_size)
            if gain > best.get(m.chosen.layer, 0.0):
                best[m.chosen.layer] = gain
                out.append(m)
        return out

    def reached(self, taken: Sequence[LayerChoice], goals: Goals) -> bool:
        """Whether size and time are within the goals."""
        small = goals.size is None or self.size(taken) <= goals.size
        return small and (goals.time is None or self.time(taken) <= goals.time)

    def size(self, taken: Sequence[LayerChoice]) -> int:
        return float_bytes(self.ready.with_layers(taken))

    def time(self, taken: Sequence[LayerChoice]) -> float:
        """The original's time without what the layers gain, as far as that is known."""
        return self.before.total - sum(self.gained(c) or 0.0 for c in taken)

    def result(self, taken: Sequence[LayerChoice], goals: Goals) -> tuple[Module, QuantiseReport]:
        module = self.ready.finished(taken)
        by_layer: Mapping[Layer, LayerChoice] = {c.layer: c for c in taken}
        error = self.effects.of(module) if self.data else None
        now = self.times(module)
        rows = []
        for layer in self.layers:
            c = by_layer.get(layer)
            tried = c or next(iter(self.ready.forms.get(layer, {}).values()), None)
            rows.append(row(layer, c, self.before, now, self.errors.get(tried) if tried else None,
                                 "" if c else self.why.get(layer, "")))
        size = float_bytes(module)
        spent = now.total if self.measure else self.time(taken)
        met = (goals.error is None or (error or 0.0) <= goals.error) and (
            goals.size is None or size <= goals.size) and (
            goals.time is None or spent <= goals.time)
        examples = sum(max((len(a) for a in b.values() if a.ndim), default=1) for b in self.data)
        return module, QuantiseReport(
            rows, size, float_bytes(self.ready.module), spent, self.before.total,
            "measured" if self.measure else "cost", error, examples, met)


def _gain(m: Move, by_size: bool) -> float:
    """What a move is worth: microseconds, or bytes where these are asked for or no time is
    known."""
    return float(m.saved) if by_size or m.gained is None else m.gained


def _most(count: int, good: Callable[[int], bool]) -> int:
    """The greatest n ≤ count that is good, as far as bisection finds it; 0 always is."""
    if good(count):
        return count
    low, high = 0, count
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if good(middle) else (low, middle)
    return low


def _least(count: int, good: Callable[[int], bool]) -> int:
    """The least n that is good; count if none is."""
    low, high = -1, count
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if good(middle) else (middle, high)
    return high
