// SPDX-License-Identifier: Apache-2.0
#include "choose/nest_cost.h"

#include <algorithm>
#include <cmath>

#include "choose/nest_traffic.h"
#include "choose/points/value_costs.h"
#include "expr/walk.h"
#include "ir/machine.h"
#include "ir/walk.h"
#include "scalar/ops.h"

namespace nautilus::choose {

using expr::Expr;
using lower::MapNest;
using EK = expr::Op;

namespace {

// One reduction or store of a nest, with the axes of the loops around it.
struct Work {
  ir::Axes loops;
  std::vector<Expr> values;
  std::vector<scalar::Scatter> scattered = {};
};

void collect(const ir::Block& body, const ir::Axes& loops, std::vector<Work>& out) {
  Work own{loops, {}};
  for (const ir::Op& op : body) {
    if (const auto* f = op.get<scalar::For>()) {
      ir::Axes inner = loops;
      inner.insert(inner.end(), f->axes.begin(), f->axes.end());
      collect(f->body, inner, out);
      continue;
    }
    if (const auto* i = op.get<scalar::If>()) {
      collect(i->body, loops, out);
      continue;
    }
    if (const auto* s = op.get<scalar::Scatter>()) {
      own.scattered.push_back(*s);
      own.values.push_back(s->value);
      if (s->condition) own.values.push_back(s->condition);
      continue;
    }
    ir::for_each_expr(op, [&](Expr e) { own.values.push_back(e); });
  }
  if (!own.values.empty()) out.push_back(std::move(own));
}

}  // namespace

NestCosts::NestCosts(const ir::Program& program, const target::Target& target, expr::ExprPool& pool)
    : target_(&target), pool_(&pool) {
  std::vector<const ir::Dim*> dims;
  for (const ir::Op& op : program.body) {
    if (const auto* d = op.get<ir::Dim>()) dims.push_back(d);
    if (const auto* b = op.get<scalar::Buffer>()) types_.emplace(b->name.str(), b->type);
  }
  const auto add = [&](int64_t usual, const ir::Dim* large) {
    auto& sizes = problems_.emplace_back().sizes.sizes;
    sizes.emplace(ir::machine_name(program, pool).str(), target.board.sms);
    for (const ir::Dim* d : dims) {
      const int64_t extent = d == large ? target.nests.large_extent : usual;
      sizes[std::string(d->name.str())] = std::max(d->hint.value_or(0), extent);
    }
    for (const ir::Op& op : program.body) {
      if (const auto* s = op.get<ir::Size>())
        sizes[std::string(s->name.str())] = std::max<int64_t>(target.points.many_parts, 1);
    }
  };
  add(target.nests.small_extent, nullptr);
  hinted_ = problems_[0];
  for (const ir::Dim* d : dims) {
    if (d->hint) hinted_.sizes.sizes[std::string(d->name.str())] = *d->hint;
  }
  // Sizes that were asked for are the problem.
  is_asked_ = std::any_of(dims.begin(), dims.end(),
                          [](const ir::Dim* d) { return d->kind == ir::HintKind::Asked; });
  if (is_asked_) {
    problems_ = {hinted_};
  } else {
    if (!dims.empty()) add(target.nests.usual_extent, nullptr);
    for (const ir::Dim* d : dims) add(target.nests.small_extent, d);
  }
  for (Problem& p : problems_) {
    double bytes = 0;
    for (const ir::Op& op : program.body) {
      const auto* b = op.get<scalar::Buffer>();
      const bool is_given =
          b && (b->role == scalar::Role::Input || b->role == scalar::Role::Output);
      if (is_given) bytes += bytes_of(b->name, p);
    }
    p.weight = 1 / (target.costs.launch_cycles + bytes / target.costs.memory_bytes_per_cycle);
  }
}

bool NestCosts::is_known(Expr e, const Problem& at) {
  bool ok = true;
  expr::for_each(e, [&](Expr x) {
    ok &= x.op() != EK::Read;
    if (x.op() == EK::Var) ok &= at.sizes.sizes.contains(x.name().str());
  });
  return ok;
}

double NestCosts::extent(Expr e, const Problem& at) const {
  if (!is_known(e, at)) return static_cast<double>(target_->nests.usual_extent);
  return static_cast<double>(std::max<int64_t>(ir::evaluate_size(e, at.sizes), 1));
}

double NestCosts::count(const ir::Axes& axes, const Problem& at) const {
  double n = 1;
  for (const ir::Axis& a : axes) n *= extent(a.extent, at);
  return n;
}

double NestCosts::bytes_of(ir::Name tensor, const Problem& at) const {
  const auto type = types_.find(tensor.str());
  if (type == types_.end()) return 0;
  double n = static_cast<double>(expr::bytes(type->second.dtype));
  for (Expr e : type->second.dims) n *= extent(e, at);
  return n;
}

NestCosts NestCosts::on(const target::Target& target) const {
  NestCosts out = *this;
  out.target_ = &target;
  return out;
}

bool NestCosts::is_run(const Where& where, const Problem& at) const {
  return !where.condition || !is_known(where.condition, at) ||
         (ir::evaluate(where.condition, at.sizes).i != 0) == where.holds;
}

double NestCosts::points(const Points& kernel) const {
  double sum = 0;
  for (const Problem& p : problems_) {
    if (is_run(kernel.where, p)) sum += p.weight * points_at(kernel, p);
  }
  return sum;
}

double NestCosts::patches(const Points& kernel, const Patch& patch) const {
  double sum = 0;
  for (const Problem& p : problems_) {
    if (is_run(kernel.where, p)) sum += p.weight * patches_at(kernel, patch, p);
  }
  return sum;
}

double NestCosts::patches_at(const Points& kernel, const Patch& patch, const Problem& at) const {
  Traffic traffic;
  std::set<std::string, std::less<>> own;
  for (const MapNest& nest : kernel.nests) {
    for (const std::string& w : lower::written_by(nest)) {
      own.insert(w);
      if (kernel.kept.contains(w)) traffic.add(w, bytes_of(pool_->name(w), at));
    }
    ir::for_each_op(nest.body, [&](const ir::Op& op) {
      ir::for_each_expr(op, [&](Expr root) {
        for (ir::Name t : expr::tensors_read(root)) {
          if (!own.contains(t.str())) traffic.add(t.str(), bytes_of(t, at));
        }
      });
    });
  }
  const double work =
      patch_cycles(patch, kernel.nests[0].axes, *target_, [&](Expr e) { return extent(e, at); });
  const double memory = memory_cycles(traffic) / target_->nests.single_share;
  return target_->costs.next_kernel_cycles + std::max(memory, work);
}

double NestCosts::over_sizes(const std::function<double(const ir::Environment&)>& cycles) const {
  double sum = 0;
  for (const Problem& p : problems_) sum += p.weight * cycles(p.sizes);
  return sum;
}

double NestCosts::memory_cycles(const Traffic& traffic) const {
  double all = 0;
  for (const auto& tensor : traffic.bytes) all += tensor.second;
  return all / target_->costs.memory_bytes_per_cycle;
}

void NestCosts::add_scatter(const scalar::Scatter& scatter, double terms, double points, Expr fast,
                            const Problem& at, Traffic& traffic) const {
  const target::NestCosts& c = target_->nests;
  const Expr element = pool_->read(scatter.target, scatter.value.dtype(), scatter.indices);
  const Stride apart = fast ? stride(element, fast) : Stride::None;
  const double lines = apart == Stride::One ? 1 : c.strided_lines;
  const auto bytes = static_cast<double>(expr::bytes(element.dtype()));
  traffic.cache_bytes += terms * bytes * lines * c.scatter_reads;
  const double places = std::max(bytes_of(scatter.target, at) / bytes, 1.0);
  // At few places terms meet in the shared memories.
  const double apart_in = bytes * places <= static_cast<double>(target_->points.private_bytes)
                              ? places * static_cast<double>(target_->board.sms)
                              : places;
  traffic.meetings = std::max(traffic.meetings, terms / apart_in);
  // What the cache does not hold is read and written.
  traffic.add(scatter.target.str(), 2 * std::min(points * bytes, bytes_of(scatter.target, at)));
}

// What one nest of the kernel does; the turns that a lane waits for.
double NestCosts::add_work(const Points& kernel, const MapNest& nest, const Problem& at,
                           Traffic& traffic) const {
  const target::NestCosts& c = target_->nests;
  const double points = count(nest.axes, at);
  double turns = 0;
  std::vector<Work> works;
  collect(nest.body, {}, works);
  for (const Work& w : works) {
    const double steps = count(w.loops, at);
    if (!w.loops.empty()) turns += std::ceil(steps / static_cast<double>(kernel.lanes));
    // The axis in which neighbouring threads differ.
    const bool is_shared = kernel.lanes > 1 && !w.loops.empty();
    const Expr fast = is_shared           ? pool_->index(w.loops.back().name)
                      : nest.axes.empty() ? Expr()
                                          : pool_->index(nest.axes.back().name);
    const bool is_held = steps <= static_cast<double>(kernel.held);
    Traffic walked;
    for (Expr value : w.values) {
      traffic.operations += points * steps * operations_of(value, c);
      expr::for_each(value, [&](Expr e) {
        if (e.op() != EK::Read || traffic.own.contains(e.name().str())) return;
        const auto bytes = static_cast<double>(expr::bytes(e.dtype()));
        double touched = bytes;
        for (const ir::Axes* axes : {&nest.axes, &w.loops}) {
          for (const ir::Axis& a : *axes) {
            if (expr::depends_on(e, pool_->index(a.name))) touched *= extent(a.extent, at);
          }
        }
        const double all = std::min(touched, bytes_of(e.name(), at));
        w.loops.empty() || is_held ? traffic.add(e.name().str(), all)
                                   : walked.add(e.name().str(), all);
        const bool is_transposed = kernel.across && stride(e, kernel.across) == Stride::One;
        const Stride s = is_transposed ? Stride::One : fast ? stride(e, fast) : Stride::None;
        const double line = s == Stride::Far    ? c.strided_lines
                            : s == Stride::None ? c.same_lines
                                                : 1;
        traffic.cache_bytes += points * steps * bytes * line;
      });
    }
    for (const scalar::Scatter& s : w.scattered)
      add_scatter(s, points * steps, points, fast, at, traffic);
    for (const auto& [tensor, bytes] : walked.bytes) traffic.walk(tensor, bytes);
  }
  return turns;
}

double NestCosts::points_at(const Points& kernel, const Problem& at) const {
  const target::NestCosts& c = target_->nests;
  const auto sms = static_cast<double>(target_->board.sms);
  Traffic traffic;
  for (const MapNest& nest : kernel.nests) {
    const bool scatters = nest.body[0].is<scalar::Scatter>();
    for (const std::string& w : lower::written_by(nest)) {
      traffic.own.insert(w);
      if (kernel.kept.contains(w) && !scatters) traffic.add(w, bytes_of(pool_->name(w), at));
    }
  }
  double most_points = 1;
  double turns = 0;
  for (const MapNest& nest : kernel.nests) {
    most_points = std::max(most_points, count(nest.axes, at));
    turns += add_work(kernel, nest, at, traffic);
  }
  const double threads =
      most_points * static_cast<double>(kernel.lanes) / static_cast<double>(kernel.each);
  const double rounds =
      std::max(1.0, threads / (sms * static_cast<double>(target_->limits.sm_threads)));
  const double latency = rounds * (c.thread_cycles + turns * c.turn_cycles);
  const double cache =
      std::max(traffic.cache_bytes / (sms * c.cache_bytes), traffic.meetings * c.meeting_cycles);
  const double issue = traffic.operations * c.operation_slots /
                       (sms * static_cast<double>(target_->limits.group_threads));
  const double memory = memory_cycles(traffic) / (kernel.each > 1 ? 1 : c.single_share);
  return target_->costs.next_kernel_cycles + std::max({memory, cache, issue, latency});
}

}  // namespace nautilus::choose
