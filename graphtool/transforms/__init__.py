"""Derivatives, graph → graph: `reverse` applies the chain rule from the outputs, `forward` from
the inputs; `regions` differentiates branches and loops."""

from graphtool.transforms.forward import jvp
from graphtool.transforms.jacobian import jacobian
from graphtool.transforms.regions import bounded, lifted
from graphtool.transforms.reverse import backward, expand, grad, no_rule, unbroadcast, vjp

__all__ = ["backward", "bounded", "expand", "grad", "jacobian", "jvp", "lifted", "no_rule",
           "unbroadcast", "vjp"]
