# SPDX-License-Identifier: Apache-2.0
"""Reductions and functions in Python expressions: pieces of text, as in _expressions.py."""

from __future__ import annotations

from typing import Any, Callable, Optional, Sequence, Union

from ._expressions import _PRODUCT, _REDUCTION, _SUM, Axis, Expression, Operand, _operand, call


class Reducer:
    """`nautilus.sum(j, body)`; several axes as a tuple; `acc` the dtype of the accumulator, `start` an initial element,
    `rank` how many elements come before the one that is chosen: `nautilus.max(j, body, rank=r)`."""

    def __init__(self, text: str) -> None:
        self._name = text
        self.__name__ = text
        self.__doc__ = f"The reduction `{text}[axes] body` of the language."

    def __call__(self, axes: Union[Axis, Sequence[Axis]], body: Operand, *, acc: Optional[str] = None,
                 start: Optional[Operand] = None, rank: Optional[Operand] = None) -> Expression:
        listed = list(axes) if isinstance(axes, (tuple, list)) else [axes]
        for axis in listed:
            if not isinstance(axis, Axis):
                raise TypeError(f"`{self._name}` reduces over axes, not over {axis!r}: {self._name}(j, body)")
        inside = ", ".join(axis._bound for axis in listed if isinstance(axis, Axis))
        if acc is not None:
            inside += f" acc {acc}"
        if start is not None:
            inside += f" from {_operand(start)._text}"
        if rank is not None:
            inside += f" rank {_operand(rank)._at(_SUM)}"
        return Expression(f"{self._name}[{inside}] {_operand(body)._at(_PRODUCT)}", _REDUCTION)

    def __repr__(self) -> str:
        return f"<nautilus reduction {self._name}>"


class _Over:
    """`lib.softmax[j]`: a function with its axes."""

    def __init__(self, function: str, axes: Sequence[Axis]) -> None:
        self._function = function
        self._axes = axes

    def __call__(self, *arguments: Operand) -> Expression:
        return call(self._function, *arguments, axes=self._axes)


class Function:
    """`exp(x)`, `lib.softcap(x, 30)`, and along axes `softmax(j, x)` or `lib.softmax[j](x)`."""

    def __init__(self, text: str) -> None:
        self._name = text
        self.__name__ = text
        self.__doc__ = f"The function `{text}` of the language."

    def __call__(self, *arguments: Operand) -> Expression:
        return call(self._name, *arguments)

    def __getitem__(self, axes: Any) -> _Over:
        return _Over(self._name, axes if isinstance(axes, tuple) else (axes,))

    def __repr__(self) -> str:
        return f"<nautilus function {self._name}>"


class _Library:
    """Every function of the language by its name: `lib.gelu(x)`, `lib.rmsnorm[k](x, gamma, eps)`."""

    def __getattr__(self, function: str) -> Function:
        if function.startswith("_"):
            raise AttributeError(function)
        return Function(function)


lib = _Library()


def along(function: str) -> Callable[..., Expression]:
    def apply(axes: Union[Axis, Sequence[Axis]], *arguments: Operand) -> Expression:
        listed = list(axes) if isinstance(axes, (tuple, list)) else [axes]
        return call(function, *arguments, axes=[axis for axis in listed if isinstance(axis, Axis)])

    apply.__name__ = function
    apply.__doc__ = f"`{function}[axes](...)` of the library: {function}(j, x)."
    return apply
