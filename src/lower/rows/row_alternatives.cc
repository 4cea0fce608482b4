// SPDX-License-Identifier: Apache-2.0
#include "lower/rows/row_alternatives.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "matile/ops.h"

namespace nautilus::lower {
namespace {

using decision::HoldKind;
using expr::Expr;
using EK = expr::Op;

class RowAlternatives {
 public:
  RowAlternatives(const std::vector<RowShape>& shapes, const RowContext& context, ir::Block& plan)
      : shapes_(shapes), c_(context), n_(context.columns()), plan_(plan) {}

  std::optional<std::vector<RowAlternative>> run(size_t* unreached) {
    std::vector<RowAlternative> out;
    for (size_t k = 0; k < shapes_.size(); ++k) {
      // The condition of the first needs those of the others.
      const int64_t by = shapes_[k].is_shifted() ? 1 : shapes_[k].by;
      out.push_back({shapes_[k], suffix(k), limit(shapes_[k]), k == 0 ? Expr() : condition(k),
                     c_.group.exists ? in_vectors(c_.length(), by) : Expr()});
      if (k == 0 || !is_false(out[k].condition)) continue;
      *unreached = k;
      return std::nullopt;
    }
    out[0].condition = shapes_.size() == 1 ? c_.pool.boolean(true) : nowhere_else();
    return out;
  }

 private:
  static bool is_false(Expr e) { return e.op() == EK::BoolConst && !e.is_true(); }
  expr::Truth truth(Expr condition) const { return c_.facts.prove(condition); }
  Expr integer(int64_t n) const { return c_.pool.integer(n); }
  // Known conditions are constants.
  Expr known(Expr condition) const {
    const expr::Truth t = truth(condition);
    return t == expr::Truth::Unknown ? condition : c_.pool.boolean(t == expr::Truth::True);
  }
  Expr negated(Expr known_condition, EK op) const {
    if (known_condition.op() == EK::BoolConst) return c_.pool.boolean(!known_condition.is_true());
    return c_.pool.binary(op, known_condition[0], known_condition[1]);
  }
  Expr both(Expr a, Expr b) const {
    if (a.is_true() || is_false(b)) return b;
    return b.is_true() || is_false(a) ? a : c_.pool.binary(EK::And, a, b);
  }
  Expr either(Expr a, Expr b) const {
    if (a.is_true() || is_false(b)) return a;
    return b.is_true() || is_false(a) ? b : c_.pool.binary(EK::Or, a, b);
  }

  Expr is_at_most(int64_t columns) const {
    if (n_.op() == EK::IntConst) return c_.pool.boolean(n_.integer() <= columns);
    return known(c_.pool.binary(EK::Le, n_, integer(columns)));
  }
  Expr is_more(int64_t columns) const { return negated(is_at_most(columns), EK::Gt); }
  Expr is_exactly(int64_t columns) const {
    if (n_.op() == EK::IntConst) return c_.pool.boolean(n_.integer() == columns);
    return known(c_.pool.binary(EK::Eq, n_, integer(columns)));
  }
  Expr is_vectors(int64_t by) const {
    if (by == 1) return c_.pool.boolean(true);
    const Expr n = c_.length();
    if (n.op() == EK::IntConst) return c_.pool.boolean(n.integer() % by == 0);
    const Expr rest = c_.pool.binary(EK::Mod, n, integer(by));
    return known(c_.pool.binary(EK::Eq, rest, integer(0)));
  }
  Expr is_no_vectors(int64_t by) const { return negated(is_vectors(by), EK::Ne); }

  // Whether rows of any length that shape `k` takes are taken by shape `before` as far as vectors
  // go.
  bool has_vectors_of(size_t k, size_t before) const {
    return shapes_[k].by % shapes_[before].by == 0;
  }

  // Whether a shape between them takes all rows of the first one's vectors.
  bool takes_all_later(size_t first, size_t end) const {
    for (size_t k = first + 1; k < end; ++k) {
      const RowShape& s = shapes_[k];
      const bool takes_all =
          !s.is_held() || (s.hold == HoldKind::Row && is_at_most(s.capacity()).is_true());
      if (takes_all && !s.is_shifted() && s.by == shapes_[first].by) return true;
    }
    return false;
  }

  // Columns of a row that the shape holds, wherever its vectors begin.
  static int64_t held(const RowShape& s) { return s.capacity() - s.most_lead(); }

  // Where shape `k` does not run for its own reasons.
  Expr rejects(size_t k) const {
    const RowShape& s = shapes_[k];
    if (s.is_shifted()) return either(is_vectors(s.by), is_more(held(s)));
    switch (s.hold) {
      case HoldKind::Steps:
        return is_no_vectors(s.by);
      case HoldKind::Row:
        return either(is_no_vectors(s.by), is_more(s.capacity()));
      case HoldKind::Filled:
        return negated(is_exactly(s.capacity()), EK::Ne);
    }
    NAUT_CHECK(false, "no such kind of hold");
  }

  // Where shape `k` runs: what it can, without what those before it do.
  Expr condition(size_t k) const {
    const RowShape& s = shapes_[k];
    if (s.is_shifted()) return condition_of_shifted(k);
    if (s.hold == HoldKind::Filled) return is_exactly(s.capacity());
    Expr where = is_vectors(s.by);
    int64_t shorter = 0;  // rows of up to so many columns run elsewhere
    for (size_t before = 1; before < k; ++before) {
      const RowShape& b = shapes_[before];
      if (b.is_shifted() && s.by % b.by != 0) where = both(where, rejects(before));
      if (b.hold == HoldKind::Filled || b.is_shifted()) continue;
      if (!has_vectors_of(k, before) && takes_all_later(before, k))
        continue;
      else if (!has_vectors_of(k, before))
        where = both(where, rejects(before));
      else if (!b.is_held())
        return c_.pool.boolean(false);
      else
        shorter = std::max(shorter, b.capacity());
    }
    if (shorter > 0) where = both(where, is_more(shorter));
    if (s.is_held() && shorter >= s.capacity()) return c_.pool.boolean(false);
    bool is_filled_elsewhere = false;
    for (size_t before = 1; before < k; ++before) {
      const RowShape& b = shapes_[before];
      if (b.hold != HoldKind::Filled || b.capacity() <= shorter) continue;
      if (s.is_held() && b.capacity() == s.capacity())
        is_filled_elsewhere = true;
      else
        where = both(where, rejects(before));
    }
    if (!s.is_held()) return where;
    if (!is_filled_elsewhere) return both(where, is_at_most(s.capacity()));
    return both(where, known(c_.pool.binary(EK::Lt, n_, integer(s.capacity()))));
  }

  // Rows that are no whole vectors, without what shapes of the same kind before it take.
  Expr condition_of_shifted(size_t k) const {
    const RowShape& s = shapes_[k];
    Expr where = is_no_vectors(s.by);
    int64_t shorter = 0;
    for (size_t before = 1; before < k; ++before) {
      const RowShape& b = shapes_[before];
      if (b.is_shifted() || (b.is_held() && is_vectors(b.by).is_true()))
        shorter = std::max(shorter, held(b));
      else if (b.by % s.by != 0 && b.hold != HoldKind::Filled)
        where = both(where, rejects(before));  // narrower vectors
    }
    if (is_false(where)) return where;
    if (shorter > 0) where = both(where, is_more(shorter));
    return shorter >= held(s) ? c_.pool.boolean(false) : both(where, is_at_most(held(s)));
  }

  // Where no shape but the first runs. A shape for all rows of its vectors, and rows that it could
  // take as well, are one condition.
  Expr nowhere_else() const {
    std::optional<size_t> all;
    for (size_t k = 1; k < shapes_.size(); ++k) {
      const RowShape& s = shapes_[k];
      const bool takes_all = s.hold == HoldKind::Steps ||
                             (s.hold == HoldKind::Row && is_at_most(s.capacity()).is_true());
      if (takes_all && !s.is_shifted()) all = k;
    }
    Expr where = all ? is_no_vectors(shapes_[*all].by) : c_.pool.boolean(true);
    for (size_t k = 1; k < shapes_.size(); ++k) {
      const RowShape& s = shapes_[k];
      if (all && s.is_shifted() && s.by == shapes_[*all].by) {
        where = both(where, is_more(held(s)));  // whole vectors are excluded already
        continue;
      }
      if (all && !s.is_shifted() && (k == *all || has_vectors_of(k, *all))) continue;
      where = both(where, rejects(k));
    }
    return where;
  }

  std::string suffix(size_t k) const {
    const RowShape& s = shapes_[k];
    if (k == 0 && s.lanes > 0 && shapes_.size() > 1) return "_single";
    if (s.hold == HoldKind::Row && s.lanes > 0 && s.by == 1 && shapes_.size() > 1)
      return fmt::format("_{}_any", s.capacity());
    if (s.hold == HoldKind::Row)
      return fmt::format("_{}{}", s.capacity(), k > 0 && s.is_shifted() ? "_any" : "");
    if (s.hold == HoldKind::Filled) return fmt::format("_{}_whole", s.capacity());
    if (k == 0 && (shapes_.size() > 1 || n_.op() != EK::IntConst)) return "_single";
    return has_elements_only(c_.group) ? "_blocks" : "_long";
  }

  // The number of columns: of whole vectors as a multiple of them, which the kernel can see.
  Expr limit(const RowShape& shape) {
    if (shape.hold == HoldKind::Filled) return integer(shape.capacity());
    return in_vectors(n_, shape.is_shifted() ? 1 : shape.by);
  }
  Expr in_vectors(Expr n, int64_t by) {
    if (n.op() == EK::IntConst || is_vectors(by).is_true()) return n;
    const auto known_as = vectors_.find(by);
    if (known_as != vectors_.end()) return known_as->second;
    const ir::Name vectors = c_.names.make(fmt::format("{}_vectors", row_stem(c_.group)));
    plan_.push_back(ir::make(matile::Let{vectors, c_.pool.binary(EK::FloorDiv, n, integer(by))}));
    const Expr whole = c_.pool.binary(EK::Mul, integer(by), c_.pool.index(vectors));
    vectors_.emplace(by, whole);
    return whole;
  }

  const std::vector<RowShape>& shapes_;
  const RowContext& c_;
  Expr n_;
  ir::Block& plan_;
  std::map<int64_t, Expr> vectors_;  // rows of whole vectors
};

}  // namespace

std::optional<std::vector<RowAlternative>> row_alternatives(const std::vector<RowShape>& shapes,
                                                            const RowContext& context,
                                                            ir::Block& plan, size_t* unreached) {
  return RowAlternatives(shapes, context, plan).run(unreached);
}

std::string row_stem(const RowGroup& group) {
  std::string name(group.statements.back().target.str());
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

}  // namespace nautilus::lower
