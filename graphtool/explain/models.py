"""10xx to 13xx: models from ONNX, from torch, from .pt2 archives, and from StableHLO."""

TABLE: dict[str, tuple[str, str]] = {
    "GT1001": ("not an ONNX model", "The file is cut short, or of another kind."),
    "GT1002": ("an ONNX file without a graph",
               "The file is empty, or contains something other than a model."),
    "GT1003": ("no valid version",
               "The file format, or a domain of operators, has no version, two versions, or "
               "one that does not exist. The version decides what the operators mean: export "
               "the model again."),
    "GT1004": ("unknown ONNX element type", "The model is damaged, or newer than this tool."),
    "GT1005": ("a broken initializer",
               "Its shape, type and data do not fit together; export the model again."),
    "GT1006": ("external data without a folder",
               "A model in memory cannot refer to other files; load it with its data."),
    "GT1007": ("external data outside the model's folder",
               "Absolute paths, `..` and links that lead out are refused: a model must not read "
               "other files of this machine."),
    "GT1008": ("external data beyond the file's end",
               "The data file is cut short, or belongs to another model."),
    "GT1009": ("unreadable external data",
               "The file with the data cannot be read. It must be in the folder of the model."),
    "GT1010": ("a cycle of nodes", "Nodes depend on each other in a circle; the error lists them."),
    "GT1011": ("an undefined value", "No node, input or initializer defines the name."),
    "GT1012": ("a name defined twice",
               "Every value, function and output needs its own name, and every input a type. "
               "Inside a branch or a loop, the names outside of it are taken too."),
    "GT1013": ("functions nested too deeply",
               "A function of the model calls itself, or functions are nested deeper than the "
               "importer allows."),
    "GT1014": ("wrong number of inputs of a node",
               "The node does not follow the operator's definition."),
    "GT1015": ("an unreadable node", "Its attributes or inputs are not what the operator takes."),
    "GT1016": ("wrong number of outputs of a node",
               "The node does not follow the operator's definition."),
    "GT1017": ("an operator that the opset does not have",
               "The operator was added in a later opset, or removed in an earlier one. The "
               "nodes do not match opset_import; export the model again. An operator that came "
               "later is taken with a warning, unless --strict is given; --lenient takes one that "
               "was removed."),
    "GT1018": ("a wrong attribute",
               "It is unknown, given twice, missing, of the wrong type, or not one of the values "
               "that the operator allows; export the model again. --lenient takes attributes "
               "that the opset does not have."),
    "GT1019": ("element types that the operator does not take",
               "The inputs, or the declared outputs, do not follow the operator's definition. "
               "What a newer opset allows is taken with a warning, unless --strict is given; "
               "--lenient takes other types of the same kind, and declarations that are wrong."),
    "GT1020": ("unsupported parts of an ONNX model",
               "All of them are listed with counts and places; `graphtool support` does so "
               "without importing."),
    "GT1022": ("a model beyond the limits of the import",
               "Functions, loops or tensors of the model become much larger than its file. If "
               "the model is right, raise the limit with --limit."),
    "GT1030": ("empty bounds of a dimension", "The lower bound is above the upper one."),
    "GT1031": ("parts that cannot be read",
               "A sequence is NAME:(f32[4],f32[5]), an optional NAME:f32[4] or NAME:none. NAME=2 "
               "makes an input a constant, if it has fixed sizes and its type has the number."),
    "GT1032": ("parts for an input that has none",
               "Only inputs that are sequences or optionals consist of parts, and only a tensor "
               "can be a number."),
    "GT1040": ("nodes that ONNX cannot express",
               "Each op is listed once with its places. Before `opt`, a graph has more ops "
               "that ONNX knows; otherwise the graph can only be compiled."),
    "GT1060": ("not a lint profile",
               "A profile is a JSON file: name, title, source, and rules with id, says and check. "
               "`graphtool lint --profile sonnx` prints one."),
    "GT1050": ("nodes that StableHLO cannot express",
               "Each op is listed once with its reason and its places. Strings, pictures and "
               "exchanges between processes have no counterpart; where a size is the reason, fix "
               "it by `graphtool opt --passes 'specialize{N=4}'`."),
    "GT1100": ("torch is not installed", "Install the extra torch; the error has the command."),
    "GT1101": ("unsupported torch calls",
               "All of them are listed with counts and source lines; write them with other torch "
               "functions."),
    "GT1102": ("torch cannot capture the model",
               "The error names the line at which torch stopped. A branch on a tensor's value "
               "needs torch.cond; where torch.fx fails, --capture export usually works."),
    "GT1103": ("unreadable arguments of a torch call",
               "The call has arguments of a kind that the importer does not know."),
    "GT1104": ("arguments of the import that do not fit",
               "The inputs, their names and the open dims must match the model."),
    "GT1105": ("unsupported torch tensors",
               "Complex, quantised and sparse tensors have no counterpart here."),
    "GT1106": ("an unsupported part of an exported program",
               "Objects and tokens as inputs or outputs cannot be imported; tensors can."),
    "GT1110": ("a source of an unknown form",
               "The error lists the forms in which a model can be given; plug-ins add some."),
    "GT1111": ("the Python source fails",
               "The error names the line of your file and what it raised."),
    "GT1112": ("no such name in the source", "The help line lists what the file defines."),
    "GT1113": ("not a torch module",
               "The name after the colon must be an nn.Module, or a function that returns one."),
    "GT1114": ("no sample inputs",
               "Give --inputs 'x:f32[1,3,224,224]', or define inputs() in the file."),
    "GT1115": ("unreadable specification of an input",
               "An input is given as NAME:TYPE, like x:f32[1,3,224,224]."),
    "GT1116": ("torch fails on the inputs",
               "The model raised an error when torch itself ran it; the message is torch's."),
    "GT1117": ("jax is not installed", "Install the extra jax; the error has the command."),
    "GT1118": ("JAX cannot capture the function",
               "The error names the line at which JAX stopped, and gives its message. A branch on "
               "a value needs jax.lax.cond; a size that follows from data has no shape."),
    "GT1119": ("not a function of JAX",
               "The name after the colon must be a function that takes arrays, or trees of them."),
    "GT1120": ("an option that the torch.compile backend does not know",
               "The message lists the known options. freeze=True makes the parameters "
               "constants."),
    "GT1121": ("torch cannot write ONNX here",
               "torch's export to ONNX needs the package onnxscript."),
    "GT1122": ("not a function that torch.compile returned",
               "variants(f) lists what torch.compile holds of f; give it the result of "
               "torch.compile(f, backend=\"graphtool\")."),
    "GT1201": ("not a .pt2 archive", "The file is cut short, or was not written by torch.export."),
    "GT1202": ("a broken .pt2 archive",
               "A member is missing, compressed, too large, or of another kind than its path "
               "says."),
    "GT1203": ("a .pt2 archive that contradicts itself",
               "A member occurs twice, or its data do not fit their description."),
    "GT1204": ("a .pt2 archive of an old torch",
               "Before 2.8 the weights were pickles, which are never read; save it again."),
    "GT1205": ("a pickle in a .pt2 archive",
               "A pickle could run any code; save plain tensors on the CPU."),
    "GT1206": ("an unsupported tensor in a .pt2 archive",
               "Its element type or layout has no counterpart here."),
    "GT1207": ("a .pt2 archive of an unsupported schema",
               "The export schema is newer or older than those that this tool reads."),
    "GT1211": ("not a TorchScript archive",
               "The file is cut short, or no module that torch.jit.save wrote."),
    "GT1212": ("a pickle in place of a model",
               "torch.save writes weights, or whole objects, as a pickle. It is never read, since "
               "that can run any code: load the weights in Python, and import FILE.py:NAME."),
    "GT1301": ("not the text of a StableHLO program",
               "The file cannot be read, or is bytecode; jax.export writes the text with "
               "mlir_module()."),
    "GT1302": ("text that the grammar does not allow",
               "The error names line and column. The page on StableHLO has the grammar."),
    "GT1303": ("a name that is not defined, or twice",
               "Every value and function has one definition, before its first use."),
    "GT1304": ("a part of MLIR that is not read",
               "Blocks with branches between them, and arrays outside of the text, are not part "
               "of what JAX writes for a function."),
    "GT1305": ("functions that do not fit",
               "The program needs a function @main, and every call a function that takes its "
               "values. A function that calls itself cannot be inlined."),
    "GT1306": ("an operation that cannot be read",
               "Its operands or attributes are not what StableHLO gives it."),
    "GT1307": ("a type that is not that of the result",
               "The type behind the operation contradicts its operands."),
    "GT1308": ("sizes that the program does not allow",
               "JAX wrote conditions on open sizes into the program, and the sizes that are "
               "given contradict one of them."),
    "GT1310": ("unsupported parts of a StableHLO program",
               "All of them are listed with counts and source lines. A custom call is code "
               "outside of the program; write it with other functions of JAX."),
    "GT1210": ("an unreadable size expression",
               "Sizes are sums, products, // and % of symbols; nothing else is evaluated."),
}
