"""grad, train, weights: training graphs, the loop around a compiled step, and its results."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphtool.cli import options, saving, sources, terminal
from graphtool.cli.processors import note_of_threads
from graphtool.errors import UsageError, listed

if TYPE_CHECKING:
    from graphtool.train.loop import Trainer


# what `grad` makes of the model
Loss = Annotated[str, typer.Option(
    "--loss", help="The loss: mse, cross_entropy{axis=-1}, bce{from_logits=true}, huber, or the "
        "name "
    "of an output that is the loss.")]
Optimizer = Annotated[str | None, typer.Option(
    "--optimizer", help="sgd, momentum, nesterov, adam, adamw, adagrad, rmsprop or lion, with "
        "arguments "
    "in braces: adamw{weight_decay=0.01}.")]
Target = Annotated[str, typer.Option("--target",
    help="The name of the input that holds the target.")]
StartRate = Annotated[float | None, typer.Option(
    "--lr", min=0.0, help="The learning rate that `train` uses by default.")]
ClipValue = Annotated[float | None, typer.Option(
    "--clip-value", min=0.0, help="Clip each element of the gradients to this size.")]
ClipNorm = Annotated[float | None, typer.Option(
    "--clip-norm", min=0.0, help="Scale the gradients so that their common norm is at most this.")]
GradNorm = Annotated[bool, typer.Option(
    "--grad-norm", help="Let `train` log the norm of all gradients of each step, before clipping.")]
Accumulate = Annotated[int, typer.Option(
    "--accumulate", min=1, help="The number of batches whose gradients are added up for one step.")]
DecayVectors = Annotated[bool, typer.Option(
    "--decay-vectors/--no-decay-vectors", help="Whether weight decay also applies to biases "
    "and norms.")]
BatchNorm = Annotated[bool | None, typer.Option(
    "--batch-norm/--frozen-batch-norm", help="Whether all batch norms use the statistics of the "
    "batch, or those of the model. By default as the model says if it was captured in training "
    "mode; else those of the batch.")]
Momentum = Annotated[float | None, typer.Option(
    "--batch-norm-momentum", min=0.0, max=1.0, help="The weight of a batch in the running "
    "statistics of the batch norms that were captured in inference mode. By default each norm's "
    "own.")]
Checkpointed = Annotated[str, typer.Option(
    "--checkpoint", help="Modules, separated by commas, whose values the backward pass computes "
    "again instead of keeping them.")]
Groups = Annotated[list[str] | None, typer.Option(
    "--group", help="PATTERN{weight_decay=0}: other arguments of the optimizer for the parameters "
    "whose names match. May be repeated; a parameter belongs to the last group that matches it, "
    "and takes nothing from the others.")]
Bound = Annotated[int | None, typer.Option(
    "--bound", min=0, help="An upper bound for the trip count of each `while` loop that states "
        "none. "
    "The backward pass keeps the state of every iteration.")]

# how `train` goes through the data
Build = Annotated[Path, typer.Argument(
    metavar="BUILD", help="The build directory of a training graph.")]
Data = Annotated[Path, typer.Option(
    "--data", help="An .npz file with an array for each input and for the target.")]
Epochs = Annotated[int, typer.Option(
    "--epochs", min=0, help="How often to go through all examples.")]
Batch = Annotated[int, typer.Option("--batch", min=1, help="The number of examples in a step.")]
Rate = Annotated[float | None, typer.Option(
    "--lr", min=0.0, help="The learning rate; by default that of `grad`.")]
Val = Annotated[str, typer.Option(
    "--val", help="The share of examples to hold back for validation, as 0.2 or 20%, or an "
    ".npz file with such examples.")]
Schedule = Annotated[str, typer.Option(
    "--schedule", help="How the learning rate changes: constant, step{every=10,factor=0.1}, "
        "cosine or "
    "onecycle.")]
Warmup = Annotated[int, typer.Option(
    "--warmup", min=0, help="The number of steps over which the rate rises to its full value.")]
Patience = Annotated[int, typer.Option(
    "--patience", min=0, help="Stop after this many epochs without a better loss; 0 for never.")]
Seed = Annotated[int, typer.Option(
    "--seed", min=0, max=2**64 - 1, help="The seed of the split and of the order of "
    "examples.")]
Shuffle = Annotated[bool, typer.Option(
    "--shuffle/--no-shuffle", help="Whether each epoch has a new order.")]
Folder = Annotated[Path | None, typer.Option(
    "--checkpoint", help="The directory for checkpoints, the log and the loss curve.")]
Resume = Annotated[bool, typer.Option(
    "--resume", help="Continue from the checkpoint, if there is one.")]
SaveEvery = Annotated[int, typer.Option(
    "--save-every", min=0, help="The number of steps between checkpoints; 0 for one each epoch.")]
Start = Annotated[Path | None, typer.Option(
    "--start", help="A .safetensors file of weights to start from, with torch's names.")]


def grad(graph: options.Graph, loss: Loss, out: options.Out = None, wrt: options.Wrt = "params",
         optimizer: Optimizer = None, target: Target = "y", lr: StartRate = None,
         clip_value: ClipValue = None, clip_norm: ClipNorm = None, grad_norm: GradNorm = False,
         accumulate: Accumulate = 1, decay_vectors: DecayVectors = True,
         batch_norm: BatchNorm = None, batch_norm_momentum: Momentum = None,
         checkpoint: Checkpointed = "",
         group: Groups = None, bound: Bound = None, dim: options.Dim = None,
         capture: options.Capture = None) -> None:
    """Add a loss and its gradients to a graph; with --optimizer, a whole training step.

    Parameters and the optimizer's state become inputs and outputs of the graph. A compiled step
    updates them in place."""
    from graphtool.passes.specialize import specialize
    from graphtool.transforms import training
    module, _, text = sources.read(graph, sources.captured(capture))
    if sizes := sources.sizes(dim, module.symbols):
        module = specialize(module, **sizes)
    names, marked = (tuple(n.strip() for n in given.split(",") if n.strip())
                     for given in (wrt, checkpoint))
    recipe = training.Recipe(
        loss, names, optimizer, target, lr=lr, clip_value=clip_value, clip_norm=clip_norm,
        grad_norm=grad_norm, accumulate=accumulate, decay_vectors=decay_vectors,
        batch_norm=batch_norm, batch_norm_momentum=batch_norm_momentum, checkpoint=marked,
        bound=bound, groups=group or ())
    result = training.training(module, recipe)
    for note in filter(None, (training.gradient_note(module),
                              training.norm_note(module, recipe))):
        terminal.note(f"note: {note}")
    saving.save(result, out, graph, "grad", text)
    count = sum(name.startswith("grad.") for name in result.output_names)
    terminal.note(f"{len(result.graph.nodes)} nodes, loss and "
                  + (f"{count} gradient{'s' * (count != 1)}" if optimizer is None
                     else f"{len(result.donations)} donated states")
                  + (f"; the backward pass computes {again} nodes of the forward pass again"
                     if (again := result.meta.get("recomputed")) else ""))


def train(build: Build, data: Data, epochs: Epochs = 10, batch: Batch = 64, lr: Rate = None,
          val: Val = "0", schedule: Schedule = "constant", warmup: Warmup = 0,
          patience: Patience = 0, seed: Seed = 0, shuffle: Shuffle = True,
          checkpoint: Folder = None, resume: Resume = False, save_every: SaveEvery = 0,
          start: Start = None, threads: options.Threads = None) -> None:
    """Train with a compiled step.

    If it is killed, the same command with --resume continues and ends with the same bits."""
    from graphtool.io.manifest import read_manifest
    from graphtool.train import checkpoint as checkpoints
    from graphtool.train.dataset import load
    from graphtool.train.loop import Plan, Trainer
    from graphtool.train.model import TrainModel
    if resume and checkpoint is None:
        raise UsageError("GT3050", "--resume needs the directory", hint="--checkpoint run/")
    model = TrainModel(build, threads)
    note_of_threads(read_manifest(build), threads)
    examples = load(data, model, _held(val), seed, shuffle)
    if start is not None:
        checkpoints.start(model, checkpoints.read(start), str(start))
    plan = Plan(epochs, batch, lr, seed, shuffle, schedule, warmup, patience, checkpoint, resume,
                save_every)
    trainer = Trainer(model, examples, plan, on_epoch=lambda row: terminal.note(_epoch_line(row)))
    if trainer.first and checkpoint is None:
        terminal.note("nothing is kept: --checkpoint DIR writes the weights after each epoch")
    elif trainer.first and checkpoint and not resume and (checkpoint / checkpoints.MODEL).exists():
        terminal.note(f"{checkpoint} has an earlier run, which this one replaces; --resume "
                      "continues it")
    with _progress(trainer):
        done = trainer.run()
    model.world.leave()
    if not trainer.first:
        return
    best = f", best loss {done.best:.6g}" if done.epoch else ""
    terminal.note(f"{done.epoch} epoch{'s' * (done.epoch != 1)}{best}"
                  + (f"; weights in {checkpoint / checkpoints.MODEL}" if checkpoint else ""))


def _held(val: str) -> float | Path:
    """A share, or the file that the text names."""
    try:
        share = float(val[:-1]) / 100 if val.endswith("%") else float(val)
    except ValueError:
        return Path(val)
    if not 0 <= share <= 1:
        raise UsageError("GT3001", f"--val needs a number from 0 to 1, or a file, got {val}")
    return share


def _epoch_line(row: dict[str, Any]) -> str:
    shown = [f"epoch {row['epoch'] + 1}"]
    shown += [f"{k} {v:.5g}" for k, v in row.items() if k.endswith(("_loss", "_accuracy", "_mae"))]
    return "  ".join([*shown, f"{row['examples_per_second']:.0f} examples/s"])


@contextmanager
def _progress(trainer: Trainer) -> Iterator[None]:
    """A progress bar with loss and speed on a terminal; nothing elsewhere."""
    if not sys.stderr.isatty() or not trainer.first:
        yield
        return
    from rich.progress import Progress, TextColumn
    with Progress(*Progress.get_default_columns(), TextColumn("{task.fields[shown]}"),
                  console=terminal.console(sys.stderr)) as bar:
        per = len(trainer.cuts)
        task = bar.add_task("training", total=trainer.plan.epochs * per, shown="")
        began, first = time.perf_counter(), list[int]()

        def on_step(row: dict[str, Any]) -> None:
            if not first:
                first.append(row["step"])
            done = (row["step"] + 1 - first[0]) * trainer.plan.batch
            rate = done / (time.perf_counter() - began)
            bar.update(task, completed=row["step"] + 1,
                       shown=f"loss {row['loss']:.4f}  {rate:.0f} examples/s")
        trainer.on_step = on_step
        yield


def weights(graph: options.Graph,
            source: Annotated[Path, typer.Option(
                "--from", help="A .safetensors file, such as run/model.safetensors, or a graph or "
                "a model with the same names.")],
            out: options.Out = None) -> None:
    """Put trained weights into a graph, by the names of the parameters."""
    from graphtool.ir.graph import is_constant
    from graphtool.ir.text import value_names
    from graphtool.transforms.training import with_weights
    given = sources.read(graph)
    arrays = _arrays_of(source)
    module, count = with_weights(given.module, arrays, str(source))
    saving.save(module, out, graph, "trained", given.text)
    terminal.note(f"{count} parameters from {source}")
    names = value_names(module.graph)
    kept = [name for n in module.graph.nodes if is_constant(n) and n.attrs["param"]
            and (name := names[n.outputs[0]].removeprefix("@")) not in arrays]
    if kept:
        terminal.note(f"not in {source}, and left as they are: {listed(kept)}")


def _arrays_of(source: Path) -> dict[str, Any]:
    """The arrays of a file of weights, or of the weights of a graph or a model, by name."""
    from graphtool.importers import Importer, what
    from graphtool.importers.kinds import GRAPH
    from graphtool.ir.graph import is_constant
    from graphtool.ir.text import value_names
    from graphtool.train.checkpoint import read
    kind = what(str(source))
    if kind is not GRAPH and not isinstance(kind, Importer):
        return read(source)
    module = sources.load(str(source))
    names = value_names(module.graph)
    return {names[n.outputs[0]].removeprefix("@"): n.attrs["data"].source
            for n in module.graph.nodes if is_constant(n)}
