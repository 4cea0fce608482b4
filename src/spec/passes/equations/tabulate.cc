// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/equations/tabulate.h"

#include <fmt/format.h>

#include <algorithm>

#include "algebra/contraction.h"
#include "algebra/op_slots.h"
#include "expr/bounds/affine.h"
#include "expr/rules/simplify.h"
#include "expr/walk.h"
#include "ir/target_of.h"
#include "ir/usual_sizes.h"
#include "spec/equations.h"
#include "spec/facts/places.h"
#include "spec/facts/ranges.h"

namespace nautilus::spec {
namespace {

using expr::Expr;
using TableOp = expr::Op;

// A value of an equation that could be an element of a tensor of its own.
struct Value {
  std::vector<Place> places;
  // What equal values have in common: the value at axes of fixed names, and their extents.
  std::vector<Expr> key;
  double evaluations = 0;  // in the equation that it stands in
  double count = 0;        // of different values
  double saved = 0;        // cycles, if it is read instead
};

// Equal values, wherever they stand.
struct Table {
  double saved = 0;
  ir::Name name = {};  // once it is made
};

struct Choice {
  double gain = 0;  // cycles
  std::vector<Expr> values;
};

class Tabulating {
 public:
  Tabulating(const ir::Program& program, ir::PassContext& context)
      : program_(program),
        target_(ir::target_of(program)),
        pool_(context.pool),
        simplifier_(context.pool),
        facts_(ir::facts_of(program, pool_)),
        types_(tensor_types(program)),
        sizes_(program),
        names_(program, pool_) {
    for (const ir::Op& op : program.body) {
      if (const auto* let = op.get<Let>()) find_values(*let);
    }
  }

  Let equation(const Let& let, std::vector<Let>& before) {
    const Values& values = values_[let.name];
    if (values.empty()) return let;
    std::unordered_map<Expr, Choice> known;
    expr::Substitution reads;
    for (Expr e : best(let.body, values, known).values) {
      const Value& value = values.at(e);
      Table& table = tables_.at(value.key);
      if (!table.name) {
        before.push_back(tensor_of(let, e, value));
        table.name = before.back().name;
      }
      std::vector<Expr> at;
      for (const Place& p : value.places)
        at.push_back(p.least.is_int(0) ? p.index
                                       : expr::canonical_index(
                                             pool_, pool_.binary(TableOp::Sub, p.index, p.least)));
      reads.emplace(e, pool_.read(table.name, e.dtype(), at));
    }
    Let out = let;
    out.body = expr::substitute(pool_, let.body, reads);
    return out;
  }

 private:
  using Values = std::unordered_map<Expr, Value>;

  void find_values(const Let& let) {
    ir::Axes axes = let.axes;
    const Expr r = let.body;
    const bool is_reduction = r.op() == TableOp::Reduce;
    for (size_t k = 0; is_reduction && k < r.axis_count(); ++k)
      axes.push_back({r.axis(k).name(), r.extent(k)});
    if (axes.empty()) return;
    expr::Facts facts = facts_;
    for (const ir::Axis& a : axes) facts.add_axis(pool_.index(a.name), a.extent);
    // A tile of a product computes its operands once for all its columns.
    if (is_reduction &&
        algebra::is_contraction(algebra::factors(r.body()), result_axes(let, pool_)))
      return;
    std::unordered_set<Expr> functions;  // expressions with one
    expr::for_each(is_reduction ? r.body() : r, [&](Expr e) {
      const bool has_function =
          algebra::op_slots(e.op(), target_.costs) >= target_.costs.special_slots ||
          std::ranges::any_of(e.args(), [&](Expr a) { return functions.contains(a); });
      if (!has_function) return;
      functions.insert(e);
      if (e.dtype() != expr::DType::F32 || !may_stand_alone(e)) return;
      Value value = value_of(e, axes, facts);
      value.saved = value.evaluations * saved_by_read(e, let, axes.back(), value.places);
      if (value.saved <= 0 || value.count >= value.evaluations || !is_inside_alone(value)) return;
      tables_[value.key].saved += value.saved;
      values_[let.name].emplace(e, value);
    });
  }

  Value value_of(Expr e, const ir::Axes& axes, const expr::Facts& facts) {
    Value out{places_of(e, axes, facts, sizes_, pool_), {}, 1, 1, 0};
    expr::Substitution canonical;
    for (size_t k = 0; k < out.places.size(); ++k) {
      const Place& p = out.places[k];
      canonical.emplace(p.index, pool_.binary(TableOp::Add, axis_of_key(k), p.least));
      out.count *= sizes_.extent(p.extent);
    }
    out.key.push_back(with_places(e, canonical));
    for (const Place& p : out.places) out.key.push_back(p.extent);
    // Kernels have axes in this order: what is the same along the last ones is computed once.
    auto end = axes.end();
    while (end != axes.begin() && !expr::depends_on(e, pool_.index((end - 1)->name))) --end;
    out.evaluations = sizes_.count({axes.begin(), end});
    return out;
  }

  Expr with_places(Expr e, const expr::Substitution& places) {
    return simplifier_.simplify(expr::substitute(pool_, e, places), &facts_);
  }

  // Cycles of the machine for each evaluation; 0 if there is nothing to gain.
  double saved_by_read(Expr value, const Let& let, const ir::Axis& last_axis,
                       const std::vector<Place>& places) {
    const target::Costs& costs = target_.costs;
    const Expr last = pool_.index(last_axis.name);
    const bool has_last = expr::depends_on(value, last);
    const std::unordered_set<Expr> others = needed_beside(let.body, value);
    double slots = 0;
    double reads = -1;  // of elements that are no fewer than the values; the new one is more
    double bytes = -static_cast<double>(expr::bytes(value.dtype()));
    expr::for_each(value, [&](Expr e) {
      // Kernels compute what is the same along their last axis once per row.
      if (has_last && !expr::depends_on(e, last)) return;
      if (e.op() == TableOp::Read && has_all(e, places)) {
        reads += 1;
        bytes += static_cast<double>(expr::bytes(e.dtype()));
      } else if (!others.contains(e)) {
        slots += algebra::op_slots(e.op(), costs);
      }
    });
    // What takes fewer instructions than a load is done while other loads are waited for.
    if (slots < costs.load_slots) return 0;
    const auto sms = static_cast<double>(target_.board.sms);
    return (slots + reads * costs.load_slots) / (sms * target_.limits.group_threads) +
           bytes / (sms * target_.nests.cache_bytes);
  }

  // What an expression computes even if it reads the value.
  static std::unordered_set<Expr> needed_beside(Expr all, Expr value) {
    std::unordered_set<Expr> out;
    auto go = [&](auto& self, Expr e) -> void {
      if (e == value || !out.insert(e).second) return;
      for (Expr a : e.args()) self(self, a);
    };
    go(go, all);
    return out;
  }

  static bool has_all(Expr read, const std::vector<Place>& places) {
    return std::ranges::all_of(places, [&](const Place& p) {
      bool has = false;
      expr::for_each(read, [&](Expr e) { has |= e == p.index; });
      return has;
    });
  }

  Expr axis_of_key(size_t k) { return pool_.index(fmt::format("place.{}", k)); }

  // Whether nothing in it is a sum or needs one, and no division fails where no element needs it.
  bool may_stand_alone(Expr value) {
    bool may = true;
    expr::for_each(value, [&](Expr e) {
      const bool is_division = e.op() == TableOp::FloorDiv || e.op() == TableOp::Mod;
      may &= e.op() != TableOp::Reduce &&
             (!is_division || e[1].op() == TableOp::IntConst || e.dtype() == expr::DType::I64);
      if (e.op() == TableOp::Read) may &= is_of_elements(e.name());
    });
    return may;
  }

  // Whether the tensor is an input or made of inputs without reductions.
  bool is_of_elements(ir::Name tensor) {
    const auto known = is_of_elements_.find(tensor);
    if (known != is_of_elements_.end()) return known->second;
    const Let* let = find_equation(program_, tensor);
    const bool is = !let || (!expr::has_reduce(let->body) &&
                             std::ranges::all_of(expr::tensors_read(let->body),
                                                 [&](ir::Name t) { return is_of_elements(t); }));
    is_of_elements_.emplace(tensor, is);
    return is;
  }

  // Whether all its reads are inside their tensors at every place.
  bool is_inside_alone(const Value& value) {
    expr::Facts facts = facts_;
    for (size_t k = 0; k < value.places.size(); ++k)
      facts.add_axis(axis_of_key(k), value.places[k].extent);
    return are_inside(value.key[0], types_, facts, pool_);
  }

  // The values in it whose tensors save most: itself, or values that it is computed of.
  const Choice& best(Expr e, const Values& values, std::unordered_map<Expr, Choice>& known) {
    if (const auto it = known.find(e); it != known.end()) return it->second;
    Choice out;
    for (Expr a : e.args()) {
      const Choice& inside = best(a, values, known);
      out.gain += inside.gain;
      out.values.insert(out.values.end(), inside.values.begin(), inside.values.end());
    }
    if (const auto it = values.find(e); it != values.end()) {
      const double gain = gain_of(it->second);
      if (gain > 0 && gain >= out.gain) out = {gain, {e}};
    }
    return known.emplace(e, std::move(out)).first->second;
  }

  // Cycles of the machine that a tensor of these values saves.
  double gain_of(const Value& value) const {
    double slots = 0;
    expr::for_each(value.key[0],
                   [&](Expr e) { slots += algebra::op_slots(e.op(), target_.costs); });
    const double lanes = static_cast<double>(target_.board.sms) * target_.limits.group_threads;
    const auto bytes = 2.0 * expr::bytes(value.key[0].dtype());  // stored, and read once
    const double made = slots / lanes + bytes / target_.costs.memory_bytes_per_cycle;
    return tables_.at(value.key).saved - value.count * made - target_.costs.next_kernel_cycles;
  }

  Let tensor_of(const Let& let, Expr e, const Value& value) {
    Let out{names_.fresh(fmt::format("{}.table", let.name.str())), {}, e.dtype(), value.key[0]};
    expr::Substitution own;
    for (size_t k = 0; k < value.places.size(); ++k) {
      const Expr index = value.places[k].index;
      const Expr axis = index.op() == TableOp::Var ? index : axis_of_key(k);
      own.emplace(axis_of_key(k), axis);
      out.axes.push_back({axis.name(), value.places[k].extent});
    }
    out.body = expr::substitute(pool_, out.body, own);
    return out;
  }

  struct ByNode {
    bool operator()(const std::vector<Expr>& a, const std::vector<Expr>& b) const {
      return std::ranges::lexicographical_compare(
          a, b, {}, [](Expr e) { return e.node(); }, [](Expr e) { return e.node(); });
    }
  };

  const ir::Program& program_;
  const target::Target& target_;
  expr::ExprPool& pool_;
  expr::Simplifier simplifier_;
  expr::Facts facts_;
  std::map<std::string, ir::TensorType> types_;
  ir::UsualSizes sizes_;
  TensorNames names_;
  std::unordered_map<ir::Name, bool> is_of_elements_;
  std::unordered_map<ir::Name, Values> values_;  // by equation
  std::map<std::vector<Expr>, Table, ByNode> tables_;
};

}  // namespace

std::optional<ir::Program> tabulate(const ir::Program& program, ir::PassContext& context) {
  Tabulating tables(program, context);
  return map_equations(program, [&](const Let& let, std::vector<Let>& before) {
    return tables.equation(let, before);
  });
}

}  // namespace nautilus::spec
