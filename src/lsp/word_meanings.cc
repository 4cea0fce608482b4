// SPDX-License-Identifier: Apache-2.0
#include "lsp/word_meanings.h"

#include <fmt/format.h>

#include <algorithm>

#include "expr/build.h"
#include "expr/dtype.h"
#include "spec/language/vocabulary.h"

namespace nautilus::lsp {
namespace {

struct WordRow {
  std::string_view word;
  std::string_view form;
  std::string_view meaning;
};

constexpr WordRow kKeywordRows[] = {
    {"dims", "dims M, N", "symbolic sizes: one compiled program serves all their values"},
    {"static", "static D = 64", "a size that is fixed when compiling; tiles depend on it"},
    {"size", "size HO = (H - R)/S + 1", "a name for a size that is made of others"},
    {"table", "table w = [0.25, 0.5, 0.25]", "a small tensor of numbers in the text"},
    {"hint", "hint M = 64", "the value of a size where a command is given none"},
    {"fact", "fact scale > 0", "what holds for every call; proofs use it, the evaluator checks it"},
    {"numerics", "numerics rel 1e-2 abs 1e-3",
     "the tolerance of the outputs; `exact`: no operand is rounded to a narrower dtype; `bf16`, "
     "`tf32`: f32 operands of products may be rounded so"},
    {"fn", "fn f[j](x) = ...", "a function over elements, or over axes; expanded where it is used"},
    {"let", "let e = ... in ...", "names a part of an expression"},
    {"repeat", "let y = x repeat[4] f(y) in ...", "a fixed number of rounds of a `let`"},
    {"in", "let e = ... in ...", "what follows may use the name"},
    {"and", "p and q", "both conditions"},
    {"or", "p or q", "one of the conditions, or both"},
    {"not", "not p", "the other truth value"},
    {"inf", "inf", "infinity; `-inf` is what a mask puts in place of a score"},
    {"true", "true", "the truth value"},
    {"false", "false", "the truth value"},
    {"from", "max[j from z] x", "the initial element of a reduction"},
    {"rank", "max[j rank r] x", "the element that r others come before: rank 0 is the largest"},
    {"acc", "sum[k acc f64] x", "the dtype that a reduction accumulates in"},
};

constexpr WordRow kReducerRows[] = {
    {"sum", "sum[k] x", "the sum over an axis, in the compute dtype of `x`; 0 if there is none"},
    {"prod", "prod[k] x", "the product over an axis; 1 if there is none"},
    {"max", "max[k] x", "the largest element; NaN is ignored, -inf if there is none"},
    {"min", "min[k] x", "the smallest element; NaN is ignored, inf if there is none"},
    {"any", "any[k] p", "whether a condition holds somewhere"},
    {"all", "all[k] p", "whether a condition holds everywhere"},
    {"argmax", "argmax[k] x", "where the first largest element is, i64; -1 if there is none"},
    {"argmin", "argmin[k] x", "where the first smallest element is, i64; -1 if there is none"},
    {"mean", "mean[k] x", "the sum over an axis, divided by its extent"},
};

constexpr WordRow kFunctionRows[] = {
    {"where", "where(p, x, y)", "x where p holds, else y; the other operand is never read"},
    {"exp", "exp(x)", "e to the power of x"},
    {"exp2", "exp2(x)", "2 to the power of x"},
    {"log", "log(x)", "the natural logarithm"},
    {"log2", "log2(x)", "the logarithm to base 2"},
    {"log1p", "log1p(x)", "log(1 + x), accurate where x is small"},
    {"expm1", "expm1(x)", "exp(x) - 1, accurate where x is small"},
    {"sqrt", "sqrt(x)", "the square root"},
    {"rsqrt", "rsqrt(x)", "1 / sqrt(x)"},
    {"tanh", "tanh(x)", "the hyperbolic tangent"},
    {"erf", "erf(x)", "the error function"},
    {"sigmoid", "sigmoid(x)", "1 / (1 + exp(-x))"},
    {"sin", "sin(x)", "the sine"},
    {"cos", "cos(x)", "the cosine"},
    {"abs", "abs(x)", "the absolute value; keeps the dtype"},
    {"floor", "floor(x)", "the greatest integer up to x, as a float"},
    {"round", "round(x)", "the nearest integer, halves to even, as a float"},
    {"pow", "pow(x, y)", "x to the power of y, in floats"},
    {"bit_and", "bit_and(x, y)", "the bits that two integers have in common"},
    {"bit_or", "bit_or(x, y)", "the bits that one of two integers has"},
    {"bit_xor", "bit_xor(x, y)", "the bits in which two integers differ"},
    {"shift_left", "shift_left(x, n)", "x * 2^n, wrapped to the width of its dtype"},
    {"shift_right", "shift_right(x, n)", "the greatest integer up to x / 2^n"},
    {"min", "min(x, y)", "the smaller one; keeps the dtype"},
    {"max", "max(x, y)", "the larger one; keeps the dtype"},
};

std::string row_text(const WordRow& row) {
  return fmt::format("```naut\n{}\n```\n{}", row.form, row.meaning);
}

template <size_t N>
std::string find_row(const WordRow (&rows)[N], std::string_view word) {
  const auto row = std::find_if(std::begin(rows), std::end(rows),
                                [&](const WordRow& r) { return r.word == word; });
  return row == std::end(rows) ? "" : row_text(*row);
}

std::string dtype_text(expr::DType dtype) {
  const std::string kind =
      dtype == expr::DType::Bool ? "truth values"
      : expr::is_float(dtype)
          ? fmt::format("floats of {} bits, {} of them significant; largest {:.6g}",
                        8 * expr::bytes(dtype), expr::significand_bits(dtype),
                        expr::max_finite(dtype))
          : fmt::format("integers from {} to {}", expr::int_min(dtype), expr::int_max(dtype));
  const expr::DType compute = expr::compute_dtype(dtype);
  return fmt::format(
      "```naut\n{}\n```\n{}{}", expr::name(dtype), kind,
      compute == dtype ? "" : fmt::format("; arithmetic is done in {}", expr::name(compute)));
}

}  // namespace

std::string word_meaning(std::string_view word, bool is_reducer) {
  if (const auto dtype = expr::parse_dtype(word)) return dtype_text(*dtype);
  if (is_reducer) return find_row(kReducerRows, word);
  if (expr::function_op(word)) return find_row(kFunctionRows, word);
  return find_row(kKeywordRows, word);
}

}  // namespace nautilus::lsp
