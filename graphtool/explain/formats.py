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
               "A dimension is an integer, a declared symbol, or a sum, product, // or % of "
               "these, with min, max and parentheses."),
    "GT0317": ("sizes that can never be equal",
               "The model adds, joins or multiplies tensors whose sizes differ for every input. "
               "If the model broadcasts a size of 1, say so: --dynamic NAME=1..1."),
    "GT0320": ("unreadable weights file",
               "The .safetensors file beside a graph or program is missing, cut short, or was "
               "written by something else. Copy both files together."),
    "GT0321": ("damaged weights",
               "The bytes of a weight do not have the hash that names them: the file was changed "
               "or damaged. Copy it again, or make it anew from the model."),
    "GT0330": ("cannot write",
               "The folder does not exist, is not writable, or the disk is full. Nothing is left "
               "half-written."),
    "GT0331": ("not a JSON artifact",
               "The file is not strict JSON: it is cut short, has the same key twice, or "
               "contains a bare NaN."),
    "GT0332": ("cannot read", "There is no such file, it is a directory, or it is not readable."),
    "GT0338": ("a directory where a graph is wanted",
               "Name a graph in it. A build directory contains the graphs that it was made from "
               "if it was built with --keep."),
    "GT0339": ("a file where a build is wanted",
               "`graphtool build` compiles a graph, a program or a model into a directory, which "
               "the verb takes. A graph can also be run as it is: graphtool eval."),
    "GT0334": ("a file of a newer version",
               "A newer graphtool wrote the file in a format that this one does not know; the "
               "message names the release that reads it. Files of older versions are always "
               "read."),
    "GT0335": ("not an .npy or .npz file",
               "Arrays are read from files that numpy.save and numpy.savez write, without "
               "pickled objects."),
    "GT0333": ("out of memory",
               "The sizes need more memory than the machine has. Choose smaller ones (with --dim "
               "for random inputs), or a larger machine."),
    "GT0336": ("several arrays for one .npy file",
               "An .npy file holds one array. Name the file .npz to write several."),
    "GT0337": ("another file under the name of the weights",
               "Weights are written to the .safetensors file beside a graph, and the file of "
               "that name holds other arrays, such as a model's. It is not overwritten: give "
               "the graph another name, or move the file."),
    "GT0340": ("not a graph",
               "The verb reads a graph, or a model, which becomes one. The message says what the "
               "file is instead, by its first bytes or its name, and what can be done with it."),
    "GT0342": ("malformed graph",
               "A field is missing, of the wrong type, or unknown; the message says where."),
    "GT0343": ("a weights file elsewhere",
               "A graph names its weights file without a directory. Both files must be in the "
               "same directory."),
    "GT0344": ("a donor that is not an input",
               "Only an input of the graph can donate its memory to an output."),
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
               "The graph and the weights file belong to different models, or to different "
               "versions of one."),
    "GT0354": ("a group of unknown nodes",
               "A fusion group names nodes of its graph; drop the table of groups and fuse again."),
    "GT0355": ("a graph that contradicts itself",
               "The type that the file gives to a node is not the type that its op infers. If "
               "you edit a graph by hand, its types must be edited too."),
    "GT0356": ("a dim that no size fits", "The upper bound of a dim is below its lower bound."),
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
               "Statements, loop modes and memory spaces have fixed names; this is none of them."),
    "GT0364": ("an ambiguous macro", "A template's macro has one value: a size, a flag, a number, "
               "an element type or a word."),
    "GT0365": ("unreadable expression", "The program's expressions are constants, names, "
               "indices, loads and applications of the scalar functions."),
    "GT0366": ("unsound symbols in a program",
               "Each symbol must be declared once, and extents of loops must not depend on each "
               "other in a circle."),
    "GT0367": ("weights missing from a program's store",
               "Keep the .safetensors file beside the program, and copy both together."),
    "GT0572": ("a kernel without a text in this language",
               "The program was lowered for a target of another language. Lower the graph again: "
               "an op whose kernel has no text in a language is emitted as its definition."),
    "GT0370": ("a name that cannot go into C",
               "Names of kernels, buffers and variables must be C identifiers of moderate "
               "length."),
    "GT0371": ("a variable used wrongly",
               "It is not declared in this scope, has another type, or cannot be assigned."),
    "GT0372": ("an operation on wrong types",
               "A scalar function or a condition has operands of types that it does not take."),
    "GT0373": ("a buffer used wrongly",
               "The buffer is unknown here, has another type, or must not be written by this "
               "kernel."),
    "GT0374": ("a kernel call that does not fit",
               "The kernel is unknown, or it takes other buffers than it is given."),
    "GT0375": ("access beyond a buffer",
               "An index in a kernel can lie outside its buffer. Such a program is refused."),
    "GT0376": ("an unsound memory plan",
               "A buffer has a negative or unaligned offset, or ends outside the arena."),
    "GT0377": ("a missing barrier",
               "Two steps use the same memory and one of them writes it, so threads must wait "
               "between them."),
    "GT0378": ("an unknown template", "Templates are the headers that come with the tool."),
    "GT0379": ("a program for no threads", "A number in the head of the program is out of range."),
    "GT0380": ("a template used against its contract",
               "Each kernel lists the macros, pointers and hooks that its header takes, and of "
               "which kind they are; one is unknown here, missing, or of another kind."),
}
