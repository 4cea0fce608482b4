// SPDX-License-Identifier: Apache-2.0
#include "choose/join_axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "expr/bounds/affine.h"
#include "expr/bounds/bounds.h"
#include "expr/walk.h"
#include "ir/decl.h"
#include "ir/target_of.h"
#include "ir/walk.h"
#include "scalar/ops.h"

namespace nautilus::choose {
namespace {

using expr::Expr;
using ir::Op;

// The axes of an access that are joined, the slowest first.
using Run = std::vector<std::string_view>;

struct Access {
  std::string_view tensor;
  std::vector<Expr> indices;
  bool is_write = false;
};

// Calls f with the statement that the op is, if it is one that writes an element.
template <class F>
void with_target(const Op& op, F&& f) {
  if (const auto* s = op.get<scalar::Store>()) f(*s);
  if (const auto* s = op.get<scalar::Init>()) f(*s);
  if (const auto* s = op.get<scalar::Update>()) f(*s);
  if (const auto* s = op.get<scalar::UpdateArg>()) f(*s);
}

void find_accesses(const Op& nest, std::vector<Access>& out) {
  ir::for_each_op({nest}, [&](const Op& op) {
    with_target(op, [&](const auto& s) { out.push_back({s.target.str(), s.indices, true}); });
    if (const auto* s = op.get<scalar::UpdateArg>())
      out.push_back({s->best.str(), s->indices, true});
  });
  ir::for_each_expr(nest, [&](Expr root) {
    expr::for_each(root, [&](Expr e) {
      if (e.op() != expr::Op::Read) return;
      out.push_back({e.name().str(), {e.args().begin(), e.args().end()}, false});
    });
  });
}

// Map and reduce loops around statements, nothing else.
bool is_plain(const Op& nest) {
  bool is_plain = true;
  ir::for_each_op({nest}, [&](const Op& op) {
    const auto* loop = op.get<scalar::For>();
    bool is_statement = false;
    with_target(op, [&](const auto&) { is_statement = true; });
    const bool is_map =
        loop && (loop->kind == scalar::LoopKind::Map || loop->kind == scalar::LoopKind::Reduce);
    is_plain &= is_statement || is_map;
  });
  return is_plain;
}

bool reduces(const Op& nest) {
  bool reduces = false;
  ir::for_each_op({nest}, [&](const Op& op) { reduces |= op.is<scalar::Init>(); });
  return reduces;
}

bool is_grid(const Op& nest) {
  const auto* loop = nest.get<scalar::For>();
  return loop && loop->kind == scalar::LoopKind::Grid;
}

using Nests = std::vector<std::pair<const Op*, std::vector<Access>>>;

class AxisJoiner {
 public:
  AxisJoiner(const ir::Program& program, expr::ExprPool& pool)
      : pool_(pool), out_(program), vector_bytes_(ir::target_of(program).memory.vector_bytes) {
    for (const Op& op : program.body) {
      if (const auto* dim = op.get<ir::Dim>()) facts_.add_size(pool.index(dim->name));
      if (const auto* fact = op.get<ir::Fact>()) facts_.assume(fact->condition);
      if (const auto* b = op.get<scalar::Buffer>()) types_.emplace(b->name.str(), b->type);
      if (const auto* b = op.get<scalar::Buffer>(); b && b->role == scalar::Role::Temp)
        own_.insert(b->name.str());
    }
  }

  ir::Program run() {
    size_t most = 0;
    for (const std::string_view name : own_) most = std::max(most, types_.at(name).dims.size());
    for (size_t count = most; count >= 2; --count) join(count);
    return std::move(out_);
  }

 private:
  // Joins the last `count` axes of all tensors for which that can be done.
  void join(size_t count) {
    find(count);
    if (joined_.empty()) return;
    count_ = count;
    for (Op& op : out_.body) {
      if (!op.is<scalar::Buffer>()) op = rewritten(op, runs_.at(&op));
    }
    for (Op& op : out_.body) {
      const auto* b = op.get<scalar::Buffer>();
      if (!b || !joined_.contains(b->name.str())) continue;
      scalar::Buffer flat = *b;
      flat.type.dims = with_last(flat.type.dims, joined_extent(flat.type.dims));
      types_[b->name.str()] = flat.type;
      op = ir::make(std::move(flat));
    }
  }

  // Which tensors are joined, and the runs of axes that each nest joins.
  void find(size_t count) {
    count_ = count;
    joined_.clear();
    Nests nests;
    for (const Op& op : out_.body) {
      if (!op.is<scalar::Buffer>())
        find_accesses(op, nests.emplace_back(&op, std::vector<Access>()).second);
    }
    for (const std::string_view name : own_) {
      if (can_join(name)) joined_.insert(name);
    }
    for (const auto& [nest, accesses] : nests) {
      for (const Access& a : accesses) {
        const bool is_in_tile = is_grid(*nest);
        // Results of 16 bits leave a tile kernel as boxes.
        const bool is_left_alone = is_in_tile
                                       ? !a.is_write || expr::bytes(types_.at(a.tensor).dtype) < 4
                                       : !run_of(a, *nest);
        if (joined_.contains(a.tensor) && is_left_alone) joined_.erase(a.tensor);
      }
    }
    while (!joined_.empty()) {
      runs_.clear();
      for (const auto& [nest, accesses] : nests) runs_[nest] = runs_of(*nest, accesses);
      std::set<std::string_view> used = read_along_runs(nests);
      if (used == joined_) return;
      joined_ = std::move(used);
    }
  }

  // Tensors that some nest reads along a run. Elements that follow from those of a kernel of scalar
  // code belong into that kernel, which has all the axes.
  std::set<std::string_view> read_along_runs(const Nests& nests) const {
    std::set<std::string_view> read;
    std::set<std::string_view> elements;
    std::set<std::string_view> scattered;
    for (const auto& [nest, accesses] : nests) {
      for (const Access& a : accesses) {
        const auto run = joined_run(a, *nest);
        const bool is_along = run && runs_.at(nest).contains(*run);
        if (a.is_write && !is_along && !is_grid(*nest)) scattered.insert(a.tensor);
        if (a.is_write || !is_along) continue;
        read.insert(a.tensor);
        if (!reduces(*nest)) elements.insert(a.tensor);
      }
    }
    std::erase_if(
        read, [&](std::string_view t) { return elements.contains(t) && scattered.contains(t); });
    return read;
  }

  // Whether rows of the tensor begin anywhere in memory.
  bool can_join(std::string_view name) const {
    const ir::TensorType& type = types_.at(name);
    if (type.dims.size() < count_) return false;
    const auto last = expr::Poly::of(type.dims.back());
    return last && last->constant_term() * expr::bytes(type.dtype) % vector_bytes_ != 0;
  }

  // The axes of the access's last indices, if they are a run of axes of one loop over exactly the
  // tensor's extents.
  std::optional<Run> run_of(const Access& access, const Op& nest) const {
    const std::vector<Expr>& dims = types_.at(access.tensor).dims;
    if (access.indices.size() < count_) return std::nullopt;
    const size_t first = dims.size() - count_;
    Run run;
    for (size_t k = first; k < dims.size(); ++k) {
      if (access.indices[k].op() != expr::Op::Var) return std::nullopt;
      run.push_back(access.indices[k].name().str());
    }
    const std::span<const Expr> extents = std::span(dims).subspan(first);
    bool is_loop = false;
    ir::for_each_op({nest}, [&](const Op& op) {
      const auto* loop = op.get<scalar::For>();
      if (!loop) return;
      const auto at = std::find_if(loop->axes.begin(), loop->axes.end(),
                                   [&](const ir::Axis& a) { return a.name.str() == run[0]; });
      if (loop->axes.end() - at < static_cast<std::ptrdiff_t>(count_)) return;
      is_loop |=
          std::equal(run.begin(), run.end(), at,
                     [](std::string_view n, const ir::Axis& a) { return n == a.name.str(); }) &&
          std::equal(extents.begin(), extents.end(), at,
                     [](Expr e, const ir::Axis& a) { return e == a.extent; });
    });
    return is_loop ? std::optional(run) : std::nullopt;
  }
  std::optional<Run> joined_run(const Access& access, const Op& nest) const {
    return joined_.contains(access.tensor) ? run_of(access, nest) : std::nullopt;
  }

  // Runs that occur in a nest as indices of joined tensors and nowhere else.
  std::set<Run> runs_of(const Op& nest, const std::vector<Access>& accesses) const {
    std::set<Run> out;
    if (!is_plain(nest)) return out;
    for (const Access& a : accesses) {
      if (const auto run = joined_run(a, nest)) out.insert(*run);
    }
    std::erase_if(out, [&](const Run& run) {
      const Op alone = rewritten(nest, {run});
      bool has_left = false;
      ir::for_each_expr(alone, [&](Expr e) {
        for (const std::string_view axis : run) has_left |= expr::depends_on(e, pool_.index(axis));
      });
      return has_left;
    });
    return out;
  }

  ir::Name name_of(const Run& run) const {
    return pool_.name(fmt::format("{}", fmt::join(run, ".")));
  }

  std::vector<Expr> with_last(std::span<const Expr> all, Expr last) const {
    std::vector<Expr> out(all.begin(), all.end() - static_cast<std::ptrdiff_t>(count_));
    out.push_back(last);
    return out;
  }

  // An extent below 0 counts as 0. Known extents are one number, which rows of a known length are
  // recognised by.
  Expr joined_extent(std::span<const Expr> dims) const {
    const Expr zero = pool_.integer(0);
    int64_t known = 1;
    Expr product;
    for (Expr d : dims.subspan(dims.size() - count_)) {
      const bool is_number = d.op() == expr::Op::IntConst;
      int64_t next = 0;
      if (is_number && !__builtin_mul_overflow(known, std::max<int64_t>(d.integer(), 0), &next)) {
        known = next;
        continue;
      }
      const bool is_natural =
          facts_.prove(pool_.binary(expr::Op::Ge, d, zero)) == expr::Truth::True;
      const Expr factor = is_natural ? d : pool_.binary(expr::Op::Max, d, zero);
      product = product ? pool_.binary(expr::Op::Mul, product, factor) : factor;
    }
    if (!product) return pool_.integer(known);
    return known == 1 ? product : pool_.binary(expr::Op::Mul, product, pool_.integer(known));
  }

  // The indices of a joined tensor, in a nest that joins these runs.
  std::vector<Expr> joined_indices(const Access& access, const Op& nest,
                                   const std::set<Run>& runs) const {
    const auto run = run_of(access, nest);
    if (run && runs.contains(*run)) return with_last(access.indices, pool_.index(name_of(*run)));
    const std::vector<Expr>& dims = types_.at(access.tensor).dims;
    Expr place;
    for (size_t k = dims.size() - count_; k < dims.size(); ++k) {
      const Expr index = access.indices[k];
      place = place
                  ? pool_.binary(expr::Op::Add, pool_.binary(expr::Op::Mul, place, dims[k]), index)
                  : index;
    }
    return with_last(access.indices, place);
  }

  Op rewritten(const Op& nest, const std::set<Run>& runs) const {
    const Op with_reads = ir::map_exprs(nest, [&](Expr root) {
      return expr::rebuild(pool_, root, [&](Expr e) {
        if (e.op() != expr::Op::Read || !joined_.contains(e.name().str())) return e;
        const Access access{e.name().str(), {e.args().begin(), e.args().end()}};
        return pool_.read(e.name(), e.dtype(), joined_indices(access, nest, runs));
      });
    });
    return with_targets(with_reads, nest, runs);
  }

  Op with_targets(const Op& op, const Op& nest, const std::set<Run>& runs) const {
    Op out = op;
    with_target(op, [&](const auto& s) {
      if (!joined_.contains(s.target.str())) return;
      auto changed = s;
      changed.indices = joined_indices({s.target.str(), s.indices, true}, nest, runs);
      out = ir::make(std::move(changed));
    });
    const auto body = [&](const auto& s) {
      auto changed = s;
      for (Op& inner : changed.body) inner = with_targets(inner, nest, runs);
      return changed;
    };
    if (const auto* loop = op.get<scalar::For>()) {
      scalar::For changed = body(*loop);
      for (const Run& run : runs) join_loop(changed.axes, run);
      out = ir::make(std::move(changed));
    }
    if (const auto* loop = op.get<scalar::Loop>()) out = ir::make(body(*loop));
    if (const auto* branch = op.get<scalar::If>()) out = ir::make(body(*branch));
    return out;
  }

  void join_loop(ir::Axes& axes, const Run& run) const {
    const auto at = std::find_if(axes.begin(), axes.end(),
                                 [&](const ir::Axis& a) { return a.name.str() == run[0]; });
    if (at == axes.end()) return;
    std::vector<Expr> extents;
    for (size_t k = 0; k < count_; ++k)
      extents.push_back((at + static_cast<std::ptrdiff_t>(k))->extent);
    *at = {name_of(run), joined_extent(extents)};
    axes.erase(at + 1, at + static_cast<std::ptrdiff_t>(count_));
  }

  expr::ExprPool& pool_;
  ir::Program out_;
  const int64_t vector_bytes_;  // that a thread loads or stores at once
  expr::Facts facts_;
  std::map<std::string_view, ir::TensorType> types_;
  std::set<std::string_view> own_;
  size_t count_ = 0;
  std::set<std::string_view> joined_;
  std::map<const Op*, std::set<Run>> runs_;
};

}  // namespace

std::optional<ir::Program> join_axes(const ir::Program& program, ir::PassContext& context) {
  return AxisJoiner(program, context.pool).run();
}

}  // namespace nautilus::choose
