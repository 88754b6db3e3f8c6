"""What the kernels of a program assume of the numbers that come in; docs/numerics.md says more."""

from __future__ import annotations

from graphtool.assume import Assumption
from graphtool.io.manifest_rows import Choice
from graphtool.ir.plan import chosen_plan
from graphtool.kernels.choice.alternatives import alternative
from graphtool.kernels.choice.sites import is_site, site
from graphtool.kernels.record import KERNELS
from graphtool.loops.ir import Template
from graphtool.loops.program import Kernel
from graphtool.loops.walk import statements


def assumption(made: Choice | None, kernel: Kernel) -> Assumption:
    """What a step assumes: by the choice of its kernel if there was one, else by the kernel."""
    if made is not None and is_site(made.site):
        found, plan = site(made.site), chosen_plan(made)
        return alternative(found, plan).assumes(found, plan)
    used = [KERNELS[s.kernel] for s in statements(kernel.body)
            if isinstance(s, Template) and s.kernel in KERNELS]
    return "finite" if any(k.assumes == "finite" for k in used) else "nothing"
