// SPDX-License-Identifier: Apache-2.0
// `let x = a repeat[n < 4] f(x, n) in body`: as many lets, each with the value before it; a part of
// elaborate_expr.h. The rounds are a number when compiling, so that nothing behind this file knows
// of them.
#include <fmt/format.h>

#include "expr/rules/rules.h"
#include "spec/language/elaborate_expr.h"

namespace nautilus::spec {

using diag::Code;
using expr::Syntax;
using ir::Expr;

namespace {

// More rounds than an iteration needs that converges, fewer than make a text too long to compile.
constexpr int64_t kMaxRounds = 256;

std::optional<int64_t> number_of_rounds(Expr value, const Syntax& count, diag::Sink& sink) {
  if (value.op() != expr::Op::IntConst) {
    sink.report(Code::BadStatement, count.span, "the number of rounds is not known when compiling")
        .with_help(
            "rounds are written out one after the other: use a number or an expression of "
            "statics; what depends on data steps along an axis, `Y[t] = f(Y[t-1]) from ...`");
    return std::nullopt;
  }
  const int64_t rounds = value.integer();
  if (rounds >= 0 && rounds <= kMaxRounds) return rounds;
  auto& d = sink.report(rounds < 0 ? Code::BadStatement : Code::TooLong, count.span,
                        fmt::format("{} rounds; there may be 0 to {}", rounds, kMaxRounds));
  if (rounds > 0) d.with_help("step along an axis instead, `Y[t < ...] = f(Y[t-1]) from ...`");
  return std::nullopt;
}

}  // namespace

Typed ExprElaborator::repeat(const Syntax& s) {
  const size_t n = s.axes.size() - 1;
  const std::string_view round = s.axes[n].name;
  const Syntax& written = *s.axes[n].extent;
  const Expr count = elaborate_index(written, "the number of rounds");
  if (!count) return fail();
  const Expr number = expr::fold(scope_.pool, count);
  const auto rounds = number_of_rounds(number ? number : count, written, scope_.sink);
  if (!rounds) return fail();
  std::vector<Typed> state;
  for (size_t k = 0; k < n; ++k) {
    state.push_back(elaborate(*s.args[k]));
    if (!state.back()) return fail();
  }
  std::vector<std::string_view> bound;
  bool ok = true;
  auto& values = scope_.names.values();
  for (const expr::SyntaxAxis& a : s.axes) {
    if (a.name.empty()) continue;
    if (!(ok = scope_.names.can_bind(a.name, a.span, scope_.sink))) break;
    values.emplace(a.name, Typed{});
    bound.push_back(a.name);
  }
  // Gives the names their values for what comes next, the arguments from `first` to `last`.
  auto bind = [&](size_t first, size_t last) {
    for (size_t k = 0; k < n; ++k) {
      Occurrences uses;
      for (size_t p = first; p < last; ++p) {
        const Occurrences more = occurrences(*s.args[p], s.axes[k].name);
        uses.count += more.count;
        if (more.count) uses.is_always_guarded &= more.is_always_guarded;
      }
      scope_.names.values()[s.axes[k].name] =
          taken_out_.share(state[k], s.axes[k].name, uses, true);
    }
  };
  for (int64_t r = 0; ok && r < *rounds; ++r) {
    bind(n, 2 * n);
    if (!round.empty()) scope_.names.values()[round] = {scope_.pool.integer(r), Hold::Literal};
    for (size_t k = 0; ok && k < n; ++k) ok = bool(state[k] = elaborate(*s.args[n + k]));
  }
  Typed result;
  if (ok) {
    if (!round.empty()) scope_.names.values().erase(round);
    bind(2 * n, 2 * n + 1);
    result = elaborate(*s.args[2 * n]);
  }
  for (std::string_view name : bound) scope_.names.values().erase(name);
  return result;
}

}  // namespace nautilus::spec
