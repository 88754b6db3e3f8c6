"""A test in C for each kernel of a program in plain C: inputs by a formula, and expected numbers
from the interpreter of programs, which shares no code with the C.

Of a loop around the sums four iterations are computed and compared, the first two, one in the
middle and the last, so that borders and the interior are among them; loops that sum run in full.
NAME_test_KERNEL() returns how many numbers differ, and NAME_test() the sum of these; they need no
system and no memory but static arrays. NAME_test_main.c prints them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool.dtypes import DType
from graphtool.emit.kernels import kernel_dims
from graphtool.emit.typed import array, element
from graphtool.io.weights import Weight
from graphtool.loops.interp import KernelRun
from graphtool.loops.ir import Accumulate, Apply, For, Let, Load, Stmt, Store
from graphtool.loops.program import Buffer, Kernel, Param, Program, Run, counters, runs
from graphtool.loops.walk import each, statements, values
from graphtool.scalars.table import BY_NAME

Array = np.ndarray[Any, Any]
CLOSE = 1e-5  # of kernels with functions that no two libraries round alike, as exp


@dataclass(frozen=True, slots=True)
class KernelTest:
    """One test: the kernel, how many numbers it compares, and whether all bits must be equal."""

    kernel: str
    function: str
    compared: int
    exact: bool


class Sampled(KernelRun):
    """A kernel of which independent loops run three iterations; `written` has the elements that
    it stored, by buffer."""

    def __init__(self, kernel: Kernel, arrays: Mapping[str, Array], env: Mapping[str, int]) -> None:
        super().__init__(kernel, arrays, env, 1)
        self.written: dict[str, set[int]] = {}
        read, stored = _buffers(kernel.body)
        self.whole = not read.isdisjoint(stored)  # what is not computed could be read

    def stmt(self, s: Stmt) -> None:
        """Run one statement, a loop perhaps in part."""
        if isinstance(s, For) and isinstance(s.extent, int) and not self.whole and _sums_inside(s):
            for i in sorted({0, 1, s.extent // 2, s.extent - 1} & set(range(s.extent))):
                self.env[s.iter.name] = i
                self.body(s.body)
            return
        if isinstance(s, Store):
            self.written.setdefault(s.buffer, set()).add(self.at(s.buffer, s.index))
        super().stmt(s)


def _buffers(body: tuple[Stmt, ...]) -> tuple[set[str], set[str]]:
    """The buffers that are read, and those that are written."""
    inside = list(statements(body))
    return ({e.buffer for s in inside for e in each(values(s)) if isinstance(e, Load)},
            {s.buffer for s in inside if isinstance(s, Store)})


def _sums_inside(loop: For) -> bool:
    """Whether each iteration of a loop has its own sums."""
    inside = list(statements(loop.body))
    own = {s.name for s in inside if isinstance(s, Let)}
    return all(s.name in own for s in inside if isinstance(s, Accumulate))


def is_exact(kernel: Kernel) -> bool:
    """Whether all that a kernel computes is rounded as IEEE 754 says."""
    inside = list(statements(kernel.body))
    called = {e.fn for s in inside for e in each(values(s)) if isinstance(e, Apply)}
    called |= {s.fn for s in inside if isinstance(s, Accumulate) and s.fn}
    return all(fn in _MOVES or BY_NAME[fn].prec > 0 or BY_NAME[fn].exact for fn in called)


_MOVES = frozenset({"select", "cast", "bitcast"})  # expressions without a row


def made_up(n: int, seed: int, dtype: DType) -> Array:
    """The inputs that the C makes: bits of a hash of the place, floats between -2 and 2."""
    u = (np.arange(n, dtype=np.uint64) + seed).astype(np.uint32) * np.uint32(2654435761)
    u = (u ^ (u >> np.uint32(15))) * np.uint32(2246822519)
    u ^= u >> np.uint32(13)
    if dtype.kind == "bool":
        return (u >> np.uint32(31)).astype(np.bool_)
    if dtype.is_float:
        x = ((u >> np.uint32(8)).astype(np.int64) - (1 << 23)) / (1 << 22)
        return x.astype(dtype.numpy)
    small = (u >> np.uint32(24)).astype(np.int64) - (128 if dtype.kind == "int" else 0)
    return small.astype(dtype.numpy)


_HEAD = """\
/* Tests of the kernels of {name}: each returns how many numbers differ. Generated; do not edit. */
#include "{name}_kernels.h"
{weights}#include <math.h>
#include <stdint.h>
#include <string.h>

int32_t {name}_test(void);

static uint32_t made_up(uint32_t place)
{{
    uint32_t u = place * 2654435761u;
    u = (u ^ (u >> 15)) * 2246822519u;
    return u ^ (u >> 13);
}}
"""
_FILL = """
static void fill_{t}({c} *x, uint32_t n, uint32_t seed)
{{
    for (uint32_t i = 0u; i < n; i++) {{
        x[i] = {value};
    }}
}}
"""
_DIFFER = """
static int32_t differ_{t}(const {c} *got, const {c} *want, const int32_t *at, int32_t n, int exact)
{{
    int32_t count = 0;
    for (int32_t i = 0; i < n; i++) {{
        const {c} x = got[at[i]];
        const {c} y = want[i];
        {test}
    }}
    return count;
}}
"""
_BITS = "count += (memcmp(&x, &y, sizeof x) != 0) ? 1 : 0;\n        (void)exact;"
_FLOATS = """const int same = (memcmp(&x, &y, sizeof x) == 0) || ((x != x) && (y != y));
        const int close = !(exact != 0) && ({abs}(x - y) <= ({c})1e-5 + ({c})1e-5 * {abs}(y));
        count += (same || close) ? 0 : 1;"""


def unit_tests(program: Program, store: Mapping[str, Weight], symbols: Mapping[str, str]
               ) -> tuple[dict[str, str], list[KernelTest]]:
    """NAME_test.c and NAME_test_main.c, and a row for each test, one for each kernel. `symbols` are
    the C arrays of weights, by buffer."""
    first: dict[str, Run] = {}
    for run in runs(program.steps):
        first.setdefault(run.kernel, run)
    kernels = {k.name: k for k in program.kernels}
    tests = [_Test(program, kernels[k], run, store, symbols, seed)
             for seed, (k, run) in enumerate(first.items(), 1)]
    kinds = {d.short: d for t in tests for d in t.kinds}
    name = program.name
    room = {(d.short, n): max(t.room.get((d.short, n), 0) for t in tests)
            for d in kinds.values() for n in range(9) if any((d.short, n) in t.room for t in tests)}
    head = _HEAD.format(name=name, weights=f'#include "{name}_weights.h"\n' if symbols else "")
    head += "".join(_FILL.format(t=d.short, c=element(d), value=_value(d)) for d in kinds.values()
                    if not d.is_narrow)
    head += "".join(_DIFFER.format(t=d.short, c=element(d), test=_test_of(d))
                    for d in {t.short: t for x in tests for t in x.stored}.values())
    head += "\n" + "".join(f"static {element(kinds[t])} {t}_{n}[{size}];\n"
                           for (t, n), size in room.items())
    calls = "".join(f"    count += {t.row.function}();\n" for t in tests)
    end = f"int32_t {name}_test(void)\n{{\n    int32_t count = 0;\n{calls}    return count;\n}}\n"
    declared = "".join(f"int32_t {t.row.function}(void);\n" for t in tests)
    return ({f"{name}_test.c": "\n".join([head, declared, *(t.text for t in tests), end]),
             f"{name}_test_main.c": _main(name, declared, [t.row for t in tests])},
            [t.row for t in tests])


def _main(name: str, declared: str, rows: Sequence[KernelTest]) -> str:
    """A program that prints what each test finds."""
    shown = "".join(f'    failed += shown("{t.kernel}", {t.function}());\n' for t in rows)
    return (f"/* Prints what the tests of {name} find. */\n"
            f"#include <stdint.h>\n#include <stdio.h>\n{declared}\n"
            "static int shown(const char *kernel, int32_t count)\n{\n"
            '    (void)printf("%s: %ld differences\\n", kernel, (long)count);\n'
            f"    return count != 0;\n}}\n\nint main(void)\n{{\n    int failed = 0;\n{shown}"
            "    return failed != 0;\n}\n")


def _value(d: DType) -> str:
    bits = "made_up(i + seed)"
    if d.kind == "bool":
        return f"(uint8_t)({bits} >> 31)"
    if d.is_float:
        return f"({d.c})((double)((int32_t)({bits} >> 8) - 8388608) / 4194304.0)"
    return f"({d.c})((int32_t)({bits} >> 24){' - 128' if d.kind == 'int' else ''})"


def _test_of(d: DType) -> str:
    if not d.is_float or d.is_narrow:
        return _BITS
    return _FLOATS.format(c=d.c, abs="fabsf" if d.bits == 32 else "fabs")


class _Test:
    """The text of one test, and what it needs."""

    def __init__(self, program: Program, kernel: Kernel, run: Run, store: Mapping[str, Weight],
                 symbols: Mapping[str, str], seed: int) -> None:
        buffers, digests = {b.name: b for b in program.buffers}, dict(program.weights)
        self.kinds: set[DType] = set()
        self.room: dict[tuple[str, int], int] = {}
        self.seed, self.lines, self.tables = seed * 1000003, list[str](), list[str]()
        self.function = f"{program.name}_test_{kernel.name}"
        given: dict[str, Array] = {}
        args = []
        for p, name in zip(kernel.params, run.args, strict=True):
            b = buffers[name]
            if b.space == "weight":
                given[p.name] = store[digests[name]].source.reshape(-1)
                args.append(symbols[name])
            else:
                args.append(self.filled(p, b, given))
        names = {s.name: 0 for s in counters(program.steps)}
        used = kernel_dims(kernel, {n: n for n in names})
        machine = Sampled(kernel, given, names)
        with np.errstate(all="ignore"):
            machine.run()
        exact, compared = is_exact(kernel), 0
        self.stored: list[DType] = []
        call = ", ".join((*args, *("0" for _ in used)))
        self.lines.append(f"{program.name}_{kernel.name}({call});")
        for p, arg in zip(kernel.params, args, strict=True):
            at = sorted(machine.written.get(p.name, ()))
            if at:
                compared += len(at)
                self.compare(kernel, p, arg, at, given[p.name], exact)
        body = "".join(f"    {line}\n" for line in self.lines)
        self.text = "".join(f"{t}\n" for t in self.tables) + (
            f"int32_t {self.function}(void)\n{{\n    int32_t count = 0;\n{body}"
            "    return count;\n}\n")
        self.row = KernelTest(kernel.name, self.function, compared, exact)

    def filled(self, p: Param, b: Buffer, given: dict[str, Array]) -> str:
        """The array of a parameter, which gets numbers; those of narrow floats stand in the C."""
        assert isinstance(b.size, int)
        n, seed = max(b.size, 1), self.seed + 7919 * len(given)
        given[p.name] = made_up(n, seed, p.dtype)
        place = sum(t == p.dtype.short for t, _ in self.room)
        self.kinds.add(p.dtype)
        self.room[p.dtype.short, place] = n
        name = f"{p.dtype.short}_{place}"
        if p.dtype.is_narrow:
            table = f"{self.function}_{p.name}"
            self.tables.append(array(table, p.dtype, given[p.name].tobytes(), "static const"))
            self.lines.append(f"(void)memcpy({name}, {table}, sizeof {table});")
        else:
            self.lines.append(f"fill_{p.dtype.short}({name}, {n}u, {seed % (1 << 32)}u);")
        return name

    def compare(self, kernel: Kernel, p: Param, arg: str, at: list[int], got: Array, exact: bool
                ) -> None:
        """Add the numbers that a kernel should store in a parameter, and the comparison."""
        self.stored.append(p.dtype)
        stem = f"{self.function}_{p.name}"
        places = np.array(at, np.int32)
        self.tables += [array(f"{stem}_at", dtypes.int32, places.tobytes(), "static const"),
                        array(f"{stem}_want", p.dtype, got[places].tobytes(), "static const")]
        self.lines.append(f"count += differ_{p.dtype.short}({arg}, {stem}_want, {stem}_at, "
                          f"{len(at)}, {int(exact)});")
