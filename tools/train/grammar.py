"""Expands a text grammar into documents.

Owns the format of grammar/*.txt and the expansion. Does not own any English, apart from "a" before
a vowel and capitals at the start of a sentence. A binding never repeats an earlier
binding of the same rule in the same document, so two people of a tale always have different names.

    rule:                     a rule; each indented line is one alternative
      [He|She] saw {thing}.   [a|b] is a choice, {rule} an expansion
    table: name | colour      a table; each indented line is one row
      gold | yellow

    {x=rule}   expand and remember as x          {!x=rule}   remember without printing
    {x}        what was remembered               {x.colour}  a column of the remembered row
    {X.colour} the same with a capital           3* ...      this alternative counts three times
"""

import re

PIECE = re.compile(r"[\[\]|]|\{[^}]*\}|[^\[\]|{}]+")
SLOT = re.compile(r"\{(!?)(?:(\w+)=)?([\w.]+)\}")
WEIGHT = re.compile(r"(\d+)\* ")
ARTICLE = re.compile(r"\b([Aa]) (?=[aeiou]|hour|honest|heir)(?!use|uni[cfqtv]|one\b|once|eu)")
SPACES = re.compile(r" {2,}")
# A small letter after the end of a sentence, after a quotation that is not followed by its speaker,
# or at the start of a quotation that does not continue an earlier one.
SENTENCE_START = re.compile(
    r"""(^|\n|(?<=[a-z0-9)][.!?])\ |(?<=\.")\ |(?<=[!?]")\ (?!(?:asked|said|cried|roared|he|she)\b)
                                |^"|(?<=[^,]\ )"|(?<=\n)")([a-z])""",
    re.VERBOSE,
)
DISTINCT_TRIES = 50


class Row:
    """One row of a table: a template for every column. The first column names the row."""

    def __init__(self, columns, cells):
        self.cells = {name: parse(cell) for name, cell in zip(columns, cells)}
        self.first = self.cells[columns[0]]


def parse(text):
    """Turns a template into a list of strings, slots and choices (lists of such lists)."""
    pieces = PIECE.findall(text.replace("\\n", "\n"))
    parts, rest = parse_sequence(pieces, 0)
    if rest != len(pieces):
        raise ValueError(f"stray ']' or '|' in: {text}")
    return parts


def parse_sequence(pieces, at):
    parts = []
    while at < len(pieces) and pieces[at] not in "]|":
        if pieces[at] == "[":
            choice, at = parse_choice(pieces, at + 1)
            parts.append(choice)
            continue
        parts.append(parse_slot(pieces[at]) if pieces[at][0] == "{" else pieces[at])
        at += 1
    return parts, at


def parse_choice(pieces, at):
    options = []
    while True:
        parts, at = parse_sequence(pieces, at)
        options.append(parts)
        if at == len(pieces):
            raise ValueError("a '[' is never closed in: " + "".join(pieces))
        at += 1
        if pieces[at - 1] == "]":
            return options, at


def parse_slot(text):
    match = SLOT.fullmatch(text)
    if match is None:
        raise ValueError(f"not a slot: {text}")
    silent, bind, name = match.groups()
    return (bool(silent), bind, name)


class Grammar:
    def __init__(self):
        self.rules = {}

    def load(self, path):
        """Reads one file of rules and tables."""
        name, columns = None, None
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            if line[0] != " ":
                name, _, heads = line.partition(":")
                columns = [head.strip() for head in heads.split("|")] if heads.strip() else None
                self.rules.setdefault(name, [])
                continue
            try:
                self.add(name, columns, line.strip())
            except ValueError as error:
                raise ValueError(f"{path}:{number}: {error}") from error

    def add(self, name, columns, text):
        weight = WEIGHT.match(text)
        if weight:
            text = text[weight.end() :]
        if columns:
            cells = [cell.strip() for cell in split_cells(text)]
            if len(cells) != len(columns):
                raise ValueError(f"{len(cells)} cells, the table has {len(columns)} columns")
            option = Row(columns, cells)
        else:
            option = parse(text)
        self.rules.setdefault(name, []).extend([option] * (int(weight[1]) if weight else 1))

    def document(self, rule, rng):
        """Expands a rule to finished text."""
        return finish(Expansion(self, rng).text(rule))


def split_cells(text):
    """Splits a table line at the bars that are not inside a choice."""
    cells, depth = [""], 0
    for char in text:
        depth += (char == "[") - (char == "]")
        if char == "|" and depth == 0:
            cells.append("")
        else:
            cells[-1] += char
    return cells


class Expansion:
    """The state of one document: what is bound, and what each rule has bound already."""

    def __init__(self, grammar, rng):
        self.rules = grammar.rules
        self.rng = rng
        self.bound = {}
        self.used = set()

    def text(self, rule):
        return self.render(self.pick(self.rules[rule]))

    def pick(self, options):
        return options[int(self.rng.random() * len(options))]

    def write(self, parts, out):
        if isinstance(parts, Row):
            parts = parts.first
        for part in parts:
            if isinstance(part, str):
                out.append(part)
            elif isinstance(part, list):
                self.write(self.pick(part), out)
            else:
                self.write_slot(part, out)

    def write_slot(self, slot, out):
        silent, bind, name = slot
        if bind:
            value = self.bind(bind, name)
        else:
            value = self.value(name)
        if not silent:
            out.append(value)

    def value(self, name):
        """The text of a bound name, its column, or a rule; capital where the name has one."""
        key = name[0].lower() + name[1:]
        head, _, column = key.partition(".")
        if head in self.bound:
            value = self.bound_value(self.bound[head], column)
        else:
            value = self.text(key)
        return value if key == name else value[:1].upper() + value[1:]

    def bound_value(self, value, column):
        if not isinstance(value, Row):
            return value
        return self.render(value.cells[column] if column else value.first)

    def render(self, parts):
        out = []
        self.write(parts, out)
        return "".join(out)

    def bind(self, bind, name):
        tries = DISTINCT_TRIES if name in self.rules else 1
        for _ in range(tries):
            value, text = self.draw(name)
            if (name, text) not in self.used:
                break
        self.used.add((name, text))
        self.bound[bind] = value
        return text

    def draw(self, name):
        """The value to remember (a row, or text) and its text."""
        if name not in self.rules:
            text = self.value(name)
            return text, text
        option = self.pick(self.rules[name])
        text = self.render(option)
        return (option if isinstance(option, Row) else text), text


def finish(text):
    """Puts in "an" and the capitals, and takes out the spaces that empty choices leave."""
    text = SPACES.sub(" ", text).replace(" \n", "\n").strip()
    text = ARTICLE.sub(r"\1n ", text)
    return SENTENCE_START.sub(lambda match: match[1] + match[2].upper(), text)
