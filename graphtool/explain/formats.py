"""03xx: element types, dimensions, files, and the artifacts in them."""

TABLE: dict[str, tuple[str, str]] = {
    "GT0301": ("unknown element type",
               "Types are written short or long: f32 or float32, i64, u8, bf16, bool and so on."),
    "GT0302": ("a numpy type without a counterpart",
               "Objects, complex numbers and dates cannot be tensors here; convert the array "
               "first."),
    "GT0303": ("not strings", "Strings are expected; the array holds something else."),
    "GT0310": ("a size comparison that the bounds leave open",
               "Two sizes with open dims must be compared, and the answer depends on the sizes. "
               "Bound the dims more tightly, or bind them with the pass `specialize`."),
    "GT0311": ("unreadable dimension",
               "A dimension is an integer, a declared symbol, or a sum, product, // or % of such, "
               "with min, max and parentheses."),
    "GT0320": ("unreadable weights file",
               "The .safetensors file beside a graph or program is missing, cut short, or was "
               "written by something else. Copy both files together."),
    "GT0330": ("cannot write",
               "The folder does not exist, is not writable, or the disk is full. Nothing is left "
               "half-written."),
    "GT0331": ("not a JSON artifact",
               "The file is no strict JSON: it is cut short, has a key twice, or a bare NaN."),
    "GT0332": ("cannot read", "There is no such file, it is a directory, or it is not readable."),
    "GT0334": ("a file of a newer version",
               "A newer graphtool wrote the file in a format that this one does not know; the "
               "message names the release that reads it. Files of older versions are always "
               "read."),
    "GT0335": ("not an .npy or .npz file",
               "Arrays are read from numpy's own files, never from pickles; save plain arrays."),
    "GT0333": ("out of memory",
               "The sizes ask for more than the machine has: smaller ones, by --dim for made-up "
               "inputs, or a larger machine."),
    "GT0336": ("several arrays for one .npy file",
               "An .npy file holds a single array without a name; name the file .npz."),
    "GT0340": ("not a graph artifact",
               "The verb reads NAME.graph.json. The message says which artifact came instead."),
    "GT0342": ("malformed graph",
               "A field is missing, of the wrong type, or unknown; the message says where."),
    "GT0343": ("a weights file elsewhere",
               "A graph names its weights file without folders, and it lies beside the graph."),
    "GT0344": ("a donor that is no input",
               "An output takes over the buffer of one of the graph's inputs, and of nothing "
               "else."),
    "GT0345": ("unreadable type", "A type is written like f32[batch,3,224,224], a scalar f32[]."),
    "GT0346": ("a name defined twice",
               "Within a graph or region each value has its own name."),
    "GT0347": ("an undefined output", "The graph returns a value that no node defines."),
    "GT0348": ("ids and types differ in number",
               "A node with several results has as many ids as types."),
    "GT0349": ("used before it is defined",
               "Nodes stand in execution order. The operand is defined later, in a cycle, or not "
               "at all."),
    "GT0350": ("an attribute of the wrong kind",
               "`graphtool ops NAME` shows the attributes of an op with their types."),
    "GT0351": ("a region inside itself",
               "Regions of control flow nest, and cannot contain themselves."),
    "GT0352": ("missing or unfit constant",
               "The data of a constant is not in the weights file, or has not as many elements "
               "as its type says."),
    "GT0353": ("constant and weights file disagree",
               "The graph and the weights file belong to different models or versions."),
    "GT0354": ("a group of unknown nodes",
               "A fusion group names nodes of its graph; drop the table of groups and fuse again."),
    "GT0355": ("a graph that contradicts itself",
               "What the file says of a node is not what its op makes of the operands; the place "
               "is marked. A graph edited by hand needs its types to follow."),
    "GT0356": ("a dim that no size fits", "The most that a dim may be is below the least."),
    "GT0358": ("a plug-in that is not loaded",
               "The graph has ops of a plug-in. Files only name plug-ins; nothing is loaded "
               "because of it: give its file by `--plugin FILE.py`, or install its package."),
    "GT0357": ("unreadable listing",
               "The text does not follow the grammar of a listing (docs/listing.md); line, column "
               "and a mark say where. `graphtool show` prints listings that can be read."),
    "GT0360": ("not a program artifact",
               "The verb reads NAME.program.json, which `graphtool lower` writes."),
    "GT0362": ("malformed program",
               "A field is missing, of the wrong type, or unknown; the message says where."),
    "GT0363": ("an unknown word in a program",
               "Statements, loop modes, memory spaces and the like come from short fixed lists."),
    "GT0364": ("an ambiguous macro", "A template's macro has one value: a size, a flag, a number, "
               "an element type or a word."),
    "GT0365": ("unreadable expression", "The program's expressions are constants, names, "
               "indices, loads and applications of the scalar functions."),
    "GT0366": ("unsound symbols in a program",
               "Each symbol is declared once, and the extents of loops do not refer to each "
               "other in a circle."),
    "GT0367": ("weights missing from a program's store",
               "Keep the .safetensors file beside the program, and copy both together."),
    "GT0370": ("a name that cannot go into C",
               "Names of kernels, buffers and variables are C identifiers of moderate length."),
    "GT0371": ("a variable used wrongly",
               "It is not declared in this scope, of another type, or not one to be assigned."),
    "GT0372": ("an operation on wrong types",
               "The operands of a scalar function or condition do not have the types it takes."),
    "GT0373": ("a buffer used wrongly",
               "It is unknown here, of another type, or not one that this kernel may write."),
    "GT0374": ("a kernel call that does not fit",
               "The kernel is unknown, or is given other buffers than it takes."),
    "GT0375": ("access beyond a buffer",
               "An index of a kernel can leave the buffer that it is given; such a program is "
               "refused, not compiled."),
    "GT0376": ("an unsound memory plan",
               "A buffer has a negative or unaligned place, or reaches beyond the arena."),
    "GT0377": ("a missing barrier",
               "Two steps share memory and one writes it, so that threads have to wait between."),
    "GT0378": ("an unknown template", "Templates are the headers that come with the tool."),
    "GT0379": ("a program for no threads",
               "The numbers in the program's head are out of range."),
    "GT0380": ("a template used against its contract",
               "Each kernel lists the macros, pointers and hooks that its header takes, and of "
               "which kind they are; one is unknown here, missing, or of another kind."),
}
