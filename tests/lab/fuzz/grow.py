"""From a seed to a case: which operators, how many, with what sizes."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.lab.fuzz import contracting, elementwise, flow, shapes  # noqa: F401 (fill the table)
from tests.lab.fuzz.growing import Case, Growing, Unfit
from tests.lab.fuzz.table import ROWS

NODES = 12


def case(seed: int, only: Sequence[str] = (), nodes: int = NODES) -> Case:
    """The case of a seed: the same on every machine."""
    rng = random.Random(seed)
    g = Growing(rng, special=rng.random() < 0.25, empty=rng.random() < 0.15)
    symbolic = rng.choice((2, 3)) if rng.random() < 0.25 else None
    names = list(only or ROWS)
    wanted = rng.randint(max(1, nodes // 3), nodes)
    for _ in range(8 * wanted):
        if len(g.nodes) >= wanted:
            break
        mark = (len(g.nodes), len(g.pool), len(g.ops))
        try:
            ROWS[rng.choice(names)](g)
        except Unfit:
            made = {n for node in g.nodes[mark[0]:] for n in node.output}
            del g.nodes[mark[0]:], g.ops[mark[2]:], g.typed[mark[2]:]
            g.pool = [v for v in g.pool if v.name not in made]
    return Case(seed, g.inputs, tuple(g.ops), tuple(g.typed), g.model(symbolic), g.every(),
                symbolic is not None)
