// SPDX-License-Identifier: Apache-2.0
#include "emit/element_text.h"

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "emit/limits.h"
#include "emit/shared_parts.h"
#include "emit/typed_expression.h"
#include "emit/walked_place.h"
#include "expr/bounds/affine.h"
#include "expr/error_bound.h"

namespace nautilus::emit {

using expr::DType;
using expr::Expr;
using matile::Domain;
using EK = expr::Op;

namespace {

// Nodes of an expression, counted as its text has them, from which on parts have names, and of such
// a part. Shorter texts are left to the device compiler, which finds what they repeat.
constexpr uint32_t kLong = 512;
constexpr uint32_t kLongPart = 16;

}  // namespace

void ElementText::prepare(Expr e) {
  if (limits_.contains(e)) return;
  if (e.dtype() == DType::Bool && depends_on_axis(e)) {
    const std::string name = fmt::format("limit{}", first_limit_ + limits_.size());
    if (!limits(e, name, "reg", out_).empty()) {
      limits_.emplace(e, name);
      return;
    }
  }
  if (e.op() == EK::Var) place_anew(e);
  // An address is one number of the thread and what registers add to it.
  const bool was_address = std::exchange(is_address_, is_address_ || e.op() == EK::Read);
  for (Expr a : e.args()) prepare(a);
  is_address_ = was_address;
  read_along_axis(e);
}

std::vector<std::string> ElementText::name_parts(Expr e, const std::string& reg) {
  std::vector<std::string> out;
  if (e.tree_size() < kLong) return out;
  auto& named = parts_[reg];
  for (Expr part : shared_parts(e, kLongPart)) {
    if (part.op() == EK::Read || named.contains(part)) continue;
    const std::string name = fmt::format("part{}", part_count_++);
    out.push_back(fmt::format("const {} {} = {};", carrier(part.dtype()), name, at(part, reg)));
    named.emplace(part, name);
  }
  return out;
}

bool ElementText::is_memory(Expr read) const {
  return !scope_.tiles.contains(read.name().str()) &&
         !scope_.globals->find(read.name().str())->second.is_scratch;
}

std::string ElementText::limits(Expr e, const std::string& name, const std::string& reg,
                                Writer& out) {
  const ExpressionNames own = names(reg);
  return emit_limits(e, {domain_, own, scope_.divisors, *scope_.pool}, name, reg, out);
}

bool ElementText::depends_on_axis(Expr e) const {
  return std::any_of(domain_.axes.begin(), domain_.axes.end(),
                     [&](expr::Name a) { return expr::depends_on(e, scope_.pool->index(a)); });
}

ExpressionNames ElementText::names(const std::string& reg) {
  ExpressionNames n;
  n.facts = scope_.facts;
  n.is_accurate = domain_.axes.empty();  // one number of the row
  n.is_coarse = scope_.has_coarse_functions && !n.is_accurate;
  n.is_value = true;
  n.variable = [this, reg](Expr var) { return variable(var, reg); };
  n.read = [this, reg](Expr read) { return element(read, reg); };
  n.is_eager = is_tile_of_products();
  n.is_memory = [this](Expr read) { return !scope_.tiles.contains(read.name().str()); };
  n.instead = [this, reg](Expr e) -> std::string {
    if (const auto parts = parts_.find(reg); parts != parts_.end()) {
      const auto part = parts->second.find(e);
      if (part != parts->second.end()) return part->second;
    }
    const auto it = limits_.find(e);
    const auto read = reads_.find(e);
    if (read != reads_.end())
      return fmt::format("{}[{}]", read->second.first, read->second.second.text(reg));
    if (const std::string position = of_position(e, reg); !position.empty()) return position;
    if (it == limits_.end())
      return is_tile_of_products() && is_guarded_read(e) && is_memory(e[1]) ? guarded(e, reg) : "";
    Writer nowhere;
    return "(" + limits(e, it->second, reg, nowhere) + ")";
  };
  return n;
}

std::string ElementText::of_position(Expr e, const std::string& reg) {
  if (!is_tile_of_products() || reg == kThreadOnly || !scope_.has_coarse_functions) return "";
  if (e.op() == EK::Mul) {
    for (const size_t k : {size_t{0}, size_t{1}}) {
      if (depends_on_axis(e[1 - k])) continue;
      const std::string constant = register_part(e[k], reg);
      if (constant.empty()) continue;
      const std::string factor = "(" + at(e[1 - k], reg) + ")";
      return fmt::format("({0} * (float)({1}) + {0} * (float)({2}))", factor, constant,
                         at(e[k][0], kThreadOnly));
    }
    return "";
  }
  const std::string constant = register_part(e, reg);
  if (constant.empty()) return "";
  return fmt::format("((float)({}) + (float)({}))", at(e[0], kThreadOnly), constant);
}

std::string ElementText::register_part(Expr e, const std::string& reg) const {
  const bool is_conversion =
      e.op() == EK::Cast && e.dtype() == DType::F32 && e[0].dtype() == DType::I64;
  if (!is_conversion || !expr::tensors_read(e).empty()) return "";
  auto rest = expr::Poly::of(e[0]);
  constexpr int64_t kMostFactor = 16;
  constexpr int64_t kMostConstant = int64_t{1} << 20;
  if (!rest) return "";
  for (const auto& [atoms, factor] : rest->terms()) {
    const int64_t most = atoms.empty() ? kMostConstant : kMostFactor;
    if (atoms.size() > 1 || factor < -most || factor > most) return "";
  }
  std::string sum;
  int64_t reach = 0;
  for (size_t k = 0; k < domain_.axes.size() && rest; ++k) {
    const auto parts = rest->split(scope_.pool->index(domain_.axes[k]));
    const auto slope = parts ? parts->first.constant() : std::nullopt;
    if (!parts || (!slope && !parts->first.is_zero())) return "";
    rest = parts->second;
    if (slope.value_or(0) == 0) continue;
    reach += std::abs(*slope) * domain_.layout.shape()[k];
    sum += fmt::format("{}{} * ({})", sum.empty() ? "" : " + ", *slope,
                       register_coordinate(k).text(reg));
  }
  // Within a quotient an axis may still be there.
  if (!rest || depends_on_axis(expr::to_expr(*scope_.pool, *rest))) return "";
  return reach <= expr::kCoarsePosition ? sum : "";
}

std::string ElementText::variable(Expr var, const std::string& reg) {
  if (var.name().str() == kLaneColumn) return fmt::format("({} * digit + lane)", kLanes);
  for (size_t k = 0; k < domain_.axes.size(); ++k) {
    if (domain_.axes[k] != var.name()) continue;
    const std::string thread = matile::thread_coordinate(domain_.layout, static_cast<int>(k));
    return reg == kThreadOnly ? fmt::format("({})", thread)
                              : fmt::format("({} + {})", place_.empty() ? thread : place_,
                                            register_coordinate(k).text(reg));
  }
  return scope_.variable(var);
}

std::string ElementText::element(Expr read, const std::string& reg) {
  const auto tile = scope_.tiles.find(read.name().str());
  if (tile == scope_.tiles.end()) return global(read, reg);
  const auto access =
      matile::register_access(domain_, tile->second.layout, read.args(), scope_.unrolled);
  NAUT_CHECK(access, "`{}` cannot be read here without moving data", read.name().str());
  std::string index = access->reg.text(reg);
  for (const auto& [name, step] : access->unrolled)
    index +=
        step == 1 ? " + " + identifier(name) : fmt::format(" + {} * {}", step, identifier(name));
  if (!is_packed(tile->second)) return fmt::format("{}[{}]", identifier(read.name().str()), index);
  return fmt::format("unpack_{}({}[({}) / 2], ({}) % 2)", expr::name(read.dtype()),
                     identifier(read.name().str()), index, index);
}

std::string ElementText::guarded(Expr e, const std::string& reg, const char* when) {
  const Expr read = e[1];
  return fmt::format("load_{}_{}({}, p.{}, {}, {})", expr::name(read.dtype()), when, at(e[0], reg),
                     identifier(read.name().str()), offset(read.name().str(), read.args(), reg),
                     e[2].integer());
}

std::string ElementText::global(Expr read, const std::string& reg) {
  const bool is_fresh = scope_.globals->find(read.name().str())->second.is_scratch;
  return fmt::format("load_{}{}(p.{}, {})", is_fresh ? "fresh_" : "", expr::name(read.dtype()),
                     identifier(read.name().str()), offset(read.name().str(), read.args(), reg));
}

std::string ElementText::index(Expr e, const std::string& reg) {
  const auto [base, constants] = without_constants(e, reg);
  if (constants.empty()) return fmt::format("(u64)({})", at(e, reg));
  return fmt::format("(u64)({}) + (u64)({})", at(base, kThreadOnly), constants);
}

std::string ElementText::offset(std::string_view tensor, std::span<const Expr> indices,
                                const std::string& reg) {
  const GlobalTensor& global = scope_.globals->find(tensor)->second;
  std::string out;
  const auto add = [&](const std::string& index, size_t k) {
    out += (out.empty() ? "" : " + ") + global.step(index, k);
  };
  const auto place = walked_place(indices);
  const size_t rows = indices.size() - (place ? 2 : 0);
  if (place) {
    if (place->first) add(at(place->first, reg), rows);
    out += fmt::format("{}walked_place({}, {}, {}, {})", out.empty() ? "" : " + ",
                       at(place->count, reg), at(place->columns, reg), global.strides[rows],
                       global.strides[rows + 1]);
  }
  for (size_t k = 0; k < rows; ++k) {
    const auto [base, constants] = without_constants(indices[k], reg);
    add(constants.empty() ? at(indices[k], reg) : at(base, kThreadOnly), k);
    if (!constants.empty()) add(constants, k);
  }
  return out.empty() ? "0" : out;
}

std::pair<Expr, std::string> ElementText::without_constants(Expr index, const std::string& reg) {
  const auto poly = expr::Poly::of(index);
  if (!poly) return {};
  std::string text;
  const auto add = [&](int64_t factor, const std::string& value) {
    text += text.empty() ? "" : " + ";
    text += factor == 1 ? value : fmt::format("{} * ({})", factor, value);
  };
  expr::Substitution dropped;
  const auto factor_of = [&](Expr variable) -> std::optional<int64_t> {
    const auto parts = poly->split(variable);
    if (!parts) return std::nullopt;
    // An element at a coordinate that is itself an element is not linear in it.
    for (Expr atom : parts->second.atoms()) {
      if (expr::depends_on(atom, variable)) return std::nullopt;
    }
    return parts->first.constant();
  };
  for (size_t a = 0; a < domain_.axes.size(); ++a) {
    const Expr axis = scope_.pool->index(domain_.axes[a]);
    if (!expr::depends_on(index, axis)) continue;
    const auto factor = factor_of(axis);
    if (!factor) return {};
    const std::string part = register_coordinate(a).text(reg);
    if (part != "0") add(*factor, part);
  }
  for (const auto& [name, extent] : scope_.unrolled) {
    const Expr variable = scope_.pool->index(name);
    if (!expr::depends_on(index, variable)) continue;
    const auto factor = factor_of(variable);
    if (!factor) return {};
    add(*factor, identifier(name));
    dropped.emplace(variable, scope_.pool->integer(0));
  }
  return {expr::substitute(*scope_.pool, index, dropped), text};
}

matile::DigitSum ElementText::register_coordinate(size_t axis) const {
  return matile::fit(domain_.layout, [&](int e) {
    return domain_.layout.coordinates_of({0, 0, 0, e})[axis];
  });
}

ElementPrinter element_printer(const Domain& domain, const RegisterScope& scope, Writer& out,
                               size_t first_limit) {
  const auto text = std::make_shared<ElementText>(domain, scope, out, first_limit);
  return {[text](Expr e) { text->prepare(e); },
          [text](Expr e, const std::string& reg) { return text->at(e, reg); },
          [text](Expr e, const std::string& reg) { return text->name_parts(e, reg); },
          [text](Expr e, const std::string& reg) { return text->index(e, reg); },
          [text](std::string_view tensor, std::span<const Expr> indices, const std::string& reg) {
            return text->offset(tensor, indices, reg);
          },
          [text](Expr e, EarlyReads& arrays) { text->read_early(e, arrays); }};
}

}  // namespace nautilus::emit
