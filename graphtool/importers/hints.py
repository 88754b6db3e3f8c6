"""Options to propose: what states the inputs of a model, and the `--dynamic` options that state
beforehand what an import had to require of open sizes."""

from __future__ import annotations

from graphtool.ir.graph import Module
from graphtool.ir.run_sizes import bare
from graphtool.symbolic import text
from graphtool.symbolic.equations import of_one, satisfying

TAKE_INPUTS = "import, build and emit take --inputs 'x:f32[1,3,224,224]'"


def dynamic_options(module: Module) -> list[str]:
    """`H=16.. step 16` and `M=N`: sizes that satisfy the module's conditions. A condition on
    several sizes that names none of them alone has no such option."""
    out, alone = {}, of_one(module.requires, module.symbols)
    for name, s in module.symbols.items():
        rows = alone.get(name, [])
        if not rows and s.step == 1:
            continue
        sizes = satisfying(s, rows)
        if sizes is not None:
            high = "" if s.hi is None else s.hi
            out[name] = f"{name}={sizes[0]}..{high} step {sizes[1]}"
    for e in module.requires:
        if (one := bare(e.left)) is not None and len(e.names) > 1:
            out[one.name] = f"{one.name}={text(e.right).replace(' ', '')}"
    return list(out.values())
