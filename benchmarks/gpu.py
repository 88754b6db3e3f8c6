"""Times libraries for a GPU beside torch, in three steps, as a GPU is rarely at hand.

`--prepare` compiles the cases, without a GPU, into bench-work/gpu. `--facts` compiles some for all
architectures, and disassembles their kernels. `--run` measures on the machine with the GPU, which
needs numpy, and torch for the peers. `--report` writes the tables.
"""

from __future__ import annotations

import argparse

NETWORKS = (
    "mlp_b1", "resnet18_b1", "gpt2_decode", "bert_b1", "mobilenet_v2_b1", "resnet50_b1",
    "vit_small_b1", "unet_b1", "llama_decode", "train_mlp_b64", "train_gpt2_tiny_b4", "bert_b16",
    "resnet50_b32", "resnet18_b32", "mobilenet_v2_b32", "vit_small_b32", "train_resnet18_b32")
CASES = [f"{network}.{dtype}" for network in NETWORKS for dtype in ("float32", "bf16")]


def arguments(parser: argparse.ArgumentParser) -> None:
    step = parser.add_mutually_exclusive_group(required=True)
    step.add_argument("--prepare", action="store_true", help="compile what is missing")
    step.add_argument("--facts", action="store_true",
                      help="compile and disassemble kernels for all architectures")
    step.add_argument("--run", action="store_true", help="measure, on a machine with a GPU")
    step.add_argument("--report", action="store_true", help="write the table")
    parser.add_argument("--target", default="sm_90", help="to compile for (sm_90)")
    parser.add_argument("--redo", action="store_true", help="compile or measure again")
    parser.add_argument("--limit", type=float, default=480, metavar="SECONDS",
                        help="of the whole --run (480)")
    parser.add_argument("--parallel", type=int, default=10, metavar="N",
                        help="processes that prepare themselves to be measured (10)")
    parser.add_argument("--seconds", type=float, default=0.3, help="of each of three rounds")


def main(options: argparse.Namespace) -> int:
    """The modules are imported when they are needed: --run has few packages."""
    if options.prepare:
        from benchmarks import gpu_prepare
        return gpu_prepare.prepare(options.models, options.target, options.redo)
    if options.facts:
        from benchmarks import gpu_facts
        return gpu_facts.facts(options.redo)
    if options.run:
        from benchmarks import gpu_run
        return gpu_run.run(options)
    from benchmarks import gpu_report
    return gpu_report.report(options.command_line)
