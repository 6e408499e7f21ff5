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
import bisect
import math
import operator
import os
import re
import resource
import signal
import textwrap
import warnings
from collections import namedtuple

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

# By their names in mx and torch: in MLX's kernels, in `assay launch`, and in MSL as torch names them.
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

# What a kernel of MLX may name without declaring it. Those that match are a uint, the others a uint3.
ATTRIBUTES = """
    dispatch_quadgroups_per_threadgroup dispatch_simdgroups_per_threadgroup
    dispatch_threads_per_threadgroup grid_origin grid_size quadgroup_index_in_threadgroup
    quadgroups_per_threadgroup simdgroup_index_in_threadgroup simdgroups_per_threadgroup
    thread_execution_width thread_index_in_quadgroup thread_index_in_simdgroup
    thread_index_in_threadgroup thread_position_in_grid thread_position_in_threadgroup
    threadgroup_position_in_grid threadgroups_per_grid threads_per_grid threads_per_simdgroup
    threads_per_threadgroup""".split()
SCALAR_ATTRIBUTE = re.compile("quadgroup|simdgroup|width|thread_index")


class Refused(Exception):
    """Ends the import of a file with a sentence."""


# Lines -------------------------------------------------------------------------------------------
#
# Before a file is parsed, a character of Unicode's private planes is put in front of each line of its
# strings, after the blanks. It says the number of the line and stays with the text, however the text
# is put together.

FIRST_MARK, LAST_MARK = 0xF0000, 0x10FFFD
MARK = re.compile(f"[{chr(FIRST_MARK)}-{chr(LAST_MARK)}]")
LEADING_MARKS = re.compile(f"(?:[ \\t]|({MARK.pattern}))*")
STRING = re.compile(r"""#[^\n]*|(?<!\w)([rfu]{0,2})(\"\"\"|'''|"|')((?:\\.|(?!\2).)*)\2""", re.S | re.I)


def mark_lines(text):
    """The text of a file with marks in its strings."""
    newlines = [match.start() for match in re.finditer("\n", text)]

    def mark(string):
        if not string.group(2):
            return string.group()
        line, has_fields = bisect.bisect(newlines, string.start()) + 1, "f" in string.group(1).lower()
        body, quote = string.group(3), string.group(2)
        return string.group(1) + quote + mark_string(body, line, has_fields) + quote

    return STRING.sub(mark, text)


def mark_string(body, line, has_fields):
    out, depth = [], 0
    for part in body.splitlines(True):
        blanks = len(part) - len(part.lstrip(" \t"))
        mark = chr(min(FIRST_MARK + line, LAST_MARK)) if part.strip(" \t\\\n") and not depth else ""
        if has_fields:  # a field may bring lines of its own
            single = part.replace("{{", "").replace("}}", "")
            depth += single.count("{") - single.count("}")
            part = re.sub(r"(?<!\})\}(?=[^}\s])", "}" + mark, part)
        out.append(part[:blanks] + mark + part[blanks:])
        line += 1
    return "".join(out)


def parse(text, path):
    text = MARK.sub("", text)
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
Shape = namedtuple("Shape", "array")
Type = namedtuple("Type", "name is_assumed", defaults=[False])


class Unknown:
    """What only the running program knows. By its use it becomes an assumed number or an array."""

    def __init__(self, name=None, owner=None, number=None, dims=None, type_name=None):
        self.name = name
        self.owner = owner  # of an attribute: its object
        self.attributes = {}
        self.operation = None  # (operator, left, right): how it follows from others
        self.number = number
        self.is_assumed = number is not None
        self.dims = dims  # of an array
        self.type = type_name
        self.is_firm = dims is not None  # the number of axes is known
        self.is_touched = self.is_firm  # something was asked about the shape
        self.given = None  # the elements, where the file lists them

    def grow(self, ndim):
        """At least this many axes; new ones in front."""
        while len(self.dims) < min(ndim, MOST_AXES) and not self.is_firm:
            self.dims.insert(0, Unknown(number=AXIS))

    def set_ndim(self, ndim):
        if self.is_firm:
            return
        self.grow(ndim)
        self.dims = self.dims[len(self.dims) - ndim :]
        self.is_firm = True
        if ndim >= 3 and is_assumed(self.dims[0]):
            self.dims[0].number = FIRST_AXIS

    def copy_array(self, other):
        self.dims, self.type, self.given = list(other.dims), other.type, other.given
        self.is_firm, self.is_touched = other.is_firm, other.is_touched


class Scope:
    def __init__(self, parent=None):
        self.parent = parent
        self.names = {}

    def find(self, name, otherwise=None):
        scope = self
        while scope and name not in scope.names:
            scope = scope.parent
        return scope.names[name] if scope else otherwise


class Function:
    def __init__(self, node, home):
        self.node = node
        self.name = node.name
        self.home = home
        self.runs = 0
        parts = [part for statement in node.body for part in ast.walk(statement)]
        self.makes = any(name_of(part) in MAKERS for part in parts)
        self.launches = any(getattr(part, "arg", None) == "threadgroup" for part in parts)


class Kernel:
    """One kernel that a call makes, or a library of them."""

    def __init__(self, node, is_torch):
        self.node = node
        self.line = node.func.end_lineno
        self.is_torch = is_torch
        self.is_atomic = False
        self.name = self.source = self.header = ""
        self.inputs, self.outputs = [], []  # their names
        self.launch, self.launch_line = {}, 0  # its arguments by their names
        self.results = []  # of the last launch
        self.launches = {}  # of a library: kernel: (arguments, named arguments, line)
        self.trouble = None  # why it cannot be imported

    def list_templates(self):
        return [(plain(name), value) for name, value in get_pairs(self.launch)]


def get_pairs(launch):
    pairs = launch.get("template")
    return [pair for pair in (pairs if isinstance(pairs, list) else [])
            if isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str)]  # fmt: skip


def get_output(launch, what, index):
    items = launch.get(what)
    return as_list(items[index]) if isinstance(items, list) and index < len(items) else None


def name_of(node):
    """Of a name or attribute."""
    return getattr(node, "id", getattr(node, "attr", None))


def is_assumed(value):
    return getattr(value, "is_assumed", False)


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
    if isinstance(value, Type):
        return Type, value.name
    return tuple(as_key(item) for item in value) if isinstance(value, list) else value


def truth_of(value):
    """True, False, or None if it is not known."""
    value = known(value)
    if isinstance(value, Unknown):
        return None
    return bool(value) if value is None or isinstance(value, (int, float, str, list, dict)) else True


def find_type(name):
    short = name[:-2] if name.endswith("_t") and name != "size_t" else name
    return short if short in TYPES else ALIASES.get(short)


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
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip

# Functions and methods that are called as they are, once their arguments are known.
NUMBER_FUNCTIONS = {"min": min, "max": max, "int": int, "float": float, "abs": abs, "round": round}
TEXT_METHODS = {"strip", "lstrip", "rstrip", "lower", "upper", "startswith", "endswith", "split"}
LIST_METHODS = {"append", "insert", "extend", "copy", "pop"}
DICT_METHODS = {"update", "copy", "pop"}
ARRAY_MAKERS = {"zeros", "ones", "full", "normal", "uniform", "empty", "randint", "random", "arange",
                "rand", "randn"}  # fmt: skip


class Expressions(ast.NodeVisitor):
    """Evaluates expressions: visit gives the value of one. What has no method here is unknown."""

    def __init__(self, settings):
        self.settings = settings  # what the user says of names
        self.assumed = []  # the unknown values that were made numbers
        self.scope = Scope()

    def generic_visit(self, node):
        return Unknown()

    # What values are as numbers, arrays and texts

    def setting(self, name):
        """What the user says of a name, "packed" or "spec.dim"."""
        return self.settings.get(name, self.settings.get(name.rpartition(".")[2])) if name else None

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
            value.is_assumed = is_assumed(result)
        elif is_open(value):
            name = value.name or "?"
            says, last = self.setting(name), name.rpartition(".")[2]
            guess = next((number for part, number in GUESSES.items() if part in last), AXIS)
            value.number, value.is_assumed = read_number(says) if says else guess, not says
            self.assumed += [] if says else [value]
        return known(value) if is_number(value) else None

    def whole_of(self, value, otherwise=0):
        number = self.number_of(value)
        return otherwise if number is None or not math.isfinite(number) else int(number)

    def array_of(self, value):
        """Makes an array of what is unknown; None for what is not one."""
        if is_open(value) and value.operation:
            _, left, right = value.operation
            value.operation = None
            like = left if is_array(left) or is_open(left) else right
            value.copy_array(self.array_of(like) or Unknown(dims=[]))
        elif is_open(value):
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
            return value.name if isinstance(value, Type) else "kernel"
        number = self.number_of(value)
        is_short = re.fullmatch(r"\D{0,3}\d{0,3}[,_]?(\.\d{1,3})?[a-zA-Z%]?", spec) and spec != "r"
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
        scope.names[name] = value

    # Literals and names

    def visit_Constant(self, node):
        is_usable = node.value is None or isinstance(node.value, (str, int, float))
        is_huge = isinstance(node.value, int) and abs(node.value) >= 2**63
        return node.value if is_usable and not is_huge else Unknown()

    def visit_JoinedStr(self, node):
        return "".join(self.visit(part) for part in node.values)

    def visit_FormattedValue(self, node):
        spec = plain(self.visit(node.format_spec)) if node.format_spec else ""
        return self.format(self.visit(node.value), "r" if node.conversion == ord("r") else spec)

    def visit_Name(self, node):
        missing = Maker(node.id) if node.id in MAKERS else Unknown(node.id)
        return self.scope.find(node.id, missing)

    def visit_NamedExpr(self, node):
        value = self.visit(node.value)
        self.bind(self.scope, node.target.id, value)
        return value

    def visit_Await(self, node):
        return self.visit(node.value)

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
        for key, value in zip(node.keys, node.values):
            item = self.visit(value)
            if key is not None:
                made[as_key(self.visit(key))] = item
            elif isinstance(item, dict):
                made.update(item)
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
        self.scope = Scope(outer)
        for item in self.items_of(self.visit(first.iter), 4):
            self.bind_target(first.target, item)
            if all(truth_of(self.visit(test)) is not False for test in first.ifs):
                yield from self.turns_of(generators[1:]) if generators[1:] else [item]
        self.scope = outer

    def items_of(self, value, unknown_count):
        """Those that a loop goes over."""
        value = as_list(value)
        if is_open(value):
            return [Unknown(value.name) for _ in range(unknown_count)]
        return list(value)[:MOST_ITEMS] if isinstance(value, (list, dict)) else []

    def bind_target(self, target, value):
        if isinstance(target, ast.Name):
            self.bind(self.scope, target.id, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            if isinstance(value, Shape):
                value.array.set_ndim(len(target.elts))
            items = as_list(value)
            items = items if isinstance(items, list) else []
            items += [Unknown(getattr(value, "name", None)) for _ in target.elts[len(items) :]]
            for element, item in zip(target.elts, items):
                is_rest = isinstance(element, ast.Starred)
                self.bind_target(element.value if is_rest else element, Unknown() if is_rest else item)
        elif isinstance(target, (ast.Attribute, ast.Subscript)):
            of = self.scope.find(name_of(target.value)) if name_of(target.value) else None
            if isinstance(target, ast.Subscript) and isinstance(of, dict):
                of[as_key(self.index_of(target))] = value
            elif isinstance(target, ast.Attribute) and isinstance(of, Unknown):
                of.attributes[target.attr] = value

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
        left = self.visit(node.left)
        return self.operate(type(node.op), left, self.visit(node.right))

    def operate(self, op, a, b):
        a, b = as_list(a), as_list(b)
        is_text = isinstance(a, (str, list))
        if op is ast.Add and is_text and type(a) is type(b):
            return a + b if len(a) + len(b) < MOST_BYTES else Unknown()
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
            if None in numbers or (is_shift and not -64 < numbers[1] < 64):
                return Unknown()
            result = function(*numbers)
        except ZeroDivisionError:
            result = 0
        except (ArithmeticError, TypeError, ValueError):
            return Unknown()
        if isinstance(result, int) and abs(result) >= 2**63:
            result = float(result)
        if not isinstance(result, (int, float)):
            return Unknown()
        return Unknown(number=result) if any(is_assumed(arg) for arg in args) else result

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
        if op is ast.NotEq and is_open(a) and a.name == "ndim" and is_array(a.owner) and is_whole(b):
            a.owner.set_ndim(min(max(known(b), 1), MOST_AXES))  # a guard says how many axes it has
        is_vague = is_open(a) or is_array(a)
        if op in (ast.Is, ast.IsNot):
            # What is unknown may be None, and a kernel may be missing: both ways are read.
            is_known = not is_vague and not isinstance(a, Kernel)
            return (as_key(a) == as_key(b)) == (op is ast.Is) if is_known else None
        if op in (ast.In, ast.NotIn):
            if is_vague or is_assumed(a) or not isinstance(b, (str, list, dict)):
                return None
            items = plain(b) if isinstance(b, str) and isinstance(a, str) else map(as_key, b)
            return (as_key(a) in items) == (op is ast.In)
        if is_vague or is_open(b) or is_assumed(a) or is_assumed(b) or isinstance(a, Shape):
            return None
        if op in (ast.Eq, ast.NotEq):
            return (as_key(a) == as_key(b)) == (op is ast.Eq)
        result = self.call_with_numbers(OPERATORS[op], [a, b])
        return None if isinstance(result, Unknown) else result

    # Attributes and subscripts

    def visit_Attribute(self, node):
        return self.attribute_of(self.visit(node.value), node.attr)

    def attribute_of(self, of, name):
        if name in MAKERS:
            return Maker(name)
        if not isinstance(of, Unknown) or of.number is not None:
            return Method(name, of)
        if name in of.attributes:
            return of.attributes[name]
        if is_open(of) and of.name and len(of.name) < 12 and find_type(name):  # of a module
            return Type(find_type(name))
        if of.name == "math" and name in ("pi", "inf"):
            return getattr(math, name)
        if name in ("shape", "dtype", "size", "nbytes", "ndim"):
            array = self.array_of(of)
            if name == "dtype":
                return Type(array.type or "float32", not array.type)
            array.is_touched = True
            is_count = name in ("size", "nbytes")
            return (Shape(array) if name == "shape" else Unknown(number=count(array.dims)) if is_count
                    else Unknown("ndim", array))  # fmt: skip
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
        if isinstance(of, Shape):
            at = self.whole_of(index)
            of.array.grow(-at if at < 0 else at + 1)
        if isinstance(of, (Shape, str, list)):
            items, at = plain(as_list(of)), self.whole_of(index)
            return items[at] if -len(items) <= at < len(items) else Unknown()
        if isinstance(of, dict):
            return of.get(as_key(index), list(of.values())[-1]) if of else Unknown()
        name = getattr(of, "name", None)
        if name == "DTYPE_TO_METAL":  # of torch._inductor.codegen.mps
            return TYPES[index.name][2] if isinstance(index, Type) else "float"
        value = Unknown(f"{name}[]" if name else None)
        if is_array(of):
            self.array_of(value).type = of.type
        return value

    # Calls

    def visit_Call(self, node):
        callee, args, named = self.visit(node.func), self.visit_all(node.args), {}
        for keyword in node.keywords:
            value = self.visit(keyword.value)
            named.update({keyword.arg: value} if keyword.arg else value if isinstance(value, dict) else {})
        if isinstance(callee, Maker):
            return self.make_kernel(callee.name, args, named, node)
        if isinstance(callee, Function):
            return self.run_function(callee, args, named)
        if isinstance(callee, Kernel):
            self.launch_kernel(callee, named, node.func.end_lineno)
            return list(callee.results) or Unknown()
        if not isinstance(callee, Method) and not is_open(callee):
            return Unknown(f"{getattr(callee, 'name', '')}()")
        last = (callee.name or "").rpartition(".")[2]
        if isinstance(callee.owner, Kernel) and callee.owner.is_torch:
            callee.owner.launches.setdefault(last, (args, named, node.func.end_lineno))
        result = self.call_method(callee.owner, last, args, named)
        if result is NotImplemented:
            result = self.call_function(callee.owner, last, args, named)
        return Unknown(f"{last}()") if result is NotImplemented else result

    def call_function(self, owner, name, args, named):
        """Of Python, if there is no owner, or of some module."""
        first = as_list(args[0]) if args else None
        if name == "is_available" or (name == "hasattr" and not owner):
            return True
        if name == "dedent" and isinstance(first, str):
            return textwrap.dedent(first)
        if name == "prod" and isinstance(first, list):
            product = 1
            for factor in first:
                product = self.operate(ast.Mult, product, factor)
            return product
        if name in ("lru_cache", "compile") and args:
            return first
        if owner or name in ARRAY_MAKERS:
            return self.call_array_function(name, first, args, named)
        if name == "dict" and not args:
            return named
        if name == "range" and args:
            numbers = [self.whole_of(arg) for arg in args]
            return list(range(*numbers)[:MOST_ITEMS]) if 0 not in numbers[2:] else []
        if name in ("enumerate", "zip"):
            lists = [self.items_of(arg, 4) for arg in (args if name == "zip" else args[:1])]
            if name == "enumerate":
                start = self.whole_of(named.get("start", args[1] if len(args) > 1 else 0))
                lists.insert(0, range(start, start + MOST_ITEMS))
            return [list(row) for row in zip(*lists)]
        if name in ("list", "tuple", "sorted") and (not args or isinstance(first, (list, dict))):
            return list(first or [])
        if name == "len":
            is_known = isinstance(first, (str, list, dict))
            return len(plain(first)) if is_known else Unknown(number=4)
        if name in ("str", "repr") and args:
            return self.format(first)
        if name == "getattr" and len(args) > 1 and isinstance(args[1], str):
            return self.attribute_of(first, plain(args[1]))
        if name == "bool" and args:
            truth = truth_of(first)
            return Unknown(first.name) if truth is None else truth
        if name in NUMBER_FUNCTIONS and args:
            if name in ("int", "float") and (is_array(first) or isinstance(first, str)):
                is_infinite = plain(first) in ("inf", "-inf")
                return float(plain(first)) if is_infinite else Unknown(getattr(first, "name", None))
            if name == "int" and is_whole(first):
                return first  # still the size of an array
            args = first if len(args) == 1 and isinstance(first, list) else args
            return self.call_with_numbers(NUMBER_FUNCTIONS[name], args)
        return self.call_array_function(name, first, args, named)

    def call_method(self, owner, name, args, named):
        first = as_list(args[0]) if args else None
        if isinstance(owner, str):
            return self.call_text_method(owner, name, first, args, named)
        if isinstance(owner, dict) and name in ("items", "values", "keys"):
            items = getattr(owner, name)()
            return [list(item) for item in items] if name == "items" else list(items)
        if isinstance(owner, dict) and name == "get" and args:
            return owner.get(as_key(first), args[1] if len(args) > 1 else None)
        if isinstance(owner, (list, dict)):
            try:
                is_safe = name in (LIST_METHODS if isinstance(owner, list) else DICT_METHODS)
                return getattr(owner, name)(*map(as_list, args)) if is_safe else Unknown()
            except (TypeError, ValueError, LookupError):
                return Unknown()
        if name in ("astype", "reshape") and owner is not None or is_array(owner):
            return self.call_array_method(owner, name, first, args, named)
        if name == "bit_length" and owner is not None and self.whole_of(owner) > 0:
            return self.call_with_numbers(int.bit_length, [owner])
        return NotImplemented

    def call_text_method(self, text, name, first, args, named):
        if name == "format":
            return self.format_text(text, args, named)
        if name == "join" and isinstance(first, list):
            return text.join(first) if all(isinstance(item, str) for item in first) else Unknown()
        if name == "replace" and len(args) > 1 and isinstance(first, str):
            return text.replace(plain(first), self.format(args[1]))
        if name in TEXT_METHODS and all(isinstance(arg, str) for arg in args):
            return getattr(text if "strip" in name else plain(text), name)(*map(plain, args))
        return Unknown()

    def format_text(self, text, args, named):
        """str.format, without attributes and subscripts in fields."""
        following = iter(range(len(args)))

        def replace(field):
            if field.group(1) is None:
                return field.group()[0]
            name, _, spec = plain(field.group(1)).partition(":")
            if name and not name.isdecimal():
                return self.format(named.get(name, ""), spec)
            at = int(name[:9]) if name else next(following, len(args))
            return self.format(args[at], spec) if at < len(args) else ""

        return re.sub(r"\{\{|\}\}|\{([^{}]*)\}", replace, text)

    def call_array_method(self, owner, name, first, args, named):
        array = self.array_of(owner)
        if array is None or name not in ("astype", "reshape") or not args:
            return owner if array else Unknown()
        if name == "astype":
            out = Unknown(array.name)
            out.copy_array(array)
            out.type = find_type_argument(args, named) or array.type
            return out
        out = self.make_array(first if len(args) == 1 and isinstance(first, list) else args, array.type)
        rest = count(array.dims) // count([max(known(dim), 1) for dim in out.dims])
        out.dims = [max(rest, 1) if known(dim) < 0 else dim for dim in out.dims]
        return out

    def call_array_function(self, name, first, args, named):
        """mx.array and the functions that make arrays of a shape."""
        type_name = find_type_argument(args, named)
        if name in ("array", "tensor") and args:
            if is_open(first) or is_array(first):
                return first
            items = first if isinstance(first, list) else [first]
            is_count = first is items and bool(items) and is_whole(items[0])
            out = self.make_array([len(items)] if first is items else [],
                                  type_name or ("int32" if is_count else "float32"))  # fmt: skip
            out.given = None if items and isinstance(items[0], list) else items
            return out
        if name not in ARRAY_MAKERS:
            return first if is_array(first) else NotImplemented
        shape = as_list(named.get("shape", first))
        if len(args) > 1 and all(map(is_whole, args[:2])) and name in ("zeros", "ones", "empty", "rand"):
            shape = args  # torch.zeros(2, 3)
        return self.make_array(shape if isinstance(shape, list) else [shape], type_name or "float32")


def find_type_argument(args, named):
    given = named.get("dtype", next((arg for arg in args if isinstance(arg, Type)), None))
    return given.name if isinstance(given, Type) else None


# Statements --------------------------------------------------------------------------------------


class Flow(Exception):
    """A return, break or continue on its way."""


class Stopped(Exception):
    """A function that has run for long enough."""


class Follower(Expressions):
    """Follows the statements of a file. A condition that is not known is taken; if its block returns,
    as guards do, the function goes on as if it had not been."""

    def __init__(self, tree, settings):
        super().__init__(settings)
        self.tree = tree
        self.kernels = []
        self.functions = []  # in the order of their definitions
        self.depth, self.steps = 0, MOST_STEPS
        self.none_is_given = False  # parameters whose default is None are unknown instead
        self.result = None

    def follow(self):
        self.run_alone(self.run, self.tree.body)
        # Launches first: they call what makes the kernels, with the arguments it is really given.
        # What is still not launched then may need arguments that are None by default.
        for attempt in range(3):
            self.none_is_given = attempt == 2
            for function in self.functions:
                if attempt == 2 and not self.lacks_launch():
                    return
                is_due = function.launches or (function.makes and attempt > 0)
                if is_due and (attempt == 2 or not function.runs):
                    self.run_alone(self.run_function, function, [], {})

    def run_alone(self, run, *args):
        self.depth, self.steps, scope = 0, MOST_STEPS, self.scope
        try:
            run(*args)
        except (Flow, Stopped):
            self.scope = scope

    def lacks_launch(self):
        return any(not k.launch or k.trouble for k in self.kernels) or self.list_unreached()

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

    def visit_Expr(self, node):
        self.visit(node.value)

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

    def visit_If(self, node):
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
            if flow.args[0] == "return":
                raise
            return flow.args[0] == "continue"
        return True

    def visit_With(self, node):
        self.run(node.body)

    visit_AsyncWith = visit_With

    def visit_Try(self, node):
        self.run(node.body + node.finalbody)

    def visit_Return(self, node):
        value = self.visit(node.value) if node.value else None
        self.result = self.result if value is None else value
        raise Flow("return")

    def visit_Raise(self, node):
        raise Flow("return")

    def visit_Break(self, node):
        raise Flow("break")

    def visit_Continue(self, node):
        raise Flow("continue")

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
        outer, self.scope = self.scope, Scope(self.scope)
        this, made = Unknown("self"), Unknown(node.name)
        this.attributes = made.attributes = self.scope.names
        self.run(node.body)
        self.scope.names["self"] = this
        self.scope = outer
        self.bind(self.scope, node.name, made)

    def run_function(self, function, args, named):
        if self.depth >= DEEPEST_CALL:
            return Unknown(f"{function.name}()")
        before = self.scope, self.result, self.depth
        self.scope, self.result, self.depth = Scope(function.home), None, self.depth + 1
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
        this = function.home.find("self") if names[:1] == ["self"] else None
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
        kernel = Kernel(node, maker == "compile_shader")
        names = ("source",) if kernel.is_torch else (
            "name", "input_names", "output_names", "source", "header", "contiguous", "atomic_outputs"
        )
        given = dict(zip(names, args), **named)
        troubles = []
        for name in ("source", "header"):
            if isinstance(given.get(name), str):
                setattr(kernel, name, given[name])
            elif name == "source" or given.get(name) is not None:
                troubles.append(f"its {name} is not a text that the file spells out")
        if not kernel.is_torch:
            kernel.name = plain(given["name"]) if isinstance(given.get("name"), str) else ""
            kernel.is_atomic = truth_of(given.get("atomic_outputs")) is True
            for what in ("input_names", "output_names"):
                texts = given.get(what)
                if isinstance(texts, list) and all(isinstance(text, str) for text in texts):
                    setattr(kernel, what[: what.index("_")] + "s", [plain(text) for text in texts])
                else:
                    troubles.append(f"{what} is not a list of names that the file spells out")
        kernel.trouble = troubles[0] if troubles else None
        for other in self.kernels:  # the same call may be reached again
            is_same = (other.source, other.inputs) == (kernel.source, kernel.inputs)
            if other.node is node and other.trouble == kernel.trouble and (troubles or is_same):
                return other
        self.kernels.append(kernel)
        return kernel

    def launch_kernel(self, kernel, named, line):
        if kernel.is_torch or "grid" not in named:
            return
        for name, value in get_pairs(named):  # the user may have given it a value
            self.bind(Scope(), plain(name), value)
        if not kernel.launch:
            kernel.launch, kernel.launch_line = named, line
        kernel.results = []
        for index in range(len(kernel.outputs)):
            shape, given = (get_output(named, f"output_{what}", index) for what in ("shapes", "dtypes"))
            result = self.make_array(shape) if isinstance(shape, list) else self.array_of(Unknown())
            result.type = given.name if isinstance(given, Type) else "float32"
            kernel.results.append(result)


# What a kernel's text says of its inputs ---------------------------------------------------------

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
BITS = r"(?:>>|<<|(?<!&)&(?!&)|(?<!\|)\|(?!\|)|\^|%)"
ELEMENT = re.compile(r"\s*\[(?:[^\[\]]|\[[^\[\]]*\])*\]")


def find_type_by_use(kernel, text, name):
    """The type of the pointer that an input is assigned to, or of the whole number that an element
    becomes, or uint32 where bits of an element are taken; None: the text does not say."""
    templates, names = dict(kernel.list_templates()), [name]

    def resolve(word):
        given = templates.get(word, Type(None))
        return find_type(word) or (given.name if isinstance(given, Type) else "float32")

    for alias in names:
        for use in re.finditer(rf"(?<![\w.]){re.escape(alias)}\b", text):
            before = text[max(use.start() - 200, 0) : use.start()]
            element = ELEMENT.match(text, use.end())
            after = text[element.end() :][:80].lstrip() if element else ""
            declared = re.search(r"(\w+)[\s*&]+(\w+)\s*=\s*$", before)
            found = None
            if declared and not element:
                names += [declared.group(2)] if len(names) < 16 else []
                found = resolve(declared.group(1))
            elif element and (re.match(BITS, after) or re.search(BITS + r"\s*$", before)):
                found = "uint32"
            elif declared and after.startswith(";"):
                found = resolve(declared.group(1))
                found = found if found and "int" in found else None
            if found:
                return found
    return None


def is_scalar_by_use(text, name):
    """Does the text compute with the input itself, as with a number?"""
    it = rf"\b{re.escape(name)}\b"
    is_operand = re.search(rf"[\w)\]]\s*\*\s*{it}|{it}\s*[*/%<]|<\s*{it}", text)
    return bool(is_operand) and not re.search(it + r"\s*\[", text)


def find_buffers(metal, kernel):
    """(index, name, type) of each buffer that a kernel takes; None: there is no such kernel."""
    params = rf"\bkernel\b[^;{{(]*\b{re.escape(kernel)}\s*\(((?:[^()]|\([^()]*\))*)\)\s*\{{"
    found = re.search(params, COMMENT.sub("", metal))
    buffers = []
    for param in re.split(r",(?![^<(\[]*[>)\]])", found.group(1)) if found else []:
        declaration, has_attribute, attribute = param.partition("[[")
        index = re.search(r"buffer\s*\(\s*(\d+)", attribute)
        words = re.findall(r"\w+", declaration)
        if len(words) > 1 and (index or not has_attribute):
            types = [find_type(word.rstrip("234")) for word in words[:-1]] + [None]
            types = [found for found in types if found] + [None]
            buffers.append((int(index.group(1)) if index else len(buffers), words[-1], types[0]))
    return buffers if found else None


# Writing -----------------------------------------------------------------------------------------


class Operand:
    """What a kernel is given in one place."""

    def __init__(self, name, value=None, type_name=None, dims=(1024,)):
        self.name = name
        self.value = value
        self.type = type_name
        self.dims = [max(known(dim), 1) for dim in dims]

    def to_argument(self, index, fill):
        short = TYPES[self.type][1]
        if not self.dims and is_number(self.value):
            return f"--arg {index}={short}:{float(known(self.value)):.9g}    # {self.name}\n"
        dims = ", ".join(map(str, self.dims))
        size = count(self.dims)
        return f"--arg {index}={short}[{size}]{fill}    # {self.name} {self.type} ({dims})\n"


class Writer:
    """Makes the .metal file of a kernel and the options of its launch.

    The signature is the one that MLX makes: a buffer per input, in the constant address space if it
    has few elements, a reference if it has no axes; after it its shape, strides and number of axes if
    the text mentions them; a buffer per output; the attributes that it mentions; template parameters,
    instantiated once."""

    def __init__(self, follower, kernel, path):
        self.follower = follower
        self.kernel = kernel
        self.path = path
        self.text = COMMENT.sub("", plain(kernel.source))
        self.params, self.args = [], []

    def with_lines(self, text):
        """The text with #line marks wherever the next line is not the Python file's next."""
        out, expected, place, is_continued = [], 0, 0, False
        for line in text.split("\n"):
            leading, last = LEADING_MARKS.match(line).group(1), MARK.findall(line)
            here = ord(leading) - FIRST_MARK if leading else place
            is_blank = not plain(line).strip()
            if here and here != expected and not is_blank and not is_continued:
                out.append(f'#line {here} "{self.path}"\n')
            expected = here + 1 if not is_blank else expected + 1
            place = ord(last[-1]) - FIRST_MARK if last else place
            is_continued = line.endswith("\\")
            out.append(plain(line) + "\n")
        return "".join(out[:-1] if not text.split("\n")[-1] else out)

    def operand(self, name, value):
        if is_open(value) and is_scalar_by_use(self.text, name):
            self.follower.number_of(value)
        if is_number(value):
            short = {int: "int32", bool: "bool_"}.get(type(known(value)), "float32")
            out = Operand(name, value, short, ())
        else:
            array = self.follower.array_of(value)
            out = Operand(name, array, array.type, array.dims) if array else Operand(name, value)
        out.type = (self.follower.type_setting(name) or out.type
                    or find_type_by_use(self.kernel, self.text, name) or "float32")  # fmt: skip
        return out

    def share_sizes(self, operands):
        """Inputs of which nothing says the shape are as large as the largest of the others."""
        loose = [o for o in operands if o.value is None or (is_array(o.value) and not o.value.is_touched)]
        firm = [operand for operand in operands if operand not in loose]
        largest = max(firm, key=lambda operand: count(operand.dims), default=None)
        for operand in loose:
            operand.dims = largest.dims if largest else operand.dims

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
        self.add(f"const {space} {TYPES[operand.type][0]}{'*' if dims else '&'} {name}",
                 operand.to_argument(len(self.args), self.contents(operand)))  # fmt: skip
        strides = [count(dims[axis + 1 :]) for axis in range(len(dims))]
        for what, msl, short, value in (
            (f"{name}_shape", "int*", "i32[]:value", ",".join(map(str, dims))),
            (f"{name}_strides", "int64_t*", "i64[]:value", ",".join(map(str, strides))),
            (f"{name}_ndim", "int&", "i32", len(dims)),
        ):
            if dims and what in self.kernel.source:
                self.add(f"const constant {msl} {what}",
                         f"--arg {len(self.args)}={short}:{value}    # {what}\n")  # fmt: skip

    def add_output(self, name, index):
        launch, follower = self.kernel.launch, self.follower
        shape, given = (get_output(launch, f"output_{what}", index) for what in ("shapes", "dtypes"))
        dims = follower.make_array(shape).dims if isinstance(shape, list) else [1024]
        given = given.name if isinstance(given, Type) else "float32"
        operand = Operand(name, None, follower.type_setting(name) or given, dims)
        start = follower.number_of(launch.get("init_value"))
        msl = TYPES[operand.type][0]
        self.add(f"device {f'atomic<{msl}>' if self.kernel.is_atomic else msl}* {name}",
                 operand.to_argument(len(self.args), "" if start is None else f":value:{start:.9g}"))

    def template(self):
        """The parameters and the arguments of the kernel's template."""
        params, args = [], []
        for name, value in self.kernel.list_templates():
            looks_typed = re.search(r"(^|[a-z])T$|ype", name) or "type" in (getattr(value, "name", 0) or "")
            guess = "float32" if is_open(value) and looks_typed else None
            guess = self.follower.type_setting(name) or (value.name if isinstance(value, Type) else guess)
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

    def geometry(self, threads, group):
        return "--threads {} --group {}\n".format(*(",".join(map(str, s)) for s in (threads, group)))

    def write_mlx(self, name, header):
        """The texts of NAME.metal and NAME.args."""
        kernel, launch, function = self.kernel, self.kernel.launch, f"custom_kernel_{name}"
        values = launch.get("inputs")
        values = values[:] if isinstance(values, list) else []
        values += [None] * len(kernel.inputs)
        inputs = [self.operand(*pair) for pair in zip(kernel.inputs, values)]
        self.share_sizes(inputs)
        params, args = self.template()
        threads, group = (self.sizes(launch.get(what), [32, 1, 1]) for what in ("grid", "threadgroup"))
        group = [min(pair) for pair in zip(threads, group)]  # MLX's are not larger than the grid
        for operand in inputs:
            self.add_input(operand)
        for index, output in enumerate(kernel.outputs):
            self.add_output(output, index)
        for name_of_it in (attribute for attribute in ATTRIBUTES if attribute in kernel.source):
            kind = "uint" if SCALAR_ATTRIBUTE.search(name_of_it) else "uint3"
            kind = "uint3" if name_of_it == "dispatch_threads_per_threadgroup" else kind
            self.params.append(f"  {kind} {name_of_it} [[{name_of_it}]]")
        metal = (
            f'#include "{header}"\n{self.with_lines(kernel.header)}#line {kernel.line} "{self.path}"\n'
            + (f"template <{params}>\n" if params else "")
            + f"[[kernel]] void {function}(\n" + ",\n".join(self.params) + ") {\n"
            + self.with_lines(kernel.source) + "}\n"
        )  # fmt: skip
        if params:
            instance = f"{function}<{args}>"
            metal += f'template [[host_name("{function}")]] [[kernel]] decltype({instance}) {instance};\n'
        place = f", launched at line {kernel.launch_line}" if launch else ""
        head = f"# {kernel.name}: {self.path}:{kernel.line}{place}\n{name}.metal {function}\n"
        return metal, head + self.geometry(threads, group) + "".join(self.args)

    def write_launch(self, file, name, metal):
        """The options of a launch of a library's kernel; None if it has no such kernel.

        PyTorch dispatches threads, by default one per element of the first tensor, in threadgroups
        of at most 1024."""
        args, named, line = self.kernel.launches[name]
        buffers = find_buffers(metal, name)
        if buffers is None:
            return None
        first = self.follower.array_of(args[0]) if args else None
        threads = self.sizes(named.get("threads"), [count(first.dims) if first else 1, 1, 1])
        group = self.sizes(named.get("group_size"), [min(threads[0], 1024), 1, 1])
        operands = []
        for index, param, type_name in buffers:
            if index < len(args):
                operands.append(self.operand(param, args[index]))
                operands[-1].type = type_name or operands[-1].type
        self.share_sizes(operands)
        head = f"# {self.path}:{self.kernel.line}, launched at line {line}\n{file}.metal {name}\n"
        options = [o.to_argument(index, self.contents(o)) for index, o in enumerate(operands)]
        return head + self.geometry(threads, group) + "".join(options)


# Files -------------------------------------------------------------------------------------------


class Importer:
    def __init__(self, options):
        self.options = options
        self.settings = {}
        self.names = set()
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
        folders = []
        for option in ("mlx", "torch"):
            folder = getattr(self.options, option)
            if folder and not os.path.isdir(folder):
                raise Refused(f"--{option}: there is no folder {folder}")
            folders += [os.path.realpath(folder)] if folder else []
        os.makedirs(self.options.out, exist_ok=True)
        self.write("assay.project", f"include = {' '.join(folders)}\n" if folders else "")
        if not self.options.mlx:
            here = os.path.dirname(os.path.abspath(__file__))
            with open(os.path.join(here, "msl", "mlx.h"), encoding="utf-8") as file:
                self.write("mlx.h", file.read())

    def take(self, path):
        if os.path.exists(path) and not os.path.isfile(path):
            raise Refused(f"{path} is not a plain file")
        with open(path, encoding="utf-8-sig", errors="replace") as file:
            text = file.read(MOST_BYTES)
        if not any(maker in text for maker in MAKERS):
            return
        signal.setitimer(signal.ITIMER_VIRTUAL, MOST_SECONDS)
        try:
            follower = Follower(parse(text, path), self.settings)
            follower.follow()
            self.write_kernels(follower, path)
        except (RecursionError, MemoryError, TimeoutError, ValueError) as error:
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
                    print(f"{path}:{kernel.line}: not imported: {kernel.trouble}", file=sys.stderr)
        for line in follower.list_unreached():
            self.found += 1
            print(f"{path}:{line}: not imported: no statement that can be followed reaches it",
                  file=sys.stderr)  # fmt: skip
        if self.written > before:
            numbers = {}
            for value in follower.assumed:
                numbers.setdefault(value.name or "?", value.number)
            for name, number in numbers.items():
                print(f"{path}: assumed {name} = {number:.6g}", file=sys.stderr)

    def write_kernel(self, follower, kernel, path):
        base = re.sub(r"[^0-9A-Za-z]", "_", kernel.name or os.path.basename(path).partition(".")[0])
        base = name = base[:150]
        number = 1
        while name in self.names:
            number += 1
            name = f"{base}_{number}"
        self.names.add(name)
        writer = Writer(follower, kernel, path)
        if kernel.is_torch:
            metal = "#include <metal_stdlib>\nusing namespace metal;\n" + writer.with_lines(kernel.source)
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


def list_files(folder, depth=0):
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) and depth < 32 else []:
        if name.endswith(".py"):
            yield f"{folder}/{name}"
        elif not name.startswith("."):
            yield from list_files(f"{folder}/{name}", depth + 1)


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
                print(error, file=sys.stderr)
    found, written = importer.found, importer.written
    if found == 0:
        raise Refused("no call of metal_kernel or compile_shader there")
    print(f"{found} call{'s' * (found != 1)}, {importer.imported} imported as {written} "
          f"kernel{'s' * (written != 1)}", end="", file=sys.stderr)  # fmt: skip
    print(f"; now: assay lint -C {importer.options.out}" if importer.imported else "", file=sys.stderr)
    return 1 if importer.imported < found else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Refused, OSError) as problem:
        print(f"assay: {problem}", file=sys.stderr)
        sys.exit(2)
