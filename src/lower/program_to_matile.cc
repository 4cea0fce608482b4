// SPDX-License-Identifier: Apache-2.0
#include "lower/program_to_matile.h"

#include <map>
#include <unordered_set>

#include "decision/lines.h"
#include "expr/walk.h"
#include "ir/machine.h"
#include "ir/target_of.h"
#include "ir/walk.h"
#include "lower/last_tile.h"
#include "lower/launch_choice.h"
#include "lower/part_nests.h"
#include "lower/points_kernel.h"
#include "lower/points_loops.h"
#include "lower/row_kernel.h"
#include "lower/split_reduction.h"
#include "matile/ops.h"
#include "scalar/ops.h"

namespace nautilus::lower {
namespace {

using ir::Op;

bool is_declaration(const Op& op) {
  return op.is<ir::Dim>() || op.is<ir::Static>() || op.is<ir::Param>() || op.is<ir::Fact>() ||
         op.is<ir::Numerics>() || op.is<ir::Target>();
}

// Sizes that the plan computes.
bool is_plan_size(const Op& op) { return op.is<ir::Machine>() || op.is<ir::Size>(); }

class Assembler {
 public:
  Assembler(const ir::Program& program, LowerGridNest lower_grid_nest, ir::PassContext& context)
      : program_(program),
        lower_grid_nest_(lower_grid_nest),
        context_(context),
        target_(ir::target_of(program)),
        names_(context.pool),
        machine_(ir::machine_name(program, context.pool)) {}

  std::optional<ir::Program> run() {
    ir::Program out;
    out.level = &matile::level();
    out.name = program_.name;
    ir::Block work;
    for (const Op& op : program_.body) {
      if (op.is<scalar::Buffer>() || is_declaration(op) || is_plan_size(op))
        declare(op);
      else
        work.push_back(op);
    }
    ir::for_each_op(work, [&](const Op& op) {
      const auto* f = op.get<scalar::For>();
      if (!f) return;
      for (const ir::Axis& a : f->axes) has_own_sms_ |= a.name == machine_;
    });
    names_.take(machine_.str());
    split_nests(work);
    if (!kernels()) return std::nullopt;
    // A buffer that lives inside of one kernel needs no memory.
    std::set<std::string> used;
    ir::for_each_op(kernels_, [&](const Op& op) {
      if (const auto* w = op.get<matile::Write>()) used.emplace(w->target.str());
      if (const auto* p = op.get<matile::Put>()) used.emplace(p->target.str());
      if (const auto* m = op.get<matile::Map>()) used.emplace(m->value.name().str());
    });
    ir::Block temps;
    for (const Op& op : program_.body) {
      const auto* b = op.get<scalar::Buffer>();
      if (!b && is_declaration(op)) out.body.push_back(op);
      if (!b || b->role == scalar::Role::Local) continue;
      const bool is_temp = b->role == scalar::Role::Temp;
      if (is_temp && !used.contains(std::string(b->name.str()))) continue;
      const auto role = b->role == scalar::Role::Input    ? matile::TensorRole::Input
                        : b->role == scalar::Role::Output ? matile::TensorRole::Output
                                                          : matile::TensorRole::Temp;
      (is_temp && has_sizes_ ? temps : out.body)
          .push_back(ir::make(matile::Tensor{b->name, b->type, role}, op.span()));
    }
    if (has_sizes_ || uses_machine()) out.body.push_back(ir::make(matile::Machine{machine_}));
    for (const Op& op : program_.body) {
      if (const auto* s = op.get<ir::Size>())
        out.body.push_back(ir::make(matile::Let{s->name, s->value}, op.span()));
    }
    // Their extents may be computed sizes.
    out.body.insert(out.body.end(), temps.begin(), temps.end());
    for (Op& op : kernels_) out.body.push_back(std::move(op));
    return out;
  }

 private:
  void declare(const Op& op) {
    const auto take = [&](ir::Name name) {
      names_.take(name.str());
      has_own_sms_ |= name == machine_;
    };
    if (const auto* d = op.get<ir::Dim>()) take(d->name);
    if (const auto* p = op.get<ir::Param>()) take(p->name);
    if (const auto* s = op.get<ir::Static>()) take(s->name);
    if (const auto* s = op.get<ir::Size>()) {
      take(s->name);
      has_sizes_ = true;
      computed_.insert(context_.pool.index(s->name));
    }
    has_sizes_ |= op.is<ir::Machine>();
    if (const auto* b = op.get<scalar::Buffer>()) {
      take(b->name);
      buffers_.emplace(b->name.str(), b->type);
      if (b->role == scalar::Role::Output) outputs_.emplace(b->name.str());
      if (b->role == scalar::Role::Local) locals_.emplace(b->name.str());
    }
  }

  // Statements without axes that belong together are one nest: an init and its loop.
  void split_nests(const ir::Block& ops) {
    for (const Op& op : ops) {
      MapNest nest = map_nest(op);
      const bool follows = nest.axes.empty() && op.is<scalar::For>() && !is_grid(nest) &&
                           !nests_.empty() && nests_.back().axes.empty() && !is_grid(nests_.back());
      if (follows)
        nests_.back().body.push_back(op);
      else if (nest.axes.empty() && op.is<scalar::Init>() && !nests_.empty() &&
               nests_.back().axes.empty() && nests_.back().body.back().is<scalar::Init>())
        nests_.back().body.push_back(op);  // argmax has two
      else
        nests_.push_back(std::move(nest));
    }
  }

  bool kernels() {
    const expr::Facts facts = ir::facts_of(program_, context_.pool);
    for (size_t i = 0; i < nests_.size();) {
      if (is_grid(nests_[i])) {
        if (nests_[i].body[0].as<scalar::For>().combine == scalar::Combine::Last) {
          if (!tiles_and_parts(i)) return false;
          continue;
        }
        const size_t end = alternatives_end(i);
        if (!tiles(i, end)) return false;
        i = end;
        continue;
      }
      if (is_over_parts(nests_[i], computed_)) {
        if (!points(i, part_nests_end(nests_, i, computed_, context_.pool))) return false;
        continue;
      }
      const std::span<const MapNest> rest(nests_.data() + i, nests_.size() - i);
      if (const auto rows = row_group(rest, target_, context_.pool)) {
        for (Op& op :
             lower_rows(*rows, kept_after(i + rows->nests), buffers_, facts, names_, context_.pool))
          kernels_.push_back(std::move(op));
        i += rows->nests;
        continue;
      }
      if (split(i)) continue;
      if (const auto elements = element_group(rest, target_, context_.pool)) {
        for (Op& op : lower_rows(*elements, kept_after(i + elements->nests), buffers_, facts,
                                 names_, context_.pool))
          kernels_.push_back(std::move(op));
        i += elements->nests;
        continue;
      }
      if (!points(i, points_end(i))) return false;
    }
    return true;
  }

  bool points(size_t& i, size_t end) {
    const std::vector<MapNest> group(nests_.begin() + static_cast<std::ptrdiff_t>(i),
                                     nests_.begin() + static_cast<std::ptrdiff_t>(end));
    auto parts = lower_points(group, kept_after(end), buffers_, names_, target_.points, context_);
    if (!parts) return false;
    std::vector<KernelParts> others;
    if (is_over_parts(nests_[i], computed_)) {
      if (auto shared = share_parts(*parts, target_.points, names_, context_.pool))
        others.push_back(*shared);
      if (auto wide = widen_points(*parts, target_.points, names_, context_.pool))
        others.push_back(*wide);
    } else {
      share_loops(*parts, target_, names_, context_.pool);
    }
    add(std::move(*parts));
    for (KernelParts& other : others) add(std::move(other));
    i = end;
    return true;
  }

  static bool is_grid(const MapNest& nest) {
    const auto* f = nest.body[0].get<scalar::For>();
    return f && f->kind == scalar::LoopKind::Grid;
  }

  std::set<std::string> results_of(const MapNest& nest) const {
    std::set<std::string> out = written_by(nest);
    std::erase_if(out, [&](const std::string& n) { return locals_.contains(n); });
    return out;
  }

  // The first nest behind those that compute the same as nest `i` with a cost.
  size_t alternatives_end(size_t i) const {
    const auto cost = [&](size_t k) { return nests_[k].body[0].as<scalar::For>().cost; };
    size_t end = i + 1;
    if (!cost(i)) return end;
    const std::set<std::string> results = results_of(nests_[i]);
    while (end < nests_.size() && is_grid(nests_[end]) && cost(end) &&
           results_of(nests_[end]) == results)
      ++end;
    return end;
  }

  // The kernel of a grid nest, with what was decided about it.
  std::optional<KernelParts> tile_kernel(const Op& nest, std::string* why) {
    ir::Block decided;
    ir::PassContext own = context_.with(context_.sink, decided);
    auto parts = lower_grid_nest_(program_, nest, program_.name, names_, own, why);
    if (parts)
      decision::note_kernel(parts->kernel.as<matile::Kernel>().name, decision::Form::Tile, decided,
                            context_);
    return parts;
  }

  // Kernels for nests that compute the same: the plan launches the cheapest.
  bool tiles(size_t begin, size_t end) {
    std::vector<std::pair<KernelParts, expr::Expr>> made;
    for (size_t k = begin; k < end; ++k) {
      const Op& nest = nests_[k].body[0];
      std::string why;
      auto parts = tile_kernel(nest, &why);
      if (!parts) {
        context_.sink.report(diag::Code::BadPass, nest.span(),
                             "this nest does not become a kernel: " + why);
        return false;
      }
      made.emplace_back(std::move(*parts), nest.as<scalar::For>().cost);
    }
    if (made.size() > 1) {
      for (Op& let : launch_cheapest(made, names_, context_.pool))
        kernels_.push_back(std::move(let));
    }
    for (auto& [parts, cost] : made) add(std::move(parts));
    return true;
  }

  // The kernel of nest `i`, whose last tile puts its parts together: with as many of the nests that
  // follow as it can take, at least with all that read parts.
  bool tiles_and_parts(size_t& i) {
    const Op& nest = nests_[i].body[0];
    std::string why;
    const auto kernel = tile_kernel(nest, &why);
    size_t end = i + 1;
    size_t least = i;
    const std::set<std::string> parts = results_of(nests_[i]);
    for (size_t k = i + 1; k < nests_.size(); ++k) {
      for (const Op& op : nests_[k].body) {
        ir::for_each_expr(op, [&](expr::Expr e) {
          for (ir::Name t : expr::tensors_read(e)) {
            if (parts.contains(std::string(t.str()))) least = k + 1;
          }
        });
      }
    }
    if (kernel && end < nests_.size() && is_over_parts(nests_[end], computed_))
      end = part_nests_end(nests_, end, computed_, context_.pool, least);
    if (kernel && (least <= i || least > end)) why = "what reads the parts is not one reduction";
    for (; kernel && least > i && end >= least; --end) {
      const std::vector<MapNest> group(nests_.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                       nests_.begin() + static_cast<std::ptrdiff_t>(end));
      FreshNames names = names_;
      const auto points =
          lower_points(group, kept_after(end), buffers_, names, target_.points, context_);
      if (!points) return false;
      why.clear();
      auto both =
          combine_in_last_tile(*kernel, *points, buffers_, target_, names, context_.pool, &why);
      if (!both) continue;
      names_ = names;
      add(std::move(*both));
      i = end;
      return true;
    }
    context_.sink.report(diag::Code::BadPass, nest.span(),
                         "the last tile of this nest does not put its parts together: " + why);
    return false;
  }

  bool uses_machine() const {
    bool found = false;
    for (const Op& op : kernels_) {
      ir::for_each_expr(
          op, [&](expr::Expr e) { found |= expr::depends_on(e, context_.pool.index(machine_)); });
    }
    return found && !has_own_sms_;
  }

  // Replaces nest `i` by two if that is always right; where it depends on sizes, the plan chooses
  // between the nest, whose kernel is added here, and the two.
  bool split(size_t i) {
    const MapNest nest = nests_[i];
    if (!is_split_.insert(*written_by(nest).begin()).second) return false;
    const auto s = split_reduction(nest, buffers_, target_.points, names_, context_.pool);
    if (!s) return false;
    buffers_.emplace(s->buffer.str(), s->type);
    is_split_.emplace(s->buffer.str());
    kernels_.push_back(ir::make(matile::Tensor{s->buffer, s->type, matile::TensorRole::Temp}));
    const auto at = nests_.begin() + static_cast<std::ptrdiff_t>(i);
    if (!s->condition) {
      *at = s->final;
      nests_.insert(nests_.begin() + static_cast<std::ptrdiff_t>(i), s->partial);
      return true;
    }
    nests_.erase(at);
    std::set<std::string> kept = kept_after(i);
    kept.emplace(s->buffer.str());
    for (const MapNest* n : {&nest, &s->partial, &s->final}) {
      auto parts = lower_points({*n}, kept, buffers_, names_, target_.points, context_);
      NAUT_CHECK(parts, "a reduction is no scalar code");
      const auto& launch = parts->launch.as<matile::Launch>();
      expr::ExprPool& pool = context_.pool;
      const expr::Expr none = pool.integer(0);
      const expr::Expr grid = n == &nest ? pool.select(s->condition, none, launch.grid)
                                         : pool.select(s->condition, launch.grid, none);
      parts->launch = ir::make(matile::Launch{launch.kernel, grid});
      add(std::move(*parts));
    }
    return true;
  }

  // The first nest behind those that share a kernel with nest `i`.
  size_t points_end(size_t i) {
    std::set<std::string> written = written_by(nests_[i]);
    size_t end = i + 1;
    for (; end < nests_.size(); ++end) {
      if (is_grid(nests_[end]) || !can_join(nests_[i], nests_[end], written, context_.pool)) break;
      const std::span<const MapNest> rest(nests_.data() + end, nests_.size() - end);
      if (row_group(rest, target_, context_.pool)) break;
      written.merge(written_by(nests_[end]));
    }
    return end;
  }

  // Outputs, and what nests from `begin` on read.
  std::set<std::string> kept_after(size_t begin) const {
    std::set<std::string> kept = outputs_;
    for (size_t k = begin; k < nests_.size(); ++k) {
      for (const Op& op : nests_[k].body) {
        ir::for_each_expr(op, [&](expr::Expr e) {
          for (ir::Name t : expr::tensors_read(e)) kept.emplace(t.str());
        });
      }
    }
    return kept;
  }

  void add(KernelParts parts) {
    for (Op& op : parts.plan) kernels_.push_back(std::move(op));
    kernels_.push_back(std::move(parts.kernel));
    kernels_.push_back(std::move(parts.launch));
  }

  const ir::Program& program_;
  LowerGridNest lower_grid_nest_;
  ir::PassContext& context_;
  const target::Target& target_;
  FreshNames names_;
  ir::Name machine_;
  bool has_sizes_ = false;                   // of the plan
  std::unordered_set<expr::Expr> computed_;  // extents that a schedule chose: they are short
  bool has_own_sms_ = false;                 // the program means something else by the name
  std::map<std::string, ir::TensorType> buffers_;
  std::set<std::string> outputs_;
  std::set<std::string> locals_;
  std::vector<MapNest> nests_;
  std::set<std::string> is_split_;  // results of reductions that were looked at
  ir::Block kernels_;
};

}  // namespace

std::optional<ir::Program> program_to_matile(const ir::Program& program,
                                             LowerGridNest lower_grid_nest,
                                             ir::PassContext& context) {
  return Assembler(program, lower_grid_nest, context).run();
}

}  // namespace nautilus::lower
