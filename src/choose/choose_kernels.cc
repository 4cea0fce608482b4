// SPDX-License-Identifier: Apache-2.0
#include "choose/choose_kernels.h"

#include <algorithm>

#include "choose/cover.h"
#include "choose/gather_choices.h"
#include "choose/join_axes.h"
#include "choose/steps/asked_steps.h"
#include "decision/lines.h"
#include "ir/target_of.h"
#include "lower/asked_kernels.h"
#include "lower/points/part_nests.h"
#include "scalar/ops.h"

namespace nautilus::choose {
namespace {

using decision::Form;
using ir::Op;
using lower::MapNest;

class Chooser {
 public:
  Chooser(const ir::Program& program, ir::PassContext& context)
      : program_(program),
        context_(context),
        target_(ir::target_of(program)),
        nests_(lower::program_nests(program, context.pool)),
        costs_(program, target_, context.pool),
        signs_(program),
        asked_(program) {}

  double cycles() const { return cycles_; }

  std::optional<ir::Program> run() {
    if (!take_asked_steps()) return std::nullopt;
    std::vector<MapNest> out;
    ir::Block kernels;
    for (size_t i = 0; i < nests_.nests.size();) {
      const size_t end = open_end(i);
      if (end > i) {
        i = take(cover_from(i, end), out, kernels);
        continue;
      }
      for (const size_t behind = std::max(taken_end(i), i + 1); i < behind; ++i)
        out.push_back(nests_.nests[i]);
    }
    return with(out, kernels);
  }

  std::vector<KernelChoice> choices() {
    std::vector<KernelChoice> out;
    if (!take_asked_steps()) return out;
    std::vector<std::vector<Cover>> runs;
    for (size_t i = 0; i < nests_.nests.size();) {
      const size_t end = open_end(i);
      if (end > i) runs.push_back(coverer().run_all(nests_between(i, end), nests_behind(end)));
      i = end > i ? end : std::max(taken_end(i), i + 1);
    }
    if (runs.empty()) return out;
    out.push_back(choice_of(runs, 0, 0));
    for (size_t r = 0; r < runs.size(); ++r) {
      for (size_t k = 1; k < runs[r].size(); ++k) out.push_back(choice_of(runs, r, k));
    }
    return out;
  }

 private:
  // Nests that are covered together, and the cover.
  struct Covered {
    size_t end = 0;
    Cover cover;
  };

  bool take_asked_steps() {
    const auto steps = make_asked_steps(program_, nests_, asked_, signs_, context_);
    if (!steps) return false;
    for (const auto& [name, type] : *steps) {
      declare(name, type);
      costs_.declare(name, type);
    }
    return true;
  }

  // The end of the nests from `i` on that no kernel is named for.
  size_t open_end(size_t i) {
    while (i < nests_.nests.size() && is_open(nests_.nests[i])) ++i;
    return i;
  }

  std::vector<MapNest> nests_between(size_t begin, size_t end) const {
    return {nests_.nests.begin() + static_cast<std::ptrdiff_t>(begin),
            nests_.nests.begin() + static_cast<std::ptrdiff_t>(end)};
  }
  std::span<const MapNest> nests_behind(size_t end) const {
    return std::span<const MapNest>(nests_.nests).subspan(end);
  }
  Coverer coverer() { return {nests_, costs_, target_, signs_, context_}; }

  Covered cover_from(size_t begin, size_t end) {
    return {end, coverer().run(nests_between(begin, end), nests_behind(end))};
  }

  // Whether no kernel is named for the nest.
  bool is_open(const MapNest& nest) {
    if (lower::is_grid(nest)) return false;
    const std::set<std::string> written = lower::written_by(nest);
    // A kernel that combines parts also has the statements after them.
    return !asked_.find(written, true) &&
           (lower::is_over_parts(nest, nests_.computed) || !asked_.find(written, false));
  }

  // The end of the nests that the last tile of grid nest `i` may compute; `i` for others.
  size_t taken_end(size_t i) {
    const MapNest& nest = nests_.nests[i];
    if (!lower::is_grid(nest) || nest.body[0].as<scalar::For>().combine != scalar::Combine::Last)
      return i;
    return lower::last_tile_nests(nests_.nests, i, nests_.locals, nests_.computed, context_.pool)
        .end;
  }

  // The kernels of a cover, with their steps.
  static ir::Block kernels_of(const Cover& cover) {
    ir::Block out;
    for (const ChosenKernel& k : cover.kernels) {
      ir::Block lines;
      for (const MapNest& nest : k.nests) {
        for (const std::string& w : lower::written_by(nest)) {
          const auto it = cover.inner.find(w);
          if (it != cover.inner.end())
            lines.insert(lines.end(), it->second.begin(), it->second.end());
        }
      }
      lines.insert(lines.end(), k.lines.begin(), k.lines.end());
      out.push_back(ir::make(decision::Kernel{k.name, k.form, lines}));
      for (const ir::Block& other : k.others)
        out.push_back(ir::make(decision::Kernel{k.name, k.form, other}));
    }
    return out;
  }

  size_t take(const Covered& covered, std::vector<MapNest>& nests, ir::Block& kernels) {
    const Cover& cover = covered.cover;
    cycles_ += cover.cycles;
    for (const auto& [name, type] : cover.buffers) declare(name, type);
    for (const ChosenKernel& k : cover.kernels)
      nests.insert(nests.end(), k.nests.begin(), k.nests.end());
    const ir::Block made = kernels_of(cover);
    kernels.insert(kernels.end(), made.begin(), made.end());
    return covered.end;
  }

  // Cover `k` of run `r`, with the first one of all others.
  KernelChoice choice_of(const std::vector<std::vector<Cover>>& runs, size_t r, size_t k) const {
    KernelChoice out;
    std::vector<Cover> covers;
    for (const auto& run : runs) covers.push_back(run[&run == &runs[r] ? k : 0]);
    for (const Cover& cover : covers) {
      const ir::Block made = kernels_of(cover);
      out.kernels.insert(out.kernels.end(), made.begin(), made.end());
    }
    for (const Cover& cover : covers) out.cost += cover.cycles;
    out.cycles_on = [covers = std::move(covers), costs = costs_](const target::Target& target) {
      const NestCosts own = costs.on(target);
      double sum = 0;
      for (const Cover& cover : covers) sum += cover.cycles_on(own);
      return own.cycles_of(sum);
    };
    return out;
  }

  void declare(ir::Name name, const ir::TensorType& type) {
    nests_.names.take(name.str());
    nests_.buffers.insert_or_assign(std::string(name.str()), type);
    buffers_.push_back(ir::make(scalar::Buffer{name, type, scalar::Role::Temp}));
  }

  ir::Program with(const std::vector<MapNest>& nests, const ir::Block& kernels) const {
    ir::Program out = program_;
    if (!buffers_.empty()) {
      out.body.clear();
      ir::Block named;
      for (const Op& op : program_.body) {
        const bool is_declared = op.is<scalar::Buffer>() || lower::is_declaration(op) ||
                                 op.is<ir::Machine>() || op.is<ir::Size>();
        if (is_declared) out.body.push_back(op);
        if (op.is<decision::Kernel>()) named.push_back(op);
      }
      out.body.insert(out.body.end(), buffers_.begin(), buffers_.end());
      for (const MapNest& nest : nests) {
        if (nest.axes.empty())
          out.body.insert(out.body.end(), nest.body.begin(), nest.body.end());
        else
          out.body.push_back(ir::make(scalar::For{nest.axes, scalar::LoopKind::Map, nest.body}));
      }
      out.body.insert(out.body.end(), named.begin(), named.end());
    }
    out.body.insert(out.body.end(), kernels.begin(), kernels.end());
    for (size_t k = 0; k + 1 < out.body.size(); ++k)
      add_sizes_of_parts(out.body[k], out.body[k + 1]);
    return out;
  }

  // Two alternatives, of which the first has parts: the sizes at which it runs, where no line says
  // so.
  void add_sizes_of_parts(Op& kernel, const Op& next) const {
    const auto* first = kernel.get<decision::Kernel>();
    const auto* second = next.get<decision::Kernel>();
    if (!first || !second || first->form != Form::Points || second->form != Form::Points ||
        first->name != second->name)
      return;
    decision::Kernel changed = *first;
    for (Op& line : changed.body) {
      const auto* split = line.get<decision::Split>();
      if (!split || split->terms || split->results) continue;
      decision::Split with_sizes = *split;
      with_sizes.terms = target_.points.long_reduction;
      with_sizes.results = target_.points.few_results;
      line = ir::make(with_sizes);
    }
    kernel = ir::make(std::move(changed));
  }

  const ir::Program& program_;
  ir::PassContext& context_;
  const target::Target& target_;
  lower::ProgramNests nests_;
  NestCosts costs_;
  algebra::Signs signs_;
  lower::AskedKernels asked_;
  ir::Block buffers_;  // of steps
  double cycles_ = 0;
};

}  // namespace

std::optional<ir::Program> choose_kernels(const ir::Program& program, ir::PassContext& context) {
  return Chooser(program, context).run();
}

std::vector<KernelChoice> kernel_choices(const ir::Program& program, ir::PassContext& context) {
  const auto joined = join_axes(program, context);
  const auto gathered = gather_choices(*joined, context);
  return Chooser(*gathered, context).choices();
}

double cost_without_tiles(const ir::Program& program, ir::PassContext& context) {
  const auto joined = join_axes(program, context);
  const auto gathered = gather_choices(*joined, context);
  Chooser chooser(*gathered, context);
  chooser.run();
  return chooser.cycles();
}

}  // namespace nautilus::choose
