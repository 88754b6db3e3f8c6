"""04xx to 06xx: types and ops, evaluation, passes and gradients."""

TABLE: dict[str, tuple[str, str]] = {
    "GT0401": ("unknown op", "`graphtool ops` lists the ops of this version."),
    "GT0402": ("unknown attribute", "`graphtool ops NAME` shows the attributes of an op."),
    "GT0403": ("missing attribute",
               "The attribute has no default; `graphtool ops NAME` shows what it is."),
    "GT0404": ("unfit attributes or operands",
               "The op was given something of a kind that it does not take."),
    "GT0405": ("wrong number of operands", "`graphtool ops NAME` shows the op's operands."),
    "GT0410": ("undeclared dimension",
               "Every open dim of an input stands in the module's table of symbols."),
    "GT0412": ("operands that do not fit",
               "Shapes or element types cannot go together in this op. The error lists the "
               "operands with their types and where they come from. Elementwise ops broadcast as "
               "numpy does and want one element type; a matrix product wants equal inner dims."),
    "GT0414": ("an unreadable pattern",
               "Patterns are read as Python's regular expressions; the few forms that only RE2 has "
               "must be said otherwise."),
    "GT0501": ("index out of range",
               "Indices run from 0 to the size of the axis; importers have already wrapped "
               "negative ones. Check the values of the integer input."),
    "GT0503": ("an op that cannot be evaluated",
               "numpy refused the operands; the error says where in the graph."),
    "GT0504": ("unknown size",
               "An open dim is not determined by the inputs; bind it with --dim, or with the pass "
               "`specialize`."),
    "GT0505": ("a size that is out of bounds",
               "A size computed from data came out other, or greater, than the graph says it can "
               "be. Import with a wider bound: --dynamic NAME=LOW..HIGH."),
    "GT0506": ("text that says no number",
               "A cast from strings to numbers met one that is none, or that the type does not "
               "hold."),
    "GT0508": ("processes that do not meet",
               "Every process must come to the same exchanges in the same order."),
    "GT0509": ("pictures without Pillow",
               "Pictures are decoded by Pillow, an extra: pip install 'graphtool[images]'."),
    "GT0511": ("missing input", "The error lists the inputs with their types."),
    "GT0512": ("superfluous input", "The error lists the inputs with their types."),
    "GT0513": ("an input of another element type",
               "Nothing is converted silently; save the array in the type that is expected."),
    "GT0514": ("an input of another shape", "The error shows the shape that is expected."),
    "GT0515": ("a size out of bounds",
               "The dim was declared with bounds at import; the size lies outside."),
    "GT0570": ("a program reads or writes outside of a buffer",
               "The interpreter of programs checks each access; the program was edited, or the "
               "lowering has a fault."),
    "GT0572": ("a size beyond its bound",
               "A size that a program computes came out below its least or above its bound."),
    "GT0571": ("a template without a meaning in the interpreter",
               "Compile the program instead; graphtool/loops/meaning.py lists what is known."),
    "GT0601": ("unknown pass", "`graphtool passes` lists the passes."),
    "GT0602": ("unknown argument of a pass", "`graphtool passes` shows each pass's arguments."),
    "GT0603": ("an unfit argument of a pass",
               "Arguments are written like fold{max_bytes=1MiB}; lists with a plus sign."),
    "GT0604": ("passes in an illegal order",
               "One of the passes undoes what the other needs; the help line gives the reason."),
    "GT0605": ("unknown class of numerics",
               "Rules are exact, reassociated or approximate; a pass takes one of these."),
    "GT0606": ("an unknown op to keep", "`graphtool ops` lists the ops; decompose keeps those "
               "that are named."),
    "GT0607": ("an unknown symbol to bind",
               "`graphtool show` lists the open dims in its first lines."),
    "GT0608": ("unreadable list of passes",
               "Names with commas between, arguments in braces: fold{max_bytes=1024},dce."),
    "GT0609": ("a pass without what it needs",
               "The pass has an argument without a default; give it in braces."),
    "GT0610": ("a gradient of something that is no float",
               "Only floating-point outputs can be differentiated."),
    "GT0611": ("a gradient by something that is no float",
               "Only floating-point inputs and constants have gradients."),
    "GT0612": ("ops without a gradient",
               "The error lists them with their places; none of them can lie between the "
               "parameters and the loss. unknown_gradient stands where a model has a "
               "backward of its own, which capture does not see."),
    "GT0613": ("classes along no axis",
               "cross_entropy wants the axis of the classes: cross_entropy{axis=-1}."),
    "GT0614": ("an optimizer on an input",
               "Optimizers move parameters; gradients by inputs go without one."),
    "GT0615": ("a target named like an input", "Give the target another name with --target."),
    "GT0616": ("unknown loss or optimizer", "The help line lists what there is."),
    "GT0617": ("not a training graph",
               "The graph was not made by `graphtool grad` with an optimizer."),
    "GT0618": ("weights that do not fit",
               "None of the arrays is named after a parameter of the graph, or one has another "
               "shape. Graphs keep their parameters' names until they are optimised."),
    "GT0619": ("a loop without a bound",
               "The backward pass keeps what every turn of a `while` starts from, so it must know "
               "how many there can be: `graphtool grad --bound 64`, or the attribute `bound` of "
               "the loop. With a bound, the loop stops after so many turns."),
    "GT0620": ("a budget of memory that cannot be met",
               "However much is computed again, the step needs more. `graphtool opt --passes "
               "'remat{budget=1.0}' --stats` lists the peaks that can be had."),
    "GT0621": ("nothing to checkpoint",
               "--checkpoint takes the paths of modules, as the values' names begin: `h.0,h.1`."),
    "GT0623": ("a group of no parameters",
               "`grad --group` takes patterns of whole names, with * and ?: 'head.*', '*.bias'."),
    "GT0624": ("arguments of a step without an optimizer",
               "Without --optimizer the graph ends in the gradients themselves: a rate, clipping, "
               "groups, accumulation and decay have nothing to act on."),
    "GT0628": ("gradients that cannot be found",
               "Passes such as distribute and amp work on the graph that grad has written, before "
               "any other pass."),
    "GT0629": ("mixed precision in another type",
               "amp knows bfloat16, with the range of float32, and float16, with a loss scale."),
    "GT0631": ("an unreadable record of a choice",
               "Nodes and tuning files name kernels like winograd{tile=4,group=28}; the text was "
               "edited, or comes from another version."),
    "GT0633": ("unknown class of numerics of a build",
               "strict: the same bits for any number of threads, no Winograd beyond F(2,3); "
               "default: F(4,3) too; fast: bfloat16 products where the CPU has them."),
    "GT0634": ("unknown kind of kernels",
               "generated: the compiler's own; blas: a CBLAS library for large products; auto: "
               "whichever the tuning file says is faster."),
    "GT0632": ("an unreadable line of a tuning file",
               "Each line is one measurement that `graphtool tune` wrote. After a conflict in git "
               "either side of it can be kept: `tune` measures again what is missing."),
    "GT0622": ("no place for an axis of examples",
               "vmap puts a new axis at one of 0 to the input's rank; at least one input has it."),
}
