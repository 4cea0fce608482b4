// SPDX-License-Identifier: Apache-2.0
// Text of one element of register work: coordinates, elements of tiles and of memory, conditions.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>

#include "emit/elementwise.h"
#include "emit/expression.h"
#include "emit/limits.h"
#include "expr/bounds/affine.h"
#include "expr/error_bound.h"
#include "expr/walk.h"

namespace nautilus::emit {
namespace {

using expr::DType;
using expr::Expr;
using matile::Domain;
using Kind = expr::Op;

// Text of expressions at register `e` of a domain.
class ElementText {
 public:
  ElementText(const Domain& domain, const RegisterScope& scope, Writer& out, size_t first_limit = 0)
      : domain_(domain), scope_(scope), out_(out), first_limit_(first_limit) {}

  // The limits of all conditions of an expression, written once before the loop.
  void prepare(Expr e) {
    if (limits_.contains(e)) return;
    if (e.dtype() == DType::Bool && depends_on_axis(e)) {
      const std::string name = fmt::format("limit{}", first_limit_ + limits_.size());
      if (!limits(e, name, "reg", out_).empty()) {
        limits_.emplace(e, name);
        return;
      }
    }
    if (e.op() == Kind::Var) place_anew(e);
    // An address is one number of the thread and what registers add to it.
    const bool was_address = std::exchange(is_address_, is_address_ || e.op() == Kind::Read);
    for (Expr a : e.args()) prepare(a);
    is_address_ = was_address;
    read_along_axis(e);
  }

  std::string at(Expr e, const std::string& reg) { return expression(e, names(reg)); }

  // Integers along one axis, before anything else of the expression. Adds their arrays.
  void read_early(Expr e, EarlyReads& arrays) {
    if (e.dtype() == DType::Bool && depends_on_axis(e)) {
      Writer nowhere;
      if (!limits(e, "limit", "reg", nowhere).empty()) return;
    }
    for (Expr a : e.args()) read_early(a, arrays);
    const std::string name = fmt::format("element{}", 2 * kFirstOfLanes + arrays.size());
    if (is_spread(e)) {
      const Expr read = of_lane(e);
      if (arrays.contains(read)) return;
      read_by_lanes(read, name, "here");
      arrays.emplace(read, std::make_pair(name, domain_.layout.shape()[1]));
    } else if (is_of_rows(e) && !arrays.contains(e)) {
      const Along along = along_axis(0);
      out_.line("int {}[{}];", name, along.count);
      out_.line("UNROLL for (int digit = 0; digit < {}; ++digit) {}[digit] = {};", along.count,
                name, guarded(e, "(" + along.whole.text("digit") + ")", "here"));
      arrays.emplace(e, std::make_pair(name, domain_.layout.shape()[0]));
    }
  }

 private:
  // The registers of a thread along one axis.
  struct Along {
    matile::DigitSum index;  // the number of a register among them
    matile::DigitSum whole;  // the register, from that number
    int count = 1;
  };
  Along along_axis(size_t axis) const {
    Along out;
    out.index = register_coordinate(axis);
    out.index.base = 0;
    for (size_t k = 0; k < out.index.digits.size(); ++k) {
      if (out.index.coefficients[k] == 0) continue;
      out.whole.digits.push_back({out.count, out.index.digits[k].extent});
      out.whole.coefficients.push_back(out.index.digits[k].stride);
      out.index.coefficients[k] = out.count;
      out.count *= out.index.digits[k].extent;
    }
    return out;
  }

  // Positions as values are the same in every row. The compiler would keep one for each register
  // of a line over the loop along the rows, and from one statement to the next: more registers
  // than the line itself has.
  void place_anew(Expr axis) {
    if (is_address_ || domain_.axes.size() != 1 || domain_.axes[0] != axis.name() ||
        !place_.empty() || domain_.layout.registers() < kManyPositions)
      return;
    place_ = fmt::format("place{}", first_limit_);
    out_.line("const int {} = anew({});", place_, matile::thread_coordinate(domain_.layout, 0));
  }

  // Integers of memory that depend on one axis of two are read once for every value of it that the
  // thread has, before the loop.
  void read_along_axis(Expr e) {
    if (is_number_of_rows(e)) return read_numbers(e);
    if (!is_guarded_read(e) || !is_tile_of_products() || reads_.contains(e) || !is_memory(e[1]))
      return;
    const bool has_first = expr::depends_on(e, scope_.pool->index(domain_.axes[0]));
    if (has_first == expr::depends_on(e, scope_.pool->index(domain_.axes[1]))) return;
    const Along along = along_axis(has_first ? 0 : 1);
    if (const auto early = scope_.early.find(e);
        is_of_rows(e) && early != scope_.early.end() &&
        early->second.second == domain_.layout.shape()[0]) {
      reads_.emplace(e, std::make_pair(early->second.first, along.index));
      return;
    }
    const std::string name = fmt::format("element{}", first_limit_ + reads_.size());
    const std::string digits = "(" + along.whole.text("digit") + ")";
    const std::string value = is_spread(e) ? from_lanes(e, digits) : guarded(e, digits);
    out_.line("{} {}[{}];", e.dtype() == DType::I64 ? "long long" : "int", name, along.count);
    out_.line("UNROLL for (int digit = 0; digit < {}; ++digit) {}[digit] = {};", along.count, name,
              value);
    reads_.emplace(e, std::make_pair(name, along.index));
  }

  // A number of each row, under a condition of the rows.
  bool is_number_of_rows(Expr e) const {
    return e.op() == Kind::Select && e[1].op() == Kind::Read && e[2].op() == Kind::FloatConst &&
           is_tile_of_products() && is_memory(e[1]) && expr::bytes(e.dtype()) <= 4 &&
           expr::depends_on(e, scope_.pool->index(domain_.axes[0])) &&
           !expr::depends_on(e, scope_.pool->index(domain_.axes[1]));
  }

  // A thread has few rows, but a register for each element of them: a load under a condition in
  // each is a branch, and many times the code.
  void read_numbers(Expr e) {
    if (reads_.contains(e)) return;
    const Along along = along_axis(0);
    const std::string name = fmt::format("element{}", first_limit_ + reads_.size());
    out_.line("float {}[{}];", name, along.count);
    out_.line("UNROLL for (int digit = 0; digit < {}; ++digit) {}[digit] = {};", along.count, name,
              at(e, "(" + along.whole.text("digit") + ")"));
    reads_.emplace(e, std::make_pair(name, along.index));
  }

  // An integer of each row.
  bool is_of_rows(Expr e) const {
    return is_guarded_read(e) && is_tile_of_products() && is_memory(e[1]) &&
           e.dtype() != DType::I64 && expr::depends_on(e, scope_.pool->index(domain_.axes[0])) &&
           !expr::depends_on(e, scope_.pool->index(domain_.axes[1]));
  }

  // Elements of columns, of which lanes need the same ones: each lane reads a part of them, beside
  // its neighbours', and gives them to the others. Few addresses instead of one per element.
  std::string from_lanes(Expr e, const std::string& reg) {
    const Expr read = of_lane(e);
    const auto early = scope_.early.find(read);
    std::string lanes;
    if (early != scope_.early.end() && early->second.second == domain_.layout.shape()[1]) {
      lanes = early->second.first;
    } else {
      lanes = fmt::format("element{}", kFirstOfLanes + first_limit_ + reads_.size());
      read_by_lanes(read, lanes);
    }
    const std::string column = register_coordinate(1).text(reg);
    return fmt::format("lane_from({}[({}) / {}], ({}) % {} + {})", lanes, column, kLanes, column,
                       kLanes, matile::thread_coordinate(domain_.layout, 1));
  }

  Expr of_lane(Expr e) const {
    const Expr axis = scope_.pool->index(domain_.axes[1]);
    return expr::substitute(*scope_.pool, e, {{axis, scope_.pool->index(kLaneColumn)}});
  }

  void read_by_lanes(Expr read, const std::string& name, const char* when = "when") {
    const int parts = (domain_.layout.shape()[1] + kLanes - 1) / kLanes;
    out_.line("int {}[{}];", name, parts);
    out_.line("UNROLL for (int digit = 0; digit < {}; ++digit) {}[digit] = {};", parts, name,
              guarded(read, kThreadOnly, when));
  }

  bool is_spread(Expr e) const {
    return is_guarded_read(e) && is_tile_of_products() && is_memory(e[1]) &&
           e.dtype() != DType::I64 && domain_.layout.shape()[1] >= kWorthExchange &&
           !expr::depends_on(e, scope_.pool->index(domain_.axes[0])) &&
           expr::depends_on(e, scope_.pool->index(domain_.axes[1])) && lanes_share_columns();
  }

  // Whether the lane's part of a column's number stays within the 32 that the register's part
  // begins, and is the same in all warps.
  bool lanes_share_columns() const {
    const auto column = [&](int warp, int lane, int reg) {
      return domain_.layout.coordinates_of({0, warp, lane, reg})[1];
    };
    for (int lane = 0; lane < kLanes; ++lane) {
      for (int warp = 1; warp < kWarps; ++warp) {
        if (column(warp, lane, 0) != column(0, lane, 0)) return false;
      }
      for (int reg = 0; reg < domain_.layout.registers(); ++reg) {
        const int own = column(0, 0, reg) % kLanes + column(0, lane, 0) - column(0, 0, 0);
        if (own < 0 || own >= kLanes) return false;
      }
    }
    return column(0, 0, 0) == 0;
  }

  // There every element that is read has a condition of its own that keeps it inside. In rows, a
  // condition around it may.
  bool is_tile_of_products() const { return domain_.axes.size() == 2; }

  bool is_memory(Expr read) const {
    return !scope_.tiles.contains(read.name().str()) &&
           !scope_.globals->find(read.name().str())->second.is_scratch;
  }

  std::string limits(Expr e, const std::string& name, const std::string& reg, Writer& out) {
    return emit_limits(e, domain_, names(reg), scope_.divisors, *scope_.pool, name, reg, out);
  }

  bool depends_on_axis(Expr e) const {
    return std::any_of(domain_.axes.begin(), domain_.axes.end(),
                       [&](expr::Name a) { return expr::depends_on(e, scope_.pool->index(a)); });
  }

  ExpressionNames names(const std::string& reg) {
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
      const auto it = limits_.find(e);
      const auto read = reads_.find(e);
      if (read != reads_.end())
        return fmt::format("{}[{}]", read->second.first, read->second.second.text(reg));
      if (const std::string position = of_position(e, reg); !position.empty()) return position;
      if (it == limits_.end())
        return is_tile_of_products() && is_guarded_read(e) && is_memory(e[1]) ? guarded(e, reg)
                                                                              : "";
      Writer nowhere;
      return "(" + limits(e, it->second, reg, nowhere) + ")";
    };
    return n;
  }

  // A position as a float: the thread's part, converted once, and a constant of the register. A
  // factor that all elements share goes to both, one instruction for each register. Near 0 the
  // digits are those of the thread's part, so only where results are too narrow to show it
  // (docs/language.md, section 8).
  std::string of_position(Expr e, const std::string& reg) {
    if (!is_tile_of_products() || reg == kThreadOnly || !scope_.has_coarse_functions) return "";
    if (e.op() == Kind::Mul) {
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

  // Of an integer that is converted to f32: what registers add to the thread's part of it. Empty if
  // that is nothing, no sum, or more than the oracle allows (expr::kCoarsePosition); and for
  // integers that grow faster than positions do, which leave the range where floats are exact.
  std::string register_part(Expr e, const std::string& reg) const {
    const bool is_conversion =
        e.op() == Kind::Cast && e.dtype() == DType::F32 && e[0].dtype() == DType::I64;
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

  std::string variable(Expr var, const std::string& reg) {
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

  std::string element(Expr read, const std::string& reg) {
    const auto tile = scope_.tiles.find(read.name().str());
    if (tile == scope_.tiles.end()) return global(read, reg);
    const auto access =
        matile::register_access(domain_, tile->second.layout, read.args(), scope_.unrolled);
    NAUT_CHECK(access, "`{}` cannot be read here without moving data", read.name().str());
    std::string index = access->reg.text(reg);
    for (const auto& [name, step] : access->unrolled)
      index +=
          step == 1 ? " + " + identifier(name) : fmt::format(" + {} * {}", step, identifier(name));
    if (!is_packed(tile->second))
      return fmt::format("{}[{}]", identifier(read.name().str()), index);
    return fmt::format("unpack_{}({}[({}) / 2], ({}) % 2)", expr::name(read.dtype()),
                       identifier(read.name().str()), index, index);
  }

  // An integer under a condition of its own: no branch. `here` keeps the load at its place.
  std::string guarded(Expr e, const std::string& reg, const char* when = "when") {
    const Expr read = e[1];
    return fmt::format("load_{}_{}({}, p.{}, {}, {})", expr::name(read.dtype()), when,
                       at(e[0], reg), identifier(read.name().str()),
                       offset(read.name().str(), read.args(), reg), e[2].integer());
  }

  std::string global(Expr read, const std::string& reg) {
    const bool is_fresh = scope_.globals->find(read.name().str())->second.is_scratch;
    return fmt::format("load_{}{}(p.{}, {})", is_fresh ? "fresh_" : "", expr::name(read.dtype()),
                       identifier(read.name().str()), offset(read.name().str(), read.args(), reg));
  }

 public:
  std::string offset(std::string_view tensor, std::span<const Expr> indices,
                     const std::string& reg) {
    const GlobalTensor& global = scope_.globals->find(tensor)->second;
    std::string out;
    const auto add = [&](const std::string& index, size_t k) {
      out += (out.empty() ? "" : " + ") + global.step(index, k);
    };
    for (size_t k = 0; k < indices.size(); ++k) {
      const auto [base, constants] = without_constants(indices[k], reg);
      add(constants.empty() ? at(indices[k], reg) : at(base, kThreadOnly), k);
      if (!constants.empty()) add(constants, k);
    }
    return out.empty() ? "0" : out;
  }

 private:
  // What unrolling makes a number (the register's part of coordinates, variables of `unroll`, the
  // constant), and the index without it. Apart they are one base address per thread and numbers
  // that fit into the instructions; in one 32-bit sum every element would have its own address.
  std::pair<Expr, std::string> without_constants(Expr index, const std::string& reg) {
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

  matile::DigitSum register_coordinate(size_t axis) const {
    return matile::fit(domain_.layout, [&](int e) {
      return domain_.layout.coordinates_of({0, 0, 0, e})[axis];
    });
  }

  // Instead of a register: coordinates without the register's part.
  static constexpr const char* kThreadOnly = "";
  // The column that a lane reads for all; no name of a program.
  static constexpr const char* kLaneColumn = "column of a lane";
  static constexpr int kLanes = 32;
  static constexpr int kWarps = 4;
  static constexpr int kManyPositions = 8;    // of a thread
  static constexpr int kWorthExchange = 32;   // columns
  static constexpr int kFirstOfLanes = 1000;  // numbers of arrays, apart from those of elements

  const Domain& domain_;
  const RegisterScope& scope_;
  Writer& out_;
  size_t first_limit_;
  bool is_address_ = false;  // what is prepared
  std::string place_;        // of the thread, where positions are values
  std::map<Expr, std::string, expr::ByContent> limits_;
  std::map<Expr, std::pair<std::string, matile::DigitSum>, expr::ByContent> reads_;
};

}  // namespace

ElementPrinter element_printer(const Domain& domain, const RegisterScope& scope, Writer& out,
                               size_t first_limit) {
  const auto text = std::make_shared<ElementText>(domain, scope, out, first_limit);
  return {[text](Expr e) { text->prepare(e); },
          [text](Expr e, const std::string& reg) { return text->at(e, reg); },
          [text](std::string_view tensor, std::span<const Expr> indices, const std::string& reg) {
            return text->offset(tensor, indices, reg);
          },
          [text](Expr e, EarlyReads& arrays) { text->read_early(e, arrays); }};
}

}  // namespace nautilus::emit
