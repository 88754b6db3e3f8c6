"""Derivatives, graph → graph: `reverse` is the chain rule, `forward` the same from
the inputs on, `regions` knows branches and loops."""

from graphtool.transforms.forward import jvp
from graphtool.transforms.regions import bounded, lifted
from graphtool.transforms.reverse import SEED, backward, expand, grad, no_rule, unbroadcast, vjp

__all__ = ["SEED", "backward", "bounded", "expand", "grad", "jvp", "lifted", "no_rule",
           "unbroadcast", "vjp"]
