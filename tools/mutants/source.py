"""A module's text with its syntax tree: where a node stands, and what it stands in. Pure."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from pathlib import Path

from tools.mutants.patch import Edit, MutantError

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class Source:
    """One module: its text, its tree, and the way up from every node."""

    path: str
    text: str
    tree: ast.Module = field(init=False)
    _parents: dict[ast.AST, ast.AST] = field(init=False)
    _lines: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.tree = ast.parse(self.text)
        nodes = ast.walk(self.tree)
        self._parents = {child: node for node in nodes for child in ast.iter_child_nodes(node)}
        self._lines = [0]
        for line in self.text.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))

    @property
    def stem(self) -> str:
        """The module's name."""
        return Path(self.path).stem

    def parent(self, node: ast.AST) -> ast.AST:
        """Return the node that holds this one."""
        return self._parents[node]

    def function(self, node: ast.AST) -> Function | None:
        """Return the function that the node stands in; None on the module's level."""
        while node in self._parents:
            node = self._parents[node]
            if isinstance(node, Function):
                return node
        return None

    def constant(self, name: str) -> ast.expr | None:
        """Return what the module's constant is made of; None if it has none of the name."""
        for node in self.tree.body:
            if isinstance(node, ast.AnnAssign) and name_of(node.target) == name:
                return node.value
        return None

    def edit(self, node: ast.expr | ast.stmt, new: str, *, until: ast.expr | None = None) -> Edit:
        """Return the edit that puts other text for the node, or for all up to the end of one."""
        last = until or node
        end_line, end_column = last.end_lineno or 0, last.end_col_offset or 0
        start = self._place(node.lineno, node.col_offset)
        return Edit(start, self._place(end_line, end_column), new)

    def unwalked(self, node: ast.expr, what: str) -> MutantError:
        """Return the error for a guard of an unknown form."""
        return MutantError(f"{self.path}:{node.lineno}: {what}; teach tools/mutants/walk.py")

    def _place(self, line: int, column: int) -> int:
        start = self._lines[line - 1]
        as_bytes = self.text[start:].partition("\n")[0].encode()
        return start + len(as_bytes[:column].decode())


def name_of(node: ast.expr) -> str:
    """Return the last part of a name; empty for what is none."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
