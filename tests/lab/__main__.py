"""`python -m tests.lab COMMAND`: what looks for faults, one row a command."""

from __future__ import annotations

import sys

from benchmarks import __main__ as benchmarks

COMMANDS = {
    "suite": "ONNX's own backend suite, evaluated and compiled",
    "conformance": "import, evaluate and compile each model, from ONNX and from torch",
    "gradients": "gradients of torch's operators on torch's samples, beside autograd",
    "wholes": "whole models: gradients and training steps beside torch",
    "parity": "loss curves of compiled training beside torch's",
    "rounding": "errors of the first training steps, averaged over batches",
    "fuzz": "random ONNX graphs, torch modules and files; compiled graphs under sanitizers",
    "opinfo": "run torch's own sample inputs through the evaluator and compiled C",
    "options": "functions of torch under every combination of their options, beside torch",
    "mixed": "operators of two operands over pairs of element types, beside torch",
    "jaxops": "functions of JAX through StableHLO: the evaluator and compiled C beside JAX",
    "stablehlo": "every operation of StableHLO × types × shapes: evaluator and C beside XLA",
    "jaxprograms": "programs of JAX: forward, gradient, training step, and speed beside jax.jit",
    "architectures": "language models of transformers: logits, and decoding with a cache",
    "stranger": "the C of models by other compilers, levels, sanitizers and processors",
    "ecosystems": "packages used by programs of other ecosystems: built, installed, run, equal",
    "huge": "tensors of more than 2³¹ elements: evaluator and C beside numpy",
    "quota": "a team of threads on one processor, and on half of one",
    "faults": "commands whose system calls fail, or that are killed, at many points",
    "simplify": "ONNX models through `simplify`: nodes before and after, values in onnxruntime",
    "proofs": "rewrite rules by z3: for all numbers and sizes; --write keeps the tiers",
    "hlo_out": "models and programs as StableHLO: read back, and run by others",
}


def main(arguments: list[str] | None = None) -> int:
    """Parse, run, and return the exit code: 0 unless something failed."""
    return benchmarks.main(arguments, "tests.lab", COMMANDS)


if __name__ == "__main__":
    sys.exit(main())
