"""The completion of words in shells: the known words of options and arguments, and the scripts.

A script is made from the parser, so it knows what this version takes; plug-ins given by --plugin
add theirs. The shell runs the script alone: no process is started for a word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from graphtool.cli.group import line
from graphtool.compile.option import options_of
from graphtool.compile.options import Build, Importing, targets
from graphtool.verbs import VERBS, Words, families

_SEVERAL = {"--passes"}


def ops() -> Iterable[str]:
    """The names of ops."""
    from graphtool.report.catalog import ops_report
    return (row.name for row in ops_report(None).ops)


def schemas() -> Iterable[str]:
    """What has a schema."""
    from graphtool.report.schemas import TYPES
    return TYPES


def codes() -> Iterable[str]:
    """The codes of errors."""
    from graphtool.explain import CODES
    return sorted(CODES)


def categories() -> Iterable[str]:
    """The categories of ops."""
    from graphtool.ir.op import CATEGORIES
    return CATEGORIES


def losses() -> Iterable[str]:
    """The losses of `grad`."""
    from graphtool.transforms.training.recipe import LOSSES
    return LOSSES


def optimizers() -> Iterable[str]:
    """The optimizers of `grad`."""
    from graphtool.transforms.training.optimizers import OPTIMIZERS
    return OPTIMIZERS


def schedules() -> Iterable[str]:
    """The schedules of `train`."""
    from graphtool.train.schedule import SCHEDULES
    return SCHEDULES


def languages() -> Iterable[str]:
    """The languages of `show`."""
    from graphtool.report.texts import TEXTS
    return (*TEXTS, "fx")


def formats() -> Iterable[str]:
    """The forms of a report."""
    from graphtool.report.findings import FORMATS
    return FORMATS


def targets_and_fat() -> Iterable[str]:
    """The targets of `build`."""
    return (*targets(), "fat")


def pictures() -> Iterable[str]:
    """The formats of `draw`."""
    return ("dot", "mermaid", "svg")


def exports() -> Iterable[str]:
    """The formats of `export`."""
    return ("onnx", "stablehlo")


def package_forms() -> Iterable[str]:
    """The forms of `package`."""
    from graphtool.package.forms import FORMS
    return FORMS


def placings() -> Iterable[str]:
    """Where `export` leaves the weights."""
    return ("constants", "arguments")


def reports() -> Iterable[str]:
    """The reports that plug-ins have added."""
    from graphtool.report.added import REPORTS
    return REPORTS


def shells() -> Iterable[str]:
    """The shells for which there are scripts."""
    return ("bash", "zsh", "fish")


def first_words() -> Iterable[str]:
    """The first words of all verbs."""
    return families()


COMMON: dict[str, Words] = {"--format": formats} | {
    name: found.words for record in (Build, Importing) for _, _, found in options_of(record)
    if found.words for name in found.names}
"""Words of options that several verbs have."""


class OptionWords(NamedTuple):
    """An option by all its names; `value`: it takes a value. `words`: the known values. `several`:
    it takes several of them, separated by commas."""

    names: tuple[str, ...]
    help: str
    value: bool
    words: tuple[str, ...] = ()
    several: bool = False


class Completed(NamedTuple):
    """A verb with its options, and the known words of its arguments; without any, files."""

    name: str
    help: str
    options: tuple[OptionWords, ...]
    words: tuple[str, ...] = ()


def verbs(program: Any) -> list[Completed]:
    """The verbs of the parser's command for the program, in the order of its help."""
    always = tuple(_option(p) for p in program.params if "--plugin" in p.opts)
    return [_verb(program.commands[name], name, always) for name in program.commands]


def _verb(command: Any, name: str, always: tuple[OptionWords, ...]) -> Completed:
    inner = getattr(command, "commands", {})
    options = {o.names: o for one in (command, *inner.values()) for p in one.params
               if p.param_type_name == "option" and (o := _option(p, name))}
    words = tuple(inner) or tuple(_words(name, ""))
    helped = OptionWords(("--help",), "Show this message and exit.", False)
    return Completed(name, line(command.help), (*options.values(), *always, helped), words)


def _option(p: Any, verb: str = "") -> OptionWords:
    names = (*p.opts, *p.secondary_opts)
    known = dict.fromkeys(w for n in names for w in _words(verb, n))
    return OptionWords(names, line(p.help), not p.is_flag, tuple(known),
                       not _SEVERAL.isdisjoint(names))


def _words(verb: str, option: str) -> Iterable[str]:
    """The known words of an option of a verb; of its arguments for ""."""
    row = VERBS.get(verb)
    return (row.words if row and option in row.words else COMMON).get(option, tuple)()


# ---- scripts -----------------------------------------------------------------------------------

def bash(commands: list[Completed]) -> list[str]:
    """The lines for bash: `source <(graphtool completion bash)`."""
    values = [f"        '{v.name} {name}') words='{' '.join(o.words)}'"
              f"{'; several=1' * o.several} ;;"
              for v in commands for o in v.options if o.words for name in o.names]
    files = [f"'{v.name} {name}'" for v in commands for o in v.options if o.value and not o.words
             for name in o.names]
    options = [f"        {v.name}) options='{_names(v)}'; words='{' '.join(v.words)}' ;;"
               for v in commands]
    return [
        "# bash completion of graphtool: source <(graphtool completion bash)",
        "_graphtool() {",
        "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}",
        "    local i verb='' options='--help --version --plugin' words='' several='' list=''",
        "    COMPREPLY=()",
        "    if [[ $cur == = ]]; then  # bash breaks --passes=fold into three words",
        "        cur=''",
        "    elif [[ $prev == = ]]; then",
        "        prev=${COMP_WORDS[COMP_CWORD-2]}",
        "    fi",
        "    for ((i = 1; i < COMP_CWORD; i++)); do",
        "        case ${COMP_WORDS[i]} in",
        "            --plugin) i=$((i + 1)) ;;",
        "            -*) ;;",
        "            *) verb=${COMP_WORDS[i]}; break ;;",
        "        esac",
        "    done",
        "    [[ $prev == --plugin ]] && return", "    case $verb in",
        f"        '') words='{' '.join(v.name for v in commands)}' ;;",
        *options, "    esac", "    case \"$verb $prev\" in", *values,
        *([f"        {'|'.join(files)}) return ;;"] if files else []),
        "        *) [[ $cur == -* ]] && words=$options ;;", "    esac",
        "    if [[ $several && $cur == *,* ]]; then  # the last one is completed",
        "        list=${cur%,*},",
        "        cur=${cur##*,}",
        "    fi",
        "    [[ $words ]] && COMPREPLY=($(compgen -P \"$list\" -W \"$words\" -- \"$cur\"))",
        "}", "complete -o default -F _graphtool graphtool"]


def zsh(commands: list[Completed]) -> list[str]:
    """The lines for zsh: a file `_graphtool` in a folder of `fpath`, or `source` after compinit."""
    described = [f"        {_zsh_quoted(f'{v.name}:{v.help}')}" for v in commands]
    cases = [line for v in commands for line in (
        f"        {v.name})", "            _arguments \\",
        *(f"                {spec} \\" for o in v.options for spec in _zsh_option(o)),
        f"                {_zsh_quoted('*:word:' + _zsh_words(v.words))} ;;")]
    return ["#compdef graphtool", "# zsh completion of graphtool: source <(graphtool completion "
            "zsh)", "_graphtool() {", "    local -a verbs", "    verbs=(", *described, "    )",
            "    if (( CURRENT == 2 )); then", "        _describe verb verbs", "        return",
            "    fi", "    local verb=$words[2]", "    shift words", "    (( CURRENT-- ))",
            "    case $verb in", *cases, "        *) _files ;;", "    esac", "}",
            "if [[ $funcstack[1] == _graphtool ]]; then", "    _graphtool \"$@\"", "else",
            "    compdef _graphtool graphtool", "fi"]


def _zsh_option(o: OptionWords) -> Iterable[str]:
    text = re.sub(r"([\[\]:\\])", r"\\\1", o.help)
    words = f"_sequence -d compadd - {' '.join(o.words)}" if o.several else _zsh_words(o.words)
    value = f":value:{words}" if o.value else ""
    return (_zsh_quoted(f"*{name}{'=' * (o.value and name[1] == '-')}[{text}]{value}")
            for name in o.names)


def _zsh_words(words: tuple[str, ...]) -> str:
    return f"({' '.join(words)})" if words else "_files"


def _zsh_quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def fish(commands: list[Completed]) -> list[str]:
    """The lines for fish: `graphtool completion fish | source`."""
    out = ["# fish completion of graphtool: graphtool completion fish | source",
           "function __graphtool_list --description 'each word behind those before the last comma'",
           "    set -l before (string match -r '^(?:--[^=]*=)?(.*,)?' -- (commandline -ct))[2]",
           "    string join \\n -- \"$before\"$argv",
           "end",
           "complete -c graphtool -n __fish_use_subcommand -f"]
    for v in commands:
        out.append(f"complete -c graphtool -n __fish_use_subcommand -a {v.name} "
                   f"-d {_fish_quoted(v.help)}")
        inside = f"complete -c graphtool -n '__fish_seen_subcommand_from {v.name}'"
        if v.words:
            out.append(f"{inside} -f -a {_fish_quoted(' '.join(v.words))}")
        for o in v.options:
            names = " ".join(f"-l {n[2:]}" if n.startswith("--") else f"-s {n[1:]}"
                             for n in o.names)
            words = f"(__graphtool_list {' '.join(o.words)})" if o.several else " ".join(o.words)
            value = f" -x -a {_fish_quoted(words)}" if o.words else " -r" if o.value else ""
            out.append(f"{inside} {names}{value} -d {_fish_quoted(o.help)}")
    return out


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _names(v: Completed) -> str:
    return " ".join(name for o in v.options for name in o.names)


SHELLS: dict[str, Callable[[list[Completed]], list[str]]] = {"bash": bash, "zsh": zsh, "fish": fish}
