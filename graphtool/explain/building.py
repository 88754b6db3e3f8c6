"""20xx to 22xx: lowering, targets, the C compiler, builds and running them."""

TABLE: dict[str, tuple[str, str]] = {
    "GT2001": ("ops that cannot be lowered",
               "All of them are listed with their places. Composites are decomposed by the default "
               "passes: run `graphtool opt` first. Strings and pictures are evaluated only: leave "
               "the outputs that need them out of the model, or run it with `graphtool eval`."),
    "GT2003": ("a recurrence that is not compiled",
               "Compiled recurrent layers take the element types that the error names; cast, or "
               "decompose the layer."),
    "GT2004": ("weights packed for other vectors",
               "The pass select packs weights in panels of a width that suits one target; a target "
               "of wider or much narrower vectors cannot read them. Run the passes again with "
               "select{march=TARGET}, or build from the graph as it was before them."),
    "GT2005": ("a size without an upper bound",
               "Compiled code allocates no results in a run, so it must know how large they can "
               "get. Import an ONNX model again with a bound for the size that the error names: "
               "--dynamic NAME=0..MOST. In a torch model, tell torch.export how large the result "
               "gets, by torch._check(y.shape[0] <= MOST); repeat_interleave also takes "
               "output_size. The evaluator needs none."),
    "GT2101": ("unknown target", "The help line lists the targets; native is this machine."),
    "GT2102": ("two targets of one name",
               "A row of the table of targets already has the name or the alias of the new "
               "row."),
    "GT2103": ("unknown machine",
               "`graphtool machine --list` prints the known ones. A row of one's own is a .json "
               "file that `graphtool machine -o` writes. A machine must be of the same kind as the "
               "target: there are none of x86-64 for Arm."),
    "GT2104": ("a file that is no row of a machine",
               "`graphtool machine -o row.json` writes one: an object of the fields that "
               "`graphtool schema machine` lists, with numbers above 0."),
    "GT2105": ("unknown language",
               "A target names the language in which its kernels are emitted; a plug-in that adds "
               "such a target adds the language too, by add_language."),
    "GT2106": ("a language that is not compiled here",
               "The C compiler of this machine compiles C. `graphtool emit` writes the kernels of "
               "another language, for its own compiler, and the C around them."),
    "GT2108": ("a target without an operating system",
               "A program that reads files, MPI and weights by .incbin need one. The library has "
               "the weights as constants; the start of the board and its script for the linker "
               "are the board's."),
    "GT2109": ("a model that needs more memory than is allowed",
               "--max-ram and --max-flash are limits in bytes of one function of fixed sizes. The "
               "message names the kernel and the nodes at which the most of the arena is live, or "
               "the kernels with the most code and weights. `graphtool size` shows all of them."),
    "GT2110": ("a name that C does not allow",
               "The function's name must consist of letters, digits and underscores; give it "
               "with --name."),
    "GT2111": ("weights of a program missing",
               "Keep the program's .safetensors file beside it."),
    "GT2112": ("the output directory is not a build",
               "A build replaces an earlier build or an empty directory, and nothing else. "
               "Name another directory, or remove this one."),
    "GT2113": ("unknown place for the weights",
               "file keeps them beside the library, embed puts them into it, c writes C arrays."),
    "GT2114": ("a program for another vector width",
               "Packed weights fit one width of vectors; lower the graph for this target."),
    "GT2115": ("weights in other places",
               "The program and its weights do not belong together. Lower the graph again."),
    "GT2116": ("what cannot be one file of C",
               "--single puts all kernels into one file, where they share their settings: the "
               "width of vectors, the class of numerics. Lower all entry points in the same way. "
               "It goes with no --debug-lines, which name the lines of several files."),
    "GT2107": ("what is not built for a device",
               "Steps that exchange gradients (`--mpi`), programs that train (`--exe`), "
               "`--precision strict` and `--single` are built for processors; `--max-ram`, "
               "`--max-flash` and `graphtool size` measure the code of a processor."),
    "GT2134": ("no evidence for this build",
               "`report --evidence` needs a build with `--profile safety` and `--keep`: its tests "
               "are made from the kept program."),
    "GT2133": ("an unknown profile of a build", "There is `--profile safety`."),
    "GT2119": ("an option that does not go with the profile",
               "`--profile safety` writes ISO C99 for one thread of a processor, in strict "
               "numerics, with the weights as arrays. Programs, threads and other libraries are "
               "no part of it."),
    "GT2132": ("what a profile cannot take",
               "The C of `--profile safety` has constant sizes and loop bounds. The message names "
               "the node: fix its size at import, or write the model without it."),
    "GT2131": ("no compiler for CUDA",
               "Kernels for NVIDIA's GPUs are compiled by nvcc, if it is in the path, or by NVRTC, "
               "a library that the extra `cuda` installs. Neither needs a GPU."),
    "GT2120": ("no C compiler",
               "Install gcc or clang, or the extra zig; the error has the command. "
               "`graphtool doctor` shows what is found."),
    "GT2006": ("rows that a CBLAS library cannot read",
               "A CBLAS product needs rows at equal distances in memory, and these rows are "
               "part of an image with padding. graphtool's own kernels can read them."),
    "GT2130": ("no CBLAS library",
               "--kernels blas and auto link OpenBLAS: Debian's libopenblas-dev, or the wheel "
               "scipy-openblas32. Leave the option out to use graphtool's own kernels."),
    "GT2121": ("the C compiler failed",
               "The last lines of its output are shown. The emitted C compiles without warnings "
               "under gcc and clang, so the usual cause is an unusual flag or compiler."),
    "GT2122": ("ar failed", "A static library needs ar from the compiler's tools."),
    "GT2123": ("the C compiler took too long", "It was stopped; the machine may be overloaded."),
    "GT2124": ("a machine that the compiler does not know",
               "A cross compiler cannot compile for `native`. Name a target with --march; "
               "`generic` suits every machine. To compile for another kind of machine, name a "
               "cross compiler with --cc."),
    "GT2125": ("no static linking",
               "--exe --static needs libc.a, and libgomp.a for threads; musl-gcc has them."),
    "GT2118": ("threads that nothing provides",
               "--threads-by is pool, the library's own threads, caller, those of a pool that "
               "NAME_run_on is handed, or none. A caller's pool runs what is built for a "
               "processor, a training graph by NAME_step_on and its like. A device has threads "
               "of its own."),
    "GT2117": ("a target without a demo of its own",
               "`demo --target` makes a page for wasm32, which --serve serves, and runs on boards "
               "that qemu-system-arm emulates. For other targets "
               "`emit` writes the C, and a project of the board's vendor runs it."),
    "GT2128": ("no emulator of boards, or no compiler for them",
               "A demo on a board needs the target's compiler and qemu-system-arm. `emit` needs "
               "neither."),
    "GT2129": ("a program that failed on a board",
               "It stopped with a fault, or wrote something else than results. With the files in "
               "the demo's directory it can be run again, in a debugger too."),
    "GT2126": ("no MPI",
               "--mpi compiles with mpicc, from the path or from the packages openmpi or mpich, "
               "or with the compiler that --cc names."),
    "GT2127": ("an unreadable compiler command",
               "The command of --cc or $CC is split into words as a shell does it. Here a quote is "
               "open, or there is no word in it."),
    "GT2201": ("not a build directory",
               "The directory has no build.json, or one of another kind; `graphtool build` makes "
               "them."),
    "GT2202": ("a static build cannot be loaded",
               "Link it into a program of your own, or build without --static."),
    "GT2203": ("the library cannot be loaded",
               "It was built for another machine, or its files are damaged. Build it again."),
    "GT2204": ("the weights of a build cannot be read",
               "The weights file of the build is missing or cut short; build again."),
    "GT2205": ("a damaged file of a build",
               "The file does not have the hash that build.json states: it was changed or damaged "
               "after the build. Build again."),
    "GT2206": ("a file outside the build directory",
               "The library, the weights and the other files of a build must be in its "
               "directory, and build.json must name them without a path."),
    "GT2210": ("missing input", "Give every input by the model's own name."),
    "GT2211": ("superfluous input", "The help line lists the inputs that the model takes."),
    "GT2212": ("an input of another element type",
               "Nothing is converted silently; give the type that is expected."),
    "GT2213": ("an input of another shape", "The error shows the shape that is expected."),
    "GT2214": ("one dim with two sizes",
               "Inputs that share an open dim must have the same size there."),
    "GT2215": ("a size out of bounds",
               "The dim was declared with bounds, and the memory plan relies on them."),
    "GT2216": ("an unfit output buffer",
               "Arrays given as out= are written in place. They need the right shape and type, "
               "and must be contiguous and writable. The inputs of model.bind must be contiguous "
               "too, as each call reads their memory again."),
    "GT2217": ("an input that is not an array",
               "An input must be a numpy array, or an object on the CPU that supports DLPack."),
    "GT2218": ("an output that the model does not have",
               "The help line lists the outputs; out= names some of them."),
    "GT2224": ("no run step by step",
               "`run --steps AXIS` takes a build whose graph updates a state, as the pass `step` "
               "makes, and inputs that go on along the axis: as long as a whole number of steps."),
    "GT2222": ("a build of several entry points",
               "Each entry point is a function with inputs and outputs of its own: --entry NAME, "
               "or graphtool.load(folder, entry=NAME). `graphtool show BUILD` lists them."),
    "GT2223": ("an entry point that the build does not have",
               "`graphtool show BUILD` lists the entry points of a build."),
    "GT2240": ("an unknown form of package",
               "`graphtool package --help` lists the forms; a plug-in adds its own by "
               "add_package_form."),
    "GT2241": ("a version that a package cannot have",
               "Two or three numbers with dots between them, which every ecosystem takes."),
    "GT2242": ("a build that a package cannot hold",
               "Packages with a function in another language take a model of one function; those "
               "in source need a build for one processor, a wheel a shared library. `--as cmake` "
               "and `--as deb` take any build. The message says what to build otherwise."),
    "GT2243": ("ports that a package cannot have",
               "Strings and packed elements (int4) are no arrays in other languages, and a wheel "
               "reads open sizes off the inputs: each must be an axis of one of them."),
    "GT2221": ("a computed size or number that breaks its bound",
               "For these inputs a computed size is larger than the memory of the build allows, "
               "or breaks a promise of the model. The bound comes from --dynamic NAME=0..MOST at "
               "import, or from torch._check in the model (promise0, promise1, … are relations "
               "between sizes that must be at least 0). Widen it there, import and build again, "
               "or give other inputs."),
    "GT2219": ("a build that cannot be profiled",
               "It was made by an older version. Build it again."),
    "GT2232": ("no device, or one that failed",
               "The kernels of this build run on a device. The library finds its driver when the "
               "weights are loaded: `libcuda.so.1` of a GPU of NVIDIA, or `libOpenCL.so.1`, which "
               "knows the drivers of all devices of OpenCL. The extra `opencl` brings one that "
               "runs on the processor. `graphtool doctor` lists the devices. If the device's "
               "compiler refuses kernels in OpenCL C, the message has its first errors, and "
               "NAME_device_log has all of them. After an error of the device a new process may "
               "be needed."),
    "GT2231": ("sizes that must be equal and are not",
               "The model adds, joins or multiplies tensors whose sizes are equal only under "
               "this condition. Give inputs that satisfy it; the header and build.json list "
               "all conditions under `requires`."),
    "GT2228": ("a profile of one of several processes",
               "A step that exchanges gradients runs under mpirun only. Build the training graph "
               "without --mpi and profile that."),
    "GT2226": ("a profile of several versions",
               "A library for all levels of x86-64 has different kernels for each. Build with "
               "one --march and profile that."),
    "GT2220": ("not a training build",
               "`train` needs the build of a graph that `grad --optimizer` has made."),
}
