"""The training text: documents drawn from grammar/*.txt, the same for the same seed.

Owns the mixture of kinds, the tables that are computed (sums, pairs of metals, invented names) and
the shape of a conversation. Does not own any sentence: those are in grammar/. One
document in eight loses its beginning, so that the model has seen text that starts anywhere.

    python3 corpus.py --seed 1 --documents 5      prints documents
"""

import argparse
import itertools
import pathlib
import random
import re

from grammar import Grammar

HERE = pathlib.Path(__file__).parent
MIXTURE = (("tale", 42), ("fact", 14), ("everyday", 32), ("chat", 12))
END = "<|endoftext|>"
TURN_START, TURN_END = "<|im_start|>", "<|im_end|>"
SYSTEM_LINES = (
    "You are a helpful assistant.",
    "You are Assay, a small model that knows metals.",
    "Answer in simple English.",
)
NUMBERS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen twenty"
).split()
TENS = "_ _ twenty thirty forty fifty sixty seventy eighty ninety".split()
DENSITIES = {
    "magnesium": 1.7,
    "aluminium": 2.7,
    "titanium": 4.5,
    "zinc": 7.1,
    "tin": 7.3,
    "iron": 7.9,
    "nickel": 8.9,
    "copper": 9.0,
    "bismuth": 9.8,
    "silver": 10.5,
    "lead": 11.3,
    "mercury": 13.5,
    "gold": 19.3,
    "platinum": 21.5,
}
DOUBLING = ("run", "swim", "sit", "forget", "drop", "cut", "win", "travel")
INVENTED_NAMES = 400
REAL_NAME_WEIGHT = 16
SYLLABLES = (
    "ba bel bri da dor el fa gar hal ir ja ka kel lin lo ma mer mi na ni or pa rin ro sa sel "
    "ta tor u va vin wen yo za"
).split()
NEGATION = re.compile(r"\b([Dd]o|[Dd]oes|[Dd]id|[Ii]s|[Ww]as|could|would|had|must) not\b")
MEN = "he | him | his | himself | man | boy"
WOMEN = "she | her | her | herself | woman | girl"


def load_grammar():
    grammar = Grammar()
    for path in sorted((HERE / "grammar").glob("*.txt")):
        grammar.load(path)
    add_verb_forms(grammar)
    add_sums(grammar)
    add_metal_pairs(grammar)
    add_invented_names(grammar)
    return grammar


def number_word(value):
    if value <= 20:
        return NUMBERS[value]
    if value == 100:
        return "one hundred"
    return TENS[value // 10] + ("-" + NUMBERS[value % 10] if value % 10 else "")


def third_person(verb):
    if verb.endswith(("s", "x", "ch", "sh", "o")):
        return verb + "es"
    if verb.endswith("y") and verb[-2] not in "aeou":
        return verb[:-1] + "ies"
    return verb + "s"


def ing_form(verb):
    if verb.endswith("e") and not verb.endswith("ee"):
        return verb[:-1] + "ing"
    return verb + (verb[-1] if verb in DOUBLING else "") + "ing"


def add_verb_forms(grammar):
    """Gives each verb its columns s and ing."""
    for table in ("act", "rest"):
        for row in grammar.rules[table]:
            verb = row.first[0]
            row.cells["s"], row.cells["ing"] = [third_person(verb)], [ing_form(verb)]


def add_sums(grammar):
    columns = ["key", "a", "b", "total", "product"]
    for a, b in itertools.product(range(2, 11), repeat=2):
        words = [number_word(value) for value in (a, b, a + b, a * b)]
        grammar.add("sum", columns, " | ".join([f"{a}+{b}"] + words))


def add_metal_pairs(grammar):
    """Which of two metals melts first, and which is heavier; only pairs that differ clearly."""
    melts = {}
    for row in grammar.rules["metal"]:
        text = row.cells["melt"][0]
        melts[row.first[0]] = (-39 if text.startswith("minus") else int(text), text)
    for low, high in itertools.permutations(melts, 2):
        if melts[low][0] + 20 < melts[high][0]:
            grammar.add(
                "hotter",
                ["key", "low", "high", "low_melt", "high_melt"],
                f"{low}/{high} | {low} | {high} | {melts[low][1]} | {melts[high][1]}",
            )
    for low, high in itertools.permutations(DENSITIES, 2):
        if DENSITIES[low] * 1.1 < DENSITIES[high]:
            grammar.add("denser", ["key", "low", "high"], f"{low}/{high} | {low} | {high}")


def add_invented_names(grammar):
    """Names that no one has, so that the model learns to carry any name through a tale."""
    rng = random.Random(0)
    grammar.rules["person"] *= REAL_NAME_WEIGHT
    columns = list(grammar.rules["person"][0].cells)
    names = set()
    while len(names) < INVENTED_NAMES:
        names.add("".join(rng.sample(SYLLABLES, rng.choice((2, 2, 3)))).capitalize())
    for name in sorted(names):
        grammar.add("person", columns, f"{name} | {rng.choice((MEN, WOMEN))}")
        grammar.add("nonce", None, name.lower())


def plain_answer(rng, question, answer):
    if rng.random() < 0.3:
        return f"Question: {question}\nAnswer: {answer}"
    return question + rng.choice(("\n", "\n\n")) + answer


def vary_question(rng, question):
    """People type questions with and without a capital and a final mark."""
    if rng.random() < 0.35:
        question = question[0].lower() + question[1:]
    if rng.random() < 0.3:
        question = question.rstrip("?")
    elif question[-1] != "?" and rng.random() < 0.6:
        question += "?" if question.lower().startswith(("what", "can")) else "."
    return question


def conversation(rng, pairs):
    turns = []
    if rng.random() < 0.3:
        turns.append(("system", rng.choice(SYSTEM_LINES)))
    for question, answer in pairs:
        turns += [("user", question), ("assistant", answer)]
    return "\n".join(f"{TURN_START}{who}\n{text}{TURN_END}" for who, text in turns)


def chat_document(grammar, rng):
    pairs = []
    for _ in range(rng.choice((1, 1, 2, 3))):
        question, answer = grammar.document("chat", rng).split(" => ")
        answer = answer[0].upper() + answer[1:]
        pairs.append((vary_question(rng, " ".join(question.split())), answer))
    if rng.random() < 0.6:
        return conversation(rng, pairs)
    return plain_answer(rng, *pairs[0])


def drop_beginning(rng, text):
    """Cuts a document at the start of a later sentence."""
    starts = [match.end() for match in re.finditer(r"[a-z][.!?] (?=[A-Z])", text)]
    return text[rng.choice(starts) :] if starts else text


def contract(text):
    """Writes "don't" for "do not" and so on, as people do when they talk."""
    text = NEGATION.sub(r"\1n't", text).replace("cannot", "can't")
    return re.sub(
        r"\bI (?:(a)m|(wi)ll)\b(?=[a-z ]* [a-z])", lambda match: "I'm" if match[1] else "I'll", text
    )


def document(grammar, rng):
    kinds, weights = zip(*MIXTURE)
    kind = rng.choices(kinds, weights)[0]
    if kind == "chat":
        return chat_document(grammar, rng)
    text = grammar.document(kind, rng)
    if rng.random() < 0.25:
        text = contract(text)
    return drop_beginning(rng, text) if rng.random() < 0.125 else text


def documents(seed, count):
    """Yields the documents of one seed."""
    grammar, rng = load_grammar(), random.Random(seed)
    for _ in range(count):
        yield document(grammar, rng)


def main():
    parser = argparse.ArgumentParser(description="print documents of the training text")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--documents", type=int, default=10)
    options = parser.parse_args()
    for text in documents(options.seed, options.documents):
        print(text + "\n" + END)


if __name__ == "__main__":
    main()
