# SPDX-License-Identifier: Apache-2.0
"""What notebooks show: texts that keep their lines, and operators as tables."""

from __future__ import annotations

import html
import re
from typing import Any, Iterable, Sequence

_STYLE = "white-space:pre;font-family:monospace;font-size:90%;line-height:1.3;overflow-x:auto;text-align:left"
_WORDS = re.compile(
    r"(?P<comment>#[^\n]*)|(?P<word>\b(?:dims|static|hint|fact|numerics|fn|let|in|and|or|not|inf|from|acc|sum|prod|max|"
    r"min|any|all|argmax|argmin|mean|where|f64|f32|tf32|f16|bf16|f8e4m3|f8e5m2|i64|i32|i8|u8|bool)\b)"
)


class Text(str):
    """A text that a notebook shows line by line; everywhere else it is a str."""

    def _repr_html_(self) -> str:
        return f'<div style="{_STYLE}">{html.escape(self)}</div>'

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))


def program_html(text: str) -> str:
    """A program with its keywords and comments marked."""

    def mark(match: "re.Match[str]") -> str:
        colour = "#6a737d" if match.lastgroup == "comment" else "#1f5fa8"
        return f'<span style="color:{colour}">{match.group()}</span>'

    return f'<div style="{_STYLE}">{_WORDS.sub(mark, html.escape(text.strip(), quote=False))}</div>'


def table_html(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    cells = "".join(f'<th style="text-align:left">{html.escape(h)}</th>' for h in head)
    body = "".join(
        "<tr>" + "".join(f'<td style="text-align:left">{html.escape(str(c))}</td>' for c in row) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"


def details_html(title: str, body: str) -> str:
    return f"<details><summary>{html.escape(title)}</summary>{body}</details>"


class Table(list):  # type: ignore[type-arg]
    """A list of dataclasses that notebooks show as a table."""

    def __init__(self, head: Sequence[str], rows: Iterable[Any]) -> None:
        super().__init__(rows)
        self._head = tuple(head)

    def _repr_html_(self) -> str:
        return table_html(self._head, ([getattr(row, name) for name in self._head] for row in self))
