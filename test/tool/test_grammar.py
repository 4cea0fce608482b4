# SPDX-License-Identifier: Apache-2.0
"""The grammar for editors knows the words of the language: those that the front end itself reads.

usage: test_grammar.py NAUTILUS
"""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
EDITORS = ROOT / "editors"

# Rules of the grammar, and the parts of speech of `nautilus print --words --json` that they hold.
RULES = {
    "keywords": ["declarations", "control", "operators-words", "constants"],
    "reducers": ["reducers"],
    "dtypes": ["dtypes"],
    "functions": ["builtins"],
    "library": ["library"],
}


def rule_words(grammar, rule):
    """The words of `\\b(a|b)\\b`."""
    return re.match(r"\\b\(([^)]*)\)", grammar["repository"][rule]["match"]).group(1).split("|")


def check_words(grammar, words):
    """A line for each word that only one side has."""
    faults = []
    for part, rules in RULES.items():
        known = {w for rule in rules for w in rule_words(grammar, rule)}
        faults += [f"{w}: of the language ({part}), not of the grammar" for w in sorted(set(words[part]) - known)]
        faults += [f"{w}: of the grammar ({part}), not of the language" for w in sorted(known - set(words[part]))]
    return faults


def scopes(grammar, line):
    """What the rules say about a line, from left to right; the first rule of the earliest match wins, as in an editor."""
    out = []
    at = 0
    order = [p["include"][1:] for p in grammar["patterns"]]
    while at < len(line):
        found = []
        for k, rule in enumerate(order):
            match = re.compile(grammar["repository"][rule]["match"]).search(line, at)
            if match and match.end() > match.start():
                found.append((match.start(), k, rule, match))
        if not found:
            break
        start, _, rule, match = min(found, key=lambda f: f[:2])
        out.append((match.group(0), rule))
        at = match.end()
    return out


def check_scopes(grammar):
    line = "O[i,e] = max[j] relu(X[i,j]) - max(f32(y), 1e-6) -> bf16  # sum of dims"
    wanted = [("=", "operators"), ("max", "reducers"), ("relu", "library"), ("-", "operators"), ("max", "builtins"),
              ("f32", "dtypes"), ("1e-6", "numbers"), ("->", "operators"), ("bf16", "dtypes"),
              ("# sum of dims", "comments")]
    got = scopes(grammar, line)
    return [] if got == wanted else [f"{line}\n  wanted {wanted}\n  got    {got}"]


def check_extension(grammar):
    """What package.json names is there, and is the same language."""
    package = json.loads((EDITORS / "package.json").read_text())
    entry = package["contributes"]["grammars"][0]
    language = package["contributes"]["languages"][0]
    faults = []
    if entry["scopeName"] != grammar["scopeName"]:
        faults.append("package.json and the grammar have different scope names")
    if entry["language"] != language["id"]:
        faults.append("the grammar of package.json is for another language")
    for path in (entry["path"], language["configuration"]):
        if not (EDITORS / path).is_file():
            faults.append(f"package.json names {path}, which is not there")
    return faults


def main():
    grammar = json.loads((EDITORS / "nautilus.tmLanguage.json").read_text())
    printed = subprocess.run([sys.argv[1], "print", "--words", "--json"], capture_output=True, text=True, check=True)
    faults = check_words(grammar, json.loads(printed.stdout)) + check_scopes(grammar) + check_extension(grammar)
    print("\n".join(faults) if faults else "grammar: ok")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
