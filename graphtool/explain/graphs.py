"""04xx to 06xx: types and ops, evaluation, passes and gradients."""

TABLE: dict[str, tuple[str, str]] = {
    "GT0401": ("unknown op", "`graphtool ops` lists the ops of this version."),
    "GT0402": ("unknown attribute", "`graphtool ops NAME` shows the attributes of an op."),
    "GT0403": ("missing attribute",
               "The attribute has no default; `graphtool ops NAME` shows what it is."),
    "GT0404": ("unfit attributes or operands",
               "The op does not take an operand or an attribute of this kind."),
    "GT0405": ("wrong number of operands", "`graphtool ops NAME` shows the op's operands."),
    "GT0410": ("undeclared dimension",
               "Every open dim of an input must be declared in the module's table of symbols."),
    "GT0412": ("operands that do not fit",
               "The shapes or element types of the operands do not fit this op. The error lists "
               "the operands with their types and origins. Elementwise ops broadcast as numpy "
               "does and need equal element types; a matrix product needs equal inner dims."),
    "GT0414": ("an unreadable pattern",
               "Patterns are read as Python's regular expressions. A few forms that only RE2 has "
               "must be written differently."),
    "GT0501": ("index out of range",
               "An index must be at least 0 and below the size of the axis. Importers have "
               "already converted negative indices. Check the values of the integer input."),
    "GT0503": ("an op that cannot be evaluated",
               "numpy refused the operands. The error says where in the graph."),
    "GT0504": ("unknown size",
               "An open dim is not determined by the inputs; bind it with --dim, or with the pass "
               "`specialize`."),
    "GT0505": ("a size that is out of bounds",
               "A size that was computed from data is outside the bounds in the graph. Import "
               "the model with a wider bound: --dynamic NAME=LOW..HIGH."),
    "GT0506": ("not a number",
               "A cast from strings to numbers found a text that is not a number, or a number "
               "that the type cannot hold."),
    "GT0508": ("exchanges that differ between processes",
               "All processes must do the same exchanges in the same order."),
    "GT0509": ("pictures without Pillow",
               "Pictures are decoded by Pillow, from the extra images; the error has the command."),
    "GT0511": ("missing input", "The error lists the inputs with their types."),
    "GT0512": ("superfluous input", "The error lists the inputs with their types."),
    "GT0513": ("an input of another element type",
               "Element types are never converted silently. Save the array in the expected type."),
    "GT0514": ("an input of another shape", "The error shows the shape that is expected."),
    "GT0515": ("a size out of bounds",
               "The dim was declared with bounds at import, and the size is outside of them."),
    "GT0516": ("sizes that must be equal and are not",
               "The model adds, joins or multiplies tensors with open sizes that must be "
               "equal; `graphtool show` lists the condition as `require`. Give inputs that "
               "satisfy it."),
    "GT0570": ("a program reads or writes outside of a buffer",
               "The interpreter of programs checks every access. Either the program was edited, "
               "or lowering has a fault."),
    "GT0572": ("a size beyond its bound",
               "A size that the program computed is outside its bounds."),
    "GT0571": ("a template without a meaning in the interpreter",
               "The interpreter needs the kernel's contract: load the plug-in that declares it, or "
               "compile the program instead."),
    "GT0601": ("unknown pass", "`graphtool passes` lists the passes."),
    "GT0602": ("unknown argument of a pass", "`graphtool passes` shows each pass's arguments."),
    "GT0603": ("an unfit argument of a pass",
               "Arguments are written like fold{max_bytes=1MiB}. The items of a list are joined "
               "by plus signs."),
    "GT0604": ("passes in an illegal order",
               "One pass undoes what the other one needs. The help line says why."),
    "GT0605": ("unknown class of numerics",
               "Rules are exact, reassociated or approximate; a pass takes one of these."),
    "GT0606": ("an unknown op to keep", "`graphtool ops` lists the ops; decompose keeps those "
               "that are named."),
    "GT0607": ("an unknown symbol to bind",
               "`graphtool show` lists the open dims in its first lines."),
    "GT0608": ("unreadable list of passes",
               "Write names separated by commas, with arguments in braces: "
               "fold{max_bytes=1024},dce."),
    "GT0609": ("a pass without what it needs",
               "The pass has an argument without a default. Give it in braces."),
    "GT0610": ("a gradient of something that is not a float",
               "Only outputs of a float type can be differentiated."),
    "GT0611": ("a gradient by something that is not a float",
               "Only inputs and parameters of a float type have gradients."),
    "GT0612": ("ops without a gradient",
               "The error lists these ops with their places. None of them may lie between the "
               "parameters and the loss."),
    "GT0613": ("no axis of the classes",
               "cross_entropy needs the axis of the classes: cross_entropy{axis=-1}."),
    "GT0614": ("an optimizer on an input",
               "An optimizer updates parameters. Leave it out to get gradients by inputs."),
    "GT0615": ("a target named like an input", "Give the target another name with --target."),
    "GT0616": ("unknown loss or optimizer", "The help line lists what there is."),
    "GT0617": ("not a training graph",
               "The graph was not made by `graphtool grad` with an optimizer."),
    "GT0618": ("weights that do not fit",
               "No array has the name of a parameter of the graph, or one has another shape, NaN, "
               "or numbers that the parameter's type does not have. A graph keeps the names of its "
               "parameters until it is optimised."),
    "GT0619": ("a loop without a bound",
               "The backward pass keeps the state at the start of each iteration of a `while`, "
               "so it must know the largest trip count: `graphtool grad --bound 64`, or the "
               "attribute `bound` of the loop. With a bound, the loop stops after that many "
               "iterations."),
    "GT0626": ("no cache to keep",
               "The pass `cache` looks for outputs that are an input of open size with new "
               "elements joined to it, as the past of a decoder is, all of one size. Import the "
               "model with that size open: --dynamic 'P@k0.2,v0.2=1..4096'."),
    "GT0627": ("no step over frames",
               "The pass `step` takes a graph over a window of frames, with fixed sizes, and the "
               "axis of the frames: step{axis=2}. A step has a multiple of the product of the "
               "strides along time, and layers must compute each frame's rows in the same way."),
    "GT0630": ("a step over a padded axis",
               "When the window moves on, a row that was computed from padding is computed from "
               "frames, so all layers after it would have to start again. Let convolutions and "
               "pools have no padding along time; along other axes they may."),
    "GT0625": ("a target of a size that the run computes",
               "The rows of the result are counted by the run, so no array of targets can be "
               "prepared for them. Compute the loss in the model, and name it with --loss."),
    "GT0620": ("a budget of memory that cannot be met",
               "The step needs more memory than the budget, however much of it is computed "
               "again. `graphtool opt --passes 'remat{budget=1.0}' --stats` lists the peaks "
               "that are possible."),
    "GT0621": ("nothing to checkpoint",
               "--checkpoint takes the paths of modules, which are the beginnings of value "
               "names: `h.0,h.1`."),
    "GT0623": ("a group of no parameters",
               "`grad --group` takes patterns that match whole names, with * and ?: 'head.*', "
               "'*.bias'."),
    "GT0624": ("arguments of a step without an optimizer",
               "Without --optimizer the graph computes gradients only. A rate, clipping, groups, "
               "accumulation and decay need an optimizer."),
    "GT0628": ("gradients that cannot be found",
               "Passes such as distribute and amp find the gradients of a training step by the "
               "op `gradient`. Run them before freeze, which drops it."),
    "GT0629": ("mixed precision in another type",
               "amp takes bfloat16, which has the range of float32, or float16, which needs a "
               "loss scale."),
    "GT0631": ("an unreadable record of a choice",
               "Nodes and tuning files name kernels like winograd{tile=4,group=28}; the text was "
               "edited, or comes from another version."),
    "GT0633": ("unknown class of numerics of a build",
               "strict: the same bits for any number of threads, no Winograd; "
               "default: Winograd up to F(4,3); high: the same, and products "
               "in tf32 on a GPU, or in two bfloat16 parts on a matrix unit of a CPU; "
               "fast: bfloat16 products where the CPU has them."),
    "GT0635": ("unknown assumption of a build",
               "finite: kernels may be chosen that spread or move a NaN or an infinity, as "
               "Winograd's do; normal: that too, and subnormal numbers count as 0; nothing: NaN "
               "and infinity stay where the model makes them."),
    "GT0636": ("an assumption that may not be made",
               "The graph was optimised for finite numbers, which a rule or a kernel assumed; "
               "`--assume nothing` and `--precision strict` cannot take that back. Begin with the "
               "model."),
    "GT0637": ("unknown objective of a build",
               "size: kernels of few bytes; ram: also rows that are streamed; speed: kernels of "
               "little time; usual: size for a microcontroller, else speed."),
    "GT0534": ("an op without an error bound",
               "`graphtool bound` follows rounding through arithmetic, products, convolutions, "
               "reductions, softmax, norms and movement. A choice that depends on rounded numbers, "
               "for example, has no bound."),
    "GT0535": ("an input that has no range",
               "`graphtool bound` takes floats of a range; integers, such as tokens, must be given "
               "in a file: --inputs FILE.npz."),
    "GT0638": ("unknown tier of proofs",
               "proved: rules that are right for all numbers of their class and all sizes; "
               "bounded: for all shapes up to a bound; tested: all rules."),
    "GT0634": ("unknown kind of kernels",
               "generated: the compiler's own; blas: a CBLAS library for large products; auto: "
               "whichever the tuning file says is faster."),
    "GT0632": ("an unreadable line of a tuning file",
               "Each line is one measurement that `graphtool tune` wrote. After a conflict in git "
               "either side of it can be kept: `tune` measures again what is missing."),
    "GT0640": ("no such layer",
               "--only and --skip are patterns of names, as 'block1.*'. `graphtool quantise` "
               "prints the names of all layers."),
    "GT0641": ("examples that do not fit",
               "Calibration needs an array for each input: with the axes of the input, examples "
               "along the first, or with one axis more."),
    "GT0642": ("an activation or a weight that is not finite",
               "A grid cannot be found for infinities and NaN. Calibrate with other examples, or "
               "leave the layer out."),
    "GT0643": ("a block that does not fill bytes",
               "A block of integers of 2 or 4 bits must fill whole bytes; 32 or 64 is usual."),
    "GT0644": ("examples are needed",
               "The ranges of activations, gptq, awq, smoothing and the correction of biases come "
               "from examples: --calibrate FILE.npz."),
    "GT0645": ("nothing to quantise",
               "A layer is a convolution, a matrix product or a table whose weight is a float32 "
               "constant of the graph; in the form static also a product of two activations."),
    "GT0646": ("a Jacobian of open size",
               "A Jacobian has a row for each element of the output and a column for each of the "
               "input. Fix the sizes by `opt --passes specialize{batch=1}`, or use jvp or vjp, "
               "whose results have the sizes of the model's own values."),
    "GT0622": ("no place for an axis of examples",
               "vmap inserts a new axis at a position from 0 to the rank of the input. At least "
               "one input must get it."),
}
