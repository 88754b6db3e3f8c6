"""Text from models and files, made safe for where it goes: terminals, logs, pages, pictures, C.

A name in a model may hold anything: escape sequences, line breaks, marks that turn the direction of
text, markup, commands of a CI service. Each function here returns the text for one kind of place.
A character that would act or hide is written as its escape in JSON, `\\n` or `\\u202e`. So in JSON
and in a listing, where such a character only occurs within quotes, the text stays exact.
"""

from __future__ import annotations

import re
from collections.abc import Callable

Escape = Callable[[str], str]
_CONTROLS = r"\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # with those of C1
_JOINERS = r"\u034f\u200c-\u200f\ufe00-\ufe0f"  # in prose of some scripts, and in emoji
_UNSEEN = (r"\xad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u2028-\u202e\u2060-\u206f"
           r"\u3164\ufeff\uffa0\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
           r"\ud800-\udfff\ufff0-\ufffb\ufffe\uffff")  # halves of pairs, and no characters
HIDDEN = re.compile(f"[\\t\\n\\r{_CONTROLS}{_JOINERS}{_UNSEEN}]")
"""What acts or is not drawn: controls, line separators, and the characters that Unicode calls
default ignorable, https://www.unicode.org/reports/tr44/#Default_Ignorable_Code_Point."""
_LAYOUT = re.compile(f"[\\r{_CONTROLS}{_JOINERS}{_UNSEEN}]")
_PROSE = re.compile(f"\\r(?!\\n)|[{_CONTROLS}{_UNSEEN}]")
_COMMAND = re.compile(r"^([^\S\n]*):(?=:)|#(?=#(?:\[|vso\[|teamcity\[))", re.MULTILINE)
"""How a line of a log commands a CI service: GitHub's `::` and `##[`, Azure's, TeamCity's."""
COMMAND_BEGUN = re.compile(r"(?:^[^\S\n]*:|##?|##vso|##teamcity)\Z", re.MULTILINE)
"""The end of a text that could become such a command with what follows."""
_ENTITIES = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("'", "&#x27;"))
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _escaped(match: re.Match[str]) -> str:
    char = match[0]
    units = char.encode("utf-16-be", "surrogatepass")
    return _SHORT.get(char) or "".join(
        f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


def _disarmed(text: str) -> str:
    if "::" not in text and "##" not in text:
        return text
    return _COMMAND.sub(lambda m: f"{m[1] or ''}\\u{ord(m[0][-1]):04x}", text)


def visible(text: str) -> str:
    """A text, or a document in JSON, without hidden characters; its own lines are kept."""
    return _LAYOUT.sub(_escaped, text)


def line(text: str) -> str:
    """A text as one line of a terminal or a log."""
    return _disarmed(HIDDEN.sub(_escaped, text))


def block(text: str) -> str:
    """A text of several lines for a terminal or a log."""
    return _disarmed(visible(text))


def prose(text: str) -> str:
    """A text that people read, not a name: with the joiners and marks that scripts need."""
    return _disarmed(_PROSE.sub(_escaped, text))


def xml(text: str) -> str:
    """A text as content or as an attribute of XML, SVG and HTML."""
    out = line(text)
    for char, entity in _ENTITIES:
        out = out.replace(char, entity)
    return out


def attribute(text: str) -> str:
    """A text as the value of an attribute of XML, in its quotes."""
    return f'"{xml(text)}"'


def json_script(text: str) -> str:
    """A document in JSON as it can stand in a script of HTML. The page that reads it shows hidden
    characters as their escapes."""
    shown = re.sub(r"\\(.)", lambda m: f"\\\\{m[1]}" if m[1] in "ubf" else m[0], visible(text))
    return shown.replace("<", "\\u003c")


def markdown_code(text: str) -> str:
    """A name as code in Markdown, also in a cell of a table, between enough backticks."""
    shown = " ".join(line(text).split())
    shown = shown.replace("|", "\\u007c" if "\\|" in shown else "\\|")
    fence = "`" * (1 + max(map(len, re.findall("`+", shown)), default=0))
    return f"{fence} {shown} {fence}" if len(fence) > 1 else f"`{shown}`"


_MARKUP = re.compile(
    r"[\\`*|$]|~(?=~)|\](?=[(:\[])|(?<!\w)_|_(?!\w)|^(?:[#>+=-]|\d+(?=[.)]))")
_LINKED = re.compile(r"@(?=\w)|(?<!\w)#(?=\d)|(?<=[\w-]/)[\w.-]+#(?=\d)|:(?=//)|\bwww(?=\.)")


def markdown(text: str) -> str:
    """A text as a paragraph or a cell of Markdown: no markup, mention or link comes of it."""
    plain = _MARKUP.sub(lambda m: f"\\{m[0]}" if not m[0].isdigit() else f"{m[0]}\\",
                        " ".join(line(text).split()))
    plain = plain.replace("&", "&amp;").replace("<", "&lt;")
    return _LINKED.sub(lambda m: f"{m[0]}&#8203;", plain)  # a space of no width ends the word


def workflow_data(text: str) -> str:
    """A text as the message of a workflow command of GitHub."""
    return line(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


def workflow_property(text: str) -> str:
    """A text as a property of a workflow command of GitHub."""
    return workflow_data(text).replace(":", "%3A").replace(",", "%2C")


def sarif(text: str) -> str:
    """A text as a message of SARIF, in which brackets before a parenthesis would be a link."""
    return line(text).replace("](", "]\\(")


def spreadsheet(text: str) -> str:
    """A text as a cell of a table in CSV, which no program of tables takes for a formula."""
    shown = line(text)
    return f"'{shown}" if shown.startswith(("=", "+", "-", "@")) else shown


def dot(*lines: str) -> str:
    """Lines as a quoted string of Graphviz."""
    shown = (line(x).replace("\\", "\\\\").replace('"', '\\"') for x in lines)
    return '"' + "\\n".join(shown) + '"'


def mermaid(text: str) -> str:
    """A text in a quoted label of Mermaid, with its entities: `#name;` or `#number;`."""
    out = line(text).replace("#", "#35;").replace("&", "&amp;")
    for char in '<>"`%$':
        out = out.replace(char, f"#{ord(char)};")
    return out


def mlir_string(text: str) -> str:
    """A string literal of MLIR; of hidden characters the bytes, as two hexadecimal digits each."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + HIDDEN.sub(lambda m: "".join(
        f"\\{b:02X}" for b in m[0].encode("utf-8", "surrogatepass")), plain) + '"'


def c_string(text: str) -> str:
    """A C string literal of the text's UTF-8 bytes; nothing in it can end the literal."""
    out = []
    for byte in text.encode("utf-8", "surrogateescape"):
        char = chr(byte)
        if char in '"\\?':  # ? so that no trigraph forms
            out.append("\\" + char)
        elif 32 <= byte < 127:
            out.append(char)
        else:
            out.append(f"\\{byte:03o}")
    return '"' + "".join(out) + '"'


def c_comment(text: str, limit: int = 160) -> str:
    """The text made safe inside a comment of C: printable ASCII that neither ends nor nests it."""
    safe = "".join(c if 32 <= ord(c) < 127 and c != "\\" else "?" for c in text)
    safe = safe.replace("*/", "* /").replace("/*", "/ *")
    return safe if len(safe) <= limit else safe[:limit - 4] + " ..."
