# SPDX-License-Identifier: Apache-2.0
"""Attention with scores and masks as formulas: the text of the program, and a cache of what was compiled."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass
from typing import Any, Callable, Mapping, Optional, Sequence, Union, cast

from . import _dtypes
from ._errors import ArgumentError, ProgramError
from ._operator import Operator, compile
from ._program import Number

Formula = Union[str, Callable[..., Any]]

# Names that have a meaning in formulas or in the text around them.
RESERVED = frozenset("Q K V S T P O LSE B H Hk G M N D E b h hk i j d e s scale sink".split())
_AXES = {"b": "B", "h": "H", "hk": "Hk", "i": "M", "j": "N"}
_NAME = re.compile(r"[A-Za-z_]\w*")
_INDEXED = re.compile(r"([A-Za-z_]\w*)\s*\[")
# Queries up to this number share a schedule; one alone is a program without their axis.
_FEW_QUERIES = 64


@dataclass(frozen=True)
class _Extra:
    """A tensor of the formulas: its extents as text."""

    name: str
    dtype: str
    dims: tuple[str, ...]


def _index_lists(text: str, name: str) -> list[list[str]]:
    """The index lists of all uses of a tensor, `x[b, i + 1]` -> ["b", "i + 1"]."""
    found = []
    for match in _INDEXED.finditer(text):
        if match.group(1) != name:
            continue
        depth, start, items = 0, match.end(), []
        for position in range(match.end(), len(text)):
            letter = text[position]
            if letter in "([":
                depth += 1
            elif letter == ")" or (letter == "]" and depth > 0):
                depth -= 1
            elif (letter == "," or letter == "]") and depth == 0:
                items.append(text[start:position].strip())
                start = position + 1
                if letter == "]":
                    found.append(items)
                    break
    return found


def _substitute(text: str, names: Mapping[str, str]) -> str:
    return _NAME.sub(lambda match: names.get(match.group(), match.group()), text)


def _formula(given: Formula, arguments: str) -> str:
    """A text, or a function of index objects that gives an expression."""
    if isinstance(given, str):
        return given.strip()
    from ._expressions import Expression, name

    result = given(*(name(argument) for argument in arguments.split()))
    if not isinstance(result, (Expression, int, float)):
        raise ArgumentError(f"a formula given as a function must give an expression, it gave {result!r}")
    return str(result)


def _is_tensor(value: Any) -> bool:
    return len(getattr(value, "shape", ())) > 0


def _shape(name: str, tensor: Any, rank: int, meaning: str) -> tuple[int, ...]:
    shape = getattr(tensor, "shape", None)
    if shape is None or len(shape) != rank:
        came = "no tensor" if shape is None else f"a tensor of shape {tuple(shape)}"
        raise ArgumentError(f"`{name}` must have shape [{meaning}], {came} was given")
    return tuple(int(x) for x in shape)


@dataclass(frozen=True)
class Form:
    """All that the text of an attention program depends on; the key of the cache."""

    dtypes: tuple[str, str, str]
    head: int  # D
    value_head: int  # E
    group: int  # G
    one_query: bool
    few_queries: bool
    same_lengths: bool  # N is M: a tensor is indexed by i and j at the same place
    score: str
    mask: str
    extras: tuple[_Extra, ...]
    scalars: tuple[tuple[str, str, bool], ...]  # name, dtype, positive
    scale: str
    sink: Optional[str]  # its dtype
    lse: bool
    out: str  # dtype


def text_of(form: Form, hints: Mapping[str, int]) -> str:
    """The program."""
    grouped = form.group != 1
    heads, key_head = ("Hk * G", "h/G") if grouped else ("H", "h")
    keys = "M" if form.same_lengths else "N"
    value = "D" if form.value_head == form.head else "E"
    queries = [] if form.one_query else ["M"]
    dims = ["B", "Hk" if grouped else "H", *queries, *([] if form.same_lengths else ["N"])]
    table_sizes = sorted({d for extra in form.extras for d in extra.dims if d.startswith(extra.name + "_")})
    statics = ([f"G = {form.group}"] if grouped else []) + [f"D = {form.head}"]
    if value == "E":
        statics.append(f"E = {form.value_head}")
    names = {"hk": f"({key_head})" if grouped else "h", "H": f"({heads})" if grouped else "H"}
    if not grouped:
        names["Hk"] = "H"
        names["G"] = "1"
    if form.same_lengths:
        names["N"] = "M"
    if value == "D":
        names["E"] = "D"
    row = "b,h,j" if form.one_query else "b,h,i,j"
    at = "" if form.one_query else "i,"
    if form.one_query:
        names.update({"i": "0", "M": "1"})
    names["s"] = f"S[{row}]"

    lines = [f"dims {', '.join(dims + table_sizes)}", f"static {', '.join(statics)}"]
    given = [f"{d} = {hints[d]}" for d in dims + table_sizes if d in hints]
    if given:
        lines.append(f"hint {', '.join(given)}")
    q, k, v = form.dtypes
    lines += ["", f"Q: {q}[B, {heads}, {'' if form.one_query else 'M, '}D]"]
    group = "Hk" if grouped else "H"
    if k == v and value == "D":
        lines.append(f"K, V: {k}[B, {group}, {keys}, D]")
    else:
        lines += [f"K: {k}[B, {group}, {keys}, D]", f"V: {v}[B, {group}, {keys}, {value}]"]
    for extra in form.extras:
        extents = [_substitute(d, {"H": heads, "N": keys, **({"Hk": "H"} if not grouped else {})}) for d in extra.dims]
        lines.append(f"{extra.name}: {extra.dtype}[{', '.join(extents)}]")
    if form.sink is not None:
        lines.append(f"sink: {form.sink}[{heads}]")
    lines.append("scale = 1/sqrt(D)")
    facts = {"positive": ["scale > 0"], "negative": ["scale < 0"], "zero": []}[form.scale]
    for name, dtype, positive in form.scalars:
        lines.append(f"{name}: {dtype}")
        if positive:
            facts.append(f"{name} > 0")
    facts += [f"{name} > 0" for name in table_sizes]
    if facts:
        lines.append(f"fact {', '.join(facts)}")

    score = _substitute(form.score, names) if form.score else ""
    mask = _substitute(form.mask, names) if form.mask else ""
    lines += ["", f"S[{row}] = sum[d] Q[b,h,{at}d] * K[b,{key_head},j,d] * scale"]
    last = f"S[{row}]"
    if score or mask:
        changed = score or last
        lines.append(f"T[{row}] = " + (f"where({mask}, {changed}, -inf)" if mask else changed))
        last = f"T[{row}]"
    if form.sink is not None:
        lines.append(f"P[{row}] = softmax_sink[j]({last}, sink[h])")
    else:
        lines.append(f"P[{row}] = softmax[j]({last})")
    lines.append(f"O[b,h,{at}e] = sum[j] P[{row}] * V[b,{key_head},j,e]  -> {form.out}")
    if form.lse:
        lines.append(f"LSE[{row[:-2]}] = logsumexp[j]({last})  -> f32")
    return "\n".join(lines) + "\n"


def _extras(formulas: str, tensors: Mapping[str, Any]) -> tuple[list[_Extra], bool]:
    """Declarations of the tensors of the formulas, and whether queries and keys must have one length."""
    same_lengths = False
    uses: dict[str, list[set[str]]] = {}
    for name, tensor in tensors.items():
        lists = _index_lists(formulas, name)
        if not lists:
            raise ArgumentError(f"neither the score nor the mask reads the tensor `{name}`: it is written "
                                f"{name}[...], with an index for each of its {len(tensor.shape)} dimensions")
        for items in lists:
            if len(items) != len(tensor.shape):
                raise ArgumentError(f"`{name}[{', '.join(items)}]` has {len(items)} indices, the tensor has shape "
                                    f"{tuple(tensor.shape)}")
        columns = [{_AXES[items[p]] for items in lists if items[p] in _AXES} for p in range(len(tensor.shape))]
        same_lengths = same_lengths or any({"M", "N"} <= column for column in columns)
        uses[name] = columns
    found = []
    for name, tensor in tensors.items():
        dims = []
        for position, column in enumerate(uses[name]):
            if same_lengths and "N" in column:
                column = (column - {"N"}) | {"M"}
            dims.append(sorted(column)[0] if column else f"{name}_{position}")
        found.append(_Extra(name, _dtypes.name_of(tensor.dtype), tuple(dims)))
    return found, same_lengths


def _declared_dtype(name: str, dtype: Any) -> str:
    found = _dtypes.name_of(dtype)
    if not _dtypes.known(found):
        raise ArgumentError(f"`{name}` has dtype {dtype}; the language has {' '.join(_dtypes.NAMES)}")
    return found


_operators: dict[Form, Operator] = {}
_lock = threading.Lock()


def _prepare(q: Any, k: Any, v: Any, score: Optional[Formula], mask: Optional[Formula], scale: Optional[float],
             sink: Any, return_lse: bool, dtype: Optional[str],
             named: Mapping[str, Any]) -> tuple[Operator, Form, dict[str, Number]]:
    batch, heads, queries, head = _shape("q", q, 4, "B, H, M, D")
    key_heads, keys = _shape("k", k, 4, "B, Hk, N, D")[1:3]
    value_head = _shape("v", v, 4, "B, Hk, N, E")[3]
    if key_heads == 0 or heads % key_heads:
        raise ArgumentError(f"`q` has {heads} heads, `k` has {key_heads}: the first must be a multiple of the second")
    score_text = _formula(score, "s b h i j") if score is not None else ""
    mask_text = _formula(mask, "b h i j") if mask is not None else ""
    formulas = f"{score_text} ; {mask_text}"
    tensors = {name: value for name, value in named.items() if _is_tensor(value)}
    numbers = {name: value for name, value in named.items() if not _is_tensor(value)}
    for name in named:
        if name in RESERVED or not _NAME.fullmatch(name):
            raise ArgumentError(f"`{name}` cannot be a name in formulas; taken are {' '.join(sorted(RESERVED))}")
    used = set(_NAME.findall(formulas))
    extras, same_lengths = _extras(formulas, tensors)
    scalars, values = [], {}
    for name, number in numbers.items():
        if name not in used:
            raise ArgumentError(f"neither the score nor the mask uses `{name}`")
        if hasattr(number, "item"):
            number = number.item()  # a tensor or array without dimensions
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            raise ArgumentError(f"`{name}` must be a tensor or a number, {number!r} was given")
        scalars.append((name, "i32" if isinstance(number, int) else "f32", number > 0))
        values[name] = number
    one_query = queries == 1 and not same_lengths
    if one_query:
        extras = [_Extra(x.name, x.dtype, tuple("1" if d == "M" else d for d in x.dims)) for x in extras]
    if scale is not None:
        values["scale"] = float(scale)
    sign = "positive" if scale is None or scale > 0 else "negative" if scale < 0 else "zero"
    group = heads // key_heads
    dtypes = (_declared_dtype("q", q.dtype), _declared_dtype("k", k.dtype), _declared_dtype("v", v.dtype))
    for name, tensor in tensors.items():
        _declared_dtype(name, tensor.dtype)
    form = Form(
        dtypes=dtypes, head=head, value_head=value_head, group=group, one_query=one_query,
        few_queries=queries <= _FEW_QUERIES, same_lengths=same_lengths, score=score_text, mask=mask_text,
        extras=tuple(extras), scalars=tuple(scalars), scale=sign,
        sink=_declared_dtype("sink", sink.dtype) if sink is not None else None, lse=return_lse,
        out=dtype or dtypes[0])
    operator = _operators.get(form)
    if operator is None:
        hints = {"B": batch, "H": heads, "Hk": key_heads, "M": queries, "N": keys}
        for extra in extras:
            for dim, extent in zip(extra.dims, tensors[extra.name].shape):
                hints.setdefault(dim, int(extent))
        hints.pop("1", None)
        text = text_of(form, hints)
        with _lock:
            operator = _operators.get(form)
            if operator is None:
                try:
                    operator = compile(text, name="attention")
                except ProgramError as error:
                    raise ProgramError(f"{error}\n\nThe program that score and mask gave:\n\n{text}") from None
                _operators[form] = operator
    return operator, form, values


# What earlier calls came to, by what is cheap to ask of arguments.
_known: dict[Any, tuple[Operator, Form]] = {}


def _key(q: Any, k: Any, v: Any, score: Any, mask: Any, scale: Any, sink: Any, return_lse: bool, dtype: Any,
         named: Mapping[str, Any]) -> Any:
    """Equal for calls of the same form; None if that is not cheap to say."""
    if not (score is None or type(score) is str) or not (mask is None or type(mask) is str):
        return None
    shape, k_shape, v_shape = q.shape, k.shape, v.shape
    if len(shape) != 4:
        return None
    names: list[Any] = []
    for name, value in named.items():
        kind = type(value)
        if kind is int or kind is float:
            names.append((name, kind, value > 0))
        elif _is_tensor(value):
            names.append((name, value.dtype, len(value.shape)))
        else:
            return None
    queries = shape[2]
    sign = None if scale is None else (scale > 0) - (scale < 0)
    return (score, mask, sign, None if sink is None else sink.dtype, return_lse, dtype, shape[1], shape[3], q.dtype,
            k_shape[1], k.dtype, v_shape[1], v_shape[3], v.dtype, queries == 1, queries <= _FEW_QUERIES, *names)


def _without_queries(tensor: Any) -> Any:
    """[B, H, 1, ...] as [B, H, ...], in the manner that all packages have."""
    return tensor.squeeze(2)


def _with_query(tensor: Any) -> Any:
    """[B, H, ...] as [B, H, 1, ...]; PyTorch's own function costs half of what indexing does."""
    return tensor.unsqueeze(2) if hasattr(tensor, "unsqueeze") else tensor[:, :, None]


def attention(q: Any, k: Any, v: Any, *, score: Optional[Formula] = None, mask: Optional[Formula] = None,
              scale: Optional[float] = None, sink: Any = None, return_lse: bool = False, dtype: Optional[str] = None,
              out: Any = None, on: Optional[str] = None, **named: Any) -> Any:
    """softmax(score) V along the keys that the mask lets through.

    q           [B, H, M, D]
    k, v        [B, Hk, N, D] and [B, Hk, N, E]; H is a multiple of Hk (grouped queries)
    score       a formula of s = scale * (q . k); None: s itself
    mask        a formula that is true where a query sees a key; None: everywhere
    scale       None: 1/sqrt(D)
    sink        [H], one more logit for each head, which has no value
    return_lse  also gives log(sum(exp(score))), f32[B, H, M]
    dtype       of the output, "f32"; None: that of q
    out         the tensor to write (two if return_lse)
    on          for host tensors: "oracle" (what None means), "definition" or "emulator"
    named       the tensors and numbers of the formulas, by name

    Formulas are expressions of the language (docs/language.md) over b, h, i, j (batch, head, query, key), hk (head of
    the keys), the sizes B, H, Hk, G, M, N, D, E and what is given by name: tensors as `slope[h]`, numbers as `W`. A
    Python function of (s, b, h, i, j), or of (b, h, i, j) for the mask, that gives an expression does as well. A query
    that sees no key gives zeros. Programs are compiled once for each form of the formulas, head sizes and dtypes; lengths
    and numbers may change from call to call.
    """
    try:
        key = _key(q, k, v, score, mask, scale, sink, return_lse, dtype, named)
    except (AttributeError, IndexError, TypeError):
        key = None  # `_prepare` says what is wrong
    known = _known.get(key) if key is not None else None
    if known is not None:
        operator, form = known
        values: dict[str, Number] = {name: named[name] for name, _, _ in form.scalars} if form.scalars else {}
        if scale is not None:
            values["scale"] = scale
    else:
        operator, form, values = _prepare(q, k, v, score, mask, scale, sink, return_lse, dtype, named)
        if key is not None:
            _known[key] = operator, form
    inputs = [_without_queries(q) if form.one_query else q, k, v]
    if form.extras:
        inputs += [named[extra.name] for extra in form.extras]
    if sink is not None:
        inputs.append(sink)
    outputs = _sequence(out)
    if form.one_query and outputs is not None:
        outputs = [_without_queries(t) for t in outputs]
    if on is None:
        results = operator.call(inputs, values, outputs)
    else:
        results = operator.run(*inputs, on=on, out=outputs, **cast(Any, values))
    if out is not None:
        return out
    if form.one_query:
        if return_lse:
            return _with_query(results[0]), _with_query(results[1])
        return _with_query(results)
    return results


def _sequence(out: Any) -> Optional[Sequence[Any]]:
    if out is None:
        return None
    return list(out) if isinstance(out, (tuple, list)) else [out]


def attention_operator(q: Any, k: Any, v: Any, *, score: Optional[Formula] = None, mask: Optional[Formula] = None,
                       scale: Optional[float] = None, sink: Any = None, return_lse: bool = False,
                       dtype: Optional[str] = None, **named: Any) -> Operator:
    """The operator that `attention` would call: its `text` is the program, to read, to keep, or for `nautilus.op`.

    With one query (M = 1) the program has no axis of queries: q is then [B, H, D]."""
    return _prepare(q, k, v, score, mask, scale, sink, return_lse, dtype, named)[0]
