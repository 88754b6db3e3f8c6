"""grad, train: training graphs from models, and the loop around a compiled training step."""

from __future__ import annotations

from typing import Annotated

import typer

from graphtool.cli import options, sources, terminal
from graphtool.errors import UsageError


def grad(graph: options.Graph,
         loss: Annotated[str, typer.Option(
             "--loss", help="mse, cross_entropy{axis=-1}, bce{from_logits=true}, huber, or the "
                            "name of an output.")],
         out: options.Out = None,
         wrt: Annotated[str, typer.Option(
             "--wrt", help="params, inputs, or names, with commas.")] = "params",
         optimizer: Annotated[str | None, typer.Option(
             "--optimizer", help="sgd, momentum, nesterov, adam, adamw, adagrad, rmsprop or lion; "
                                 "arguments in braces: adamw{weight_decay=0.01}.")] = None,
         target: Annotated[str, typer.Option("--target", help="The target's name.")] = "y",
         lr: Annotated[float | None, typer.Option(
             "--lr", min=0.0, help="The learning rate that `train` starts from.")] = None,
         clip_value: Annotated[float | None, typer.Option(
             "--clip-value", min=0.0, help="Bound of each gradient's elements.")] = None,
         clip_norm: Annotated[float | None, typer.Option(
             "--clip-norm", min=0.0, help="Bound of the norm of all gradients.")] = None,
         accumulate: Annotated[int, typer.Option(
             "--accumulate", min=1, help="Batches whose gradients make one step.")] = 1,
         decay_vectors: Annotated[bool, typer.Option(
             "--decay-vectors/--no-decay-vectors",
             help="Weight decay for biases and norms too.")] = True,
         batch_norm: Annotated[bool, typer.Option(
             "--batch-norm/--frozen-batch-norm",
             help="Statistics of the batch, or those of the model.")] = True,
         batch_norm_momentum: Annotated[float, typer.Option(
             "--batch-norm-momentum", min=0.0, max=1.0,
             help="How fast the running statistics move.")] = 0.1,
         dim: options.Dim = None) -> None:
    """The gradients of a loss; with an optimizer the whole training step, as one graph.

    Its state (parameters and the optimizer's) is donated: a compiled step updates it in place."""
    from graphtool import training
    from graphtool.passes.specialize import specialize
    module = sources.load(graph)
    if sizes := sources.sizes(dim):
        unknown = [n for n in sizes if n not in module.symbols]
        if unknown:
            raise UsageError("GT3011", f"there is no dim {unknown[0]!r}",
                             hint=f"the dims are {', '.join(module.symbols) or 'all static'}")
        module = specialize(module, **sizes)
    names = tuple(n.strip() for n in wrt.split(",") if n.strip())
    recipe = training.Recipe(loss, names, optimizer, target, lr, clip_value, clip_norm, accumulate,
                             decay_vectors, batch_norm, batch_norm_momentum)
    result = training.training(module, recipe)
    sources.save(result, out)
    terminal.note(f"{len(result.graph.nodes)} nodes, loss and "
                  + (f"{len(names)} kinds of gradients" if optimizer is None
                     else f"{len(result.donations)} donated states"))
