// SPDX-License-Identifier: Apache-2.0
#include "emit/elementwise.h"

#include <algorithm>

#include "emit/expression.h"
#include "emit/put_pairs.h"
#include "emit/vector.h"
#include "expr/scalar_ops.h"
#include "expr/walk.h"
#include "layout/convert.h"

namespace nautilus::emit {
namespace {

using expr::DType;
using expr::Expr;
using matile::Domain;
using EK = expr::Op;

std::vector<expr::Name> axis_names(const ir::Axes& axes) {
  std::vector<expr::Name> names;
  for (const ir::Axis& a : axes) names.push_back(a.name);
  return names;
}
std::string_view identity_text(expr::Reducer reducer) {
  return reducer == expr::Reducer::Max   ? "-infinity()"
         : reducer == expr::Reducer::Min ? "infinity()"
                                         : "0.f";
}

// `where(condition, x, identity)` as its condition and x; an empty condition for other expressions.
std::pair<Expr, Expr> under_condition(Expr e, expr::Reducer reducer) {
  const bool is_guarded = e.op() == EK::Select && e[2].op() == EK::FloatConst &&
                          e[2].number() == expr::identity(reducer, DType::F32).f;
  return is_guarded ? std::make_pair(e[0], e[1]) : std::make_pair(Expr(), e);
}

std::string combine(expr::Reducer reducer, const std::string& a, const std::string& b) {
  switch (reducer) {
    case expr::Reducer::Sum:
      return fmt::format("{} + ({})", a, b);
    case expr::Reducer::Max:
      return fmt::format("maximum({}, {})", a, b);
    case expr::Reducer::Min:
      return fmt::format("minimum({}, {})", a, b);
    default:
      NAUT_CHECK(false, "no device text for the reducer {}", expr::name(reducer));
  }
}

// A loop over registers with one statement, behind declarations of what the text of `value` would
// repeat at `registers`.
void emit_loop(int count, Expr value, std::initializer_list<std::string> registers,
               const ElementPrinter& text, Writer& out,
               const std::function<std::string()>& statement) {
  const std::string head = fmt::format("UNROLL for (int reg = 0; reg < {}; ++reg)", count);
  std::vector<std::string> parts;
  for (const std::string& reg : registers) {
    for (std::string& line : text.name_parts(value, reg)) parts.push_back(std::move(line));
  }
  if (parts.empty()) {
    out.line("{} {}", head, statement());
    return;
  }
  out.open("{} {{", head);
  for (const std::string& line : parts) out.line("{}", line);
  out.line("{}", statement());
  out.close();
}

// Chains `first` to `first + count` of a partial value, each half by itself.
std::string combined_chains(expr::Reducer reducer, int chains, int first, int count) {
  if (chains == 1) return "part[reg]";
  if (count == 1)
    return first == 0 ? fmt::format("part[{} * reg]", chains)
                      : fmt::format("part[{} * reg + {}]", chains, first);
  return combine(reducer, combined_chains(reducer, chains, first, count / 2),
                 combined_chains(reducer, chains, first + count / 2, count / 2));
}

}  // namespace

std::string combined(expr::Reducer reducer, const std::string& a, const std::string& b) {
  return combine(reducer, a, b);
}

bool is_packed(const TileText& tile) { return expr::bytes(tile.op->type.dtype) == 2; }

std::string_view register_type(const TileText& tile) {
  if (is_packed(tile)) return "u32";
  return tile.op->type.dtype == DType::I32 ? "int" : "float";
}

std::string pack_name(DType dtype) { return fmt::format("pack_{}", expr::name(dtype)); }

int array_length(const TileText& tile) {
  return tile.layout.registers() / (is_packed(tile) ? 2 : 1);
}

void emit_set(const matile::Set& op, const RegisterScope& scope, Writer& out) {
  const TileText& target = scope.tiles.find(op.target.str())->second;
  const Domain domain{target.layout, axis_names(op.axes)};
  const Expr value = without_cast(op.value, target.op->type.dtype);
  out.open("{{  // {}[{}]", op.target.str(),
           fmt::join(
               [&] {
                 std::vector<std::string> names;
                 for (const ir::Axis& a : op.axes) names.emplace_back(a.name.str());
                 return names;
               }(),
               ", "));
  const ElementPrinter text = element_printer(domain, scope, out);
  text.prepare(value);
  const std::string name = identifier(op.target.str());
  if (is_packed(target)) {
    emit_loop(array_length(target), value, {"(2 * reg)", "(2 * reg + 1)"}, text, out, [&] {
      return fmt::format("{}[reg] = {}({}, {});", name, pack_name(target.op->type.dtype),
                         text.at(value, "(2 * reg)"), text.at(value, "(2 * reg + 1)"));
    });
  } else {
    emit_loop(array_length(target), value, {"reg"}, text, out,
              [&] { return fmt::format("{}[reg] = {};", name, text.at(value, "reg")); });
  }
  out.close();
}

void emit_early_reads(const matile::Set& op, RegisterScope& scope, Writer& out) {
  if (op.axes.size() != 2) return;
  const Domain domain{scope.tiles.find(op.target.str())->second.layout, axis_names(op.axes)};
  element_printer(domain, scope, out).read_early(op.value, scope.early);
}

void emit_fold(const matile::Fold& op, const RegisterScope& scope, Writer& out) {
  const TileText& target = scope.tiles.find(op.target.str())->second;
  const Expr reduce = matile::reduction_of(op);
  const matile::FoldSlots fold =
      matile::fold_slots(op, scope.layouts(), scope.unrolled, scope.chained_terms, *scope.pool);
  const Domain* full = &fold.domain;
  const int chains = fold.chains(scope.chains);
  // Where the partial value of register e of the domain goes.
  const matile::DigitSum slot = fold.slot(chains);
  const int slots = target.layout.registers() * chains;

  out.open("{{  // {}: thread part", op.target.str());
  const ElementPrinter text = element_printer(*full, scope, out);
  text.prepare(reduce.body());
  out.line("float part[{}];", slots);
  const std::string at = fmt::format("part[{}]", slot.text("reg"));
  // Where the first registers are one for each partial value, they start it; else the identity
  // does.
  const bool starts = full->layout.registers() > slots && slot.is_permutation(slots);
  const int first = starts ? slots : 0;
  if (starts)
    out.line("UNROLL for (int reg = 0; reg < {}; ++reg) {} = {};", slots, at,
             text.at(reduce.body(), "reg"));
  else
    out.line("UNROLL for (int reg = 0; reg < {}; ++reg) part[reg] = {};", slots,
             identity_text(reduce.reducer()));
  // A term that may be missing is skipped: adding an identity needs one more instruction.
  const auto [condition, term] = under_condition(reduce.body(), reduce.reducer());
  out.line("UNROLL for (int reg = {}; reg < {}; ++reg) {}{} = {};", first, full->layout.registers(),
           condition ? fmt::format("if ({}) ", text.at(condition, "reg")) : "", at,
           combine(reduce.reducer(), at, text.at(term, "reg")));
  const std::string result = combined_chains(reduce.reducer(), chains, 0, chains);
  const Domain own{target.layout, axis_names(op.axes)};
  const ElementPrinter target_text = element_printer(own, scope, out);
  // The reduction inside the value is a name now.
  const expr::Expr placeholder = scope.pool->var(scope.pool->name("part.value"), reduce.dtype());
  const Expr value = expr::substitute(*scope.pool, op.value, {{reduce, placeholder}});
  RegisterScope with_part = scope;
  with_part.variable = [&](Expr var) {
    return var == placeholder ? "(" + result + ")" : scope.variable(var);
  };
  const ElementPrinter final_text = element_printer(own, with_part, out);
  out.line("UNROLL for (int reg = 0; reg < {}; ++reg) {}[reg] = {};", target.layout.registers(),
           identifier(op.target.str()), final_text.at(value, "reg"));
  out.close();
}

void emit_lanes(const matile::Lanes& op, const RegisterScope& scope, Writer& out) {
  const TileText& tile = scope.tiles.find(op.tile.str())->second;
  for (const layout::Digit& d : tile.layout.digits()) {
    if (d.axis != layout::kCopies || d.owner != layout::Owner::Lane) continue;
    for (int mask = d.owner_stride; mask < d.owner_stride * d.extent; mask *= 2) {
      const std::string at = fmt::format("{}[reg]", identifier(op.tile.str()));
      out.line("UNROLL for (int reg = 0; reg < {}; ++reg) {} = {};", tile.layout.registers(), at,
               combine(op.reducer, at, fmt::format("lane_xor({}, {})", at, mask)));
    }
  }
}

void emit_shares(const matile::Shares& op, const RegisterScope& scope, Writer& out) {
  const TileText& tile = scope.tiles.find(op.tile.str())->second;
  int lanes = 1;
  for (const layout::Digit& d : tile.layout.digits()) {
    if (d.axis == layout::kCopies && d.owner == layout::Owner::Lane) lanes *= d.extent;
  }
  out.line("UNROLL for (int reg = 0; reg < {}; ++reg) {}[reg] *= 1.f / {};",
           tile.layout.registers(), identifier(op.tile.str()), lanes);
}

void emit_vote(const matile::Vote& op, const RegisterScope& scope, Writer& out) {
  std::vector<expr::Name> axes;
  for (size_t k = 0; k < op.value.axis_count(); ++k) axes.push_back(op.value.axis(k).name());
  const auto domain = matile::domain_of(op.value.body(), axes, scope.layouts());
  NAUT_CHECK(domain, "the vote reads no tile with its axes");
  const ElementPrinter text = element_printer(*domain, scope, out);
  const std::string name = identifier(op.name.str());
  out.line("bool {} = false;", name);
  out.line("UNROLL for (int reg = 0; reg < {}; ++reg) {} = {} || ({});", domain->layout.registers(),
           name, name, text.at(op.value.body(), "reg"));
  out.line("{} = vote_any({});", name, name);
}

Expr without_cast(Expr e, DType dtype) {
  return e.op() == EK::Cast && e.dtype() == dtype ? e[0] : e;
}

namespace {

// Whether a value can be computed where a put's condition does not hold: what it reads from memory
// exists there, by conditions of its own.
bool is_readable(Expr e, const expr::Facts& known, const RegisterScope& scope) {
  const auto are_readable = [&](std::span<const Expr> all, const expr::Facts& facts) {
    return std::ranges::all_of(all, [&](Expr a) { return is_readable(a, facts, scope); });
  };
  if (e.op() == EK::Select) {
    expr::Facts then = known;
    then.assume(e[0]);
    return is_readable(e[0], known, scope) && is_readable(e[1], then, scope) &&
           is_readable(e[2], known, scope);
  }
  if (e.op() == EK::Read && !scope.tiles.contains(e.name().str())) {
    const std::vector<Expr>& dims = scope.globals->find(e.name().str())->second.type.dims;
    for (size_t k = 0; k < dims.size(); ++k) {
      const Expr is_inside =
          scope.pool->binary(EK::And, scope.pool->binary(EK::Ge, e[k], scope.pool->integer(0)),
                             scope.pool->binary(EK::Lt, e[k], dims[k]));
      if (known.prove(is_inside) != expr::Truth::True) return false;
    }
  }
  return are_readable(e.args(), known);
}

bool is_readable(Expr value, const Domain& domain, const RegisterScope& scope) {
  expr::Facts known = *scope.facts;
  for (size_t k = 0; k < domain.axes.size(); ++k)
    known.add_axis(scope.pool->index(domain.axes[k]),
                   scope.pool->integer(domain.layout.shape()[k]));
  return is_readable(value, known, scope);
}

bool is_computed(Expr e) { return e.op() != EK::Read && e.op() != EK::FloatConst; }

}  // namespace

PutValues::PutValues(Expr value, const Domain& domain, const RegisterScope& scope,
                     const ElementPrinter& text, Writer& out)
    : value_(value),
      text_(text),
      is_first_(value.dtype() == DType::F32 && is_computed(value) &&
                is_readable(value, domain, scope)) {
  text.prepare(value);
  if (!is_first_) return;
  out.line("float value[{}];", domain.layout.registers());
  emit_loop(domain.layout.registers(), value, {"reg"}, text, out,
            [&] { return fmt::format("value[reg] = {};", text.at(value, "reg")); });
}

std::string PutValues::at(const std::string& reg) const {
  return is_first_ ? fmt::format("value[{}]", reg) : text_.at(value_, reg);
}

void emit_put(const matile::Put& op, const RegisterScope& scope, Writer& out) {
  const auto domain = matile::domain_of(op.value, axis_names(op.axes), scope.layouts());
  NAUT_CHECK(domain, "put reads no tile with its axes");
  if (emit_put_vectors(op, *domain, scope, out) || emit_put_pairs(op, *domain, scope, out)) return;
  const ir::TensorType& type = scope.globals->find(op.target.str())->second.type;
  out.open("{{  // {}", op.target.str());
  const ElementPrinter text = element_printer(*domain, scope, out);
  std::string condition = one_of_copies(domain->layout);
  if (op.condition) {
    text.prepare(op.condition);
    condition +=
        fmt::format("{}({})", condition.empty() ? "" : " && ", text.at(op.condition, "reg"));
  }
  const Expr value = without_cast(op.value, type.dtype);
  out.line("UNROLL for (int reg = 0; reg < {}; ++reg)", domain->layout.registers());
  out.line("  {}store_{}(p.{}, {}, {});",
           condition.empty() ? "" : fmt::format("if ({}) ", condition), expr::name(type.dtype),
           identifier(op.target.str()), text.offset(op.target.str(), op.indices, "reg"),
           text.at(value, "reg"));
  out.close();
}

}  // namespace nautilus::emit
