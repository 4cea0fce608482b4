// SPDX-License-Identifier: Apache-2.0
#include "spec/facts/chosen_places.h"

#include <algorithm>

#include "expr/conjuncts.h"
#include "expr/scalar_ops.h"
#include "ir/decl.h"
#include "spec/equations.h"

namespace nautilus::spec {
namespace {

using expr::DType;
using expr::Expr;
using expr::Op;
using expr::Reducer;

bool reads_tensor(Expr e, ir::Name tensor) {
  const auto all = expr::tensors_read(e);
  return std::find(all.begin(), all.end(), tensor) != all.end();
}

class Readers {
 public:
  Readers(const ir::Program& program, const Let& count, const TotalOrder& order,
          expr::ExprPool& pool)
      : program_(program), count_(count), order_(order), pool_(pool) {}

  std::optional<PlaceReader> read(const Let& let) const {
    const Expr r = let.body;
    const bool is_choice = r.op() == Op::Reduce && r.axis_count() == 1 &&
                           r.extent(0) == order_.axis.extent && r.body().op() == Op::Select &&
                           expr::changes_nothing(r.body()[2], r.reducer(), r.init()) &&
                           !reads_tensor(r.body()[1], count_.name);
    if (!is_choice) return std::nullopt;
    PlaceReader out{&let, {}, 0};
    const std::vector<Expr> conditions = expr::conjuncts(r.body()[0]);
    for (Expr c : conditions) {
      if (!reads_tensor(c, count_.name)) continue;
      if (out.read || !choose_place(c, out)) return std::nullopt;
    }
    if (!out.read) return std::nullopt;
    const expr::Substitution own = indices_of(count_, out.read, pool_);
    const bool has_place = std::ranges::all_of(order_.has_place, [&](Expr c) {
      const Expr asked = expr::substitute(pool_, c, own);
      return std::find(conditions.begin(), conditions.end(), asked) != conditions.end();
    });
    return has_place ? std::optional(out) : std::nullopt;
  }

 private:
  // `i64(P[i, j]) == r`, with a limit of r.
  bool choose_place(Expr c, PlaceReader& out) const {
    if (c.op() != Op::Eq) return false;
    for (const size_t side : {size_t{0}, size_t{1}}) {
      const Expr read = algebra::counted_places(c[side]);
      const Expr place = c[1 - side];
      if (!read || read.name() != count_.name || !is_along_axis(read, *out.let) ||
          expr::depends_on(place, out.let->body.axis(0)))
        continue;
      const auto limit = limit_of(place, *out.let);
      out.read = read;
      out.limit = limit.value_or(0);
      return limit.has_value();
    }
    return false;
  }

  bool is_along_axis(Expr read, const Let& let) const {
    const Expr axis = let.body.axis(0);
    for (size_t k = 0; k < count_.axes.size(); ++k) {
      const bool is_axis = count_.axes[k].name == order_.axis.name;
      if (is_axis ? read[k] != axis : expr::depends_on(read[k], axis)) return false;
    }
    return true;
  }

  std::optional<int64_t> limit_of(Expr place, const Let& let) const {
    if (place.op() == Op::IntConst) return place.integer() + 1;
    if (place.dtype() != DType::I64) return std::nullopt;
    expr::Facts facts = ir::facts_of(program_, pool_);
    for (const ir::Axis& a : let.axes) facts.add_axis(pool_.index(a.name), a.extent);
    const auto poly = expr::Poly::of(place);
    const auto upper = poly ? facts.upper(*poly) : std::nullopt;
    const auto last = upper ? upper->constant() : std::nullopt;
    return last ? std::optional(*last + 1) : std::nullopt;
  }

  const ir::Program& program_;
  const Let& count_;
  const TotalOrder& order_;
  expr::ExprPool& pool_;
};

}  // namespace

std::optional<TotalOrder> counted_order(const Let& let, expr::ExprPool& pool) {
  const Expr sum = let.body;
  if (sum.op() != Op::Reduce || sum.reducer() != Reducer::Sum || sum.init() ||
      sum.axis_count() != 1)
    return std::nullopt;
  return algebra::read_total_order({let.axes, sum.body(), sum.axis(0), sum.extent(0)}, pool);
}

std::vector<PlaceReader> place_readers(const ir::Program& program, const Let& count,
                                       const TotalOrder& order, expr::ExprPool& pool) {
  if (output_set(program).contains(count.name)) return {};
  const Readers readers(program, count, order, pool);
  std::vector<PlaceReader> out;
  for (const ir::Op& op : program.body) {
    const auto* let = op.get<Let>();
    if (!let || let->name == count.name || !reads_tensor(let->body, count.name)) continue;
    const auto reader = readers.read(*let);
    if (!reader) return {};
    out.push_back(*reader);
  }
  return out;
}

expr::Substitution indices_of(const Let& tensor, ir::Expr read, expr::ExprPool& pool) {
  expr::Substitution out;
  for (size_t k = 0; k < tensor.axes.size(); ++k)
    out.emplace(pool.index(tensor.axes[k].name), read[k]);
  return out;
}

}  // namespace nautilus::spec
