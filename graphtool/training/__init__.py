"""Training graphs: `training` makes the joint graph, `programs` takes it apart for compilation."""

from graphtool.training.joint import training
from graphtool.training.programs import programs
from graphtool.training.recipe import LOSSES, Recipe

__all__ = ["LOSSES", "Recipe", "programs", "training"]
