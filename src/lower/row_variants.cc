// SPDX-License-Identifier: Apache-2.0
#include "lower/row_variants.h"

#include <fmt/format.h>

#include <algorithm>

#include "expr/walk.h"
#include "lower/row_lowering.h"
#include "matile/ops.h"

namespace nautilus::lower {
namespace {

using expr::DType;
using expr::Expr;
using Kind = RowStatement::Kind;
using EK = expr::Op;

// The variants of a group, each for the sizes of its condition. The first takes any size, and
// stands in for the others where tensors are not aligned.
class Variants {
 public:
  Variants(const RowGroup& group, const std::set<std::string>& kept,
           const std::map<std::string, ir::TensorType>& buffers, const expr::Facts& facts,
           FreshNames& names, expr::ExprPool& pool)
      : group_(group),
        choice_(group.target->rows),
        kept_(kept),
        buffers_(buffers),
        facts_(facts),
        names_(names),
        pool_(pool) {}

  std::vector<RowVariant> run(ir::Block& plan) {
    const Expr n = group_.column.extent;
    const int64_t width = vector_width();
    std::vector<RowVariant> out;
    const Expr is_vector =
        pool_.binary(EK::Eq, pool_.binary(EK::Mod, n, pool_.integer(width)), pool_.integer(0));
    if (n.op() == EK::IntConst) {
      const bool is_whole = n.integer() % width == 0;
      // A register has two elements of 16 bits: a thread has an even number of them.
      const int64_t unit = choice_.threads * (is_whole ? width : 2);
      const int64_t step = choice_.threads * width * (is_whole ? 2 : 1);
      if (is_whole) out.push_back(single(n, pool_.boolean(false)));
      const std::string_view others = is_blocked() ? "_blocks" : "_long";
      const RowVariant walked{std::string(others), step, is_whole ? width : 1, false, n,
                              pool_.boolean(true), 1};
      out.push_back(kept(n.integer(), unit, walked).value_or(walked));
      return out;
    }
    const bool is_never = truth(is_vector) == expr::Truth::False;
    const bool is_always = truth(is_vector) == expr::Truth::True;
    out.push_back(single(n, is_always  ? pool_.boolean(false)
                            : is_never ? pool_.boolean(true)
                                       : pool_.binary(EK::Ne, is_vector[0], pool_.integer(0))));
    Expr whole = n;
    if (!is_always && !is_never) {
      // A multiple of the width, which the kernel can see.
      const ir::Name vectors = names_.make(fmt::format("{}_vectors", row_stem(group_)));
      plan.push_back(
          ir::make(matile::Let{vectors, pool_.binary(EK::FloorDiv, n, pool_.integer(width))}));
      whole = pool_.binary(EK::Mul, pool_.integer(width), pool_.index(vectors));
    }
    if (!is_never) {
      Expr above = is_always ? pool_.boolean(true) : is_vector;
      bool is_open = true;
      for (const int64_t cap : choice_.columns) {
        if (!is_open) break;
        auto variant = kept(cap, choice_.threads * width, {{}, 0, width, true, whole, {}, 1});
        if (!variant) break;
        const Expr below = pool_.binary(EK::Le, n, pool_.integer(cap));
        if (truth(below) == expr::Truth::True) is_open = false;
        if (truth(below) == expr::Truth::False) continue;
        if (const auto filled = whole_of(*variant, cap)) {
          out.push_back(*filled);
          variant->condition = both(above, pool_.binary(EK::Lt, n, pool_.integer(cap)));
        } else {
          variant->condition = is_open ? both(above, below) : above;
        }
        out.push_back(std::move(*variant));
        above = both(is_always ? pool_.boolean(true) : is_vector,
                     pool_.binary(EK::Gt, n, pool_.integer(cap)));
      }
      if (is_open)
        out.push_back({is_blocked() ? "_blocks" : "_long", choice_.threads * width * 2, width,
                       false, whole, above, 1});
    }
    return out;
  }

 private:
  bool is_blocked() const { return has_elements_only(group_); }
  // Element by element: for any length and any alignment.
  RowVariant single(Expr n, Expr condition) const {
    return {"_single", choice_.threads * 8, 1, false, n, condition, 1};
  }
  expr::Truth truth(Expr condition) const { return facts_.prove(condition); }
  Expr both(Expr a, Expr b) { return a.is_true() ? b : pool_.binary(EK::And, a, b); }

  // Where a row that does not fill the tiles of several groups needs conditions in its reductions,
  // one that does has a kernel of its own: layernorm of 16384 columns has 450 instructions instead
  // of 617. Empty if there is none.
  std::optional<RowVariant> whole_of(const RowVariant& variant, int64_t columns) {
    const Expr is_whole = pool_.binary(EK::Eq, group_.column.extent, pool_.integer(columns));
    if (variant.groups == 1 || columns != variant.groups * variant.columns ||
        truth(is_whole) == expr::Truth::False)
      return std::nullopt;
    RowLowering trial = lowering(variant);
    trial.run();
    if (!trial.has_conditions()) return std::nullopt;
    RowVariant whole = variant;
    whole.suffix += "_whole";
    whole.limit = pool_.integer(columns);
    whole.condition = is_whole;
    return whole;
  }
  RowLowering lowering(const RowVariant& v) {
    return {group_, kept_, buffers_, facts_, v, row_name(), names_, pool_};
  }

  bool writes_rows() const {
    return std::any_of(
        group_.statements.begin(), group_.statements.end(), [&](const RowStatement& s) {
          return s.kind == Kind::Element && kept_.contains(std::string(s.target.str()));
        });
  }

  std::vector<ir::TensorType> row_tensors() const {
    std::map<std::string, ir::TensorType> found;
    const Expr column = pool_.index(group_.column.name);
    for (const RowStatement& s : group_.statements) {
      expr::for_each(s.value, [&](Expr e) {
        if (e.op() != EK::Read || e.args().empty() || e.args().back() != column) return;
        const auto it = buffers_.find(std::string(e.name().str()));
        if (it != buffers_.end()) found.insert(*it);
      });
      if (s.kind == Kind::Element) found.insert(*buffers_.find(std::string(s.target.str())));
    }
    std::vector<ir::TensorType> out;
    for (const auto& [name, type] : found) out.push_back(type);
    return out;
  }

  // Elements of the narrowest tensor in a vector, at most 8.
  int64_t vector_width() const {
    int64_t width = 4;
    for (const ir::TensorType& t : row_tensors())
      width = std::max<int64_t>(
          width, std::min<int64_t>(group_.target->memory.vector_bytes / expr::bytes(t.dtype), 8));
    return width;
  }

  // The variant that keeps rows of so many columns, rounded up to whole units of each group; empty
  // if there is none. Like `other` in what is not said by that.
  std::optional<RowVariant> kept(int64_t columns, int64_t unit, const RowVariant& other) {
    if (is_blocked()) return std::nullopt;
    for (const int64_t groups : {choice_.groups, int64_t{1}}) {
      if (groups > 1 && columns <= choice_.group_columns) continue;
      // What only reads rows has more of them under way in small CTAs.
      if (groups > 1 && columns <= choice_.columns_of_group && !writes_rows()) continue;
      const int64_t all = groups * unit;
      const int64_t capacity = std::max<int64_t>((columns + all - 1) / all, 1) * all;
      RowVariant v = other;
      v.suffix = fmt::format("_{}", capacity);
      v.columns = capacity / groups;
      v.is_resident = true;
      v.groups = groups;
      if (capacity <= (groups > 1 ? choice_.most_columns : choice_.columns_of_group) && fits(v))
        return v;
    }
    return std::nullopt;
  }

  // What is read of a row must fit. A kernel of several groups is made to see: its threads have no
  // registers to spare for values that no read stands for.
  bool fits(const RowVariant& v) {
    if (!fits(v.columns, v.groups)) return false;
    if (v.groups == 1) return true;
    if (v.columns > choice_.positions_of_group && has_positions()) return false;
    RowLowering trial = lowering(v);
    trial.run();
    return trial.fits();
  }
  // Columns as numbers, other than compared: a thread would keep one for each of its elements from
  // reduction to reduction (an argmax of 65536 columns: 800 registers spilled).
  bool has_positions() const {
    const Expr column = pool_.index(group_.column.name);
    bool found = false;
    for (const RowStatement& s : group_.statements) {
      expr::for_each(s.value, [&](Expr e) {
        const bool is_number =
            e.op() == EK::Cast && expr::is_float(e.dtype()) && expr::is_int(e[0].dtype());
        const bool is_divided =
            (e.op() == EK::FloorDiv || e.op() == EK::Mod) && expr::is_int(e.dtype());
        found |= (is_number || is_divided) && expr::depends_on(e, column);
      });
    }
    return found;
  }
  ir::Name row_name() const { return pool_.name(row_stem(group_)); }

  // The columns of each of the groups that share a row.
  bool fits(int64_t columns, int64_t groups) const {
    int64_t sum = 0;
    std::set<std::string> own;
    for (const RowStatement& s : group_.statements) own.emplace(s.target.str());
    const std::vector<Expr> shared = shared_by_rows(group_, pool_);
    std::set<std::string> read;
    const Expr column = pool_.index(group_.column.name);
    for (const RowStatement& s : group_.statements) {
      expr::for_each(s.value, [&](Expr e) {
        if (e.op() != EK::Read || e.args().empty() || e.args().back() != column) return;
        if (own.contains(std::string(e.name().str()))) return;
        if (!read.emplace(e.name().str()).second) return;
        const bool is_shared = std::find(shared.begin(), shared.end(), e) != shared.end();
        const int64_t held = is_shared ? std::min(columns, choice_.threads * 8) : columns;
        sum += row_tile_registers(e.dtype(), held, choice_.threads);
      });
    }
    return sum <=
           (groups > 1 ? choice_.alone_registers - choice_.registers_beside : choice_.registers);
  }

  const RowGroup& group_;
  const target::Rows& choice_;
  const std::set<std::string>& kept_;
  const std::map<std::string, ir::TensorType>& buffers_;
  const expr::Facts& facts_;
  FreshNames& names_;
  expr::ExprPool& pool_;
};

}  // namespace

int64_t row_tile_registers(DType dtype, int64_t columns, int64_t threads) {
  return columns / threads * (expr::bytes(dtype) == 2 ? 1 : 2) / 2;
}

bool has_elements_only(const RowGroup& group) {
  return std::none_of(group.statements.begin(), group.statements.end(),
                      [](const RowStatement& s) { return s.kind != Kind::Element; });
}

std::vector<Expr> shared_by_rows(const RowGroup& group, expr::ExprPool& pool) {
  const Expr column = pool.index(group.column.name);
  std::set<const expr::Node*> reduced;
  const auto visit = [&](const auto& self, Expr value) -> void {
    expr::for_each(value, [&](Expr e) {
      if (e.op() != EK::Read || !reduced.insert(e.node()).second) return;
      for (const RowStatement& s : group.statements) {
        if (s.target == e.name()) self(self, s.value);
      }
    });
  };
  for (const RowStatement& s : group.statements) {
    if (s.kind == Kind::Reduction) visit(visit, s.value);
  }
  std::vector<Expr> out;
  for (const RowStatement& s : group.statements) {
    if (s.kind != Kind::Element) continue;
    expr::for_each(s.value, [&](Expr e) {
      if (e.op() != EK::Read || e.args().size() != 1 || e[0] != column) return;
      if (!group.rows.empty() && !reduced.contains(e.node()) &&
          std::find(out.begin(), out.end(), e) == out.end())
        out.push_back(e);
    });
  }
  return out;
}

std::string row_stem(const RowGroup& group) {
  std::string name(group.statements.back().target.str());
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

std::vector<RowVariant> row_variants(const RowGroup& group, const std::set<std::string>& kept,
                                     const std::map<std::string, ir::TensorType>& buffers,
                                     const expr::Facts& facts, FreshNames& names,
                                     expr::ExprPool& pool, ir::Block& plan) {
  return Variants(group, kept, buffers, facts, names, pool).run(plan);
}

}  // namespace nautilus::lower
