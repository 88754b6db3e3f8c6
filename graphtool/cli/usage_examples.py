"""Commands for the help of each verb. Run in this order, each finds the files that it names."""

from __future__ import annotations

EXAMPLES: dict[str, tuple[str, ...]] = {
    "import": ("graphtool import samples/digits.onnx -o digits.graph.json",
               "graphtool import samples/digits.py:model --dynamic batch -o m.graph.json",
               "graphtool import samples/language.py:model --dynamic T@tokens.1=1..256 "
               "--dynamic P@k0.2,v0.2,k1.2,v1.2=1..4096 -o step.graph.json"),
    "show": ("graphtool show digits.graph.json", "graphtool show digits.graph.json --stats"),
    "eval": ("graphtool eval digits.graph.json --random --dim batch=2",
             "graphtool eval digits.graph.json --input image=1x1x8x8xf32=0.5 -o out.npz"),
    "opt": ("graphtool opt digits.graph.json -o digits.opt.graph.json --stats",
            "graphtool opt digits.graph.json --passes simplify,fold,dce --check",
            "graphtool opt digits.graph.json --bisect --format markdown",
            "graphtool opt step.graph.json --passes cache{max=256} -o prefill.graph.json"),
    "quantise": ("graphtool quantise digits.graph.json --calibrate samples/digits_test.npz "
                 "-o q.graph.json",
                 "graphtool quantise digits.graph.json --form int8,float16 --size 200KiB "
                 "--dim batch=2 -o small.graph.json"),
    "grad": ("graphtool grad m.graph.json --loss mse -o gradients.graph.json",
             "graphtool grad m.graph.json --loss cross_entropy --optimizer adamw "
             "-o m.train.graph.json"),
    "jvp": ("graphtool jvp m.graph.json -o tangents.graph.json",
            "graphtool jvp m.graph.json --wrt params -o tangents.graph.json"),
    "vmap": ("graphtool vmap m.graph.json -o many.graph.json",
             "graphtool vmap m.graph.json --size 8 -o eight.graph.json"),
    "lower": ("graphtool lower digits.opt.graph.json -o digits.program.json",
              "graphtool lower digits.opt.graph.json --name digits -o -"),
    "emit": ("graphtool emit digits.program.json -o c",
             "graphtool emit samples/digits.onnx --march armv8-a -o arm",
             "graphtool emit samples/digits.onnx --debug-lines -o traced"),
    "build": ("graphtool build samples/digits.onnx -o build",
              "graphtool build m.train.graph.json -o trainer --name digits",
              "graphtool build prefill.graph.json --tokenizer samples/language_tokens.json "
              "-o writer --name lm"),
    "run": ("graphtool run build --random --dim batch=2",
            "graphtool run build --input image=1x1x8x8xf32=0.5 -o out.npz"),
    "generate": ("graphtool generate writer --prompt The --tokens 8",
                 "graphtool generate writer --prompt The --temperature 0.5 --top-p 0.9 --seed 1"),
    "tokenizer train": ("graphtool tokenizer train samples/language.py -o tokens.json --size 300",
                        "graphtool tokenizer train samples/mlp.py samples/digits.py -o more.json"),
    "tokenizer encode": ("graphtool tokenizer encode tokens.json text",
                         "graphtool tokenizer encode samples/language_tokens.json text"),
    "tokenizer decode": ("graphtool tokenizer decode tokens.json 104 105",
                         "graphtool tokenizer decode samples/language_tokens.json 300"),
    "train": ("graphtool train trainer --data samples/digits_train.npz --epochs 1 "
              "--checkpoint run",
              "graphtool train trainer --data samples/digits_train.npz --epochs 2 "
              "--checkpoint run --resume"),
    "weights": ("graphtool weights m.graph.json --from run/model.safetensors "
                "-o trained.graph.json",
                "graphtool weights m.graph.json --from run/model.safetensors -o -"),
    "bench": ("graphtool bench build --vs onnxruntime --model samples/digits.onnx --seconds 0.5",
              "graphtool bench build --seconds 0.5 --save base.json",
              "graphtool bench build --seconds 0.5 --compare base.json --fail-slower 50%"),
    "profile": ("graphtool profile build --runs 10", "graphtool profile build --trace trace.json"),
    "tune": ("graphtool tune build -o digits.tuning --budget 2s --seconds 0.05",
             "graphtool tune --check digits.tuning --seconds 0.05"),
    "machine": ("graphtool machine -o here.json", "graphtool machine --list"),
    "check": ("graphtool check samples/digits.onnx build",
              "graphtool check digits.graph.json digits.opt.graph.json --divergence"),
    "debug": ("graphtool debug digits.graph.json --dim batch=1 "
              "--commands 'break relu; run; print relu[0,0,:2]; stats; next; quit'",
              "graphtool debug samples/digits.onnx --with c --dim batch=1 "
              "--commands 'break --nan; run; stats logits'"),
    "diff": ("graphtool diff digits.graph.json digits.opt.graph.json",
             "graphtool diff m.graph.json trained.graph.json --format markdown"),
    "why": ("graphtool why digits.graph.json relu", "graphtool why build k4",
            "graphtool why samples/digits.onnx conv2d_1 --json"),
    "reduce": ("graphtool reduce m.graph.json -o small.graph.json",
               "graphtool reduce m.graph.json --compiled -o small.graph.json"),
    "repro": ("graphtool repro digits.graph.json -o repro",
              "graphtool repro m.graph.json --dim batch=2 -o repro2 --march x86-64"),
    "compare-captures": ("graphtool compare-captures samples/mlp.py:model",
                         "graphtool compare-captures samples/mlp.py:model --json"),
    "draw": ("graphtool draw digits.graph.json -o digits.svg",
             "graphtool draw digits.opt.graph.json --groups --format mermaid"),
    "view": ("graphtool view digits.opt.graph.json -o digits.html",
             "graphtool view digits.graph.json digits.opt.graph.json build -o stages.html"),
    "report": ("graphtool report build --model samples/digits.onnx --data samples/digits_test.npz "
               "--seconds 0.2 -o report",
               "graphtool report build --no-times -o report2"),
    "export": ("graphtool export digits.graph.json -o digits.onnx",
               "graphtool export trained.graph.json -o trained.onnx --external-data",
               "graphtool export digits.graph.json --format stablehlo --weights arguments "
               "-o digits.mlir"),
    "ops": ("graphtool ops", "graphtool ops softmax"),
    "passes": ("graphtool passes", "graphtool passes --json"),
    "schema": ("graphtool schema", "graphtool schema build"),
    "support": ("graphtool support samples/digits.onnx",
                "graphtool support samples/digits.onnx --json"),
    "doctor": ("graphtool doctor", "graphtool doctor --json"),
    "explain": ("graphtool explain", "graphtool explain GT0412"),
    "completion": ("graphtool completion bash", "graphtool completion fish"),
    "demo": ("graphtool demo --seconds 0.5", "graphtool demo -o tour --seconds 0.5"),
    "git install": ("graphtool git install",),
    "git status": ("graphtool git status", "graphtool git status --json"),
    "git check": ("graphtool git check digits.graph.json",
                  "graphtool git check digits.graph.json m.graph.json --format github"),
    "git review": ("graphtool git review HEAD", "graphtool git review HEAD --comment review.md"),
    "git textconv": ("graphtool git textconv digits.graph.json",
                     "graphtool git textconv digits.opt.graph.json"),
    "git merge": ("graphtool git merge digits.graph.json digits.graph.json digits.graph.json",
                  "graphtool git merge m.graph.json m.graph.json m.graph.json --path m.graph.json"),
    "git merge-weights": ("graphtool git merge-weights m.safetensors m.safetensors m.safetensors",
                          "graphtool git merge-weights digits.safetensors digits.safetensors "
                          "digits.safetensors --path digits.safetensors"),
    "git uninstall": ("graphtool git uninstall",),
    "cache dir": ("graphtool cache dir",),
    "cache prune": ("graphtool cache prune", "graphtool cache prune --limit 100000000"),
    "cache clear": ("graphtool cache clear",),
}


def epilog(verb: str) -> str:
    """What stands below the help of a verb; nothing for a verb of a plug-in."""
    lines = EXAMPLES.get(verb, ())
    return "\n".join(("\b", "Examples:", *(f"  {line}" for line in lines))) if lines else ""
