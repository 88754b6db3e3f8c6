"""What a user writes. tests/test_api.py has mypy check that it is typed, without Any."""

from __future__ import annotations

from pathlib import Path
from typing import assert_type

import numpy as np

import graphtool


def main(source: str, out: Path) -> None:
    module = graphtool.import_model(source, dynamic={"N": (1, 64)})
    assert_type(module, graphtool.Module)
    assert_type(graphtool.show(module), str)
    assert_type(graphtool.__version__, str)
    assert_type(list(module.inputs), list[str])
    assert_type(module.node("relu").op.name, str)
    assert_type(graphtool.view(module, out / "m.html", browser=False), Path)
    small = graphtool.optimize(module, "simplify,dce", precision="strict", kernels="generated")
    assert_type(graphtool.diff(module, small).equal, bool)
    program = graphtool.lower_model(graphtool.optimize(module), name="digits")
    assert_type(program, graphtool.Program)
    assert_type(graphtool.emit_c(program), dict[str, str])
    assert_type(graphtool.build(module, out, weights="embed"), Path)
    model = graphtool.load(out, threads=1)
    assert_type(model, graphtool.Model)
    x = np.zeros((1, 1, 8, 8), np.float32)
    assert sorted(model(image=x)) == sorted(graphtool.evaluate(module, {"image": x}))
    assert_type(graphtool.check(module, out).ok, bool)
    assert_type(graphtool.bench(out).timings[0].median_ms, float)
    assert_type(graphtool.profile(out).total_us, float)
    assert_type(graphtool.tune_model(module, out / "t.jsonl").left, list[str])
    step = graphtool.grad(module, graphtool.Recipe("cross_entropy", optimizer="adam"))
    _, done = graphtool.train_model(graphtool.build(step, out), {"image": x},
                                    graphtool.Plan(epochs=3))
    assert_type(done.best, float)
    graphtool.write(graphtool.vmap(graphtool.jvp(module), {"image": 0}, 8), out / "m.graph.json")


if __name__ == "__main__":
    try:
        main("samples/digits.onnx", Path("build"))
    except graphtool.GraphtoolError as error:
        raise SystemExit(error.exit_code) from error
