"""A mistyped name: the error suggests the one that is most like it, and lists what there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphtool.cli.sources import sizes
from graphtool.errors import UsageError, near, one_of
from tests.cli.conftest import SAMPLES, Cli

CASES = [  # the command line, and what is suggested
    ("opt F/digits.graph.json --passes fuze", "fuse"),
    ("opt F/digits.graph.json --passes fold{max_byte=3}", "max_bytes"),
    ("opt F/digits.graph.json --passes amp{dtype=bfloat61}", "bfloat16"),
    ("opt F/digits.graph.json --passes decompose{keep=gelv}", "gelu"),
    ("opt F/digits.graph.json --passes simplify{numerics=exat}", "exact"),
    ("opt F/digits.graph.json --passes specialize{bach=3}", "batch"),
    ("opt F/digits.graph.json --passes fold,dce --print-after chnged", "changed"),
    ("opt F/digits.graph.json --precision fst", "fast"),
    ("opt F/digits.graph.json --kernels generatd", "generated"),
    ("opt F/digits.graph.json --assume finit", "finite"),
    ("grad F/digits.graph.json --loss cros_entropy", "cross_entropy"),
    ("grad F/digits.graph.json --loss mse --optimizer adamm", "adam"),
    ("grad F/digits.graph.json --loss mse --wrt imag", "image"),
    ("build F/digits.graph.json -o x --march x86_64-v3", "x86-64-v3"),
    ("vmap F/digits.graph.json --in-axes imge=0", "image"),
    ("eval F/digits.graph.json --input imag=1x1x8x8xf32=0", "image"),
    ("eval F/digits.graph.json --random --dim bach=3", "batch"),
    ("eval F/digits.graph.json --random --dtype flot64", "float64"),
    ("import S/mlp.py:modl", "model"),
    ("show F/digits.graph.json --category shapes", "shape"),
    ("show F/digits.graph.json --why --node logit", "logits"),
    ("draw F/digits.graph.json --format mermade", "mermaid"),
    ("diff F/digits.graph.json F/digits.graph.json --format markdwn", "markdown"),
    ("show F/unknown.graph.json", "relu"),
    ("ops conv2", "conv"),
    ("explain 412", "GT0412"),
    ("schema grph", "graph"),
    ("shw", "show"),
]


@pytest.mark.parametrize(("line", "meant"), [
    pytest.param(*c, id=c[0].replace("F/", ""), marks=[pytest.mark.torch] if ".py:" in c[0] else ())
    for c in CASES])
def test_what_was_meant(line: str, meant: str, gt: Cli, folder: Path) -> None:
    result = gt(*line.replace("F/", f"{folder}/").replace("S/", f"{SAMPLES}/").split())
    assert result.code in (2, 3)
    suggested = result.err[result.err.lower().index("did you mean"):].splitlines()[0]
    assert f"'{meant}'" in suggested


def test_nothing_is_suggested_where_nothing_is_like_it() -> None:
    assert one_of("zzz", ("fold", "fuse")) == "one of fold, fuse"
    assert near("FUSE", ("fold", "fuse"), "see the list") == "did you mean 'fuse'?\nsee the list"


def test_a_pass_says_what_it_needs(gt: Cli, folder: Path) -> None:
    result = gt("opt", folder / "digits.graph.json", "--passes", "amp")
    assert result.code == 2 and "amp{dtype=bfloat16|float16|" in result.err


def test_a_dim_that_a_build_renames_has_both_names() -> None:
    assert sizes(["n=3"], ["k", "n_"])["n_"] == 3
    assert sizes(["n=3", "n_=4"], ["n", "n_"]) == {"n": 3, "n_": 4}
    with pytest.raises(UsageError, match="no dim 'm'"):
        sizes(["m=3"], ["k", "n_"])


@pytest.mark.parametrize("line", ["show --why-not-fused x", "build --march", "opt --nope"])
def test_a_usage_error_names_its_verbs_help(line: str, gt: Cli) -> None:
    assert f"`graphtool {line.split()[0]} --help`" in gt(*line.split()).err
