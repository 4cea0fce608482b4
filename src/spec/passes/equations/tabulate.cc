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
};

// Equal values, wherever they stand.
struct Table {
  double readers = 0;  // equations that have them
  ir::Name name = {};  // once it is made
};

// What is known of an equation.
struct Elements {
  std::unordered_map<Expr, Value> values;
  std::unordered_map<Expr, double> cycles;  // of each operator of the body
  Expr last;                                // axis
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
    const Elements& own = elements_[let.name];
    if (own.values.empty()) return let;
    expr::Substitution reads;
    for (Expr e : best(let.body, own)) {
      const Value& value = own.values.at(e);
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
  using Chosen = std::vector<Expr>;

  void find_values(const Let& let) {
    ir::Axes axes = let.axes;
    const Expr r = let.body;
    const bool is_reduction = r.op() == TableOp::Reduce;
    for (size_t k = 0; is_reduction && k < r.axis_count(); ++k)
      axes.push_back({r.axis(k).name(), r.extent(k)});
    if (axes.empty() || !has_function(r)) return;
    expr::Facts facts = facts_;
    for (const ir::Axis& a : axes) facts.add_axis(pool_.index(a.name), a.extent);
    // A tile of a product computes its operands once for all its columns.
    if (is_reduction &&
        algebra::is_contraction(algebra::factors(r.body()), result_axes(let, pool_)))
      return;
    Elements& own = elements_[let.name];
    own.last = pool_.index(axes.back().name);
    std::unordered_set<Expr> functions;  // expressions with one
    expr::for_each(is_reduction ? r.body() : r, [&](Expr e) {
      own.cycles.emplace(e, evaluations(e, axes) * cycles_of(e, own.last));
      if (!is_function(e) &&
          std::ranges::none_of(e.args(), [&](Expr a) { return functions.contains(a); }))
        return;
      functions.insert(e);
      if (e.dtype() != expr::DType::F32 || !is_costly(e, own.last) || !may_stand_alone(e)) return;
      Value value = value_of(e, axes, facts);
      if (value.count >= value.evaluations || !is_inside_alone(value)) return;
      tables_[value.key].readers += 1;
      own.values.emplace(e, std::move(value));
    });
  }

  bool is_function(Expr e) const {
    return algebra::op_slots(e.op(), target_.costs) >= target_.costs.special_slots;
  }
  bool has_function(Expr e) const {
    bool has = false;
    expr::for_each(e, [&](Expr x) { has |= is_function(x); });
    return has;
  }

  // What takes fewer instructions than a load is done while other loads are waited for.
  bool is_costly(Expr value, Expr last) const {
    const bool has_last = expr::depends_on(value, last);
    double slots = 0;
    expr::for_each(value, [&](Expr e) {
      const bool is_counted = !has_last || expr::depends_on(e, last);
      if (is_counted && e.op() != TableOp::Read) slots += algebra::op_slots(e.op(), target_.costs);
    });
    return slots >= target_.costs.load_slots;
  }

  // Kernels have axes in this order: what is the same along the last ones is computed once.
  double evaluations(Expr e, const ir::Axes& axes) const {
    auto end = axes.end();
    while (end != axes.begin() && !expr::depends_on(e, pool_.index((end - 1)->name))) --end;
    return sizes_.count({axes.begin(), end});
  }

  // Of the machine, for one evaluation of the operator.
  double cycles_of(Expr e, Expr last) const {
    if (e.op() == TableOp::Read && expr::depends_on(e, last)) return load_cycles(e.dtype());
    return algebra::op_slots(e.op(), target_.costs) / lanes();
  }
  double load_cycles(expr::DType dtype) const {
    const double speed = static_cast<double>(target_.board.sms) * target_.nests.cache_bytes;
    return target_.costs.load_slots / lanes() + static_cast<double>(expr::bytes(dtype)) / speed;
  }
  double lanes() const {
    return static_cast<double>(target_.board.sms) * target_.limits.group_threads;
  }

  Value value_of(Expr e, const ir::Axes& axes, const expr::Facts& facts) {
    Value out{places_of(e, axes, facts, sizes_, pool_), {}, evaluations(e, axes), 1};
    expr::Substitution canonical;
    for (size_t k = 0; k < out.places.size(); ++k) {
      const Place& p = out.places[k];
      canonical.emplace(p.index, pool_.binary(TableOp::Add, axis_of_key(k), p.least));
      out.count *= sizes_.extent(p.extent);
    }
    out.key.push_back(simplifier_.simplify(expr::substitute(pool_, e, canonical), &facts_));
    for (const Place& p : out.places) out.key.push_back(p.extent);
    return out;
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

  // The values whose tensors save most. Values that share what they are computed of are worth it
  // together: begins with all that have the same axes, then goes on one by one.
  Chosen best(Expr body, const Elements& own) const {
    Chosen out;
    double least = cycles(body, own, out);
    const auto take_if_less = [&](const Chosen& other) {
      const double c = cycles(body, own, other);
      if (c >= least) return false;
      least = c;
      out = other;
      return true;
    };
    for (const Chosen& alike : with_equal_axes(body, own)) {
      if (take_if_less(alike)) continue;
      Chosen both = out;
      add_new(alike, both);
      take_if_less(both);
    }
    for (bool is_better = true; is_better;) {
      is_better = false;
      for (Expr e : Chosen(out)) {
        Chosen other;
        for (Expr kept : out) {
          if (kept != e) other.push_back(kept);
        }
        const auto is_value = [&](Expr x) { return own.values.contains(x); };
        add_new(outermost(e.args(), is_value), other);
        is_better |= take_if_less(other);
        if (is_better) break;
      }
    }
    // Others stand inside of those alone.
    std::erase_if(out, [&](Expr e) { return !is_needed(body, e, out); });
    return out;
  }

  static bool is_needed(Expr body, Expr value, const Chosen& read) {
    std::unordered_set<Expr> seen;
    bool is = false;
    auto go = [&](auto& self, Expr e) -> void {
      if (!seen.insert(e).second) return;
      is |= e == value;
      if (std::ranges::find(read, e) != read.end()) return;
      for (Expr a : e.args()) self(self, a);
    };
    go(go, body);
    return is;
  }

  static void add_new(const Chosen& from, Chosen& to) {
    for (Expr e : from) {
      if (std::ranges::find(to, e) == to.end()) to.push_back(e);
    }
  }

  // By the extents of their tensors, the outermost ones of each.
  static std::vector<Chosen> with_equal_axes(Expr body, const Elements& own) {
    std::vector<Chosen> out;
    std::vector<std::vector<Expr>> known;
    expr::for_each(body, [&](Expr e) {
      const auto it = own.values.find(e);
      if (it == own.values.end()) return;
      const std::vector<Expr> extents = extents_of(it->second);
      if (std::ranges::find(known, extents) != known.end()) return;
      known.push_back(extents);
      out.push_back(outermost({&body, 1}, [&](Expr x) {
        const auto value = own.values.find(x);
        return value != own.values.end() && extents_of(value->second) == extents;
      }));
    });
    return out;
  }
  static std::vector<Expr> extents_of(const Value& value) {
    return {value.key.begin() + 1, value.key.end()};
  }

  template <class F>
  static Chosen outermost(std::span<const Expr> roots, F&& is_wanted) {
    Chosen out;
    std::unordered_set<Expr> seen;
    auto go = [&](auto& self, Expr e) -> void {
      if (!seen.insert(e).second) return;
      if (is_wanted(e)) {
        out.push_back(e);
        return;
      }
      for (Expr a : e.args()) self(self, a);
    };
    for (Expr root : roots) go(go, root);
    return out;
  }

  // Of the equation and its share of the tensors, if it reads these values.
  double cycles(Expr body, const Elements& own, const Chosen& read) const {
    double sum = 0;
    std::vector<std::vector<Expr>> launched;
    std::unordered_set<Expr> seen;
    auto go = [&](auto& self, Expr e) -> void {
      if (!seen.insert(e).second) return;
      if (std::ranges::find(read, e) != read.end()) {
        const Value& value = own.values.at(e);
        const Table& table = tables_.at(value.key);
        const bool has_last = expr::depends_on(e, own.last);
        sum += value.evaluations * (has_last ? load_cycles(e.dtype()) : 1 / lanes());
        if (table.name) return;
        sum += cycles_to_make(value) / table.readers;
        // One kernel makes all that have the same axes.
        const std::vector<Expr> extents = extents_of(value);
        if (std::ranges::find(launched, extents) != launched.end()) return;
        launched.push_back(extents);
        sum += target_.costs.next_kernel_cycles / table.readers;
        return;
      }
      if (const auto it = own.cycles.find(e); it != own.cycles.end()) sum += it->second;
      for (Expr a : e.args()) self(self, a);
    };
    go(go, body);
    return sum;
  }

  double cycles_to_make(const Value& value) const {
    double slots = 0;
    expr::for_each(value.key[0],
                   [&](Expr e) { slots += algebra::op_slots(e.op(), target_.costs); });
    const auto bytes = 2.0 * expr::bytes(value.key[0].dtype());  // stored, and read once
    return value.count * (slots / lanes() + bytes / target_.costs.memory_bytes_per_cycle);
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
  std::unordered_map<ir::Name, Elements> elements_;  // by equation
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
