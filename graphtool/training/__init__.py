"""Training graphs: `training` makes the joint graph, `programs` takes it apart for compilation."""

from graphtool.training.joint import training
from graphtool.training.programs import programs
from graphtool.training.recipe import LOSSES, Recipe
from graphtool.training.weights import with_weights

__all__ = ["LOSSES", "Recipe", "programs", "training", "with_weights"]
