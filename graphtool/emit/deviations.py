"""The rules of MISRA C:2012 that the C of `--profile safety` does not follow, with reasons: what
the addon of cppcheck finds, and what it cannot see."""

from __future__ import annotations

from typing import NamedTuple


class Deviation(NamedTuple):
    """A rule, its category, what in the C does not follow it, and why."""

    rule: str
    category: str
    where: str
    reason: str


DEVIATIONS = (
    Deviation("2.2", "required", "an offset of 0, a sum in the last statement of a function",
              "The tool takes them for code without effect; the compiler removes what has none."),
    Deviation("2.4", "advisory", "NAME.h: the enumeration of statuses has no tag that is used",
              "Its constants are the interface; a caller need not declare a variable of its type."),
    Deviation("2.5", "advisory", "NAME.h: macros of sizes and shapes that the C does not use",
              "They are for the caller."),
    Deviation("5.9", "advisory", "functions of NAME_functions.h, in each file that includes it",
              "They are static inline, so that no call is made for one comparison."),
    Deviation("7.2", "required", "constants of bits without the suffix u",
              "Each fits in the type that it is combined with."),
    Deviation("10.1", "required", "bits of a float and of a condition as operands of & and -",
              "A mask of 0 or of all ones, without a branch; operands are unsigned."),
    Deviation("10.3", "required", "a uint8_t that holds a condition, int literals as indices",
              "The values are 0 and 1, or fit by construction."),
    Deviation("10.4", "required", "int literals beside int64_t indices and unsigned operands",
              "The literals are not negative and fit in both types."),
    Deviation("10.5", "advisory", "a condition cast to an unsigned type", "It is 0 or 1."),
    Deviation("10.8", "required", "(int32_t)((uint32_t)a + (uint32_t)b)",
              "Sums of integers wrap around, which C defines for unsigned numbers only."),
    Deviation("11.5", "advisory", "addresses in the arena, and the caller's arrays, are void *",
              "One block serves arrays of several types in turn. Offsets are multiples of the "
              "alignment, and the arena's own is checked at the start of a run."),
    Deviation("11.6", "required", "the alignment of the arena is checked as a uintptr_t",
              "C99 has no other way to ask for it."),
    Deviation("11.8", "required", "reported where an output is handed to a kernel",
              "No cast is there; the array of pointers is const, what they point to is not."),
    Deviation("12.1", "advisory", "a * b + c, a ? b : c and comparisons without more parentheses",
              "The order is that of arithmetic; operands of & and | are in parentheses."),
    Deviation("12.2", "required", "shifts of 32-bit numbers by a constant below 32",
              "The tool does not see the width of a promoted operand."),
    Deviation("12.3", "advisory", "const float z = …, n = …; two variables in one declaration",
              "The tool takes the comma for an operator; there is none."),
    Deviation("14.1", "required", "none in kernels; a series whose term is the condition",
              "Only in functions such as igamma; the number of terms is bounded."),
    Deviation("15.5", "advisory", "a function returns as soon as an argument is refused",
              "Nothing has been done by then that would have to be undone."),
    Deviation("15.6", "required", "if (…) return …; on one line",
              "There is no second statement that could be taken for a part of it."),
    Deviation("17.8", "advisory", "a function of numbers that changes a parameter",
              "The parameter is a copy, and its old value is not needed."),
    Deviation("21.15", "required", "memcpy between a float and an integer of its size",
              "The only defined way in C to read the bits of a number."),
)


TITLE = "# Rules of MISRA C:2012 that the C of --profile safety does not follow"


def deviations_text() -> str:
    """The table as Markdown, for a build and the documentation."""
    rows = "".join(f"| {d.rule} | {d.category} | {d.where.replace('|', chr(92) + '|')} | "
                   f"{d.reason.replace('|', chr(92) + '|')} |\n" for d in DEVIATIONS)
    return f"| rule | category | where | reason |\n|---|---|---|---|\n{rows}"
