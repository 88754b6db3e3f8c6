"""Derivatives, graph → graph: `reverse` is the chain rule, `forward` turns it round,
`regions` knows branches and loops."""

from graphtool.autodiff.forward import jvp
from graphtool.autodiff.regions import bounded, lifted
from graphtool.autodiff.reverse import SEED, backward, expand, grad, no_rule, unbroadcast, vjp

__all__ = ["SEED", "backward", "bounded", "expand", "grad", "jvp", "lifted", "no_rule",
           "unbroadcast", "vjp"]
