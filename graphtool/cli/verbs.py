"""The table of verbs, in the order that a model goes through them.

The examples run in this order, so that each finds the files that it names.
"""

from __future__ import annotations

from graphtool.cli import (
    bounding,
    captures,
    catalog,
    compiling,
    completion,
    demo,
    derivatives,
    faultfinding,
    git,
    inspect,
    packaging,
    quantising,
    reporting,
    running,
    simplifying,
    sizing,
    training,
    transform,
    tuning,
    viewing,
    why,
    writing,
)
from graphtool.verbs import VERBS, Verb

for _row in (
    Verb("import", transform.import_, "change", (
        "graphtool import samples/digits.onnx -o digits.graph.json",
        "graphtool import samples/digits.py:model --dynamic batch -o m.graph.json",
        "graphtool import samples/language.py:model --dynamic T@tokens.1=1..256 "
        "--dynamic P@k0.2,v0.2,k1.2,v1.2=1..4096 -o step.graph.json")),
    Verb("show", inspect.show, "look", (
        "graphtool show digits.graph.json",
        "graphtool show digits.graph.json --stats"),
        {"--category": completion.categories, "--as": completion.languages,
         "--report": completion.reports}),
    Verb("eval", transform.eval_, "check", (
        "graphtool eval digits.graph.json --random --dim batch=2",
        "graphtool eval digits.graph.json --input image=1x1x8x8xf32=0.5 -o out.npz")),
    Verb("bound", bounding.bound, "check", (
        "graphtool bound digits.graph.json --range image=0:1",
        "graphtool bound digits.graph.json --range image=0:1 --samples 10 --dim batch=100")),
    Verb("opt", transform.opt, "change", (
        "graphtool opt digits.graph.json -o digits.opt.graph.json --stats",
        "graphtool opt digits.graph.json --passes simplify,fold,dce --check",
        "graphtool opt digits.graph.json --bisect --format markdown",
        "graphtool opt step.graph.json --passes cache{max=256} -o prefill.graph.json")),
    Verb("quantise", quantising.quantise, "change", (
        "graphtool quantise digits.graph.json --calibrate samples/digits_test.npz -o "
        "q.graph.json",
        "graphtool quantise digits.graph.json --form int8,float16 --size 200KiB --dim "
        "batch=2 -o small.graph.json")),
    Verb("grad", training.grad, "change", (
        "graphtool grad m.graph.json --loss mse -o gradients.graph.json",
        "graphtool grad m.graph.json --loss cross_entropy --optimizer adamw -o "
        "m.train.graph.json"),
        {"--loss": completion.losses, "--optimizer": completion.optimizers}),
    Verb("jvp", derivatives.jvp, "change", (
        "graphtool jvp m.graph.json -o tangents.graph.json",
        "graphtool jvp m.graph.json --wrt params -o tangents.graph.json")),
    Verb("vjp", derivatives.vjp, "change", (
        "graphtool vjp m.graph.json -o cotangents.graph.json",
        "graphtool vjp m.graph.json --wrt params --of output -o cotangents.graph.json")),
    Verb("jacobian", derivatives.jacobian, "change", (
        "graphtool opt m.graph.json --passes specialize{batch=1} -o one.graph.json",
        "graphtool jacobian one.graph.json -o jacobian.graph.json",
        "graphtool jacobian one.graph.json --wrt params --of output -o jacobian.graph.json")),
    Verb("vmap", transform.vmap, "change", (
        "graphtool vmap m.graph.json -o many.graph.json",
        "graphtool vmap m.graph.json --size 8 -o eight.graph.json")),
    Verb("lower", compiling.lower, "build and run", (
        "graphtool lower digits.opt.graph.json -o digits.program.json",
        "graphtool lower digits.opt.graph.json --name digits -o -")),
    Verb("emit", compiling.emit, "build and run", (
        "graphtool emit digits.program.json -o c",
        "graphtool emit samples/digits.onnx --march armv8-a -o arm",
        "graphtool emit samples/digits.onnx --debug-lines -o traced"),
        {"--march": completion.targets_and_fat}),
    Verb("build", compiling.build, "build and run", (
        "graphtool build samples/digits.onnx -o build",
        "graphtool build m.train.graph.json -o trainer --name digits",
        "graphtool build prefill.graph.json --tokenizer samples/language_tokens.json "
        "-o writer --name lm"),
        {"--march": completion.targets_and_fat}),
    Verb("size", sizing.size, "look", (
        "graphtool size digits.opt.graph.json --dim batch=1",
        "graphtool size samples/digits.onnx --max-ram 1M --max-flash 1M")),
    Verb("package", packaging.package, "build and run", (
        "graphtool package build --as wheel -o packages",
        "graphtool package build --as cmake -o packages --version 1.2",
        "graphtool package build --as cargo -o packages --json"),
        {"--as": completion.package_forms}),
    Verb("run", running.run, "build and run", (
        "graphtool run build --random --dim batch=2",
        "graphtool run build --input image=1x1x8x8xf32=0.5 -o out.npz")),
    Verb("generate", writing.generate, "language models", (
        "graphtool generate writer --prompt The --tokens 8",
        "graphtool generate writer --prompt The --temperature 0.5 --top-p 0.9 --seed 1")),
    Verb("tokenizer train", writing.train, "language models", (
        "graphtool tokenizer train samples/language.py -o tokens.json --size 300",
        "graphtool tokenizer train samples/mlp.py samples/digits.py -o more.json")),
    Verb("tokenizer encode", writing.encode, "language models", (
        "graphtool tokenizer encode tokens.json text",
        "graphtool tokenizer encode samples/language_tokens.json text")),
    Verb("tokenizer decode", writing.decode, "language models", (
        "graphtool tokenizer decode tokens.json 104 105",
        "graphtool tokenizer decode samples/language_tokens.json 300")),
    Verb("train", training.train, "train", (
        "graphtool train trainer --data samples/digits_train.npz --epochs 1 "
        "--checkpoint run",
        "graphtool train trainer --data samples/digits_train.npz --epochs 2 "
        "--checkpoint run --resume"),
        {"--schedule": completion.schedules}),
    Verb("weights", training.weights, "change", (
        "graphtool weights m.graph.json --from run/model.safetensors -o "
        "trained.graph.json",
        "graphtool weights m.graph.json --from run/model.safetensors -o -")),
    Verb("bench", running.bench, "build and run", (
        "graphtool bench build --vs onnxruntime --model samples/digits.onnx --seconds 0.5",
        "graphtool bench build --seconds 0.5 --save base.json",
        "graphtool bench build --seconds 0.5 --compare base.json --fail-slower 50%")),
    Verb("profile", running.profile, "build and run", (
        "graphtool profile build --runs 10",
        "graphtool profile build --trace trace.json")),
    Verb("tune", tuning.tune, "build and run", (
        "graphtool tune build -o digits.tuning --budget 2s --seconds 0.05",
        "graphtool tune --check digits.tuning --seconds 0.05")),
    Verb("machine", tuning.machine, "build and run", (
        "graphtool machine -o here.json",
        "graphtool machine --list")),
    Verb("check", running.check, "check", (
        "graphtool check samples/digits.onnx build",
        "graphtool check digits.graph.json digits.opt.graph.json --divergence")),
    Verb("debug", faultfinding.debug, "check", (
        "graphtool debug digits.graph.json --dim batch=1 --commands 'break relu; run; "
        "print relu[0,0,:2]; stats; next; quit'",
        "graphtool debug samples/digits.onnx --with c --dim batch=1 --commands 'break "
        "--nan; run; stats logits'")),
    Verb("diff", inspect.diff, "check", (
        "graphtool diff digits.graph.json digits.opt.graph.json",
        "graphtool diff m.graph.json trained.graph.json --format markdown",
        "graphtool diff samples/digits.onnx digits.graph.json")),
    Verb("why", why.why, "look", (
        "graphtool why digits.graph.json relu",
        "graphtool why build k4",
        "graphtool why samples/digits.onnx conv2d_1 --json")),
    Verb("reduce", faultfinding.reduce, "check", (
        "graphtool reduce m.graph.json -o small.graph.json",
        "graphtool reduce m.graph.json --compiled -o small.graph.json")),
    Verb("repro", faultfinding.repro, "check", (
        "graphtool repro digits.graph.json -o repro",
        "graphtool repro m.graph.json --dim batch=2 -o repro2 --march x86-64")),
    Verb("compare-captures", captures.compare_captures, "check", (
        "graphtool compare-captures samples/mlp.py:model",
        "graphtool compare-captures samples/mlp.py:model --json")),
    Verb("draw", inspect.draw, "look", (
        "graphtool draw digits.graph.json -o digits.svg",
        "graphtool draw digits.opt.graph.json --groups --format mermaid"),
        {"--format": completion.pictures}),
    Verb("view", viewing.view, "look", (
        "graphtool view samples/digits.onnx --no-open",
        "graphtool view digits.opt.graph.json -o digits.html",
        "graphtool view digits.graph.json digits.opt.graph.json build -o stages.html")),
    Verb("report", reporting.report, "look", (
        "graphtool report build --model samples/digits.onnx --data "
        "samples/digits_test.npz --seconds 0.2 -o report",
        "graphtool report build --no-times -o report2")),
    Verb("export", transform.export, "change", (
        "graphtool export digits.graph.json -o digits.onnx",
        "graphtool export trained.graph.json -o trained.onnx --external-data",
        "graphtool export digits.graph.json --format stablehlo --weights arguments -o "
        "digits.mlir"),
        {"--format": completion.exports, "--weights": completion.placings}),
    Verb("simplify", simplifying.simplify, "change", (
        "graphtool simplify samples/digits.onnx simple.onnx",
        "graphtool simplify samples/digits.onnx simple.onnx --no-check --external-data")),
    Verb("ops", catalog.ops, "help", (
        "graphtool ops",
        "graphtool ops softmax"),
        {"": completion.ops}),
    Verb("passes", catalog.passes, "help", (
        "graphtool passes",
        "graphtool passes --json")),
    Verb("schema", catalog.schema, "help", (
        "graphtool schema",
        "graphtool schema build"),
        {"": completion.schemas}),
    Verb("support", catalog.support, "check", (
        "graphtool support samples/digits.onnx",
        "graphtool support samples/digits.onnx --json")),
    Verb("lint", catalog.lint, "check", (
        "graphtool lint samples/digits.onnx",
        "graphtool lint samples/digits.onnx --format sarif",
        "graphtool lint --profile sonnx")),
    Verb("doctor", catalog.doctor, "help", (
        "graphtool doctor",
        "graphtool doctor --json")),
    Verb("explain", catalog.explain, "help", (
        "graphtool explain",
        "graphtool explain GT0412"),
        {"": completion.codes}),
    Verb("completion", catalog.completion, "help", (
        "graphtool completion bash",
        "graphtool completion fish"),
        {"": completion.shells}),
    Verb("demo", demo.demo, "help", (
        "graphtool demo --seconds 0.5",
        "graphtool demo -o tour --seconds 0.5")),
    Verb("git install", git.install, "CI", (
        "graphtool git install",)),
    Verb("git status", git.status, "CI", (
        "graphtool git status",
        "graphtool git status --json")),
    Verb("git check", git.check, "CI", (
        "graphtool git check digits.graph.json",
        "graphtool git check digits.graph.json m.graph.json --format github")),
    Verb("git review", git.review, "CI", (
        "graphtool git review HEAD",
        "graphtool git review HEAD --comment review.md")),
    Verb("git textconv", git.textconv, "CI", (
        "graphtool git textconv digits.graph.json",
        "graphtool git textconv digits.opt.graph.json")),
    Verb("git merge", git.merge, "CI", (
        "graphtool git merge digits.graph.json digits.graph.json digits.graph.json",
        "graphtool git merge m.graph.json m.graph.json m.graph.json --path m.graph.json")),
    Verb("git merge-weights", git.merge_weights, "CI", (
        "graphtool git merge-weights m.safetensors m.safetensors m.safetensors",
        "graphtool git merge-weights digits.safetensors digits.safetensors "
        "digits.safetensors --path digits.safetensors")),
    Verb("git uninstall", git.uninstall, "CI", (
        "graphtool git uninstall",)),
    Verb("cache dir", compiling.cache_dir, "build and run", (
        "graphtool cache dir",)),
    Verb("cache prune", compiling.cache_prune, "build and run", (
        "graphtool cache prune",
        "graphtool cache prune --limit 100000000")),
    Verb("cache clear", compiling.cache_clear, "build and run", (
        "graphtool cache clear",)),
    Verb("help", catalog.help_, "help", ("graphtool help", "graphtool help git check"),
        {"": completion.first_words}),
    Verb("version", catalog.version, "help", ("graphtool version",)),
):
    VERBS[_row.name] = _row
