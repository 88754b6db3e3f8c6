"""Derivatives, graph → graph: `reverse` is the chain rule, `regions` knows branches and loops."""

from graphtool.autodiff.regions import bounded, lifted
from graphtool.autodiff.reverse import SEED, backward, expand, grad, no_rule, unbroadcast, vjp

__all__ = ["SEED", "backward", "bounded", "expand", "grad", "lifted", "no_rule", "unbroadcast",
           "vjp"]
