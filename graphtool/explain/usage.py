"""30xx: the command line and the Python interface."""

TABLE: dict[str, tuple[str, str]] = {
    "GT3001": ("unreadable command line", "The verb's --help shows what it takes."),
    "GT3011": ("unreadable --dim", "Write the size of an open dim like --dim batch=8."),
    "GT3012": ("no inputs", "Give --inputs FILE.npz, --input NAME=VALUE, or --random."),
    "GT3013": ("unreadable --input",
               "Write --input x=@x.npy for a file, or --input x=1x4xf32=0.5 for one value in all "
               "elements."),
    "GT3014": ("several arrays for one input",
               "The file has more than one array, and none with the input's name."),
    "GT3015": ("unreadable value of an input",
               "Write @FILE.npy, or sizes, element type and value: 1x4xf32=0.5."),
    "GT3016": ("unknown category", "The categories are compute, data, shape, control and memory."),
    "GT3017": ("unknown format", "The help line lists the formats of the verb."),
    "GT3018": ("support reads ONNX and StableHLO, lint reads ONNX",
               "A model from another source reports what is unsupported when it is imported."),
    "GT3019": ("unknown error code", "`graphtool explain` lists the codes."),
    "GT3020": ("unreadable --dynamic", "Write --dynamic batch=1..64, seq=2.. or batch."),
    "GT3021": ("unknown capture", "export is torch.export, fx is torch.fx.symbolic_trace."),
    "GT3022": ("--print-after of a pass that does not run",
               "Name one of the passes in the list, or all, or changed."),
    "GT3023": ("--dtype is not a float type", "eval --dtype takes a float type, such as float64."),
    "GT3024": ("options of an import with what is imported already",
               "--inputs, --capture, --dynamic, --limit, --strict and --lenient say how a "
               "model becomes a graph. A graph or a program was made with them: import the model "
               "again."),
    "GT3025": ("several kinds of fault for reduce",
               "reduce looks for one fault: a change by passes, a change by compiled code, or "
               "a failing command."),
    "GT3026": ("no such schema", "The help line lists the artifacts and reports that have one."),
    "GT3027": ("an option for graphs with a program or a build",
               "`show` prints a program or a build whole; --why and --node also explain their "
               "kernels."),
    "GT3028": ("a shell without completion", "There are scripts for bash, zsh and fish."),
    "GT3029": ("unreadable --limit",
               "Write --limit nodes=5000000, bytes=NUMBER or seconds=NUMBER."),
    "GT3031": ("unknown rival", "`bench --vs` knows onnxruntime."),
    "GT3032": ("a rival without a model", "--vs onnxruntime needs --model MODEL.onnx."),
    "GT3033": ("onnxruntime is not installed",
               "Install the extra onnxruntime; the error has the command."),
    "GT3034": ("the packages of view are missing",
               "The layout and the plots of the page come from packages of the extra view; the "
               "error has the command."),
    "GT3035": ("not a profile", "`graphtool profile BUILD --json` prints one, and --trace writes a "
               "trace, for `view` to show. A JSON object of numbers by names of nodes colours a "
               "graph, which has to be named too."),
    "GT3041": ("different numbers of outputs",
               "Two sides can be compared when they have as many outputs."),
    "GT3042": ("nothing that can be checked",
               "Give a graph, a program, a build directory, an .onnx file, or FILE.py:NAME."),
    "GT3043": ("onnxruntime refuses the model", "The message is onnxruntime's own."),
    "GT3044": ("no inputs can be made up",
               "Neither side states its inputs. Give --inputs FILE.npz."),
    "GT3045": ("a run that did not finish",
               "The model took longer than allowed, or ended the runtime's process; --limit raises "
               "the limits of an import."),
    "GT3050": ("nothing to resume from",
               "--resume needs the directory of the checkpoint: --checkpoint run/."),
    "GT3051": ("the samples are missing",
               "The demo reads samples/digits.onnx and the images; its page is samples/web."),
    "GT3052": ("options that do not go with the kind of graph",
               "A training graph is built into four functions with its constants inside. Only a "
               "training graph runs in several processes."),
    "GT3055": ("an option for a build of one function",
               "With several models, or with NAME=MODEL, `build` makes entry points over one set "
               "of weights, for one processor, as a library. Build each model by itself for a "
               "program, for --march fat or for --keep."),
    "GT3054": ("--march fat for something of one level",
               "--march fat lowers a model once for each level of x86-64, so it needs a model "
               "or a graph. A program is lowered already, and training is compiled for one "
               "level."),
    "GT3090": ("a choice of kernels that comes too late",
               "--precision, --kernels and --tuning act on the passes. A graph that is lowered "
               "as it is has its kernels already."),
    "GT3091": ("nothing to tune",
               "Nothing in the artifact has alternatives on this machine. Tune models, optimised "
               "graphs, programs and builds with products or convolutions."),
    "GT3092": ("unreadable --budget", "Write a number and s, m or h: 60s, 2m."),
    "GT3093": ("no such node or kernel", "The help line lists similar names."),
    "GT3098": ("a build beside something else",
               "`diff` compares two graphs, or two builds. What a build and a model compute is "
               "compared by `check`."),
    "GT3150": ("a tokenizer without room",
               "Each of the 256 bytes is a token, and one ends a text."),
    "GT3151": ("a number that is no token", "Tokens are numbered from 0."),
    "GT3152": ("not a tokenizer",
               "The file is no tokenizer of graphtool; `graphtool tokenizer train` makes them."),
    "GT3153": ("a number of the choice of tokens out of range", "The help line has the range."),
    "GT3154": ("not a step of a language model",
               "`build --tokenizer` wants entry points that take tokens, i64[1,S], caches that are "
               "updated in place, their position and, if at all, positions and a mask, and that "
               "give scores, f32[1,S,V]. The pass `cache` makes such a graph from one with a "
               "growing past."),
    "GT3155": ("a tokenizer for another model",
               "The scores of the model must be as many as the tokens of the tokenizer, and all "
               "entry points must share caches of one size."),
    "GT3156": ("a build without a tokenizer",
               "`generate` reads the tokenizer in the build: build --tokenizer tokens.json."),
    "GT3157": ("more tokens than the caches have room for",
               "Give a shorter prompt, or build with more room: the pass cache{max=…}."),
    "GT3101": ("no such plug-in", "`--plugin` takes the path of a Python file."),
    "GT3102": ("a plug-in that fails while it is loaded",
               "The error says which line of it. Nothing of it stays registered."),
    "GT3103": ("a name that exists already",
               "The plug-in adds an op, rule, pass or handler whose name is taken: choose "
               "another name."),
    "GT3104": ("two plug-ins of one name",
               "A plug-in is called after its file, and artifacts name it so: rename one."),
    "GT3105": ("a plug-in that fails while it works",
               "A function of the plug-in raised an error, returned something of the wrong "
               "kind, or left an invalid graph. The error names the function and its file."),
    "GT3106": ("a place that does not exist",
               "A rule or a pass can stand before an existing one, and the help line lists "
               "those. The header of a kernel must be next to the plug-in."),
    "GT3107": ("something that cannot be used as a plug-in adds it",
               "An op needs a doc, an eval or a decomposition, and a way to lower. The "
               "attributes that its facets name must be attributes of `infer`, annotated as what a "
               "file holds. A pass is a function of the graph. Annotations are read, so the file "
               "must import what they name. A verb needs a name of its own, a known group and a "
               "docstring; an importer a function that reads, and suffixes that no other has."),
    "GT3108": ("a model without the site to measure",
               "`tune` measures a site of a plug-in on the model that `add_site` was given. "
               "The passes must find exactly this site in it: the same sizes, none of them "
               "open."),
    "GT3109": ("a graph by hand that is not a module yet",
               "`Graph` collects values and ops; `module()` checks them and gives what evaluates, "
               "prints and compiles."),
    "GT3058": ("no sizes of this", "`size` measures one function: name the model or the graph, or "
               "a build that was made with --keep, which has its program."),
    "GT3059": ("an unreadable number of bytes", "Write a number and K, M or G, which count 1024, "
               "1024² and 1024³: --max-ram 64K."),
    "GT3099": ("a source that is captured already",
               "compare-captures captures a model itself, so it needs Python code that makes "
               "an nn.Module. A model file is the result of one capture."),
    "GT3061": ("unknown device", "The ONNX backend has one device, CPU."),
    "GT3062": ("unknown mode of the ONNX backend",
               "The modes are eval, the evaluator, and c, compiled code."),
    "GT3070": ("unknown schedule", "The help line lists the schedules."),
    "GT3071": ("an array is missing in the data",
               "The .npz file must hold an array for each input and for the target, under their "
               "names."),
    "GT3072": ("arrays of different lengths", "Each example is one entry along axis 0."),
    "GT3073": ("too few examples",
               "The examples that are not held back for validation must make at least one batch."),
    "GT3074": ("data of another element type",
               "An array is converted where no number becomes another one: floats may be rounded "
               "to floats that have them in their range, integers become equal integers or "
               "floats."),
    "GT3075": ("a checkpoint of another training",
               "The checkpoint was made with another model or another optimizer."),
    "GT3076": ("weights that training cannot start from",
               "Every parameter needs an array of its name and shape, without NaN, in a type whose "
               "numbers the parameter's type has."),
    "GT3077": ("not a safetensors file", "The file is something else, or was cut short."),
    "GT3078": ("another batch size than the compiled one",
               "Leave the batch dim open at import, or give this --batch."),
    "GT3079": ("a run with another order of examples",
               "Seed, batch size and data decide the order of examples. A resumed run must use "
               "the same."),
    "GT3080": ("a batch that does not divide among the processes",
               "Each process takes an equal share. Choose --batch as a multiple of the number of "
               "processes."),
    "GT3081": ("several processes without MPI",
               "mpirun started several processes, but the build exchanges nothing between "
               "them. Build it with --mpi."),
    "GT3082": ("weights that are not numbers",
               "A step made the loss and the state NaN, and they would be so from then on. The "
               "data may have NaN, or the learning rate may be too large. The last checkpoint "
               "stays as it is; nothing later is written."),
    "GT3037": ("unreadable axes of examples",
               "vmap takes `--in-axes x=1,table=none` with the inputs' names, and `--size 8` or "
               "the name of a dim that the graph does not have yet."),
    "GT3130": ("no working tree of git",
               "`graphtool git` works in the repository of the current folder."),
    "GT3131": ("git is not installed", "`graphtool git` calls the program git."),
    "GT3132": ("git cannot write its configuration",
               "The message is git's own. If another git is at work, .git/config.lock exists."),
    "GT3133": ("weights that cannot be merged",
               "Graphs name their weights by hash, so that two files can be joined. Another "
               "safetensors file needs a person to choose."),
    "GT3134": ("an unknown revision",
               "git found no common ancestor of HEAD and the revision. Actions fetch one commit "
               "unless actions/checkout is given fetch-depth: 0."),
    "GT3135": ("times of something else",
               "Times can be compared if build, threads and sizes are the same. On another "
               "processor there is no verdict: save a base there too, or race two builds."),
    "GT3136": ("unreadable --fail-slower", "Write a share: 5%."),
    "GT3137": ("two comparisons at once",
               "--vs times another runtime in turns with the build, --compare an earlier build."),
    "GT3138": ("a build with other inputs",
               "Two builds can run in turns if they take the same inputs."),
    "GT3139": ("not a base of bench", "`graphtool bench BUILD --save FILE` writes one."),
    "GT3140": ("not a journal", "`graphtool opt MODEL --journal FILE` writes one."),
    "GT3141": ("a journal without its graph",
               "`why --journal FILE --optimised GRAPH` reads what one run of `opt --journal FILE "
               "-o GRAPH` wrote. Without both, why runs the passes itself."),
    "GT3142": ("a graph that no repro can be made of",
               "The main program compares arrays of numbers whose sizes are known beforehand."),
    "GT3143": ("nothing to watch", "--watch looks at the files that the command line names."),
    "GT3160": ("an unknown command of debug", "`graphtool debug` lists its commands with help."),
    "GT3161": ("a value that debug does not have",
               "A value is there once the run has computed it. In C only the results of kernels "
               "exist; --with evaluator has every value of the graph."),
    "GT3162": ("an unreadable index", "An index is as in x[0,:4]: numbers, slices, and ...."),
    "GT3163": ("debug with sides or commands that contradict each other",
               "--with is evaluator or c. Commands come from --commands or from stdin, which then "
               "cannot hold the graph."),
    "GT3174": ("a range of no input", "`graphtool bound` takes --range NAME=LOW:HIGH, where NAME "
               "is an input as `graphtool show` prints it, and LOW is at most HIGH."),
    "GT3147": ("not the log of a training run", "`graphtool train … --checkpoint DIR` writes "
               "DIR/log.jsonl, for `view` to show."),
    "GT3164": ("a function of the API was called wrongly",
               "The error says which argument, and what it should be; inputs of a model are given "
               "by name."),
    "GT3166": ("Python works in ASCII", "Texts and names of files are UTF-8; in a C locale Python "
               "does so by itself, unless PYTHONUTF8=0 or PYTHONCOERCECLOCALE=0 forbid it."),
    "GT3173": ("git has no such file",
               "REV:PATH names a file of a commit. The error says whether the revision or the path "
               "is unknown; outside a repository there is neither."),
    "GT3172": ("a name of an output with the ending of another format",
               "A graph is written as .graph.json or .gt, a program as .program.json, arrays as "
               ".npz, and a build is a directory. The error names the verb that writes the other "
               "format."),
    "GT3165": ("no node has this name", "The error has the nearest name; `graphtool show` lists "
               "all."),
    "GT3148": ("nothing to compare", "`view --numbers` runs two graphs, or an optimised one and "
               "its C."),
    "GT3120": ("an unreadable option of quantise",
               "The error says which option, and how it is written."),
}
