"""7xxx: faults of graphtool itself."""

_REPORT = ("This is a fault of graphtool. Please report it with the directory that the error "
           "names: it holds the command line, the versions, the traceback, the files "
           "that the command read and, where they could be had, the graph of the last finished "
           "stage and its C with inputs and expected outputs.")

TABLE: dict[str, tuple[str, str]] = {code: (title, _REPORT) for code, title in {
    "GT7001": "an op declared twice",
    "GT7002": "an op without a meaning",
    "GT7003": "something that is no operand",
    "GT7004": "a rewrite that loses an output",
    "GT7101": "a pass left a value undefined",
    "GT7102": "a pass left a wrong type",
    "GT7103": "a pass left a value defined twice",
    "GT7104": "a pass left an output undefined",
    "GT7105": "a group of an unknown kind",
    "GT7106": "a group with a foreign member",
    "GT7107": "a node in two groups",
    "GT7108": "a group that is not convex",
    "GT7110": "outputs and their names differ in number",
    "GT7111": "a size is defined twice",
    "GT7112": "a size is used before a node defines it",
    "GT7113": "a node has a plan that its kernel does not take",
    "GT7114": "a pass assumes what it may not",
    "GT7115": "a pass assumes what the module does not record",
    "GT7116": "a pass that may only merge and remove nodes changed what an output computes",
    "GT7201": "an expression without C",
    "GT7202": "the type of an unused result was asked for",
    "GT7203": "an imported call got another type than torch gives it",
    "GT7205": "a graph as an argument where none can be converted",
    "GT7501": "an op evaluated to another type than declared",
    "GT7502": "a literal where a tensor is indexed",
    "GT7601": "a pattern without an attribute",
    "GT7602": "a rule without an op on its left",
    "GT7603": "a rule with unequal parameters",
    "GT7604": "a rule that changes a type",
    "GT7605": "a rule that assumes more than it declares",
    "GT7999": "an unforeseen fault",
}.items()}
