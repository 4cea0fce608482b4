# SPDX-License-Identifier: Apache-2.0
"""Programs written as Python expressions. They build the text of the language, nothing else: what is printed is what
is compiled, and errors show the printed line and the Python line that it came from."""

from __future__ import annotations

import re
import sys
from typing import Any, Optional, Sequence, Union

from ._display import program_html
from ._errors import ArgumentError, ProgramError
from ._operator import Operator, compile

Operand = Union["Expression", int, float, bool]

# Levels of the grammar (docs/language.md, section 1); a reduction takes the product that follows it, so it stands in
# parentheses wherever a product could go on.
_OR, _AND, _NOT, _COMPARISON, _SUM, _REDUCTION, _PRODUCT, _UNARY, _PRIMARY = range(9)


def _operand(value: Any) -> "Expression":
    if isinstance(value, Expression):
        return value
    if isinstance(value, bool):
        return Expression("true" if value else "false", _PRIMARY)
    if isinstance(value, (int, float)):
        if value != value:
            raise ArgumentError("the language has no NaN as a number")
        if value in (float("inf"), float("-inf")):
            return Expression("inf", _PRIMARY) if value > 0 else Expression("-inf", _UNARY)
        return Expression(repr(value), _PRIMARY if value >= 0 else _UNARY)
    raise TypeError(f"{value!r} is not an expression or a number")


class Expression:
    """A piece of text with its level in the grammar."""

    __slots__ = ("_text", "_level")
    __hash__ = None  # type: ignore[assignment]
    __array_ufunc__ = None  # NumPy leaves operators to us

    def __init__(self, text: str, level: int = _PRIMARY) -> None:
        self._text = text
        self._level = level

    def _at(self, level: int) -> str:
        return self._text if self._level >= level else f"({self._text})"

    def _binary(self, other: Any, sign: str, level: int, swapped: bool = False) -> "Expression":
        try:
            left, right = self, _operand(other)
        except TypeError:
            return NotImplemented  # type: ignore[no-any-return]
        if swapped:
            left, right = right, left
        return Expression(f"{left._at(level)} {sign} {right._at(level + 1)}", level)

    def __add__(self, other: Operand) -> "Expression":
        return self._binary(other, "+", _SUM)

    def __radd__(self, other: Operand) -> "Expression":
        return self._binary(other, "+", _SUM, True)

    def __sub__(self, other: Operand) -> "Expression":
        return self._binary(other, "-", _SUM)

    def __rsub__(self, other: Operand) -> "Expression":
        return self._binary(other, "-", _SUM, True)

    def __mul__(self, other: Operand) -> "Expression":
        return self._binary(other, "*", _PRODUCT)

    def __rmul__(self, other: Operand) -> "Expression":
        return self._binary(other, "*", _PRODUCT, True)

    def __truediv__(self, other: Operand) -> "Expression":
        return self._binary(other, "/", _PRODUCT)

    def __rtruediv__(self, other: Operand) -> "Expression":
        return self._binary(other, "/", _PRODUCT, True)

    # Between integers `/` of the language is floor division.
    __floordiv__ = __truediv__
    __rfloordiv__ = __rtruediv__

    def __mod__(self, other: Operand) -> "Expression":
        return self._binary(other, "%", _PRODUCT)

    def __rmod__(self, other: Operand) -> "Expression":
        return self._binary(other, "%", _PRODUCT, True)

    def __pow__(self, other: Operand) -> "Expression":
        return call("pow", self, other)

    def __neg__(self) -> "Expression":
        return Expression(f"-{self._at(_UNARY)}", _UNARY)

    def __abs__(self) -> "Expression":
        return call("abs", self)

    def _compare(self, other: Any, sign: str) -> "Expression":
        right = _operand(other)
        return Expression(f"{self._at(_SUM)} {sign} {right._at(_SUM)}", _COMPARISON)

    def __lt__(self, other: Operand) -> "Expression":
        return self._compare(other, "<")

    def __le__(self, other: Operand) -> "Expression":
        return self._compare(other, "<=")

    def __gt__(self, other: Operand) -> "Expression":
        return self._compare(other, ">")

    def __ge__(self, other: Operand) -> "Expression":
        return self._compare(other, ">=")

    def __eq__(self, other: object) -> "Expression":  # type: ignore[override]
        return self._compare(other, "==")

    def __ne__(self, other: object) -> "Expression":  # type: ignore[override]
        return self._compare(other, "!=")

    def __and__(self, other: Operand) -> "Expression":
        return self._binary(other, "and", _AND)

    def __rand__(self, other: Operand) -> "Expression":
        return self._binary(other, "and", _AND, True)

    def __or__(self, other: Operand) -> "Expression":
        return self._binary(other, "or", _OR)

    def __ror__(self, other: Operand) -> "Expression":
        return self._binary(other, "or", _OR, True)

    def __invert__(self) -> "Expression":
        return Expression(f"not {self._at(_NOT)}", _NOT)

    def __bool__(self) -> bool:
        raise TypeError(f"`{self._text}` has no truth value while the program is written: use & | ~ and "
                        f"nautilus.where(condition, a, b) in place of and, or, not, if and chained comparisons")

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<nautilus expression {self._text}>"

    def _repr_html_(self) -> str:
        return program_html(self._text)


class Axis(Expression):
    """An index: `b, h, i, j = program.axes("b h i j")`. `j(N)` gives its extent where no tensor does."""

    __slots__ = ("_extent",)

    def __init__(self, text: str, extent: Optional[Expression] = None) -> None:
        super().__init__(text)
        self._extent = extent

    def __call__(self, extent: Operand) -> "Axis":
        return Axis(self._text, _operand(extent))

    @property
    def _bound(self) -> str:
        return self._text if self._extent is None else f"{self._text} < {self._extent._at(_SUM)}"


class Tensor:
    """A tensor of a program: `Q[b, h, i, d]` is an element, `S[b, h, i, j] = ...` an equation."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, program: "Program", name: str, rank: Optional[int], dtype: Optional[str] = None) -> None:
        self._program = program
        self._name = name
        self._rank = rank
        self._dtype = dtype  # of an output that is not declared

    @staticmethod
    def _indices(key: Any) -> tuple[Any, ...]:
        return key if isinstance(key, tuple) else (key,)

    def __getitem__(self, key: Any) -> Expression:
        indices = self._indices(key)
        for index in indices:
            if isinstance(index, slice):
                raise TypeError(f"`{self._name}` is indexed by axes: an equation names every index, there are no slices")
        if self._rank is not None and len(indices) != self._rank:
            raise ArgumentError(f"`{self._name}` has {self._rank} dimensions, {len(indices)} indices were given")
        return Expression(f"{self._name}[{', '.join(_operand(index)._text for index in indices)}]")

    def __setitem__(self, key: Any, value: Any) -> None:
        axes = self._indices(key)
        for axis in axes:
            if not isinstance(axis, Axis):
                raise TypeError(f"the indices of `{self._name}` in its own equation are axes, not {axis!r}")
        self._program._equation(self, [axis._bound for axis in axes if isinstance(axis, Axis)], _operand(value))
        self._rank = len(axes)

    def __iter__(self) -> Any:
        raise TypeError(f"`{self._name}` is a tensor of a program and has no elements to iterate over")

    def __repr__(self) -> str:
        return f"<nautilus tensor {self._name}>"


def name(text: str) -> Axis:
    """An expression that is a name."""
    return Axis(text)


def call(function: str, *arguments: Operand, axes: Sequence[Axis] = ()) -> Expression:
    """A call of any function of the language: `call("softcap", x, 30)`."""
    brackets = f"[{', '.join(axis._bound for axis in axes)}]" if axes else ""
    return Expression(f"{function}{brackets}({', '.join(_operand(a)._text for a in arguments)})")


_NAMES = re.compile(r"[\s,]+")
_PLACE = re.compile(r"(?m)^.*?program:(\d+):\d+")


class Program:
    """A program under construction; `str` gives its text, `compile` its operator."""

    def __init__(self) -> None:
        self._lines: list[tuple[str, Optional[str]]] = []  # the text, the Python line

    # ---- Declarations ----

    def _add(self, line: str) -> None:
        frame: Any = sys._getframe(1)
        while frame is not None and frame.f_globals.get("__name__") == __name__:
            frame = frame.f_back
        place = f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else None
        self._lines.append((line, place))

    @staticmethod
    def _split(names: str) -> list[str]:
        return [text for text in _NAMES.split(names.strip()) if text]

    def dims(self, names: str, **hints: int) -> Any:
        """Symbolic sizes, `B, N = program.dims("B, N", B=1, N=4096)`; numbers are hints."""
        found = self._split(names)
        self._add(f"dims {', '.join(found)}")
        if hints:
            self._add("hint " + ", ".join(f"{key} = {value}" for key, value in hints.items()))
        return _one_or_all([Expression(text) for text in found])

    def static(self, **sizes: int) -> Any:
        """Sizes that are fixed when compiling: `D = program.static(D=64)`; `compile(D=128)` changes them."""
        self._add("static " + ", ".join(f"{key} = {value}" for key, value in sizes.items()))
        return _one_or_all([Expression(text) for text in sizes])

    def axes(self, names: str) -> Any:
        return _one_or_all([Axis(text) for text in self._split(names)])

    def input(self, names: str, dtype: str, *extents: Operand) -> Any:
        """`Q = program.input("Q", "bf16", B, H, M, D)`; several names share a type."""
        found = self._split(names)
        self._add(f"{', '.join(found)}: {dtype}[{', '.join(_operand(x)._text for x in extents)}]")
        return _one_or_all([Tensor(self, text, len(extents)) for text in found])

    def scalar(self, text: str, default: Optional[Operand] = None, dtype: str = "f32") -> Expression:
        """A number of each call, with a default or without."""
        if default is None:
            self._add(f"{text}: {dtype}")
        elif dtype == "f32":
            self._add(f"{text} = {_operand(default)._text}")
        else:
            self._add(f"{text}: {dtype} = {_operand(default)._text}")
        return Expression(text)

    def fact(self, *facts: Expression) -> None:
        self._add("fact " + ", ".join(_operand(f)._text for f in facts))

    def local(self, names: str) -> Any:
        """Tensors that only the program's own equations read."""
        return _one_or_all([Tensor(self, text, None) for text in self._split(names)])

    def output(self, names: str, dtype: str) -> Any:
        return _one_or_all([Tensor(self, text, None, dtype) for text in self._split(names)])

    def line(self, text: str) -> None:
        """A line of the language as it is: `fn`, `numerics`, or anything else."""
        for part in text.strip("\n").split("\n"):
            self._add(part)

    def _equation(self, tensor: Tensor, axes: Sequence[str], body: Expression) -> None:
        arrow = f"  -> {tensor._dtype}" if tensor._dtype else ""
        self._add(f"{tensor._name}[{', '.join(axes)}] = {body._text}{arrow}")

    # ---- The text and what becomes of it ----

    @property
    def text(self) -> str:
        return "".join(line + "\n" for line, _ in self._lines)

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return program_html(self.text)

    def compile(self, *, schedule: Optional[str] = None, target: Optional[str] = None, tuned: bool = True,
                **sizes: int) -> Operator:
        try:
            return compile(self.text, schedule=schedule, target=target, tuned=tuned, name="program", **sizes)
        except ProgramError as error:
            raise ProgramError(str(error) + self._places(str(error))) from None

    def _places(self, message: str) -> str:
        """The Python lines of the lines that a message names."""
        found = []
        for number in dict.fromkeys(int(match) for match in _PLACE.findall(message)):
            if 1 <= number <= len(self._lines) and self._lines[number - 1][1]:
                found.append(f"\nline {number} of the program was written at {self._lines[number - 1][1]}")
        return "".join(found)


def _one_or_all(found: list[Any]) -> Any:
    if not found:
        raise ArgumentError("no name was given")
    return found[0] if len(found) == 1 else tuple(found)
