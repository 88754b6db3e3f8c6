"""The training loop: epochs, validation, schedule, log, checkpoints, early stopping.

All of it depends on the plan, the data and the step's number only, so that a run that was killed
continues from its last checkpoint to exactly the same weights.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from graphtool.dtypes import of_numpy
from graphtool.errors import InputError, UsageError
from graphtool.io import files
from graphtool.train import checkpoint, curve
from graphtool.train.dataset import Data, cuts, order_of, padded
from graphtool.train.model import TrainModel
from graphtool.train.schedule import schedule
from graphtool.transforms.training.recipe import loss_call

Row = dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """The settings of a run. `save_every` counts steps; 0 saves after each epoch only."""

    epochs: int = 10
    batch: int = 64
    lr: float | None = None
    seed: int = 0
    shuffle: bool = True
    schedule: str = "constant"
    warmup: int = 0
    patience: int = 0
    run: Path | None = None
    resume: bool = False
    save_every: int = 0


@dataclass
class Progress:
    """The part of a run's state that a checkpoint keeps besides the arrays."""

    epoch: int = 0
    position: int = 0  # batches of this epoch that are done
    total: float = 0.0  # the sum of their losses
    best: float = math.inf
    waited: int = 0  # epochs since the best validation
    finished: bool = False
    order: dict[str, Any] = field(default_factory=dict)  # what the order of batches depends on


class Trainer:
    """One run. `on_step` and `on_epoch` get each row that is written to the log."""

    def __init__(self, model: TrainModel, data: Data, plan: Plan,
                 on_step: Callable[[Row], None] | None = None,
                 on_epoch: Callable[[Row], None] | None = None) -> None:
        self.model, self.data, self.plan = model, data, plan
        self.on_step, self.on_epoch = on_step, on_epoch
        self.world = model.world
        if plan.batch % self.world.size:
            raise UsageError("GT3080", f"batches of {plan.batch} cannot be divided among "
                                       f"{self.world.size} processes")
        self.share = plan.batch // self.world.size
        if model.batch not in (None, self.share):
            raise UsageError("GT3078", f"the step is compiled for batches of {model.batch}, "
                                       f"not {self.share}",
                             hint=f"--batch {model.batch * self.world.size}")
        self.cuts = cuts(len(data.train), plan.batch, model.batch is not None, self.world.size)
        if not self.cuts:
            raise InputError("GT3073", f"{len(data.train)} examples are too few for a batch of "
                                       f"{plan.batch}")
        per = len(self.cuts)
        lr = plan.lr if plan.lr is not None else model.row.lr
        self.rate = schedule(plan.schedule, lr, plan.epochs * per, per, plan.warmup)
        self.progress = Progress(order={"seed": plan.seed, "batch": plan.batch,
                                        "shuffle": plan.shuffle, "examples": len(data.train)})
        self.lines: list[str] = []

    def run(self) -> Progress:
        """Train until the plan is done or early stopping ends it; returns the progress.

        Raises InputError GT3082 if the weights become NaN; the last checkpoint
        stays.
        """
        self.open()
        self.begin_alike()
        p = self.progress
        while p.epoch < self.plan.epochs and not p.finished:
            self.epoch()
        p.finished = True
        self.save()
        return p

    def begin_alike(self) -> None:
        """Copy the state and the progress of the first process to all processes."""
        p = self.progress
        numbers = np.array([p.epoch, p.position, p.total, p.best, p.waited, p.finished])
        self.world.share(self.model.block)
        self.world.share(numbers)
        p.epoch, p.position, p.waited = (int(numbers[i]) for i in (0, 1, 4))
        p.total, p.best, p.finished = float(numbers[2]), float(numbers[3]), bool(numbers[5])

    def open(self) -> None:
        """Prepares the run's directory and log; with `resume`, restores its checkpoint."""
        run = self.plan.run
        if run is None:
            return
        try:
            run.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError("GT0330", f"cannot write: {error.strerror}", where=str(run)) from error
        there = self.plan.resume and (run / checkpoint.STATE).exists()
        self.world.meet()  # wait before the first process writes a checkpoint
        if there:
            progress = Progress(**checkpoint.restore(self.model, run))
            if progress.order != self.progress.order:
                raise InputError("GT3079", f"the run was started with {progress.order}, not "
                                           f"{self.progress.order}", where=str(run))
            self.progress = progress
            progress.finished = 0 < self.plan.patience <= progress.waited
            if self.first:
                checkpoint.cut_log(run / "log.jsonl", self.steps, progress.epoch)
        elif self.first:
            self.save()  # before the log: resuming cuts the log to the checkpoint, not the reverse
            files.write_bytes(run / "log.jsonl", b"")

    @property
    def first(self) -> bool:
        """Whether this process is the first one, which writes the files."""
        return self.world.rank == 0

    def rows(self, order: Any, start: int, end: int) -> Any:
        """The rows of a batch that belong to this process."""
        n = (end - start) // self.world.size
        at = start + n * self.world.rank
        return order[at:at + n]

    @property
    def steps(self) -> int:
        """The number of steps done since the start of the run."""
        return self.progress.epoch * len(self.cuts) + self.progress.position

    def epoch(self) -> None:
        """Trains the rest of the current epoch, one step for each batch, then closes it."""
        p, began, first = self.progress, time.perf_counter(), self.progress.position
        order = order_of(self.data, self.plan.seed, p.epoch, self.plan.shuffle)
        for start, end in self.cuts[first:]:
            lr = float(np.float32(self.rate(self.steps)))
            loss = self.model.step(self.data.batch(self.rows(order, start, end)), lr)
            if math.isnan(loss):
                self.check_state()
            row = {"step": self.steps, "epoch": p.epoch, "loss": loss, "lr": lr}
            if (norm := self.model.grad_norm) is not None:
                row["grad_norm"] = norm
            p.position += 1
            p.total += loss
            self.log(row)
            if self.on_step and self.first:
                self.on_step(row)
            if self.plan.save_every and p.position % self.plan.save_every == 0:
                self.save()
        seconds = time.perf_counter() - began
        done = sum(end - start for start, end in self.cuts[first:])
        self.close_epoch(seconds, done / seconds)

    def check_state(self) -> None:
        """Raise InputError GT3082 if NaN is in the state. A loss alone may be NaN: the mean over a
        batch in which every target is ignored."""
        state = self.model.state
        if name := next((n for n in state if of_numpy(state[n].dtype).is_float
                         and np.isnan(state[n]).any()), ""):
            raise InputError("GT3082", f"after step {self.steps} {name} has NaN",
                             hint="look for NaN in the data, or take a smaller --lr; the "
                                  "checkpoint is of the steps before")

    def close_epoch(self, seconds: float, rate: float) -> None:
        """Validates, updates early stopping, logs the epoch's row and saves."""
        p = self.progress
        row: Row = {"epoch": p.epoch, "steps": self.steps, "train_loss": p.total / len(self.cuts)}
        if len(self.data.val):
            row |= self.validate()
        row |= {"seconds": round(seconds, 3), "examples_per_second": round(rate, 1)}
        judged: float = row["val_loss" if "val_loss" in row else "train_loss"]
        p.waited = 0 if judged < p.best else p.waited + 1
        p.best = min(p.best, judged)
        p.finished = 0 < self.plan.patience <= p.waited
        p.epoch, p.position, p.total = p.epoch + 1, 0, 0.0
        self.log(row)
        self.save()
        if self.on_epoch and self.first:
            self.on_epoch(row)

    # ---- validation ------------------------------------------------------------------------

    def validate(self) -> Row:
        """Loss and metric of the validation examples, in inference."""
        total, count, score, scored = 0.0, 0, 0.0, 0
        call = loss_call(self.model.row.loss, {self.model.row.loss: 0}) if (
            self.model.row.target) else None
        for number, (rows, n) in enumerate(padded(self.data.val, self.share)):
            if number % self.world.size != self.world.rank:
                continue
            if self.model.batch is None:
                rows = rows[:n]
            batch = self.data.held_back(rows)
            if call is not None:
                s, c = metric(call.name, dict(call.arguments), self.model.predict(batch)[0],
                              batch[self.model.row.target], n)
                score, scored = score + s, scored + c
            if n < len(rows) and call is not None and call.name == "cross_entropy":
                batch[self.model.row.target][n:] = call.arguments.get("ignore_index", -100)
            elif n < len(rows) and count:
                continue  # a mean over repeated examples would not be that of the set
            total, count = total + self.model.loss(batch) * n, count + n
        total, whole, score, judged = self.world.sums([total, count, score, scored])
        named = {} if call is None else {f"val_{METRICS[call.name]}": score / max(judged, 1)}
        return {"val_loss": total / whole, **named}

    # ---- files -----------------------------------------------------------------------------

    def log(self, row: Row) -> None:
        """Appends a row to log.jsonl, in the first process only."""
        if not self.first:
            return
        self.lines.append(json.dumps({k: files.tagged_float(v) if isinstance(v, float) else v
                                      for k, v in row.items()}) + "\n")
        if self.plan.run is not None:
            with (self.plan.run / "log.jsonl").open("a", encoding="utf-8") as file:
                file.write(self.lines.pop())

    def save(self) -> None:
        """Writes the checkpoint, and the loss curve at the end of an epoch."""
        run = self.plan.run
        if run is not None and self.first:
            checkpoint.save(self.model, run, vars(self.progress))
            if self.progress.position == 0:
                files.write_bytes(run / "loss.svg", curve.draw(run / "log.jsonl").encode())


METRICS = {"cross_entropy": "accuracy", "bce": "accuracy", "mse": "mae", "huber": "mae"}


def metric(loss: str, arguments: Row, out: Any, y: Any, n: int) -> tuple[float, int]:
    """(sum of the scores, their number) of a batch: 1 for each right answer, or absolute errors."""
    out, y = out[:n], y[:n]
    if loss == "cross_entropy":
        kept = y != arguments.get("ignore_index", -100)
        return float(((out.argmax(arguments.get("axis", 1)) == y) & kept).sum()), int(kept.sum())
    if loss == "bce":
        limit = 0.0 if arguments.get("from_logits") else 0.5
        return float(((out > limit) == (y > 0.5)).sum()), y.size
    # one by one, as the stand-alone program adds
    return float(np.cumsum(np.abs(out - y), dtype=np.float64)[-1]), y.size
