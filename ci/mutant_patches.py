"""mutant_patches.py - reads kernels/humming/mutants.yaml and applies its patches to a copy of a package.

A mutant edits named functions: each place gives a file below `humming/`, a function (`name`, `Class::name` or
`class Class`), a few tokens to find there (white space matches any white space) and what replaces them. The tokens
must stand exactly once in the definitions of that function, else the place is refused with a sentence. `in` says for
which versions a place is (a glob); a mutant without places for a version is none of that version.
"""

import fnmatch
import json
import os
import re
import shutil

REQUIRED = ("name", "class", "what", "breaks", "places")
OPTIONAL = ("entries",)
PLACE = ("file", "function", "find", "replace")
CLASSES = ("weights", "scale", "zero-point", "accumulation", "rounding", "epilogue", "tail", "memory", "race", "routing",
           "special", "inputs", "quantizer")


class Refusal(Exception):
    """A sentence for the user."""


# ---- the list: block maps and lists of YAML, plain and quoted scalars on one line ----


def scalar(text, where):
    try:
        if text.startswith('"'):
            return json.loads(text)
    except ValueError:
        raise Refusal(f"{where}: a broken text in double quotes") from None
    if text.startswith("'"):
        if not re.fullmatch(r"'(?:[^']|'')*'", text):
            raise Refusal(f"{where}: a broken text in single quotes")
        return text[1:-1].replace("''", "'")
    if not text or text[0] in "[]{}&*!|>%@`?#" or re.search(r"\s#|: ", text):
        raise Refusal(f"{where}: '{text}' needs quotes")
    return text


def lines_of(path):
    """(number, indentation, text) of the lines that say something."""
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            text = line.strip()
            if "\t" in line:
                raise Refusal(f"{path}:{number}: a tab")
            if text and not text.startswith("#"):
                yield number, len(line) - len(line.lstrip(" ")), text


class Reader:
    def __init__(self, path):
        self.path = path
        self.lines = list(lines_of(path))
        self.at = 0

    def peek(self):
        return self.lines[self.at] if self.at < len(self.lines) else (0, -1, "")

    def block(self, indent):
        return self.list(indent) if self.peek()[2].startswith("- ") else self.map(indent)

    def list(self, indent):
        items = []
        while self.peek()[1] == indent and self.peek()[2].startswith("- "):
            number, _, text = self.lines[self.at]
            self.lines[self.at] = (number, indent + 2, text[2:].lstrip())
            items.append(self.map(indent + 2))
        return items

    def map(self, indent):
        found = {"line": self.peek()[0]}
        while self.peek()[1] == indent and not self.peek()[2].startswith("- "):
            number, _, text = self.lines[self.at]
            where = f"{self.path}:{number}"
            match = re.match(r"([a-z_]+):(?:\s+(.*))?$", text)
            if not match:
                raise Refusal(f"{where}: expected 'key: value', got '{text}'")
            if match[1] in found:
                raise Refusal(f"{where}: '{match[1]}' stands twice")
            self.at += 1
            if match[2]:
                found[match[1]] = scalar(match[2], where)
            elif self.peek()[1] > indent:
                found[match[1]] = self.block(self.peek()[1])
            else:
                raise Refusal(f"{where}: '{match[1]}' has no value")
        return found

    def all(self):
        found = self.map(0)
        if self.at < len(self.lines):
            raise Refusal(f"{self.path}:{self.peek()[0]}: a line that is indented like nothing before it")
        return found


def check_keys(found, required, optional, where):
    for key in required:
        if key not in found:
            raise Refusal(f"{where}: '{key}' is missing")
    for key in found:
        if key not in required + optional + ("line",):
            raise Refusal(f"{where}: unknown key '{key}'")


def read(path):
    """The mutants, in the order of the file, each with its glob of entries. Raises Refusal with file and line."""
    found = Reader(path).all()
    check_keys(found, ("mutants",), ("entries",), path)
    if not isinstance(found["mutants"], list):
        raise Refusal(f"{path}: needs a list 'mutants'")
    names = set()
    for mutant in found["mutants"]:
        where = f"{path}:{mutant['line']}"
        check_keys(mutant, REQUIRED, OPTIONAL, where)
        if mutant["name"] in names:
            raise Refusal(f"{where}: a second mutant '{mutant['name']}'")
        if mutant["class"] not in CLASSES:
            raise Refusal(f"{where}: unknown class '{mutant['class']}'; classes are {', '.join(CLASSES)}")
        names.add(mutant["name"])
        mutant.setdefault("entries", found.get("entries", "*"))
        for place in mutant["places"]:
            check_keys(place, PLACE, ("in",), f"{path}:{place['line']}")
    return found["mutants"]


# ---- functions ----


def blanked(text):
    """C++ with comments and texts blanked out, so that braces and names in them do not count."""
    pattern = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\''
    return re.sub(pattern, lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.S)


def closing(text, at):
    """The place behind the bracket that closes the one at `at`, or -1."""
    pairs = {"(": ")", "{": "}"}
    opening, depth = text[at], 0
    for match in re.compile("[" + re.escape(opening + pairs[opening]) + "]").finditer(text, at):
        depth += 1 if match[0] == opening else -1
        if depth == 0:
            return match.end()
    return -1


def spans_of_class(text, name):
    for match in re.finditer(rf"\b(?:class|struct)\s+{re.escape(name)}\b[^;{{}}()]*{{", text):
        yield match.end() - 1, closing(text, match.end() - 1)


def spans_of_function(text, name, begin, end):
    for match in re.compile(rf"\b{re.escape(name)}\s*(?:<[^;{{}}()]*>)?\s*\(").finditer(text, begin, end):
        after = closing(text, match.end() - 1)
        body = re.compile(r"\s*(?:const|noexcept)?\s*(?::(?!:)[^;{}]*)?{").match(text, max(after, 0))
        if after > 0 and body:
            yield match.start(), closing(text, body.end() - 1)


def spans_of_python(text, word, name, begin, end):
    """Definitions end where a line is indented no more than their first one."""
    for match in re.compile(rf"^( *){word} {re.escape(name)}\b", re.M).finditer(text, begin, end):
        stop = re.compile(rf"^ {{0,{len(match[1])}}}[^\s)\]]", re.M).search(text, match.end(), end)
        yield match.start(), stop.start() if stop else end


def spans(text, file, function):
    """Where the definitions of a function are."""
    owner, _, name = function.rpartition("::")
    whole = name.removeprefix("class ") if name.startswith("class ") else None
    if file.endswith(".py"):
        blocks = [(0, len(text))]
        if owner or whole:
            blocks = list(spans_of_python(text, "class", owner or whole, 0, len(text)))
        return blocks if whole else [s for b in blocks for s in spans_of_python(text, "def", name, *b)]
    text = blanked(text)
    blocks = list(spans_of_class(text, owner or whole)) if owner or whole else [(0, len(text))]
    return blocks if whole else [s for b in blocks for s in spans_of_function(text, name, *b)]


# ---- patches ----


def patched(text, place, where):
    """The text of a file after one place. Raises Refusal unless the tokens stand there exactly once."""
    found = spans(text, place["file"], place["function"])
    if not found:
        raise Refusal(f"{where}: {place['file']} has no {place['function']}")
    pattern = re.compile(r"\s+".join(re.escape(word) for word in place["find"].split()))
    hits = {m.start(): m for begin, end in found for m in pattern.finditer(text, begin, end)}
    if len(hits) != 1:
        times = "does not stand" if not hits else f"stands {len(hits)} times"
        raise Refusal(f"{where}: '{place['find']}' {times} in {place['function']} of {place['file']}, expected once")
    hit = next(iter(hits.values()))
    return text[: hit.start()] + place["replace"] + text[hit.end() :]


def version_of(package):
    """The version that the package states. Raises Refusal if there is no package."""
    path = os.path.join(package, "humming", "_version.py")
    try:
        with open(path, encoding="utf-8") as file:
            found = re.search(r"^__version__\b[^'\"\n]*['\"]([^'\"]+)", file.read(), re.M)
    except OSError as error:
        raise Refusal(f"{package} holds no package 'humming': {error}") from None
    if not found:
        raise Refusal(f"{path} states no version")
    return found[1]


def places_for(mutant, version):
    return [p for p in mutant["places"] if fnmatch.fnmatch(version, p.get("in", "*"))]


def changes(package, mutant, version):
    """{path below the package: new text}; empty if the mutant is none of this version."""
    made = {}
    for place in places_for(mutant, version):
        path = os.path.join("humming", place["file"])
        where = f"mutant '{mutant['name']}', humming {version}"
        if path not in made:
            try:
                with open(os.path.join(package, path), encoding="utf-8") as file:
                    made[path] = file.read()
            except OSError:
                raise Refusal(f"{where}: there is no {path}") from None
        made[path] = patched(made[path], place, where)
    return made


def link_or_copy(source, target):
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def write_copy(package, made, target):
    """A copy of the package with the changed files; the others are hard links where that is possible.

    Headers are found beside the module that is imported, and a kernel's cache key holds their paths and times: a copy
    compiles everything anew. Compiled modules are not copied, since they would hide a changed one."""
    shutil.copytree(package, target, copy_function=link_or_copy, symlinks=True,
                    ignore=shutil.ignore_patterns("__pycache__", ".git"))
    for path, text in made.items():
        new = os.path.join(target, path + ".new")
        with open(new, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(new, os.path.join(target, path))
