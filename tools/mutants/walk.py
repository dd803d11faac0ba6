"""The guards that the syntax tree shows, each with its mutant: a new one has one by itself.

Walked are every term of every write's condition, wherever it is made, and every relation between
settings. A condition of a form that cannot be taken apart is an error, so that none goes untried.

    Condition(…), equals(…), absent(…)      an element of a tuple, or appended to a list
    [absent(name) for name in TABLE.get(…)] the words of that table
    {"ConditionExpression": "a AND b"}      each term, with the placeholders that it alone uses
    {"ConditionExpression": parameter}      each term that a caller in the module passes
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from tools.mutants.patch import Edit, Mutant
from tools.mutants.source import Function, Source, name_of

PACKAGE: Final = "relayhub"
_MAKERS: Final = frozenset({"Condition", "equals", "absent"})
_EXPRESSION: Final = "ConditionExpression"
_NOTHING: Final = "*()"  # An element of a tuple or set that adds none.
_NO_PAIR: Final = "**{}"  # The same of a dict.
_ALWAYS: Final = '"attribute_exists(guid) OR attribute_not_exists(guid)"'
_PLACEHOLDER: Final = re.compile(r"[#:]\w+")


def walk(root: Path) -> list[Mutant]:
    """Return a mutant for every guard of the package. Raises MutantError."""
    found: list[Mutant] = []
    for path in sorted((root / PACKAGE).rglob("*.py")):
        found += walk_source(Source(path.relative_to(root).as_posix(), path.read_text()))
    return found


def walk_source(source: Source) -> list[Mutant]:
    """Return a mutant for every guard of one module, each under a name of its own."""
    counts: Counter[str] = Counter()
    found = []
    for each in (*_conditions(source), *_expressions(source), *_relations(source)):
        counts[each.name] += 1
        number = counts[each.name]
        found.append(each if number == 1 else replace(each, name=f"{each.name}-{number}"))
    return found


def _mutant(source: Source, place: str, guard: str, *edits: Edit) -> Mutant:
    why = f"a write goes through without its term on {guard}"
    return Mutant(f"{source.stem}.{place}.{guard}", source.path, why, edits)


# --- Conditions that are made by call ---


def _conditions(source: Source) -> Iterator[Mutant]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and name_of(node.func) in _MAKERS:
            function = source.function(node)
            if function is not None and function.name in _MAKERS:
                continue  # One maker made of another.
            yield from _of_call(source, node, function.name if function else "")


def _of_call(source: Source, call: ast.Call, place: str) -> Iterator[Mutant]:
    parent = source.parent(call)
    if isinstance(parent, ast.Tuple | ast.List | ast.Set):
        yield _mutant(source, place, _about(source, call), source.edit(call, _NOTHING))
    elif isinstance(parent, ast.Call) and _is_append(source, parent):
        yield _mutant(source, place, _about(source, call), source.edit(parent, "pass"))
    elif isinstance(parent, ast.ListComp) and len(parent.generators) == 1:
        yield from _of_table(source, parent.generators[0].iter)
    else:
        raise source.unwalked(call, "a condition that stands in no tuple and is not appended")


def _is_append(source: Source, call: ast.Call) -> bool:
    is_append = isinstance(call.func, ast.Attribute) and call.func.attr == "append"
    return is_append and isinstance(source.parent(call), ast.Expr)


def _about(source: Source, call: ast.Call) -> str:
    first = call.args[0] if call.args else None
    if isinstance(first, ast.Constant) and isinstance(first.value, str):
        return first.value
    raise source.unwalked(call, "a condition on an attribute that is not named there")


def _of_table(source: Source, asked: ast.expr) -> Iterator[Mutant]:
    """Take the words out of the table that `TABLE.get(…)` asks."""
    func = asked.func if isinstance(asked, ast.Call) else None
    table = name_of(func.value) if isinstance(func, ast.Attribute) and func.attr == "get" else ""
    pairs = source.constant(table)
    if not isinstance(pairs, ast.Dict):
        raise source.unwalked(asked, "conditions made of a table that is not in the module")
    yield from _words(source, table, pairs)


def _words(source: Source, table: str, pairs: ast.Dict) -> Iterator[Mutant]:
    for key, words in zip(pairs.keys, pairs.values, strict=True):
        if key is None or not isinstance(words, ast.Tuple):
            raise source.unwalked(words, f"an entry of {table} that is no tuple of words")
        event = ast.unparse(key).rpartition(".")[2].lower()
        for word in words.elts:
            if not isinstance(word, ast.Constant):
                raise source.unwalked(word, f"an entry of {table} that is no word")
            name = f"{event}.{word.value!s}"
            yield _mutant(source, table, name, source.edit(word, _NOTHING))


# --- Conditions that are written out ---


def _expressions(source: Source) -> Iterator[Mutant]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.keyword) and node.arg == _EXPRESSION:
            raise source.unwalked(node.value, "a condition passed by keyword")
        if not isinstance(node, ast.Dict):
            continue
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == _EXPRESSION:
                yield from _of_pair(source, node, key, value)


def _of_pair(source: Source, request: ast.Dict, key: ast.expr, value: ast.expr) -> Iterator[Mutant]:
    function = source.function(request)
    place = function.name if function else ""
    if _is_joined(value):
        return  # Of conditions that are made by call, and walked there.
    if isinstance(value, ast.Constant):
        without = source.edit(key, _NO_PAIR, until=value)
        yield from _of_terms(source, place, value, request, without)
    elif isinstance(value, ast.Name) and function is not None:
        yield from _of_callers(source, function, value)
    else:
        raise source.unwalked(value, "a condition that is neither written out nor passed in")


def _is_joined(value: ast.expr) -> bool:
    func = value.func if isinstance(value, ast.Call) else None
    return isinstance(func, ast.Attribute) and func.attr == "join"


def _of_callers(source: Source, function: Function, name: ast.Name) -> Iterator[Mutant]:
    """Walk what the module's own calls of the function pass for the parameter."""
    parameters = [each.arg for each in function.args.args if each.arg != "self"]
    if name.id not in parameters:
        raise source.unwalked(name, "a condition that is no parameter")
    place = parameters.index(name.id)
    for call in ast.walk(source.tree):
        if isinstance(call, ast.Call) and name_of(call.func) == function.name:
            passed = call.args[place] if place < len(call.args) else name
            if not isinstance(passed, ast.Constant):
                raise source.unwalked(passed, "a condition that its caller does not write out")
            caller = source.function(call)
            without = source.edit(passed, _ALWAYS)
            yield from _of_terms(source, caller.name if caller else "", passed, call, without)


def _of_terms(
    source: Source, place: str, text: ast.Constant, around: ast.Dict | ast.Call, without: Edit
) -> Iterator[Mutant]:
    """Take each term out, and the placeholders that nothing else of the request uses.

    DynamoDB refuses a request with a placeholder that is not used.
    """
    terms = str(text.value).split(" AND ")
    for number, term in enumerate(terms):
        rest = " AND ".join(terms[:number] + terms[number + 1 :])
        edit = source.edit(text, f'"{rest}"') if rest else without
        others = _texts(around, text)
        unused = set(_PLACEHOLDER.findall(term)) - set(_PLACEHOLDER.findall(f"{rest} {others}"))
        pruned = tuple(_pruned(source, around, unused))
        if len(pruned) != len(unused):
            raise source.unwalked(text, f"placeholders {sorted(unused)} that are not there")
        yield _mutant(source, place, _attribute(term), edit, *pruned)


def _attribute(term: str) -> str:
    """Return the attribute that a term is about."""
    words = re.findall(r"\w+", re.sub(r"attribute_\w+|:\w+", "", term))
    return words[0] if words else term


def _texts(around: ast.AST, but: ast.Constant) -> str:
    """Return what the request's other texts say, keys left out."""
    keys = {key for node in ast.walk(around) if isinstance(node, ast.Dict) for key in node.keys}
    return " ".join(
        node.value
        for node in ast.walk(around)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node is not but
        and node not in keys
    )


def _pruned(source: Source, around: ast.AST, unused: set[str]) -> Iterator[Edit]:
    for node in ast.walk(around):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value in unused:
                    yield source.edit(key, _NO_PAIR, until=value)


# --- Relations between settings ---


def _relations(source: Source) -> Iterator[Mutant]:
    relations = source.constant("RELATIONS")
    if isinstance(relations, ast.Tuple):
        for each in relations.elts:
            yield from _of_relation(source, each)


def _of_relation(source: Source, each: ast.expr) -> Iterator[Mutant]:
    """Take out a relation, or one of the names that a relation is made for."""
    if isinstance(each, ast.Call) and isinstance(each.args[0], ast.Tuple):
        about = ast.literal_eval(each.args[0].elts[0])
        yield _relation(source, about, source.edit(each, _NOTHING))
        return
    made = each.value if isinstance(each, ast.Starred) else None
    if not isinstance(made, ast.GeneratorExp) or not isinstance(made.generators[0].iter, ast.Tuple):
        raise source.unwalked(each, "a relation that is neither a call nor made of a tuple")
    for word in made.generators[0].iter.elts:
        yield _relation(source, ast.literal_eval(word), source.edit(word, _NOTHING))


def _relation(source: Source, about: str, edit: Edit) -> Mutant:
    why = f"a function starts with a {about} that does not fit the other settings"
    return Mutant(f"{source.stem}.RELATIONS.{about}", source.path, why, (edit,))
