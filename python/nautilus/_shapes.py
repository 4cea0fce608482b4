# SPDX-License-Identifier: Apache-2.0
"""Extents of tensors as expressions of sizes, in Python.

The library computes shapes of outputs from numbers. Under torch.compile with dynamic shapes sizes are symbols, and a
symbol that is asked for its number is one no longer. So the few integer expressions of a program are evaluated here,
by `+ - * //`, which symbols have as well.
"""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import Any, Callable, Mapping, Optional, Sequence

_ALLOWED = (
    ast.Expression,
    ast.BinOp,
    ast.UnaryOp,
    ast.USub,
    ast.Add,
    ast.Sub,
    ast.Mult,
    ast.FloorDiv,
    ast.Mod,
    ast.Name,
    ast.Load,
    ast.Constant,
    ast.Call,
)


class _Floor(ast.NodeTransformer):
    """`/` between integers is floor division in the language."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Div):
            node.op = ast.FloorDiv()
        return node


@lru_cache(maxsize=4096)
def expression(text: str) -> Callable[[Mapping[str, Any]], Any]:
    """The function of sizes that the text `4*Hk + 1` is."""
    tree = ast.fix_missing_locations(_Floor().visit(ast.parse(text.strip(), mode="eval")))
    for node in ast.walk(tree):
        if not isinstance(node, _ALLOWED):
            raise ValueError(f"`{text}` is not an expression of sizes")
    code = compile(tree, "<extent>", "eval")
    functions = {"__builtins__": {}, "min": min, "max": max}
    return lambda sizes: eval(code, functions, dict(sizes))


@lru_cache(maxsize=4096)
def names_in(text: str) -> frozenset[str]:
    return frozenset(n.id for n in ast.walk(ast.parse(text.strip(), mode="eval")) if isinstance(n, ast.Name))


def solve(text: str, name: str, extent: Any, sizes: Mapping[str, Any]) -> Optional[Any]:
    """The value of `name` for which the expression is `extent`, if it is linear in it."""
    if text.strip() == name:
        return extent
    function = expression(text)
    at0, at1, at2 = (function({**sizes, name: value}) for value in (0, 1, 2))
    slope = at1 - at0
    if at2 - at1 != slope or slope == 0:
        return None
    return (extent - at0) // slope


def bind(
    sizes: dict[str, Any],
    wanted: Sequence[str],
    dims: Sequence[Sequence[str]],
    shapes: Sequence[Sequence[Any]],
) -> dict[str, Any]:
    """Adds to `sizes` what the shapes say of the sizes that are wanted; extents with one unknown at a time."""
    found = dict(sizes)
    open_names = [name for name in wanted if name not in found]
    progress = True
    while open_names and progress:
        progress = False
        for tensor, shape in zip(dims, shapes):
            for text, extent in zip(tensor, shape):
                unknown = [name for name in names_in(text) if name not in found]
                if len(unknown) != 1:
                    continue
                value = solve(text, unknown[0], extent, found)
                if value is not None:
                    found[unknown[0]] = value
                    progress = True
        open_names = [name for name in open_names if name not in found]
    return found
