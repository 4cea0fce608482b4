// SPDX-License-Identifier: Apache-2.0
#include "lower/points/scan_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "expr/walk.h"
#include "ir/walk.h"
#include "lower/points/point_parts.h"
#include "matile/ops.h"
#include "scalar/ops.h"

namespace nautilus::lower {
namespace {

using expr::DType;
using expr::Expr;
using ir::Op;
using EK = expr::Op;

// What one equation does in a step.
struct Member {
  ir::Axes axes;
  ir::Block body;
};

// Where an equation writes: its own axes, and the step.
struct Target {
  size_t member;
  ir::Exprs indices;
};

std::vector<Member> members_of(const scalar::Loop& loop) {
  std::vector<Member> out;
  for (const Op& op : loop.body) {
    const auto* f = op.get<scalar::For>();
    if (f && f->kind == scalar::LoopKind::Map) {
      out.push_back({f->axes, f->body});
      continue;
    }
    // An equation without other axes is a list of statements: inits and the loop behind them.
    const bool is_next = !out.empty() && out.back().axes.empty() &&
                         out.back().body.back().is<scalar::Init>() && !op.is<scalar::Store>();
    if (!is_next) out.emplace_back();
    out.back().body.push_back(op);
  }
  return out;
}

class ScanLowering {
 public:
  ScanLowering(const scalar::Loop& loop, const std::set<std::string>& kept,
               const std::map<std::string, ir::TensorType>& buffers, FreshNames& names,
               expr::ExprPool& pool)
      : loop_(loop),
        kept_(kept),
        buffers_(buffers),
        kernels_(names),
        names_(names),
        pool_(pool),
        members_(members_of(loop)) {
    for (size_t m = 0; m < members_.size(); ++m) {
      first_axis_.push_back(classes_.size());
      classes_.resize(classes_.size() + members_[m].axes.size());
      ir::for_each_op(members_[m].body, [&](const Op& op) {
        if (const auto* s = op.get<scalar::Store>()) add_target(s->target, m, s->indices);
        if (const auto* i = op.get<scalar::Init>()) add_target(i->target, m, i->indices);
      });
    }
    std::iota(classes_.begin(), classes_.end(), size_t{0});
    is_apart_.assign(classes_.size(), true);
  }

  LoweredKernel run(const std::string& name, int64_t threads) {
    find_classes();
    choose_axes();
    step_ = pool_.index(names_.make(loop_.var.str()));
    ir::Block steps;
    for (size_t m = 0; m < members_.size(); ++m) member(m, steps);
    ir::Block body;
    for (const auto& [buffer, before] : before_) {
      body.push_back(ir::make(
          matile::Value{before.name(), before.dtype(), pool_.cast(before.dtype(), zero())}));
      steps.push_back(
          ir::make(matile::Assign{before.name(), pool_.cast(before.dtype(), known_.at(buffer))}));
    }
    bindings_.clear();
    matile::Loop loop{
        step_.name(), rewrite(loop_.from),
        loop_.direction == scalar::Direction::Up ? matile::Direction::Up : matile::Direction::Down,
        rewrite(loop_.to), std::move(steps)};
    body.push_back(ir::make(std::move(loop)));
    return kernel_of_points(kernels_.make(name + "_kernel"), axes_, std::move(body), threads,
                            names_, pool_);
  }

 private:
  Expr zero() { return pool_.integer(0); }

  void add_target(ir::Name name, size_t member, const ir::Exprs& indices) {
    targets_.emplace(std::string(name.str()), Target{member, indices});
  }

  // The number of an axis of a member; of none if it is something else.
  std::optional<size_t> axis_of(size_t m, Expr index) const {
    for (size_t k = 0; k < members_[m].axes.size(); ++k) {
      if (index == pool_.index(members_[m].axes[k].name)) return first_axis_[m] + k;
    }
    return std::nullopt;
  }

  size_t root(size_t a) const {
    while (classes_[a] != a) a = classes_[a];
    return a;
  }

  const ir::Axis& axis(size_t a) const {
    size_t m = members_.size() - 1;
    while (first_axis_[m] > a) --m;
    return members_[m].axes[a - first_axis_[m]];
  }

  // Axes at which equations read each other at their own place belong together; others are not
  // apart.
  void find_classes() {
    for (size_t m = 0; m < members_.size(); ++m) {
      for (const Op& op : members_[m].body) {
        ir::for_each_expr(op, [&](Expr e) {
          expr::for_each(e, [&](Expr x) {
            if (x.op() == EK::Read) read(m, x);
          });
        });
      }
    }
    for (size_t a = 0; a < classes_.size(); ++a) {
      if (!is_apart_[a] || axis(a).extent != axis(root(a)).extent) is_apart_[root(a)] = false;
    }
    // One axis of each equation.
    for (size_t a = 0; a < classes_.size(); ++a) {
      std::vector<int> count(members_.size(), 0);
      for (size_t m = 0; m < members_.size(); ++m) {
        for (size_t k = 0; k < members_[m].axes.size(); ++k)
          count[m] += root(first_axis_[m] + k) == root(a) ? 1 : 0;
      }
      if (std::any_of(count.begin(), count.end(), [](int n) { return n != 1; }))
        is_apart_[root(a)] = false;
    }
  }

  void read(size_t m, Expr x) {
    const auto it = targets_.find(std::string(x.name().str()));
    if (it == targets_.end()) return;
    for (size_t k = 0; k < x.args().size(); ++k) {
      const auto written = axis_of(it->second.member, it->second.indices[k]);
      if (!written) continue;  // the step
      const auto own = axis_of(m, x[k]);
      if (own)
        classes_[root(*own)] = root(*written);
      else
        is_apart_[*written] = false;
    }
  }

  bool is_apart(size_t a) const { return is_apart_[root(a)]; }

  // The axes of the threads, as the equation with the most axes has them.
  void choose_axes() {
    size_t largest = 0;
    for (size_t m = 0; m < members_.size(); ++m) {
      if (members_[m].axes.size() > members_[largest].axes.size()) largest = m;
    }
    for (size_t k = 0; k < members_[largest].axes.size(); ++k) {
      const size_t a = first_axis_[largest] + k;
      if (!is_apart(a)) continue;
      const ir::Name name = names_.make(members_[largest].axes[k].name.str());
      axes_.push_back({name, members_[largest].axes[k].extent});
      of_class_.emplace(root(a), pool_.index(name));
    }
  }

  // Whether a thread has one element of the buffer in each step.
  bool is_own(const std::string& buffer) const {
    const size_t m = targets_.at(buffer).member;
    for (size_t k = 0; k < members_[m].axes.size(); ++k) {
      if (!is_apart(first_axis_[m] + k)) return false;
    }
    return true;
  }

  void member(size_t m, ir::Block& out) {
    bindings_ = {{pool_.index(loop_.var), step_}};
    ir::Axes inner;
    for (size_t k = 0; k < members_[m].axes.size(); ++k) {
      const size_t a = first_axis_[m] + k;
      const ir::Axis& own = members_[m].axes[k];
      if (is_apart(a)) {
        bindings_[pool_.index(own.name)] = of_class_.at(root(a));
      } else {
        inner.push_back({names_.make(own.name.str()), own.extent});
        bindings_[pool_.index(own.name)] = pool_.index(inner.back().name);
      }
    }
    pending_.clear();
    ir::Block work;
    for (const Op& op : members_[m].body) statement(op, work);
    for (const auto& [name, indices] : pending_) write(name, indices, known_.at(name), work);
    for (size_t k = inner.size(); k-- > 0;) {
      ir::Block around;
      around.push_back(ir::make(matile::Loop{inner[k].name, pool_.integer(0), matile::Direction::Up,
                                             rewrite(inner[k].extent), std::move(work)}));
      work = std::move(around);
    }
    out.insert(out.end(), work.begin(), work.end());
  }

  void statement(const Op& op, ir::Block& out) {
    if (const auto* s = op.get<scalar::Store>()) {
      const ir::Name name = names_.make(fmt::format("{}_value", s->target.str()));
      const Expr value = rewrite(s->value);
      out.push_back(ir::make(matile::Let{name, value}));
      know(s->target, pool_.var(name, value.dtype()));
      write(std::string(s->target.str()), rewrite(s->indices), pool_.var(name, value.dtype()), out);
    } else if (const auto* i = op.get<scalar::Init>()) {
      const ir::Name name = names_.make(fmt::format("{}_acc", i->target.str()));
      const DType wide = expr::compute_dtype(dtype(i->target));
      out.push_back(ir::make(matile::Value{name, wide, pool_.cast(wide, rewrite(i->value))}));
      know(i->target, pool_.var(name, wide));
      pending_.emplace_back(i->target.str(), rewrite(i->indices));
    } else if (const auto* u = op.get<scalar::Update>()) {
      out.push_back(combined(running(u->target), u->reducer, rewrite(u->value), pool_));
    } else if (const auto* a = op.get<scalar::UpdateArg>()) {
      const Candidate candidate = {rewrite(a->value), rewrite(a->position),
                                   names_.make(fmt::format("{}_candidate", a->target.str()))};
      take_position(running(a->target), running(a->best), a->reducer, candidate, pool_, out);
    } else {
      const auto& f = op.as<scalar::For>();
      NAUT_CHECK(f.kind == scalar::LoopKind::Reduce, "a loop of a scan that reduces nothing");
      loops(f, 0, out);
    }
  }

  void loops(const scalar::For& f, size_t k, ir::Block& out) {
    if (k == f.axes.size()) {
      for (const Op& op : f.body) statement(op, out);
      return;
    }
    const ir::Name var = names_.make(f.axes[k].name.str());
    const Expr to = rewrite(f.axes[k].extent);
    bindings_[pool_.index(f.axes[k].name)] = pool_.index(var);
    matile::Loop loop{var, pool_.integer(0), matile::Direction::Up, to, {}};
    loops(f, k + 1, loop.body);
    out.push_back(ir::make(std::move(loop)));
  }

  void know(ir::Name buffer, Expr value) { known_[std::string(buffer.str())] = value; }
  Expr running(ir::Name buffer) const { return known_.at(std::string(buffer.str())); }
  DType dtype(ir::Name buffer) const { return buffers_.at(std::string(buffer.str())).dtype; }

  // The thread's own elements instead of reads, and the names of this kernel.
  Expr rewrite(Expr e) {
    const Expr renamed = expr::substitute(pool_, e, bindings_);
    return expr::rebuild(pool_, renamed, [&](Expr x) {
      if (x.op() != EK::Read) return x;
      const std::string name(x.name().str());
      const auto it = targets_.find(name);
      if (it == targets_.end() || !is_own(name)) return x;
      return pool_.cast(x.dtype(), is_now(it->second, x) ? known_.at(name) : before(name));
    });
  }
  ir::Exprs rewrite(const ir::Exprs& list) {
    ir::Exprs out;
    for (Expr e : list) out.push_back(rewrite(e));
    return out;
  }

  // Whether the read is of this step, not of the one before.
  bool is_now(const Target& target, Expr x) const {
    for (size_t k = 0; k < x.args().size(); ++k) {
      if (target.indices[k] == pool_.index(loop_.var)) return x[k] == step_;
    }
    return true;
  }

  Expr before(const std::string& buffer) {
    auto it = before_.find(buffer);
    if (it == before_.end()) {
      const ir::Name name = names_.make(buffer + "_before");
      const DType wide = expr::compute_dtype(buffers_.at(buffer).dtype);
      it = before_.emplace(buffer, pool_.var(name, wide)).first;
    }
    return it->second;
  }

  void write(const std::string& name, const ir::Exprs& indices, Expr value, ir::Block& out) {
    // Elements that one thread has several of pass through memory.
    if (!kept_.contains(name) && is_own(name)) return;
    const ir::Name target = pool_.name(name);
    out.push_back(ir::make(matile::Write{target, indices, pool_.cast(dtype(target), value)}));
  }

  const scalar::Loop& loop_;
  const std::set<std::string>& kept_;
  const std::map<std::string, ir::TensorType>& buffers_;
  FreshNames& kernels_;
  FreshNames names_;  // of this kernel
  expr::ExprPool& pool_;
  std::vector<Member> members_;
  std::vector<size_t> first_axis_;  // of each member, among those of all
  std::vector<size_t> classes_;     // of axes that belong together: towards the root
  std::vector<bool> is_apart_;      // by root, once they are found
  std::map<std::string, Target> targets_;
  ir::Axes axes_;                    // of the threads
  std::map<size_t, Expr> of_class_;  // the thread's axis, by root
  Expr step_;
  expr::Substitution bindings_;
  std::map<std::string, Expr> known_;   // the thread's element of a buffer in this step
  std::map<std::string, Expr> before_;  // and in the one before
  std::vector<std::pair<std::string, ir::Exprs>> pending_;  // accumulators of the equation
};

}  // namespace

bool is_scan(const MapNest& nest) {
  return nest.axes.empty() && nest.body.size() == 1 && nest.body[0].is<scalar::Loop>();
}

std::optional<LoweredKernel> lower_scan(const MapNest& nest, const std::set<std::string>& kept,
                                        const std::map<std::string, ir::TensorType>& buffers,
                                        FreshNames& names, const target::Points& choice,
                                        ir::PassContext& context) {
  return ScanLowering(nest.body[0].as<scalar::Loop>(), kept, buffers, names, context.pool)
      .run(named_after({nest}, kept), choice.threads);
}

}  // namespace nautilus::lower
