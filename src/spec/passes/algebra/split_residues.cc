// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/algebra/split_residues.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "algebra/contraction.h"
#include "expr/bounds/affine.h"
#include "expr/rules/simplify.h"
#include "expr/walk.h"
#include "ir/decl.h"
#include "spec/equations.h"
#include "spec/facts/term_tests.h"
#include "spec/passes/algebra/without_moves.h"

namespace nautilus::spec {
namespace {

using expr::Expr;
using expr::Poly;
using ResidueOp = expr::Op;

int64_t floor_of(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }
int64_t residue(int64_t a, int64_t b) { return a - floor_of(a, b) * b; }

// Terms exist where `(axis + shift + factor * tap) % modulus == 0`.
struct Residue {
  size_t axis = 0;  // of the result
  int64_t shift = 0;
  std::optional<size_t> tap;  // axis of the sum; none: all terms of a place exist, or no one does
  int64_t factor = 0;
  int64_t modulus = 1;
};

// Classes of taps that have as many taps as each other: taps are `classes * step + class`.
struct Group {
  int64_t first = 0;
  int64_t count = 1;
  int64_t taps = 1;
};

// A sum and the axes of the tensor that it is the elements of.
struct Sum {
  ir::Axes axes;
  ir::Axes reduced;
  Expr body;
  size_t classes_at = 0;  // the positions of classes among `axes`
  bool has_classes = false;
};

bool is_zero_of_sum(Expr e) { return e.op() == ResidueOp::FloatConst && e.number() == 0; }

class ResidueSplitter {
 public:
  ResidueSplitter(const ir::Program& program, expr::ExprPool& pool)
      : pool_(pool),
        simplifier_(pool),
        facts_(ir::facts_of(program, pool)),
        types_(tensor_types(program)),
        names_(program, pool) {}

  Let equation(const Let& let, std::vector<Let>& before) {
    Let out = map_body(let, pool_, [&](Expr r) { return reduction(let, r, before); });
    if (!before.empty()) divided_.insert(let.name);
    return out;
  }

  // Equations with a sum that is now combined from classes.
  const std::unordered_set<ir::Name>& divided_equations() const { return divided_; }

 private:
  Expr reduction(const Let& let, Expr r, std::vector<Let>& before) {
    if (r.op() != ResidueOp::Reduce || r.reducer() != expr::Reducer::Sum || r.init() ||
        !expr::is_float(r.dtype()) || expr::has_reduce(r.body()) || !is_of_axes(let, r, pool_))
      return r;
    Sum sum{let.axes, {}, r.body()};
    for (size_t k = 0; k < r.axis_count(); ++k)
      sum.reduced.push_back({r.axis(k).name(), r.extent(k)});
    const Expr product = sum.body.op() == ResidueOp::Select ? sum.body[1] : sum.body;
    if (!algebra::is_contraction(algebra::factors(product), result_axes(let, pool_)) ||
        !find_residue(sum))
      return r;
    name_ = fmt::format("{}.classes", let.name.str());
    dtype_ = r.dtype();
    return divided(sum, before);
  }

  // The element of the sum, at its axes: read from sums over classes, which are made before.
  Expr divided(const Sum& sum, std::vector<Let>& before) {
    const auto found = find_residue(sum);
    if (!found) return leaf(sum, before);
    Expr out = pool_.floating(0, dtype_);
    const std::vector<Group> groups = groups_of(*found, sum);
    // Where all places have terms, what no other group has is in the last one.
    const bool is_all =
        common(*found) == 1 && groups.back().first + groups.back().count == found->modulus;
    for (auto g = groups.rbegin(); g != groups.rend(); ++g)
      out = of_group(*found, *g, sum, is_all && g == groups.rbegin() ? Expr() : out, before);
    return out;
  }

  Expr leaf(const Sum& sum, std::vector<Let>& before) {
    expr::Facts facts = facts_;
    for (const ir::Axes* axes : {&sum.axes, &sum.reduced})
      for (const ir::Axis& a : *axes) facts.add_axis(pool_.index(a.name), a.extent);
    Expr body = simplifier_.simplify(sum.body, &facts);
    if (!sum.reduced.empty()) {
      std::vector<Expr> axes;
      std::vector<Expr> extents;
      for (const ir::Axis& a : sum.reduced) {
        axes.push_back(pool_.index(a.name));
        extents.push_back(a.extent);
      }
      body = pool_.reduce(expr::Reducer::Sum, body, axes, extents);
    }
    before.push_back({names_.fresh(name_), sum.axes, dtype_, body});
    return element(before.back(), pool_);
  }

  // The first test of residues that terms have, of an axis and at most one axis of the sum.
  std::optional<Residue> find_residue(const Sum& sum) const {
    for (Expr c : term_tests(sum.body)) {
      const ResidueTest test = residue_test(c);
      if (!test.number) continue;
      if (const auto found = residue_of(test.number, test.modulus, sum)) return found;
    }
    return std::nullopt;
  }

  std::optional<Residue> residue_of(Expr number, int64_t modulus, const Sum& sum) const {
    auto p = Poly::of(number);
    for (size_t k = 0; p && k < sum.axes.size(); ++k) {
      auto parts = p->split(pool_.index(sum.axes[k].name));
      if (!parts) return std::nullopt;
      const auto own = parts->first.constant();
      if (own != 1 && own != -1) continue;
      auto rest = own == 1 ? parts->second : *expr::negated(parts->second);
      Residue out{k, 0, std::nullopt, 0, modulus};
      for (size_t n = 0; n < sum.reduced.size(); ++n) {
        const auto tap = rest.split(pool_.index(sum.reduced[n].name));
        const auto factor = tap ? tap->first.constant() : std::nullopt;
        if (!factor) return std::nullopt;
        rest = tap->second;
        if (*factor % modulus == 0) continue;
        if (out.tap || sum.reduced[n].extent.op() != ResidueOp::IntConst ||
            sum.reduced[n].extent.integer() < 1)
          return std::nullopt;
        out.tap = n;
        out.factor = *factor;
      }
      const auto shift = rest.constant();
      if (!shift) return std::nullopt;
      out.shift = *shift;
      return out;
    }
    return std::nullopt;
  }

  static int64_t common(const Residue& r) {
    return r.tap ? std::gcd(residue(r.factor, r.modulus), r.modulus) : r.modulus;
  }

  static std::vector<Group> groups_of(const Residue& r, const Sum& sum) {
    if (!r.tap) return {Group{}};
    const int64_t taps = sum.reduced[*r.tap].extent.integer();
    const int64_t classes = r.modulus / common(r);
    const int64_t most = (taps + classes - 1) / classes;
    const int64_t full = taps - classes * (most - 1);
    std::vector<Group> out = {{0, full, most}};
    if (most > 1 && full < classes) out.push_back({full, classes - full, most - 1});
    return out;
  }

  // The element where its place is in the group, `other` elsewhere; null: there is no other place.
  Expr of_group(const Residue& r, const Group& g, const Sum& sum, Expr other,
                std::vector<Let>& before) {
    const int64_t classes = r.modulus / common(r);
    const ir::Axis place = sum.axes[r.axis];
    Sum inner = sum;
    if (!inner.has_classes) inner.classes_at = r.axis;
    inner.has_classes = true;
    const Expr step = pool_.index(names_.fresh(fmt::format("{}.step", place.name.str())));
    // place = modulus * (step + from) - shift - factor * class
    const int64_t ends[] = {r.factor * g.first, r.factor * (g.first + g.count - 1)};
    const int64_t from = floor_of(r.shift + std::min(ends[0], ends[1]), r.modulus);
    const Expr extent =
        plus(quotient(plus(place.extent, r.shift - 1 + std::max(ends[0], ends[1])), r.modulus),
             1 - from);
    inner.axes[r.axis] = {step.name(), simplifier_.simplify(extent)};
    Expr own_class = pool_.integer(g.first);
    Expr class_axis;
    if (g.count > 1) {
      const std::string tap(sum.reduced[*r.tap].name.str());
      class_axis = pool_.index(names_.fresh(fmt::format("{}.class", tap)));
      own_class = plus(class_axis, g.first);
      inner.axes.insert(inner.axes.begin() + static_cast<std::ptrdiff_t>(inner.classes_at),
                        {class_axis.name(), pool_.integer(g.count)});
      ++inner.classes_at;
    }
    expr::Substitution at;
    at.emplace(pool_.index(place.name),
               minus(plus(times(step, r.modulus), from * r.modulus - r.shift),
                     times(own_class, r.factor)));
    if (r.tap) put_taps(*r.tap, g, classes, own_class, inner, at);
    inner.body = inside(exact(expr::substitute(pool_, sum.body, at)), inner);
    const Expr inner_element = divided(inner, before);
    // And back from a place to its class and step.
    const Expr here = pool_.index(place.name);
    const Expr found = g.count == 1 ? own_class : class_of(r, here);
    expr::Substitution back;
    const Expr of_step = minus(plus(here, r.shift), times(found, -r.factor));
    back.emplace(step, plus(quotient(of_step, r.modulus), -from));
    if (class_axis) back.emplace(class_axis, plus(found, -g.first));
    const Expr condition = other ? is_in_group(r, g, here) : Expr();
    const Expr value = expr::substitute(pool_, inner_element, back);
    return condition ? pool_.select(condition, value, other) : value;
  }

  void put_taps(size_t tap, const Group& g, int64_t classes, Expr own_class, Sum& inner,
                expr::Substitution& at) {
    const Expr old = pool_.index(inner.reduced[tap].name);
    if (g.taps == 1) {
      inner.reduced.erase(inner.reduced.begin() + static_cast<std::ptrdiff_t>(tap));
      at.emplace(old, own_class);
      return;
    }
    const Expr step = pool_.index(names_.fresh(fmt::format("{}.step", old.name().str())));
    inner.reduced[tap] = {step.name(), pool_.integer(g.taps)};
    at.emplace(old, pool_.binary(ResidueOp::Add, times(step, classes), own_class));
  }

  // The class of taps of a place; any number where no tap is in its residue.
  Expr class_of(const Residue& r, Expr here) {
    const int64_t g = common(r);
    const int64_t classes = r.modulus / g;
    int64_t inverse = 0;  // minus that of factor / g, among the classes
    while (residue(r.factor / g * inverse + 1, classes) != 0) ++inverse;
    const Expr places = quotient(plus(here, residue(r.shift, r.modulus)), g);
    return pool_.binary(ResidueOp::Mod, times(places, inverse), pool_.integer(classes));
  }

  // Null if every place is.
  Expr is_in_group(const Residue& r, const Group& g, Expr here) {
    const int64_t common_divisor = common(r);
    const int64_t classes = r.modulus / common_divisor;
    Expr out;
    const auto add = [&](Expr c) { out = out ? pool_.binary(ResidueOp::And, out, c) : c; };
    if (common_divisor > 1)
      add(pool_.binary(ResidueOp::Eq,
                       pool_.binary(ResidueOp::Mod, plus(here, residue(r.shift, common_divisor)),
                                    pool_.integer(common_divisor)),
                       pool_.integer(0)));
    if (g.first > 0) add(pool_.binary(ResidueOp::Ge, class_of(r, here), pool_.integer(g.first)));
    if (g.first + g.count < classes)
      add(pool_.binary(ResidueOp::Lt, class_of(r, here), pool_.integer(g.first + g.count)));
    return out;
  }

  // Divisions that leave no remainder are carried out, and comparisons of multiples of a number
  // compare how many they are.
  Expr exact(Expr body) {
    return expr::rebuild(pool_, body, [&](Expr e) {
      if ((e.op() == ResidueOp::FloorDiv || e.op() == ResidueOp::Mod) &&
          e[1].op() == ResidueOp::IntConst && e[1].integer() > 0) {
        const int64_t n = e[1].integer();
        const auto p = Poly::of(e[0]);
        const auto whole = p ? expr::divide(*p, n) : std::nullopt;
        if (!whole) return e;
        if (e.op() == ResidueOp::Mod) return pool_.integer(residue(p->constant_term(), n));
        return expr::to_expr(pool_, *whole);
      }
      const bool is_order = e.op() == ResidueOp::Lt || e.op() == ResidueOp::Le ||
                            e.op() == ResidueOp::Gt || e.op() == ResidueOp::Ge;
      return is_order && e[0].dtype() == expr::DType::I64 ? compared(e) : e;
    });
  }

  Expr compared(Expr e) {
    const bool is_less = e.op() == ResidueOp::Lt || e.op() == ResidueOp::Le;
    const bool is_strict = e.op() == ResidueOp::Lt || e.op() == ResidueOp::Gt;
    const auto apart = is_less ? expr::difference(e[1], e[0]) : expr::difference(e[0], e[1]);
    const auto room = apart ? expr::plus(*apart, is_strict ? -1 : 0) : std::nullopt;
    if (!room || room->constant()) return e;
    int64_t common_factor = 0;
    for (const auto& [monomial, factor] : room->terms())
      common_factor = std::gcd(common_factor, monomial.empty() ? 0 : factor);
    const auto steps = common_factor > 1 ? expr::divide(*room, common_factor) : room;
    if (!steps) return e;
    return pool_.binary(ResidueOp::Ge, expr::to_expr(pool_, *steps), pool_.integer(0));
  }

  // Tests around reads that may be outside at places beyond the tensor.
  Expr inside(Expr body, const Sum& sum) {
    if (body.op() == ResidueOp::Mul)
      return pool_.binary(ResidueOp::Mul, inside(body[0], sum), inside(body[1], sum));
    expr::Facts facts = facts_;
    for (const ir::Axes* axes : {&sum.axes, &sum.reduced})
      for (const ir::Axis& a : *axes) facts.add_axis(pool_.index(a.name), a.extent);
    const bool is_guarded = body.op() == ResidueOp::Select && is_zero_of_sum(body[2]);
    if (is_guarded) facts.assume(body[0]);
    Expr tests;
    expr::for_each(body, [&](Expr read) {
      const auto type =
          read.op() == ResidueOp::Read ? types_.find(std::string(read.name().str())) : types_.end();
      if (type == types_.end()) return;
      for (size_t k = 0; k < read.args().size(); ++k) {
        if (!expr::tensors_read(read[k]).empty()) continue;
        for (Expr c : {pool_.binary(ResidueOp::Ge, read[k], pool_.integer(0)),
                       pool_.binary(ResidueOp::Lt, read[k], type->second.dims[k])}) {
          const Expr test = compared(c);
          if (facts.prove(test) == expr::Truth::True) continue;
          tests = tests ? pool_.binary(ResidueOp::And, tests, test) : test;
        }
      }
    });
    if (!tests) return body;
    if (is_guarded)
      return pool_.select(pool_.binary(ResidueOp::And, body[0], tests), body[1], body[2]);
    return pool_.select(tests, body, pool_.floating(0, body.dtype()));
  }

  Expr plus(Expr e, int64_t n) {
    return expr::canonical_index(pool_, pool_.binary(ResidueOp::Add, e, pool_.integer(n)));
  }
  Expr minus(Expr a, Expr b) {
    return expr::canonical_index(pool_, pool_.binary(ResidueOp::Sub, a, b));
  }
  Expr times(Expr e, int64_t n) {
    return expr::canonical_index(pool_, pool_.binary(ResidueOp::Mul, e, pool_.integer(n)));
  }
  Expr quotient(Expr e, int64_t n) {
    return n == 1 ? e
                  : simplifier_.simplify(pool_.binary(ResidueOp::FloorDiv, e, pool_.integer(n)));
  }

  expr::ExprPool& pool_;
  expr::Simplifier simplifier_;
  expr::Facts facts_;
  std::map<std::string, ir::TensorType> types_;
  TensorNames names_;
  std::string name_;  // of the sums
  std::unordered_set<ir::Name> divided_;
  expr::DType dtype_ = expr::DType::F32;
};

}  // namespace

std::optional<ir::Program> split_residues(const ir::Program& program, ir::PassContext& context) {
  ResidueSplitter splitter(program, context.pool);
  const ir::Program out = map_equations(program, [&](const Let& let, std::vector<Let>& before) {
    return splitter.equation(let, before);
  });
  return without_moves(out, splitter.divided_equations(), context.pool);
}

}  // namespace nautilus::spec
