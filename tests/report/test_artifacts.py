"""Programs and builds as text: the interface, the memory plan, steps, kernels, functions."""

from __future__ import annotations

from pathlib import Path

from graphtool import dtypes, passes
from graphtool import ops as o
from graphtool.ir.graph import TensorType
from graphtool.ir.trace import trace
from graphtool.loops.program import Bind, Branch, Buffer, Port, Program, Repeat, Run, Times
from graphtool.lower import lower
from graphtool.report.artifacts import functions, head_lines, kernel_lines, memory, step_lines
from graphtool.report.table import Table, stacked
from graphtool.symbolic import Symbol
from graphtool.target import named
from tests.loops.test_totals import INNER, OTHER, RUN, N, program
from tests.report.graphs import module

F = dtypes.float32


def small() -> Program:
    """The sums of the rows' exponentials, then those divided by them."""
    t = TensorType(F, (6, 8))
    m = passes.run(module(trace(lambda x: o.softmax(x, axis=0), [t])), "decompose,fuse")
    return lower(m, named("generic", 1), name="small")


def test_a_program_in_full() -> None:
    p = small()
    assert head_lines(p) == [
        "program small: for generic, vectors of 1 float, at most 1 thread, precision default, with "
        "checks of indices", "input x0: f32[6,8]", "output y0: f32[6,8]",
        "4 calls of 4 kernels move 1280 bytes; arena 256 bytes, of which 0 are workspace"]
    assert memory(p).rows == [
        ("input", "in0", "f32", "48", "192", "", "0..1", "x0"),
        ("output", "out0", "f32", "48", "192", "", "3", "softmax"),
        ("arena", "b2", "f32", "8", "32", "192", "0..1", "softmax.reduce_max"),
        ("arena", "b3", "f32", "48", "192", "0", "1..3", "softmax.exp"),
        ("arena", "b4", "f32", "8", "32", "192", "2..3", "softmax.reduce_sum")]
    assert step_lines(p) == [
        "   0  k0(in0 -> b2)  softmax  then wait", "   1  k1(in0, b2 -> b3)  softmax  then wait",
        "   2  k2(b3 -> b4)  softmax  then wait", "   3  k3(b3, b4 -> out0)  softmax"]
    assert list(kernel_lines(p))[-5:] == [
        "", "kernel k3(x0 f32, x1 f32, y0 f32 written) on one thread", "  for i0 < 6",
        "    parallel simd for i1 < 8", "      y0[8*i0 + i1] = x0[8*i0 + i1] / x1[i1]"]


def test_steps_of_control_flow() -> None:
    """The numbers are those of the memory plan: a test of a flag takes one too."""
    size = Symbol("found", 0, None)
    p = program(RUN, Branch("a", (RUN,), (OTHER,), "cond"), Repeat("a", (OTHER,), (RUN,), "loop"),
                Times(INNER, 5, (RUN,), "scan"), Bind(size, "a", 0, 9))
    assert step_lines(p) == [
        "   0  k0(a)  then wait", "      if a  cond", "   2    k0(a)  then wait", "      else",
        "   3    k1(a)  then wait", "      repeat  loop", "   6    k1(a)  then wait",
        "      while a", "   8    k0(a)  then wait", "      for i < 5  scan",
        "  10    k0(a)  then wait", "      found = a[0], at most 9"]
    assert [row[6] for row in memory(p).rows] == ["", "0..11"]
    assert N in p.dims


def test_donations_and_reads() -> None:
    p = Program("p", (), (Port("w", F, (4,)),), (Port("w.new", F, (4,)),),
                (Buffer("in0", F, 4, "input"), Buffer("out0", F, 4, "output")), (), (),
                donations=((0, 0),))
    assert "output w.new: f32[4], in the place of w" in head_lines(p)


def test_functions_of_a_header(tmp_path: Path) -> None:
    header = tmp_path / "m.h"
    header.write_text("/* int old(int); */\n#define f(x) g(x)\nint m_run(const void *w,\n"
                      "    int n);\nsize_t m_bytes(void);\nconst char *m_text(int s);\n"
                      "static int x;\n")
    assert functions(header) == ["m_run", "m_bytes", "m_text"]


def test_a_run_names_its_kernel() -> None:
    assert step_lines(program(Run("k0", ("a",), "exp", "m.py:3", barrier=False))) == [
        "   0  k0(a)  exp  at m.py:3"]


def test_a_table_on_a_narrow_terminal() -> None:
    """Long texts stand below their row; numbers and short words stay in columns."""
    t = Table(("µs", "kernel", "nodes", "source"), [
        (7.5, "k7", "block3.conv + block3.bn", "samples/digits.py:33"),
        (12, "k10", "head", "samples/digits.py:52 forward")])
    assert stacked(t, 100) == []
    assert stacked(t, 50) == [
        " µs  kernel", "    nodes  source", "7.5  k7",
        "    block3.conv + block3.bn  samples/digits.py:33", " 12  k10",
        "    head  samples/digits.py:52 forward"]
    long = Table(("name of a row that is long", "n"), [("x" * 60, 1)])
    assert stacked(long, 40) == [  # nothing is cut
        "name of a row that is long", "    n", "x" * 40, "  " + "x" * 20, "    1"]
