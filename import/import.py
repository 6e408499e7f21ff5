"""import: Metal kernels that live in strings of Python files, as .metal files.

Finds what a file gives to mx.fast.metal_kernel and torch.mps.compile_shader, and how those kernels
are launched. The file is parsed and never executed: its statements are followed with the values
that are known (strings, numbers, lists, functions of the file). A size that only the running
program would know is assumed, by its name, and every assumption is reported.

The text is hostile until shown otherwise: statements, calls, sizes, memory and seconds are limited.
Started by `assay import`; needs Python 3.8 and nothing beside its standard library.
"""

import sys

if sys.version_info < (3, 8):
    sys.stderr.write("assay: import needs Python 3.8 or newer, and python3 is older\n")
    sys.exit(3)

import argparse
import ast
import itertools
import math
import operator
import os
import re
import resource
import signal
import string
import textwrap
import warnings
from collections import ChainMap, namedtuple
from dataclasses import dataclass, field
from functools import partial, reduce

MOST_BYTES = 16 << 20  # of a file
MOST_ITEMS = 4096  # of a list that is made by counting
MOST_TURNS = 512  # of a loop
MOST_STEPS = 20000  # statements, for each function that is run by itself
DEEPEST_CALL = 24
MOST_SECONDS = 30  # per file
MOST_MEMORY = 4 << 30
MOST_ELEMENTS = 1 << 24

AXIS, FIRST_AXIS, MOST_AXES = 32, 2, 8  # sizes of axes that nothing says
FEW_ELEMENTS = 8  # inputs with fewer are in the constant address space

MAKERS = ("metal_kernel", "compile_shader")

# By their names in mx and torch: in MLX's kernels, in `assay launch`, and in MSL as torch does.
TYPES = {
    "float32": ("float", "f32", "float"),
    "float16": ("float16_t", "f16", "half"),
    "bfloat16": ("bfloat16_t", "bf16", "bfloat"),
    "int8": ("int8_t", "i8", "char"),
    "uint8": ("uint8_t", "u8", "uchar"),
    "int16": ("int16_t", "i16", "short"),
    "uint16": ("uint16_t", "u16", "ushort"),
    "int32": ("int32_t", "i32", "int"),
    "uint32": ("uint32_t", "u32", "uint"),
    "int64": ("int64_t", "i64", "long"),
    "uint64": ("uint64_t", "u64", "ulong"),
    "bool_": ("bool", "u8", "bool"),
    "complex64": ("complex64_t", "u64", "float2"),
}
ALIASES = dict({torch: name for name, (_, _, torch) in TYPES.items()}, size_t="uint64")

# Numbers for names that nothing gives one: whole, except those that kernels use as fractions.
GUESSES = {
    "condition": 1, "eps": 1e-5, "scale": 0.125, "theta": 1e4, "bits": 4, "count": 2, "num_": 2,
    "repeat": 2, "batch": 2, "group_size": 32, "dim": 128, "size": 512, "level": 4,
}  # fmt: skip

# What a kernel of MLX may name without declaring it.
ATTRIBUTES = """
    dispatch_quadgroups_per_threadgroup dispatch_simdgroups_per_threadgroup
    dispatch_threads_per_threadgroup grid_origin grid_size quadgroup_index_in_threadgroup
    quadgroups_per_threadgroup simdgroup_index_in_threadgroup simdgroups_per_threadgroup
    thread_execution_width thread_index_in_quadgroup thread_index_in_simdgroup
    thread_index_in_threadgroup thread_position_in_grid thread_position_in_threadgroup
    threadgroup_position_in_grid threadgroups_per_grid threads_per_grid threads_per_simdgroup
    threads_per_threadgroup""".split()
UINT_ATTRIBUTE = re.compile("quadgroup|simdgroup|width|thread_index")  # the others are a uint3


class Refused(Exception):
    """Ends the import of a file with a sentence."""


# Lines -------------------------------------------------------------------------------------------
#
# Before a file is parsed, a character of Unicode's private planes is put in front of each line of
# its strings, after the blanks. It says the number of the line and stays with the text, however the
# text is put together.

FIRST_MARK, LAST_MARK = 0xF0000, 0x10FFFD
MARK = re.compile(f"[{chr(FIRST_MARK)}-{chr(LAST_MARK)}]")
LEADING_MARKS = re.compile(f"(?:[ \\t]|({MARK.pattern}))*")
STRING = re.compile(
    r"""#[^\n]*|(?<!\w)([rfu]{0,2})(\"\"\"|'''|"|')((?:\\.|(?!\2).)*)\2""", re.S | re.I
)


def mark_lines(text):
    """The text of a file with marks in its strings."""
    line, counted = 1, 0

    def mark(string):
        nonlocal line, counted
        line, counted = line + text.count("\n", counted, string.start()), string.start()
        prefix, quote, body = string.groups()
        if not quote:  # a comment
            return string.group()
        return prefix + quote + mark_string(body, line, "f" in prefix.lower()) + quote

    return STRING.sub(mark, text)


def mark_string(body, line, has_fields):
    out, depth = [], 0
    for line, part in enumerate(body.splitlines(True), line):
        blanks = len(part) - len(part.lstrip(" \t"))
        is_marked = part.strip(" \t\\\n") and not depth
        mark = chr(min(FIRST_MARK + line, LAST_MARK)) if is_marked else ""
        if has_fields:  # a field may bring lines of its own
            single = part.replace("{{", "").replace("}}", "")
            depth += single.count("{") - single.count("}")
            part = re.sub(r"(?<!\})\}(?=[^}\s])", "}" + mark, part)
        out.append(part[:blanks] + mark + part[blanks:])
    return "".join(out)


def parse(text, path):
    text = plain(text)
    try:
        return ast.parse(mark_lines(text))
    except SyntaxError:  # of the file, or a string in a field of a string: then without lines
        try:
            return ast.parse(text)
        except SyntaxError as error:
            raise Refused(f"{path}:{error.lineno}: not Python that can be read ({error.msg})")


def plain(value):
    return MARK.sub("", value) if isinstance(value, str) else value


# Values ------------------------------------------------------------------------------------------
#
# None, numbers, strings, lists (tuples too) and dicts are Python's own.

Maker = namedtuple("Maker", "name")  # metal_kernel or compile_shader itself
Method = namedtuple("Method", "name owner")  # of a value that is known
Partial = namedtuple("Partial", "function args named")  # functools.partial
Shape = namedtuple("Shape", "array")
Type = namedtuple("Type", "name is_assumed", defaults=[False])


class Unknown:
    """What only the running program knows. By its use it becomes an assumed number or an array."""

    def __init__(self, name=None, owner=None, number=None, dims=None, type_name=None):
        self.name = name
        self.owner = owner  # of an attribute: its object
        self.attributes = {}
        self.instance = None  # of a class: what calling it gives
        self.operation = None  # (operator, left, right): how it follows from others
        self.number = number
        self.is_assumed = number is not None
        self.is_free = False  # of a number: assumed, or of others that are, and not a size of an array
        self.dims = dims  # of an array
        self.type = type_name
        self.is_firm = dims is not None  # the number of axes is known
        self.is_touched = self.is_firm  # something was asked about the shape
        self.given = None  # the elements, where the file lists them

    def grow(self, ndim):
        """At least this many axes; new ones in front."""
        missing = 0 if self.is_firm else min(ndim, MOST_AXES) - len(self.dims)
        self.dims[:0] = [Unknown(number=AXIS) for _ in range(missing)]

    def set_ndim(self, ndim):
        if self.is_firm:
            return
        self.grow(ndim)
        self.dims = self.dims[len(self.dims) - ndim :]
        self.is_firm = True
        if ndim >= 3 and is_assumed(self.dims[0]):
            self.dims[0].number = FIRST_AXIS

    def as_type(self, type_name):
        """An array like this one."""
        out = Unknown(self.name, dims=list(self.dims), type_name=type_name or self.type)
        out.is_firm, out.is_touched, out.given = self.is_firm, self.is_touched, self.given
        return out


class Function:
    def __init__(self, node, home):
        self.node, self.name, self.home = node, node.name, home
        self.runs = 0
        parts = [part for statement in node.body for part in ast.walk(statement)]
        self.mentions = {name_of(part) for part in parts}
        self.mentions |= {part.arg for part in parts if isinstance(part, ast.keyword)}
        self.names = {name_of(part.func) for part in parts if isinstance(part, ast.Call) and any(
            isinstance(getattr(arg, "value", None), str) for arg in part.args)}  # fmt: skip


@dataclass(eq=False)
class Kernel:
    """One kernel that a call makes, or a library of them."""

    node: ast.Call
    line: int
    is_torch: bool
    name: str = ""
    source: str = ""
    header: str = ""
    is_atomic: bool = False
    inputs: list = field(default_factory=list)  # their names
    outputs: list = field(default_factory=list)
    launch: dict = field(default_factory=dict)  # its arguments by their names
    launch_line: int = 0
    launches: dict = field(default_factory=dict)  # of a library: {kernel: (args, named, line)}
    trouble: str = ""  # why it cannot be imported


def list_templates(launch):
    pairs = launch.get("template")
    return [(plain(pair[0]), pair[1]) for pair in (pairs if isinstance(pairs, list) else [])
            if isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str)]  # fmt: skip


def get_output(launch, index):
    """The shape, if it is given, and the type of an output."""
    lists = launch.get("output_shapes"), launch.get("output_dtypes")
    shape, given = (items[index] if isinstance(items, list) and index < len(items) else None
                    for items in lists)  # fmt: skip
    shape = as_list(shape)
    return shape if isinstance(shape, list) else None, type_name_of(given) or "float32"


def name_of(node):
    """Of a name or attribute."""
    return getattr(node, "id", getattr(node, "attr", None))


def is_assumed(value):
    return getattr(value, "is_assumed", False)


def is_free(value):
    """Does it rest on a whole number that was assumed, and not as the size of an array?"""
    value = list(value.values()) if isinstance(value, dict) else as_list(value)
    value = value.dims if is_array(value) else value
    if isinstance(value, (list, tuple)):
        return any(map(is_free, value))
    return getattr(value, "is_free", False) and is_whole(value)


def is_open(value):
    return isinstance(value, Unknown) and value.number is None and value.dims is None


def is_array(value):
    return isinstance(value, Unknown) and value.dims is not None


def known(value):
    """The number of a value that has one by now; other values as they are."""
    return value.number if isinstance(value, Unknown) and value.number is not None else value


def is_number(value):
    return isinstance(known(value), (int, float))


def is_whole(value):
    return type(known(value)) is int


def as_list(value):
    return list(value.array.dims) if isinstance(value, Shape) else value


def as_key(value):
    """What a value is compared and found by."""
    value = plain(known(value))
    if isinstance(value, dict):
        value = list(value.items())
    is_sequence = type(value) in (list, tuple)
    return tuple(map(as_key, value)) if is_sequence else type_name_of(value) or value


def truth_of(value):
    """True, False, or None if it is not known."""
    value = known(value)
    return None if isinstance(value, Unknown) else bool(value)


def type_name_of(value):
    return value.name if isinstance(value, Type) else None


def find_type(name):
    short = name[:-2] if name.endswith("_t") and name != "size_t" else name
    return short if short in TYPES else ALIASES.get(short)


def find_type_argument(args, named):
    return type_name_of(named.get("dtype", next(filter(type_name_of, args), None)))


def count(dims):
    return min(math.prod(known(dim) for dim in dims), MOST_ELEMENTS)


def read_number(text):
    try:
        number = float(int(text, 0))
    except ValueError:
        number = float(text) if re.fullmatch(r"-?[\d.]+(e[-+]?\d+)?", text) else 0.0
    return int(number) if number == int(number) else number


# Expressions -------------------------------------------------------------------------------------

OPERATORS = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Pow: pow,
    ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
    ast.LShift: operator.lshift, ast.RShift: operator.rshift, ast.BitOr: operator.or_,
    ast.BitXor: operator.xor, ast.BitAnd: operator.and_, ast.MatMult: operator.matmul,
}  # fmt: skip
COMPARISONS = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Is: operator.eq, ast.IsNot: operator.ne,
    ast.In: lambda a, items: a in items, ast.NotIn: lambda a, items: a not in items,
}  # fmt: skip
BAD_ARGUMENTS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


class Expressions(ast.NodeVisitor):
    """Evaluates expressions: visit gives the value of one. What has no method here is unknown."""

    def __init__(self, settings, path):
        self.settings = settings  # what the user says of names
        self.path = path
        self.assumed = []  # the unknown values that were made numbers
        self.scope = ChainMap({"__file__": path})  # the names that can be seen, the innermost first

    def generic_visit(self, node):
        return Unknown()

    # What values are as numbers, arrays and texts

    def setting(self, name):
        """What the user says of a name, "packed" or "spec.dim"."""
        return self.settings.get(name, self.settings.get((name or "").rpartition(".")[2]))

    def type_setting(self, name):
        return find_type(self.setting(name) or "")

    def number_of(self, value):
        """As a number; what is unknown is assumed. None for what is not a number."""
        if is_open(value) and value.operation:
            op, *operands = value.operation
            value.operation = None
            if any(self.number_of(operand) is None for operand in operands):
                return None
            result = self.operate(op, *operands)
            value.number = known(result) if is_number(result) else None
            value.is_assumed, value.is_free = is_assumed(result), is_free(result)
        elif is_open(value):
            name = value.name or "?"
            says, last = self.setting(name), name.rpartition(".")[2]
            guess = next((number for part, number in GUESSES.items() if part in last), AXIS)
            value.number = read_number(says) if says else guess
            value.is_assumed = value.is_free = not says
            self.assumed += [] if says else [value]
        return known(value) if is_number(value) else None

    def whole_of(self, value, otherwise=0):
        number = self.number_of(value)
        return otherwise if number is None or not math.isfinite(number) else int(number)

    def array_of(self, value):
        """Makes an array of what is unknown; None for what is not one."""
        if is_open(value) and value.operation:
            _, left, right = value.operation
            return self.array_of(right if is_number(left) else left) or Unknown(dims=[])
        if is_open(value):
            value.dims = [Unknown(number=AXIS), Unknown(number=AXIS)]
            value.type = self.type_setting(value.name)
        return value if is_array(value) else None

    def make_array(self, sizes=(), type_name=None):
        numbers = [(item, self.whole_of(item, AXIS)) for item in sizes[:MOST_AXES]]
        dims = [Unknown(number=size) if is_assumed(item) else size for item, size in numbers]
        return Unknown(dims=dims, type_name=type_name)

    def format(self, value, spec=""):
        """As Python prints it; spec: what follows the colon, "r" for !r."""
        if isinstance(value, str):
            return f"'{value}'" if spec == "r" else value
        if value is None or isinstance(value, bool):
            return str(value)
        if isinstance(value, list):
            return "[" + ", ".join(self.format(item) for item in value) + "]"
        if isinstance(value, (Type, Kernel)):
            return type_name_of(value) or "kernel"
        number = self.number_of(value)
        is_short = re.fullmatch(r"\D{0,3}\d{0,3}[,_]?(\.\d{1,3})?[a-zA-Z%]?", spec)
        try:
            return "" if number is None else format(number, spec if is_short else "")
        except ValueError:
            return str(number)

    def bind(self, scope, name, value):
        says = self.setting(name)
        if says and is_assumed(value) and is_whole(value):  # the user may say which number it is
            value.number = int(read_number(says))
            self.assumed = [other for other in self.assumed if other is not value]
        if is_open(value) and (not value.name or "(" in value.name):
            value.name = name
        scope[name] = value

    # Literals and names

    def visit_Constant(self, node):
        is_usable = node.value is None or isinstance(node.value, (str, int, float))
        is_huge = isinstance(node.value, int) and abs(node.value) >= 2**63
        return node.value if is_usable and not is_huge else Unknown()

    def visit_JoinedStr(self, node):
        return "".join(map(self.visit, node.values))

    def visit_FormattedValue(self, node):
        spec = plain(self.visit(node.format_spec)) if node.format_spec else ""
        return self.format(self.visit(node.value), "r" if node.conversion == ord("r") else spec)

    def visit_Name(self, node):
        missing = Maker(node.id) if node.id in MAKERS else Unknown(node.id)
        return self.scope.get(node.id, missing)

    def visit_NamedExpr(self, node):
        value = self.visit(node.value)
        self.bind(self.scope, node.target.id, value)
        return value

    def visit_Await(self, node):
        return self.visit(node.value)

    visit_Expr = visit_Await

    def visit_all(self, nodes):
        """Of elements and arguments, some with a star."""
        items = []
        for node in nodes:
            value = self.visit(node.value if isinstance(node, ast.Starred) else node)
            if not isinstance(node, ast.Starred):
                items.append(value)
            elif isinstance(value, (list, dict)):
                items += value
        return items

    def visit_List(self, node):
        return self.visit_all(node.elts)

    visit_Tuple = visit_Set = visit_List

    def visit_Dict(self, node):
        made = {}
        for key, item in zip(node.keys, self.visit_all(node.values)):
            more = item if isinstance(item, dict) else {}
            made.update(more if key is None else {as_key(self.visit(key)): item})
        return made

    def visit_ListComp(self, node):
        return [self.visit(node.elt) for _ in self.turns_of(node.generators)]

    visit_SetComp = visit_GeneratorExp = visit_ListComp

    def visit_DictComp(self, node):
        turns = self.turns_of(node.generators)
        return {as_key(self.visit(node.key)): self.visit(node.value) for _ in turns}

    def turns_of(self, generators):
        """Binds the targets of a comprehension, once for each element."""
        outer, first = self.scope, generators[0]
        self.scope = outer.new_child()
        for item in self.items_of(self.visit(first.iter)):
            self.bind_target(first.target, item)
            if all(truth_of(self.visit(test)) is not False for test in first.ifs):
                yield from self.turns_of(generators[1:]) if generators[1:] else [item]
        self.scope = outer

    def items_of(self, value, unknown_count=4):
        """Those that a loop goes over."""
        value = as_list(value)
        if is_open(value):
            return [Unknown(value.name) for _ in range(unknown_count)]
        return list(value)[:MOST_ITEMS] if isinstance(value, (list, dict)) else []

    def bind_target(self, target, value):
        if isinstance(target, ast.Name):
            self.bind(self.scope, target.id, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self.bind_elements(target.elts, value)
        elif isinstance(target, (ast.Attribute, ast.Subscript)):
            of = self.scope.get(name_of(target.value))
            if isinstance(target, ast.Subscript) and isinstance(of, dict):
                of[as_key(self.index_of(target))] = value
            elif isinstance(target, ast.Attribute) and isinstance(of, Unknown):
                of.attributes[target.attr] = value

    def bind_elements(self, elements, value):
        if isinstance(value, Shape):
            value.array.set_ndim(len(elements))
        items = as_list(value) if isinstance(value, (Shape, list)) else []
        missing = elements[len(items) :]
        items = items + [Unknown(getattr(value, "name", None)) for _ in missing]
        for element, item in zip(elements, items):
            is_rest = isinstance(element, ast.Starred)
            self.bind_target(element.value if is_rest else element, Unknown() if is_rest else item)

    # Operators

    def visit_IfExp(self, node):
        return self.visit(node.orelse if truth_of(self.visit(node.test)) is False else node.body)

    def visit_Lambda(self, node):
        """One without parameters is a launch that is handed to someone who calls it."""
        if not any(isinstance(part, ast.arg) for part in ast.walk(node.args)):
            self.visit(node.body)
        return Unknown()

    def visit_BoolOp(self, node):
        decisive = isinstance(node.op, ast.Or)
        value = self.visit(node.values[0])
        for operand in node.values[1:]:
            truth = truth_of(value)
            if truth is decisive:
                break
            right = self.visit(operand)
            if truth is not None or truth_of(right) is decisive:
                value = right
        return value

    def visit_UnaryOp(self, node):
        value = self.visit(node.operand)
        if isinstance(node.op, ast.Not):
            truth = truth_of(value)
            return Unknown() if truth is None else not truth
        return self.operate(ast.Sub, 0, value) if isinstance(node.op, ast.USub) else value

    def visit_BinOp(self, node):
        return self.operate(type(node.op), self.visit(node.left), self.visit(node.right))

    def operate(self, op, a, b):
        a, b = as_list(a), as_list(b)
        is_text = isinstance(a, (str, list))
        if op is ast.Add and is_text and type(a) is type(b):
            return a + b if len(a) + len(b) < MOST_BYTES else Unknown()
        if op is ast.Mod and isinstance(a, str):
            return self.format_percent(a, b)
        if op is ast.Div and isinstance(a, str) and isinstance(b, str):  # of a path
            return os.path.join(plain(a), plain(b))
        if op is ast.Mult and is_text:
            times = min(self.whole_of(b), MOST_ITEMS)
            return a * times if len(a) * times < MOST_BYTES else Unknown()
        if is_array(a) or is_array(b):
            return a if is_array(a) else b
        if is_open(a) or is_open(b):
            later = Unknown()
            later.operation = None if is_text or isinstance(b, (str, list)) else (op, a, b)
            return later
        return self.call_with_numbers(OPERATORS[op], [a, b])

    def call_with_numbers(self, function, args):
        """The result is assumed if an argument is. Whole numbers have 64 bits."""
        numbers = [self.number_of(arg) for arg in args]
        is_shift = function in (operator.lshift, operator.rshift, pow)
        try:
            if is_shift and not -64 < numbers[1] < 64:
                return Unknown()
            result = function(*numbers)
        except ZeroDivisionError:
            result = 0
        except BAD_ARGUMENTS:  # also what is not a number
            return Unknown()
        if isinstance(result, int) and abs(result) >= 2**63:
            result = float(result)
        if not isinstance(result, (int, float)):
            return Unknown()
        if not any(is_assumed(arg) for arg in args):
            return result
        out = Unknown(number=result)
        out.is_free = is_free(args)
        return out

    def visit_Compare(self, node):
        left, result = self.visit(node.left), True
        for op, operand in zip(node.ops, node.comparators):
            right = self.visit(operand)
            if result is True:
                result = self.compare(type(op), left, right)
            left = right
        return Unknown("condition") if result is None else result

    def compare(self, op, a, b):
        """None: not known."""
        is_search = op in (ast.In, ast.NotIn)
        left, right = as_key(a), as_key(list(b) if is_search and isinstance(b, dict) else b)
        if op in (ast.Is, ast.IsNot):
            # What is unknown may be None, and a kernel may be missing: both ways are read.
            is_vague = isinstance(left, (Unknown, Kernel))
        elif is_search:
            is_vague = isinstance(left, Unknown) or is_assumed(a)
        else:
            is_vague = isinstance(left, (Unknown, Shape)) or is_assumed(a) or is_assumed(b)
            is_vague = is_vague or is_open(b)
        try:
            return None if is_vague else COMPARISONS[op](left, right)
        except TypeError:
            return None

    # Attributes and subscripts

    def visit_Attribute(self, node):
        return self.attribute_of(self.visit(node.value), node.attr)

    def attribute_of(self, of, name):
        if name in MAKERS:
            return Maker(name)
        if name == "parent" and isinstance(of, str):
            return os.path.dirname(of)
        if not isinstance(of, Unknown) or of.number is not None:
            return Method(name, of)
        if name in of.attributes:
            return of.attributes[name]
        if is_open(of) and of.name and len(of.name) < 12 and find_type(name):  # of a module
            return Type(find_type(name))
        if of.name == "math" and name in ("pi", "inf"):
            return getattr(math, name)
        if name in ARRAY_ATTRIBUTES:
            array = self.array_of(of)
            array.is_touched = array.is_touched or name != "dtype"
            return ARRAY_ATTRIBUTES[name](array)
        if is_array(of):
            return of if name == "T" else Method(name, of)
        value = of.attributes[name] = Unknown(f"{of.name}.{name}" if of.name else name, of)
        return value

    def index_of(self, node):
        is_old = type(node.slice).__name__ == "Index"  # before Python 3.9
        return self.visit(node.slice.value if is_old else node.slice)

    def visit_Subscript(self, node):
        of = self.visit(node.value)
        if not isinstance(node.slice, ast.Slice):
            return self.item_of(of, self.index_of(node))
        of, ends = as_list(of), (node.slice.lower, node.slice.upper)
        ends = [self.whole_of(self.visit(end)) if end else None for end in ends]
        return plain(of)[slice(*ends)] if isinstance(of, (str, list)) else self.item_of(of, of)

    def item_of(self, of, index):
        if isinstance(of, (Shape, str, list)):
            at = self.whole_of(index)
            if isinstance(of, Shape):
                of.array.grow(-at if at < 0 else at + 1)
            items = plain(as_list(of))
            return items[at] if -len(items) <= at < len(items) else Unknown()
        if isinstance(of, dict):
            return of.get(as_key(index), list(of.values())[-1]) if of else Unknown()
        name = getattr(of, "name", None)
        if name == "DTYPE_TO_METAL":  # of torch._inductor.codegen.mps
            return TYPES[type_name_of(index) or "float32"][2]
        value = Unknown(f"{name}[]" if name else None)
        if is_array(of):
            self.array_of(value).type = of.type
        return value

    # Calls

    def visit_Call(self, node):
        callee, args, named = self.visit(node.func), self.visit_all(node.args), {}
        for keyword in node.keywords:
            value = self.visit(keyword.value)
            more = value if isinstance(value, dict) and not keyword.arg else {keyword.arg: value}
            named.update((name, item) for name, item in more.items() if isinstance(name, str))
        return self.call_value(callee, args, named, node)

    def call_value(self, callee, args, named, node):
        if isinstance(callee, Partial):
            more = dict(callee.named, **named)
            return self.call_value(callee.function, callee.args + args, more, node)
        if isinstance(callee, Maker):
            return self.make_kernel(callee.name, args, named, node)
        if isinstance(callee, Function):
            return self.run_function(callee, args, named)
        if isinstance(callee, Kernel):
            return self.launch_kernel(callee, named, node.func.end_lineno)
        if is_array(getattr(callee, "owner", None)) and callee.name == "size":  # of torch
            return self.item_of(Shape(callee.owner), args[0]) if args else Shape(callee.owner)
        if not isinstance(callee, Method) and not is_open(callee):
            return Unknown(f"{getattr(callee, 'name', '')}()")
        if isinstance(callee, Unknown):
            members, made = callee.attributes, callee.instance
            method = members.get("__call__", members.get("forward"))
            method = members.get("__init__") if made else method
            is_ours = isinstance(method, Function)
            result = is_ours and self.run_function(method, args, named)
            if made or is_ours:
                return made or result
        owner, name = callee.owner, (callee.name or "").rpartition(".")[2]
        if isinstance(owner, Kernel) and owner.is_torch:
            owner.launches.setdefault(name, (args, named, node.func.end_lineno))
        return self.call(owner, name, [as_list(arg) for arg in args], named)

    def call(self, owner, name, args, named):
        """What a function of Python or of a module gives, or a method, as far as they are known."""
        function = MODULE_FUNCTIONS.get(name, None if owner else BUILTINS.get(name))
        try:
            if name in PLAIN_METHODS.get(type(owner), ()):
                return call_plain_method(owner, name, args)
            if (type(owner), name) in METHODS:
                return METHODS[type(owner), name](self, owner, *args, **named)
            if owner is not None and name in ARRAY_METHODS and self.array_of(owner):
                return ARRAY_METHODS[name](self, self.array_of(owner), *args, **named)
            if function and not is_array(owner):
                return function(self, *args, **named)
        except BAD_ARGUMENTS:
            pass
        arrays = filter(is_array, [owner] + args[:1])  # of which something is computed
        return next(arrays, None) or Unknown(f"{name}()")

    def format_percent(self, text, values):
        """text % values, without long numbers."""
        given = iter(values if isinstance(values, list) else [values])

        def replace(found):
            name, spec, kind = found.groups()
            if kind == "%":
                return "%"
            value = values.get(name) if name and isinstance(values, dict) else next(given, "")
            return self.format(value, {"s": "", "i": "d"}.get(kind, spec + kind))

        return re.sub(r"%(?:\((\w+)\))?([0-9.]{0,5})([a-zA-Z%])", replace, text)

    def substitute(self, text, *args, **named):
        """string.Template."""
        values = dict(*args[:1], **named)
        return re.sub(r"\$(\w+)|\$\{(\w+)\}", lambda found: self.format(
            values.get(found.group(1) or found.group(2), plain(found.group()))), text)  # fmt: skip

    def read_file(self, path, *_, **named):
        """A text in the folder of the Python file, or below."""
        folder = os.path.realpath(os.path.dirname(self.path)) + os.sep
        path = os.path.realpath(plain(path))
        if not path.startswith(folder) or not os.path.isfile(path):
            return Unknown()
        with open(path, encoding="utf-8", errors="replace") as file:
            return f'#line 1 "{path[len(folder):]}"\n' + file.read(MOST_BYTES)

    def format_text(self, text, *args, **named):
        """str.format, without attributes and subscripts in fields."""
        following, out = iter(args), []
        for literal, name, spec, conversion in string.Formatter().parse(text):
            out.append(literal)
            if name is not None:
                name = plain(name)
                value = args[int(name[:9])] if name.isdecimal() else named.get(name, "")
                value = value if name else next(following, "")
                out.append(self.format(value, "r" if conversion == "r" else plain(spec)))
        return "".join(out)

    def convert(self, kind, value):
        """int and float."""
        if is_array(value):
            return Unknown(value.name)
        if kind is float and isinstance(value, str):
            return float(plain(value))
        is_same = kind is int and is_whole(value)  # still the size of an array
        return value if is_same else self.call_with_numbers(kind, [value])

    def convert_array(self, array, *args, kind=None, **named):
        return array.as_type(find_type(kind) if kind else find_type_argument(args, named))

    def reshape(self, array, *sizes, **named):
        sizes = sizes[0] if isinstance(sizes[0], list) else sizes
        out = self.make_array(sizes, array.type)
        rest = count(array.dims) // count([max(known(dim), 1) for dim in out.dims])
        out.dims = [max(rest, 1) if known(dim) < 0 else dim for dim in out.dims]
        return out

    def array_from(self, items, *args, **named):
        """mx.array and torch.tensor."""
        if is_open(items) or is_array(items):
            return items
        is_list = isinstance(items, list)
        items = items if is_list else [items]
        kind = "int32" if is_list and items and is_whole(items[0]) else "float32"
        kind = find_type_argument(args, named) or kind
        out = self.make_array([len(items)] if is_list else [], kind)
        out.given = None if items and isinstance(items[0], list) else items
        return out

    def array_of_shape(self, *args, **named):
        shape = as_list(named.get("shape", args[0] if args else None))
        shape = shape if isinstance(shape, list) else [shape]
        return self.make_array(shape, find_type_argument(args, named) or "float32")

    def array_of_sizes(self, *args, **named):
        """torch.zeros(2, 3), or of a shape."""
        sizes = [list(args)] if len(args) > 1 and all(map(is_whole, args[:2])) else args
        return self.array_of_shape(*sizes, **named)


# What is known by name; each is called with the interpreter first. Arguments that one does not take
# make the result unknown.


def call_plain_method(owner, name, args):
    if not isinstance(owner, str):
        return getattr(owner, name)(*args)
    text = owner if "strip" in name else plain(owner)
    return getattr(text, name)(*map(plain, args))


def call_number_function(function, do, *args, **named):
    is_list = len(args) == 1 and isinstance(args[0], list)
    return do.call_with_numbers(function, args[0] if is_list else args)


PLAIN_METHODS = {  # those that are called as they are
    str: "strip lstrip rstrip lower upper startswith endswith split".split(),
    list: ("append", "insert", "extend", "copy", "pop"),
    dict: ("update", "copy", "pop"),
    int: ("bit_length",),
}
METHODS = {
    (str, "format"): Expressions.format_text,
    **dict.fromkeys([(str, "read"), (str, "read_text")], Expressions.read_file),
    **dict.fromkeys([(str, "substitute"), (str, "safe_substitute")], Expressions.substitute),
    **dict.fromkeys([(str, "resolve"), (str, "absolute")], lambda do, path: path),
    (str, "joinpath"): lambda do, *parts: os.path.join(*map(plain, parts)),
    (Unknown, "join"): lambda do, module, *parts: os.path.join(*map(plain, parts)),
    (str, "with_name"): lambda do, path, name: os.path.join(os.path.dirname(path), plain(name)),
    (str, "join"): lambda do, text, items: text.join(items),
    (str, "replace"): lambda do, text, old, new, *_: text.replace(plain(old), do.format(new)),
    (dict, "items"): lambda do, owner: [list(item) for item in owner.items()],
    (dict, "keys"): lambda do, owner: list(owner),
    (dict, "values"): lambda do, owner: list(owner.values()),
    (dict, "get"): lambda do, owner, key, otherwise=None: owner.get(as_key(key), otherwise),
    (int, "item"): lambda do, number: number,
    (Unknown, "item"): lambda do, of: (of.given or [of if is_number(of) else Unknown(of.name)])[0],
    (Unknown, "bit_length"): partial(call_number_function, int.bit_length),
}
ARRAY_ATTRIBUTES = {
    "shape": Shape,
    "dtype": lambda array: Type(array.type or "float32", not array.type),
    "ndim": lambda array: Unknown("ndim", array),
    **dict.fromkeys(("size", "nbytes"), lambda array: Unknown("size", array, count(array.dims))),
}
ARRAY_METHODS = {
    **dict.fromkeys(("astype", "to", "type"), Expressions.convert_array),
    **{name: partial(Expressions.convert_array, kind=name) for name in ALIASES},
    **dict.fromkeys(("reshape", "view"), Expressions.reshape),
    **dict.fromkeys(("contiguous", "detach", "clone"), lambda do, array: array),
    "numel": lambda do, array: do.attribute_of(array, "size"),
    "dim": lambda do, array: Unknown("ndim", array),
    "stride": lambda do, array, axis: Unknown(number=count(array.dims[do.whole_of(axis) :][1:])),
    "tolist": lambda do, array: array.given,
    **dict.fromkeys(("new_empty", "new_zeros", "new_ones"), lambda do, array, *args, **named:
        do.array_of_sizes(*args, **{"dtype": Type(array.type or "float32"), **named})),
}  # fmt: skip
MODULE_FUNCTIONS = {  # of whatever module
    **dict.fromkeys(("array", "tensor"), Expressions.array_from),
    **dict.fromkeys(("zeros", "ones", "empty", "rand", "randn"), Expressions.array_of_sizes),
    **dict.fromkeys(("full", "normal", "uniform", "random"), Expressions.array_of_shape),
    **dict.fromkeys(("randint", "arange"), Expressions.array_of_shape),
    **dict.fromkeys(("empty_like", "zeros_like", "ones_like"), lambda do, array, **named:
        do.array_of(array) if "dtype" not in named else do.convert_array(array, **named)),
    "is_available": lambda do, *args, **named: True,
    "dedent": lambda do, text: textwrap.dedent(text),
    **dict.fromkeys(("Path", "open", "abspath", "realpath", "Template"),
                    lambda do, text, *_, **named: text),
    "dirname": lambda do, path: os.path.dirname(path),
    "partial": lambda do, function, *args, **named: Partial(function, list(args), named),
    "prod": lambda do, sizes: reduce(
        partial(do.operate, ast.Mult), sizes.given if is_array(sizes) else sizes, 1),
    **dict.fromkeys(("compile", "lru_cache"), lambda do, function, *args, **named: function),
}
BUILTINS = {
    **{each.__name__: partial(call_number_function, each) for each in (min, max, abs, round)},
    **dict.fromkeys(("list", "tuple", "sorted"), lambda do, items=(), **named: list(plain(items))),
    **dict.fromkeys(("str", "repr"), Expressions.format),
    "int": lambda do, value: do.convert(int, value),
    "float": lambda do, value: do.convert(float, value),
    "bool": lambda do, value: value if truth_of(value) is None else truth_of(value),
    "hasattr": lambda do, *args: True,
    "getattr": lambda do, of, name, *_: do.attribute_of(of, MARK.sub("", name)),
    "dict": lambda do, **named: named,
    "len": lambda do, of: Unknown(number=4) if isinstance(of, Unknown) else len(plain(of)),
    "range": lambda do, *ends: list(range(*map(do.whole_of, ends))[:MOST_ITEMS]),
    "zip": lambda do, *lists, **named: list(map(list, zip(*map(do.items_of, lists)))),
    "enumerate": lambda do, items, start=0: [
        [do.whole_of(start) + i, item] for i, item in enumerate(do.items_of(items))
    ],
}


# Statements --------------------------------------------------------------------------------------


class Flow(Exception):
    """A return, raise, break or continue on its way."""


class Stopped(Exception):
    """A function that has run for long enough."""


class Follower(Expressions):
    """Follows the statements of a file. A condition that is not known is taken; if its block
    returns, as guards do, the function goes on as if it had not been."""

    def __init__(self, tree, settings, path):
        super().__init__(settings, path)
        self.tree = tree
        self.kernels = []
        self.functions = []  # in the order of their definitions
        self.depth, self.steps = 0, MOST_STEPS
        self.none_is_given = False  # parameters whose default is None are unknown instead
        self.result = None

    def follow(self):
        self.run_alone(self.run, self.tree.body)
        parts = list(ast.walk(self.tree))
        texts = [part.value for part in parts if isinstance(getattr(part, "value", None), str)]
        texts += [kernel.source for kernel in self.kernels]
        how = "mentions" if "compile_shader" in map(name_of, parts) else "names"
        # Launches first: they call what makes the kernels, with the arguments it is really given.
        # What is still not launched then may need arguments that are None by default.
        launched = set().union(*map(LIBRARY_KERNEL.findall, texts))
        for attempt in range(3):
            self.none_is_given = attempt == 2
            words = launched | {"threadgroup", "threads"} | set(MAKERS if attempt else ())
            for function in self.find_callers(words, how):
                if attempt == 2 and not self.lacks_launch():
                    return
                if attempt == 2 or not function.runs:
                    self.run_alone(self.run_function, function, [], {})

    def find_callers(self, words, how):
        """The functions that mention one of the words, after those that call them and know more
        of the arguments: in files with libraries all, in others those that give one a text."""
        found = more = [function for function in self.functions if function.mentions & words]
        while more:
            words = {function.name for function in more} - {"__init__", "__call__", "forward"}
            more = [f for f in self.functions if f not in found and getattr(f, how) & words]
            found = more + found
        return found

    def run_alone(self, run, *args):
        self.depth, self.steps, scope = 0, MOST_STEPS, self.scope
        try:
            run(*args)
        except (Flow, Stopped):
            self.scope = scope

    def lacks_launch(self):
        return any(k.trouble or not (k.launch or k.launches) for k in self.kernels) or (
            self.list_unreached())  # fmt: skip

    def list_unreached(self):
        """The lines of calls of makers that nothing has reached."""
        reached = [kernel.node for kernel in self.kernels]
        calls = [node for node in ast.walk(self.tree) if isinstance(node, ast.Call)]
        missed = [call for call in calls if name_of(call.func) in MAKERS and call not in reached]
        return sorted(call.func.end_lineno for call in missed)

    def run(self, statements):
        for statement in statements:
            self.steps -= 1
            if self.steps < 0:
                raise Stopped
            self.visit(statement)

    def visit_Assign(self, node):
        value = self.visit(node.value)
        for target in node.targets:
            self.bind_target(target, value)

    def visit_AnnAssign(self, node):
        if node.value:
            self.bind_target(node.target, self.visit(node.value))

    def visit_AugAssign(self, node):
        old, more = self.visit(node.target), self.visit(node.value)
        if isinstance(old, list) and isinstance(more, list):
            old += more
        else:
            self.bind_target(node.target, self.operate(type(node.op), old, more))

    def visit_Assert(self, node):
        self.require(node.test, ast.Eq)

    def require(self, test, op):
        """A guard, an assert or an if that raises, says what a size is."""
        for part in test.values if isinstance(test, ast.BoolOp) else [test]:
            if isinstance(part, ast.Compare) and type(part.ops[0]) is op:
                size, must = self.visit(part.left), self.visit(part.comparators[0])
                if is_open(size) and size.name == "ndim" and is_whole(must):
                    size.owner.set_ndim(min(max(known(must), 1), MOST_AXES))
                elif is_assumed(size) and is_whole(must) and not is_assumed(must):
                    size.number = known(must)

    def visit_If(self, node):
        if isinstance(node.body[-1], ast.Raise):
            self.require(node.test, ast.NotEq)
        truth = truth_of(self.visit(node.test))
        if truth is not False:
            try:
                return self.run(node.body)
            except Flow:
                if truth:
                    raise
        self.run(node.orelse)

    def visit_For(self, node):
        for item in self.items_of(self.visit(node.iter), 1)[:MOST_TURNS]:
            self.bind_target(node.target, item)
            if not self.run_turn(node.body):
                break

    visit_AsyncFor = visit_For

    def visit_While(self, node):
        for _ in range(MOST_TURNS):
            truth = truth_of(self.visit(node.test))
            if truth is False or not self.run_turn(node.body) or truth is None:
                break

    def run_turn(self, body):
        """Does the loop go on?"""
        try:
            self.run(body)
        except Flow as flow:
            if flow.args[0] not in (ast.Break, ast.Continue):
                raise
            return flow.args[0] is ast.Continue
        return True

    def visit_With(self, node):
        for item in node.items:
            value = self.visit(item.context_expr)
            if item.optional_vars:
                self.bind_target(item.optional_vars, value)
        self.run(node.body)

    visit_AsyncWith = visit_With

    def visit_Try(self, node):
        self.run(node.body + node.finalbody)

    def visit_Return(self, node):
        value = self.visit(node.value) if node.value else None
        self.result = self.result if value is None else value
        raise Flow(ast.Return)

    def visit_Raise(self, node):
        raise Flow(type(node))

    visit_Break = visit_Continue = visit_Raise

    def visit_ImportFrom(self, node):
        for name in node.names:
            if name.name in MAKERS or name.asname:
                value = Maker(name.name) if name.name in MAKERS else Unknown(name.name)
                self.bind(self.scope, name.asname or name.name, value)

    def visit_FunctionDef(self, node):
        function = Function(node, self.scope)
        self.functions.append(function)
        self.bind(self.scope, node.name, function)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node):
        outer, self.scope = self.scope, self.scope.new_child()
        this, made = Unknown("self"), Unknown(node.name)
        this.attributes = made.attributes = self.scope.maps[0]
        made.instance = this
        self.run(node.body)
        self.scope["self"] = this
        self.scope = outer
        self.bind(self.scope, node.name, made)

    def run_function(self, function, args, named):
        if self.depth >= DEEPEST_CALL:
            return Unknown(f"{function.name}()")
        before = self.scope, self.result, self.depth
        self.scope, self.result, self.depth = function.home.new_child(), None, self.depth + 1
        function.runs += 1
        try:
            self.bind_parameters(function, args, named)
            self.run(function.node.body)
        except Flow:
            pass
        finally:
            result = self.result
            self.scope, self.result, self.depth = before
        return result

    def bind_parameters(self, function, args, named):
        """From arguments, then from defaults, else unknown."""
        spec, inner = function.node.args, self.scope
        names = [parameter.arg for parameter in spec.posonlyargs + spec.args]
        defaults = dict(zip(reversed(names), reversed(spec.defaults)))
        defaults.update(zip([parameter.arg for parameter in spec.kwonlyargs], spec.kw_defaults))
        this = function.home.get("self") if names[:1] in (["self"], ["cls"]) else None
        values = dict(zip(names, [this] + args if this else args), **named)
        for name in [part.arg for part in ast.walk(spec) if isinstance(part, ast.arg)]:
            value = values.get(name)
            if name not in values and defaults.get(name):
                self.scope = function.home
                value = self.visit(defaults[name])
                self.scope = inner
            is_none = name in values or (defaults.get(name) and not self.none_is_given)
            self.bind(inner, name, value if value is not None or is_none else Unknown(name))

    # Kernels and launches

    def make_kernel(self, maker, args, named, node):
        kernel = Kernel(node, node.func.end_lineno, maker == "compile_shader")
        names = "name input_names output_names source header contiguous atomic_outputs".split()
        given = dict(zip(["source"] if kernel.is_torch else names, args), **named)
        kernel.name = plain(given["name"]) if isinstance(given.get("name"), str) else ""
        kernel.is_atomic = truth_of(given.get("atomic_outputs")) is True
        troubles = []
        for name in ("source", "header"):
            text = given.get(name)
            if isinstance(text, str):
                setattr(kernel, name, text)
            elif name == "source" or text is not None:
                troubles.append(f"its {name} is not a text that the file spells out")
        for name in () if kernel.is_torch else ("input_names", "output_names"):
            texts = given.get(name)
            if isinstance(texts, list) and all(isinstance(text, str) for text in texts):
                setattr(kernel, name.replace("_name", ""), list(map(plain, texts)))
            else:
                troubles.append(f"{name} is not a list of names that the file spells out")
        kernel.trouble = troubles[0] if troubles else ""
        for other in self.kernels:  # the same call may be reached again
            is_same = (other.source, other.inputs) == (kernel.source, kernel.inputs)
            is_same = other.trouble == kernel.trouble and (troubles or is_same)
            if other.node is node and is_same:
                return other
        self.kernels.append(kernel)
        return kernel

    def launch_kernel(self, kernel, named, line):
        if kernel.is_torch or "grid" not in named:
            return Unknown()
        for name, value in list_templates(named):  # the user may have given it a value
            self.bind({}, name, value)
        if not kernel.launch:
            kernel.launch, kernel.launch_line = named, line
        outputs = [get_output(named, index) for index in range(len(kernel.outputs))]
        return [self.array_of(Unknown()).as_type(type_name) if shape is None
                else self.make_array(shape, type_name) for shape, type_name in outputs]  # fmt: skip


# What a kernel's text says of its inputs ---------------------------------------------------------

LIBRARY_KERNEL = re.compile(r"\bkernel\s+void\s+(\w+)")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
BITS = r"(?:>>|<<|(?<!&)&(?!&)|(?<!\|)\|(?!\|)|\^|%)"
ELEMENT = re.compile(r"\s*\[(?:[^\[\]]|\[[^\[\]]*\])*\]")


def find_type_by_use(launch, text, name):
    """The type of the pointer that an input is assigned to, or of the whole number that an element
    becomes, or uint32 where bits of an element are taken; None: the text does not say."""
    templates, names = dict(list_templates(launch)), [name]
    for alias in names:
        for use in re.finditer(rf"(?<![\w.]){re.escape(alias)}\b", text):
            before = text[max(use.start() - 200, 0) : use.start()]
            element = ELEMENT.match(text, use.end())
            after = text[element.end() :][:80].lstrip() if element else ""
            declared = re.search(r"(\w+)[\s*&]+(\w+)\s*=\s*$", before)
            if declared and not element:
                names += [declared.group(2)] if len(names) < 16 else []
            elif element and is_index(text, before, after):
                return "int32"
            elif element and (re.match(BITS, after) or re.search(BITS + r"\s*$", before)):
                return "uint32"
            elif not declared or not after.startswith(";"):
                continue
            given = templates.get(declared.group(1), Type(None))
            assumed = given.name if isinstance(given, Type) else "float32"
            found = find_type(declared.group(1)) or assumed
            if found and (not element or "int" in found):
                return found
    return None


def is_index(text, before, after):
    """Is an element, or a variable that it becomes, used within a subscript?"""
    rest = before[max(map(before.rfind, ";{}")) + 1 :]
    whole = r"(?:u?int\w*|size_t|u?long|u?short)"
    cast = rf"(?:\(?{whole}\)?|static_cast\s*<\s*{whole}\s*>)?"
    variable = re.search(rf"\b(?:auto|{whole})\s+(\w+)\s*=\s*{cast}[\s(]*$", rest)
    if not variable or not re.match(r"\)*\s*[;+*-]", after):
        return rest.count("[") > rest.count("]")
    return bool(re.search(rf"\w\s*\[[^\[\];]*\b{variable.group(1)}\b", text))


def is_scalar_by_use(text, name):
    """Does the text compute with the input itself, as with a number?"""
    it = rf"\b{re.escape(name)}\b"
    is_operand = re.search(rf"[\w)\]]\s*\*\s*{it}|{it}\s*[*/%<]|<\s*{it}", text)
    return bool(is_operand) and not re.search(it + r"\s*\[", text)


def find_buffers(metal, kernel):
    """(index, name, type, is it a reference) of each buffer that a kernel takes; None: there is no
    such kernel."""
    params = rf"\bkernel\b[^;{{(]*\b{re.escape(kernel)}\s*\(((?:[^()]|\([^()]*\))*)\)\s*\{{"
    found = re.search(params, COMMENT.sub("", metal))
    buffers = []
    for param in re.split(r",(?![^<(\[]*[>)\]])", found.group(1)) if found else []:
        declaration, has_attribute, attribute = param.partition("[[")
        index = re.search(r"buffer\s*\(\s*(\d+)", attribute)
        words = re.findall(r"\w+", declaration)
        if len(words) > 1 and (index or not has_attribute):
            types = filter(None, (find_type(word.rstrip("234")) for word in words[:-1]))
            place = int(index.group(1)) if index else len(buffers)
            buffers.append((place, words[-1], next(types, None), "&" in declaration))
    return buffers if found else None


# Writing -----------------------------------------------------------------------------------------

METAL = """\
#include "{include}"
{header}#line {line} "{path}"
{template}[[kernel]] void {function}(
{params}) {{
{source}}}
{instance}"""
GEOMETRY = "--threads {0[0]},{0[1]},{0[2]} --group {1[0]},{1[1]},{1[2]}\n"
INSTANCE = 'template [[host_name("{0}")]] [[kernel]] decltype({0}<{1}>) {0}<{1}>;\n'


@dataclass
class Operand:
    """What a kernel is given in one place."""

    name: str
    value: object
    type: str = None
    dims: list = (1024,)
    is_guess: bool = False

    def to_argument(self, index, fill):
        short = TYPES[self.type][1]
        if not self.dims and is_number(self.value):
            return f"--arg {index}={short}:{float(known(self.value)):.9g}    # {self.name}\n"
        dims = ", ".join(map(str, self.dims))
        size = count(self.dims)
        guess = f"--assumed {index}    # the size of {self.name}\n" * self.is_guess
        return f"--arg {index}={short}[{size}]{fill}    # {self.name} {self.type} ({dims})\n{guess}"


class Writer:
    """Makes the .metal file of a kernel and the options of its launch.

    The signature is the one that MLX makes: a buffer per input, in the constant address space if it
    has few elements, a reference if it has no axes; after it its shape, strides and number of axes
    if the text mentions them; a buffer per output; the attributes that it mentions; template
    parameters, instantiated once."""

    def __init__(self, follower, kernel, path):
        self.follower, self.kernel, self.path = follower, kernel, path
        self.text = COMMENT.sub("", plain(kernel.source))
        self.params, self.args = [], []
        self.given = kernel.launch  # what the file gives to the launch

    def with_lines(self, text):
        """The text with #line marks wherever the next line is not the Python file's next."""
        out, expected, place, is_continued = [], 0, 0, False
        for line in text.splitlines():
            leading, last = LEADING_MARKS.match(line).group(1), MARK.findall(line)
            here = ord(leading) - FIRST_MARK if leading else place
            is_blank = not plain(line).strip()
            if here and here != expected and not is_blank and not is_continued:
                out.append(f'#line {here} "{self.path}"\n')
            expected = expected + 1 if is_blank else here + 1
            place = ord(last[-1]) - FIRST_MARK if last else place
            is_continued = line.endswith("\\")
            out.append(plain(line) + "\n")
        return "".join(out)

    def operands(self, names, values, others, scalars=()):
        """Those of which nothing says the shape are as large as the largest of the others, which
        is a guess. others: the shapes of outputs."""
        operands = [self.operand(*pair, pair[0] in scalars) for pair in zip(names, values)]
        loose = [operand for operand in operands if operand.value is None or (
            is_array(operand.value) and not operand.value.is_touched)]  # fmt: skip
        firm = [operand.dims for operand in operands if operand not in loose] + others
        for operand in loose:
            operand.dims, operand.is_guess = max(firm, key=count, default=operand.dims), True
        return operands

    def operand(self, name, value, is_scalar):
        follower = self.follower
        value = follower.array_from(value) if isinstance(value, list) else value
        if is_open(value) and (is_scalar or is_scalar_by_use(self.text, name)):
            follower.number_of(value)
        if is_number(value):
            short = {int: "int32", bool: "bool_"}.get(type(known(value)), "float32")
            out = Operand(name, value, short, [])
        else:
            array = follower.array_of(value)
            out = Operand(name, array or value)
            if array:
                out.type, out.dims = array.type, [max(known(dim), 1) for dim in array.dims]
                out.is_guess = self.is_guess(array.dims)
        used = out.type or find_type_by_use(self.kernel.launch, self.text, name)
        out.type = follower.type_setting(name) or used or "float32"
        return out

    def contents(self, operand):
        """The elements, where the file lists them; floats are random otherwise, and integers 0,
        because they may be indices."""
        given = operand.value.given if is_array(operand.value) else None
        if given is None or len(given) != count(operand.dims) or len(given) > 16:
            return ":random" if "float" in operand.type else ":zero"
        numbers = [float(self.follower.number_of(item) or 0) for item in given]
        return ":value:" + ",".join(f"{number:.9g}" for number in numbers)

    def add(self, declaration, argument):
        self.params.append(f"  {declaration} [[buffer({len(self.args)})]]")
        self.args.append(argument)

    def add_input(self, operand):
        name, dims = operand.name, operand.dims
        space = "constant" if count(dims) < FEW_ELEMENTS else "device"
        declaration = f"const {space} {TYPES[operand.type][0]}{'*' if dims else '&'} {name}"
        self.add(declaration, operand.to_argument(len(self.args), self.contents(operand)))
        strides = [count(dims[axis + 1 :]) for axis in range(len(dims))]
        for what, msl, short, value in (
            (f"{name}_shape", "int*", "i32[]:value", ",".join(map(str, dims))),
            (f"{name}_strides", "int64_t*", "i64[]:value", ",".join(map(str, strides))),
            (f"{name}_ndim", "int&", "i32", len(dims)),
        ):
            if dims and what in self.kernel.source:
                argument = f"--arg {len(self.args)}={short}:{value}    # {what}\n"
                self.add(f"const constant {msl} {what}", argument)

    def output(self, name, index):
        launch, follower = self.kernel.launch, self.follower
        shape, type_name = get_output(launch, index)
        dims = [1024] if shape is None else follower.make_array(shape).dims
        is_guess = shape is None or self.is_guess(dims)
        dims = [max(known(dim), 1) for dim in dims]
        return Operand(name, None, follower.type_setting(name) or type_name, dims, is_guess)

    def is_guess(self, dims):
        """Sizes that the file relates to each other are an example; beside numbers that have been
        assumed they are a guess."""
        return any(map(is_assumed, dims)) and is_free(self.given)

    def add_output(self, operand):
        launch, follower, name = self.kernel.launch, self.follower, operand.name
        start = follower.number_of(launch.get("init_value"))
        fill = "" if start is None else f":value:{start:.9g}"
        msl = TYPES[operand.type][0]
        msl = f"atomic<{msl}>" if self.kernel.is_atomic else msl
        self.add(f"device {msl}* {name}", operand.to_argument(len(self.args), fill))

    def template(self):
        """The parameters and the arguments of the kernel's template."""
        params, args = [], []
        for name, value in list_templates(self.kernel.launch):
            of_type = "type" in (getattr(value, "name", None) or "")
            looks_typed = is_open(value) and (of_type or re.search(r"(^|[a-z])T$|ype", name))
            guess = "float32" if looks_typed else type_name_of(value)
            guess = self.follower.type_setting(name) or guess
            kind = "typename" if guess else "bool" if isinstance(value, bool) else "int"
            params.append(f"{kind} {name}")
            args.append(TYPES[guess][0] if guess else str(self.follower.whole_of(value)))
        if not self.kernel.launch and re.search(r"\bT\b", self.text):
            return "typename T", "float"  # what most kernels call their type
        return ", ".join(params), ", ".join(args)

    def sizes(self, value, otherwise):
        value = as_list(value)
        value = value if isinstance(value, list) else [] if value is None else [value]
        sizes = [max(self.follower.whole_of(item, 1), 1) for item in value[:3]]
        return sizes + otherwise[len(sizes) :]

    def write_mlx(self, name, include):
        """The texts of NAME.metal and NAME.args."""
        kernel, launch, function = self.kernel, self.kernel.launch, f"custom_kernel_{name}"
        values = launch.get("inputs") if isinstance(launch.get("inputs"), list) else []
        params, args = self.template()
        threads = self.sizes(launch.get("grid"), [32, 1, 1])
        group = self.sizes(launch.get("threadgroup"), [32, 1, 1])
        outputs = [self.output(name, index) for index, name in enumerate(kernel.outputs)]
        shapes = [output.dims for output in outputs]
        inputs = self.operands(kernel.inputs, values + [None] * len(kernel.inputs), shapes)
        group = list(map(min, threads, group))  # MLX's are not larger than the grid
        for operand in inputs:
            self.add_input(operand)
        for output in outputs:
            self.add_output(output)
        for attribute in (attribute for attribute in ATTRIBUTES if attribute in kernel.source):
            kind = "uint" if UINT_ATTRIBUTE.search(attribute) else "uint3"
            self.params.append(f"  {kind} {attribute} [[{attribute}]]")
        metal = METAL.format(
            include=include, line=kernel.line, path=self.path, function=function,
            header=self.with_lines(kernel.header), source=self.with_lines(kernel.source),
            template=f"template <{params}>\n" if params else "", params=",\n".join(self.params),
            instance=INSTANCE.format(function, args) if params else "",
        )  # fmt: skip
        place = f", launched at line {kernel.launch_line}" if launch else ""
        head = f"# {kernel.name}: {self.path}:{kernel.line}{place}\n{name}.metal {function}\n"
        return metal, head + GEOMETRY.format(threads, group) + "".join(self.args)

    def write_launch(self, file, name, metal):
        """The options of a launch of a library's kernel; None if it has no such kernel.

        PyTorch dispatches threads, by default one per element of the first tensor, in threadgroups
        of at most 1024."""
        args, named, line = self.given = self.kernel.launches[name]
        buffers = find_buffers(metal, name)
        if buffers is None:
            return None
        first = self.follower.array_of(args[0]) if args else None
        threads = self.sizes(named.get("threads"), [count(first.dims) if first else 1, 1, 1])
        if first and "threads" not in named:
            first.is_touched = True
        group = self.sizes(named.get("group_size"), [min(threads[0], 1024), 1, 1])
        buffers = [buffer for buffer in buffers if buffer[0] < len(args)]
        places, names, types, scalars = zip(*buffers) if buffers else ((), (), (), ())
        for place, _, kind, is_scalar in buffers:
            if is_scalar and is_open(args[place]) and "float" in (kind or ""):
                args[place].number = float(self.follower.number_of(args[place]))
        values, scalars = [args[place] for place in places], itertools.compress(names, scalars)
        operands = self.operands(names, values, [[count(threads)]], list(scalars))
        for operand, type_name in zip(operands, types):
            operand.type = type_name or operand.type
        head = f"# {self.path}:{self.kernel.line}, launched at line {line}\n{file}.metal {name}\n"
        options = [o.to_argument(index, self.contents(o)) for index, o in enumerate(operands)]
        return head + GEOMETRY.format(threads, group) + "".join(options)


# Files -------------------------------------------------------------------------------------------


class Importer:
    def __init__(self, options):
        self.options, self.settings, self.names = options, {}, set()
        self.found = self.imported = self.written = 0
        for item in reversed(options.set):
            name, equals, value = item.partition("=")
            if not equals:
                raise Refused(f"--set takes NAME=VALUE, such as V=4096, not '{item[:60]}'")
            self.settings[name] = value

    def write(self, name, text):
        path = os.path.join(self.options.out, name)
        with open(path + ".part", "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
        os.replace(path + ".part", path)

    def start_project(self):
        """The marker of the project, and the header that MLX puts in front of each kernel."""
        folders = list(filter(None, (self.options.mlx, self.options.torch)))
        for folder in folders:
            if not os.path.isdir(folder):
                option = "--mlx" if folder == self.options.mlx else "--torch"
                raise Refused(f"{option}: there is no folder {folder}")
        os.makedirs(self.options.out, exist_ok=True)
        include = " ".join(map(os.path.realpath, folders))
        self.write("assay.project", f"include = {include}\n" if folders else "")
        if not self.options.mlx:
            here = os.path.dirname(os.path.abspath(__file__))
            with open(os.path.join(here, "msl", "mlx.h"), encoding="utf-8") as file:
                self.write("mlx.h", file.read())

    def take(self, path):
        """Writes the kernels of a file."""
        if os.path.exists(path) and not os.path.isfile(path):
            raise Refused(f"{path} is not a plain file")
        with open(path, encoding="utf-8-sig", errors="replace") as file:
            text = file.read(MOST_BYTES)
        if not any(maker in text for maker in MAKERS):
            return
        signal.setitimer(signal.ITIMER_VIRTUAL, MOST_SECONDS)
        try:
            follower = Follower(parse(text, path), self.settings, path)
            follower.follow()
            self.write_kernels(follower, path)
        except (RecursionError, MemoryError, TimeoutError, TypeError, ValueError) as error:
            raise Refused(f"{path}: given up: {str(error) or 'it takes too much memory'}")
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)

    def write_kernels(self, follower, path):
        """One verdict per call: it is imported if one of the ways to reach it is."""
        before = self.written
        for kernel in follower.kernels:
            same = [other for other in follower.kernels if other.node is kernel.node]
            for other in same:  # what nothing launches is launched as another of the same call
                if other.launch and not kernel.launch:
                    kernel.launch, kernel.launch_line = other.launch, other.launch_line
            if not kernel.trouble:
                self.write_kernel(follower, kernel, path)
            if kernel is same[0]:
                self.found += 1
                self.imported += any(not other.trouble for other in same)
                if all(other.trouble for other in same):
                    tell(f"{path}:{kernel.line}: not imported: {kernel.trouble}")
        for line in follower.list_unreached():
            self.found += 1
            tell(f"{path}:{line}: not imported: no statement that can be followed reaches it")
        numbers = {}
        for value in follower.assumed if self.written > before else []:
            numbers.setdefault(value.name or "?", value.number)
        for name, number in numbers.items():
            tell(f"{path}: assumed {name} = {number:.6g}")

    def write_kernel(self, follower, kernel, path):
        name = self.new_name(kernel.name or os.path.basename(path).partition(".")[0])
        writer = Writer(follower, kernel, path)
        if kernel.is_torch:
            source = writer.with_lines(kernel.source)
            metal = "#include <metal_stdlib>\nusing namespace metal;\n" + source
            args = {f"{name}_{called}": writer.write_launch(name, called, metal)
                    for called in kernel.launches}  # fmt: skip
        else:
            header = "mlx/backend/metal/kernels/utils.h" if self.options.mlx else "mlx.h"
            metal, text = writer.write_mlx(name, header)
            args = {name: text}
        self.write(f"{name}.metal", metal)
        for file, text in args.items():
            if text:
                self.write(f"{file}.args", text)
        self.written += 1
        lack = "" if kernel.launch or kernel.launches else ", no launch found"
        print(f"{path}:{kernel.line}: {self.options.out}/{name}.metal{lack}")

    def new_name(self, wish):
        base = re.sub(r"[^0-9A-Za-z]", "_", wish)[:150]
        others = (f"{base}_{number}" for number in itertools.count(2))
        name = next(name for name in itertools.chain([base], others) if name not in self.names)
        self.names.add(name)
        return name

def list_files(folder, depth=0):
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) and depth < 32 else []:
        if name.endswith(".py"):
            yield f"{folder}/{name}"
        elif not name.startswith("."):
            yield from list_files(f"{folder}/{name}", depth + 1)


def tell(message):
    print(message, file=sys.stderr)


def give_up(number, frame):
    raise TimeoutError(f"it takes more than {MOST_SECONDS} s")


def main():
    parser = argparse.ArgumentParser()
    for option in ("--out", "--mlx", "--torch"):
        parser.add_argument(option)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("paths", nargs="+")
    importer = Importer(parser.parse_args())
    warnings.simplefilter("ignore")  # about the file's own escapes
    sys.setrecursionlimit(4000)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    signal.signal(signal.SIGVTALRM, give_up)
    importer.start_project()
    for path in importer.options.paths:
        if not os.path.isdir(path):
            importer.take(path)
        for file in list_files(path):
            try:
                importer.take(file)
            except Refused as error:
                tell(error)
    found, written = importer.found, importer.written
    if found == 0:
        raise Refused("no call of metal_kernel or compile_shader there")
    now = f"; now: assay lint -C {importer.options.out}" if importer.imported else ""
    tell(f"{found} call{'s' * (found != 1)}, {importer.imported} imported as {written} "
         f"kernel{'s' * (written != 1)}{now}")  # fmt: skip
    return 1 if importer.imported < found else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Refused, OSError) as problem:
        tell(f"assay: {problem}")
        sys.exit(2)
