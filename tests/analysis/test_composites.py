"""A relu that was taken apart is read as one; what only resembles it is not."""

from __future__ import annotations

from typing import Any

import pytest

from graphtool import dtypes, passes
from graphtool import ops as o
from graphtool.analysis.composites import notes, relus
from graphtool.importers import import_source
from graphtool.ir import serial
from graphtool.ir.graph import TensorType
from graphtool.ir.listing import ListingStyle, listing
from graphtool.ir.trace import trace
from graphtool.report.stats import stats
from tests.cli.conftest import DIGITS
from tests.report.graphs import module

X = TensorType(dtypes.float32, (4,))
CASES = [
    (lambda x, y: o.select(o.le(x, 0), 0, x), 1), (lambda x, y: o.select(o.le(x, 0.0), 0.0, x), 1),
    (lambda x, y: o.select(o.le(x, 0), 0, y), 0), (lambda x, y: o.select(o.le(x, 1), 0, x), 0),
    (lambda x, y: o.select(o.le(x, 0), x, 0), 0), (lambda x, y: o.select(o.lt(x, 0), 0, x), 0),
    (lambda x, y: o.select(o.le(x, y), 0, x), 0), (lambda x, y: o.relu(x), 0)]


@pytest.mark.parametrize(("body", "count"), CASES)
def test_what_is_a_relu(body: Any, count: int) -> None:
    assert len(relus(trace(body, [X, X]).nodes)) == count


def test_an_optimised_graph_reads_as_it_was() -> None:
    """The notes are comments: the listing is read back as the same graph."""
    m = passes.run(import_source(DIGITS), "simplify,fold,freeze,cse,decompose,dce")
    text = "\n".join(listing(m, ListingStyle("embed", notes=notes(m.graph))))
    assert text.count("  # relu(") == 3
    assert list(listing(serial.loads(text))) == list(listing(serial.loads(
        "\n".join(listing(m, ListingStyle("embed"))))))


def test_regions_are_read_too() -> None:
    inner = trace(lambda x: (o.select(o.le(x, 0), 0, x),), [X])
    outer = trace(lambda c, x: o.cond(c, x, then=inner, orelse=inner),
                  [TensorType(dtypes.bool_, ()), X])
    assert set(notes(outer).values()) == {"relu(x0)"}


def test_patterns_of_fusion_name_it() -> None:
    m = module(trace(lambda a, b: o.relu(o.matmul(a, b)), [
        TensorType(dtypes.float32, (4, 4))] * 2))
    (row,) = stats(passes.run(m)).fusions
    assert row.pattern.endswith(" → relu")
