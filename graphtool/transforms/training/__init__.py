"""Training graphs: `training` makes the joint graph; `programs` divides it into programs to
compile."""

from graphtool.transforms.training.joint import training
from graphtool.transforms.training.norms import norm_note
from graphtool.transforms.training.programs import programs
from graphtool.transforms.training.recipe import LOSSES, Recipe
from graphtool.transforms.training.weights import with_weights
from graphtool.transforms.training.wrt import gradient_note

__all__ = ["LOSSES", "Recipe", "gradient_note", "norm_note", "programs", "training", "with_weights"]
