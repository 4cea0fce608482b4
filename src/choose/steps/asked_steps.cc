// SPDX-License-Identifier: Apache-2.0
#include "choose/steps/asked_steps.h"

#include <algorithm>
#include <map>

#include "choose/steps/moving_stages.h"
#include "choose/steps/piece_lists.h"
#include "choose/steps/stages.h"
#include "decision/lines.h"
#include "lower/points/part_nests.h"
#include "scalar/ops.h"

namespace nautilus::choose {
namespace {

using ir::Op;
using lower::MapNest;

class AskedSteps {
 public:
  AskedSteps(lower::ProgramNests& nests, lower::AskedKernels& asked, const algebra::Signs& signs,
             ir::PassContext& context)
      : nests_(nests), asked_(asked), signs_(signs), context_(context) {}

  // The steps that lines of named kernels ask for. In a program between passes a reduction may have
  // them already: it then reads the tensor that the line would make. A line may be about what
  // another one makes, and need numbers that have their steps, wherever that one stands.
  bool run(const ir::Program& program) {
    std::vector<StepLine> left;
    for (const Op& op : program.body) {
      const auto* kernel = op.get<decision::Kernel>();
      if (!kernel) continue;
      for (const Op& line : kernel->body) {
        const auto* inner = line.get<decision::Inner>();
        if (inner && !computes(*kernel, inner->statement)) {
          decision::refuse(line, "the kernel computes no such statement", context_);
          return false;
        }
        if (inner) left.push_back({inner, &line, std::string(kernel->name.str())});
      }
    }
    while (!left.empty()) {
      const auto next =
          std::ranges::find_if(left, [&](const StepLine& line) { return is_next(line, left); });
      if (next == left.end()) {
        decision::refuse(*left[0].line,
                         has_statement(left[0].inner->statement)
                             ? "the steps that it needs need its own"
                             : "there is no such statement beside the tiles",
                         context_);
        return false;
      }
      const size_t known = made_.size();
      if (!step(*next->inner, *next->line)) return false;
      for (size_t k = known; k < made_.size(); ++k)
        step_of_.emplace(made_[k].first.str(), next->kernel);
      left.erase(next);
    }
    if (!step_of_.empty()) put_steps_in_order();
    return true;
  }

  StepBuffers take_buffers() { return std::move(made_); }

 private:
  // A line about steps, and the kernel that it stands in.
  struct StepLine {
    const decision::Inner* inner;
    const Op* line;
    std::string kernel;
  };

  static bool computes(const decision::Kernel& kernel, ir::Name statement) {
    return kernel.name == statement || std::ranges::any_of(kernel.body, [&](const Op& line) {
             const auto* fuse = line.get<decision::Fuse>();
             return fuse &&
                    std::ranges::find(fuse->statements, statement) != fuse->statements.end();
           });
  }

  bool has_statement(ir::Name statement) const {
    return std::ranges::any_of(nests_.nests, [&](const MapNest& nest) {
      return !lower::is_grid(nest) &&
             lower::written_by(nest).contains(std::string(statement.str()));
    });
  }

  // Whether the line can be followed before the others. Lines about one statement stand in order.
  bool is_next(const StepLine& line, const std::vector<StepLine>& left) const {
    if (!has_statement(line.inner->statement)) return false;
    const auto is_in_front = [&](const StepLine& other) {
      const ir::Name statement = other.inner->statement;
      return (statement == line.inner->statement && other.line < line.line) ||
             (line.inner->number && statement == line.inner->number);
    };
    return std::ranges::none_of(left, is_in_front);
  }

  // First steps stand in the order of the kernels that compute them, so that those that share a
  // kernel stand one behind the other.
  void put_steps_in_order() {
    std::vector<MapNest>& nests = nests_.nests;
    for (size_t k = 1; k < nests.size(); ++k) {
      if (!step_of_.contains(*lower::written_by(nests[k]).begin())) continue;
      for (size_t at = k; at > 0 && may_stand_before(nests[at], nests[at - 1]); --at)
        std::swap(nests[at], nests[at - 1]);
    }
  }

  bool may_stand_before(const MapNest& step, const MapNest& other) {
    if (lower::is_grid(other)) return false;
    const auto own = place_of(step);
    const auto place = place_of(other);
    if (!own || !place || *own >= *place) return false;
    const std::set<std::string> read = lower::kept_for({}, std::span<const MapNest>(&step, 1));
    return std::ranges::none_of(lower::written_by(other),
                                [&](const std::string& w) { return read.contains(w); });
  }

  // Where the nest's kernel stands among those that are named; a step without one stands right
  // before the kernel that asks for it.
  std::optional<size_t> place_of(const MapNest& nest) {
    const std::set<std::string> written = lower::written_by(nest);
    const bool is_from_parts = lower::is_over_parts(nest, nests_.computed);
    if (const auto place = asked_.place(written, is_from_parts)) return 2 * *place + 1;
    const auto step = step_of_.find(*written.begin());
    const auto place = step == step_of_.end() ? std::nullopt : asked_.place({step->second}, false);
    return place ? std::optional(2 * *place) : std::nullopt;
  }

  bool step(const decision::Inner& inner, const Op& line) {
    const std::string statement(inner.statement.str());
    const std::string parts = ir::flat_name(statement + "_parts");
    for (size_t i = 0; i < nests_.nests.size(); ++i) {
      const MapNest nest = nests_.nests[i];
      if (lower::is_grid(nest) || !lower::written_by(nest).contains(statement)) continue;
      if (inner.length || (inner.number && is_along(nest, inner.axes)))
        return is_moving_step(i) || piece_step(i, inner, line);
      if (inner.number) {
        if (is_moving_step(i)) return true;
        if (moving_step(i, inner)) return true;
        decision::refuse(line,
                         "the statement is not a sum whose terms are polynomials of a number of "
                         "that one, which has its steps over the same axes",
                         context_);
        return false;
      }
      const auto made = stages(nest, inner.axes, nests_.buffers, nests_.names, context_.pool);
      if (made) {
        declare(made->buffer, made->type);
        nests_.nests[i] = made->rest;
        nests_.nests.insert(nests_.nests.begin() + static_cast<std::ptrdiff_t>(i), made->first);
        return true;
      }
      const std::set<std::string> read = lower::kept_for({}, std::span<const MapNest>(&nest, 1));
      if (std::any_of(read.begin(), read.end(),
                      [&](const std::string& r) { return r.starts_with(parts); }))
        return true;
      decision::refuse(line,
                       "the statement is not a reduction over these axes and others, of a tensor "
                       "whose elements it reads once",
                       context_);
      return false;
    }
    decision::refuse(line, "there is no such statement beside the tiles", context_);
    return false;
  }

  // Whether the nest reduces these axes and no others, so that only pieces of them can be first.
  static bool is_along(const MapNest& nest, const ir::Names& axes) {
    const auto* loop = nest.body.size() == 2 ? nest.body[1].get<scalar::For>() : nullptr;
    return loop && loop->axes.size() == 1 && axes == ir::Names{loop->axes[0].name};
  }

  StepScope scope() { return {nests_.buffers, nests_.names, context_.pool}; }

  bool piece_step(size_t i, const decision::Inner& inner, const Op& line) {
    const auto length =
        inner.length ? *inner.length : pieces_of(nests_.nests, inner.number).value_or(0);
    const PieceLine asked{length, bool(inner.number), &inner.elements};
    const auto made = is_along(nests_.nests[i], inner.axes)
                          ? piece_stages(nests_.nests, i, asked, signs_, scope())
                          : std::nullopt;
    if (!made || made->against != inner.number || made->elements != inner.elements) {
      decision::refuse(
          line,
          "the statement is not a reduction of f32 over this one axis, longer than a piece, of a "
          "tensor whose elements it reads once; or its terms do not follow from numbers and "
          "elements of a piece as the line says",
          context_);
      return false;
    }
    for (const auto& [name, type] : made->buffers) {
      declare(name, type);
    }
    put_pieces(nests_.nests, i, *made, nests_.outputs);
    return true;
  }

  // In a program between passes: the sum reads parts.
  bool is_moving_step(size_t i) const {
    const std::string parts = ir::flat_name(*lower::written_by(nests_.nests[i]).begin() + "_parts");
    const std::set<std::string> read =
        lower::kept_for({}, std::span<const MapNest>(&nests_.nests[i], 1));
    return std::any_of(read.begin(), read.end(),
                       [&](const std::string& r) { return r.starts_with(parts); });
  }

  // The nests up to this one, without those of kernels that have run before the number's first
  // step: a number that is known by then needs no steps.
  std::vector<MapNest> nests_from(ir::Name number, size_t end) {
    const std::string parts = ir::flat_name(std::string(number.str()) + "_parts");
    std::optional<size_t> first;
    for (size_t k = 0; k < end && !first; ++k) {
      if (lower::written_by(nests_.nests[k]).begin()->starts_with(parts))
        first = place_of(nests_.nests[k]);
    }
    std::vector<MapNest> out;
    for (size_t k = 0; k < end; ++k) {
      const auto place = place_of(nests_.nests[k]);
      if (!first || !place || *place >= *first) out.push_back(nests_.nests[k]);
    }
    out.push_back(nests_.nests[end]);
    return out;
  }

  bool moving_step(size_t i, const decision::Inner& inner) {
    const std::vector<MapNest> seen = nests_from(inner.number, i);
    const auto made = moving_stages(seen, seen.size() - 1, inner.axes, scope());
    if (!made || made->against != inner.number) return false;
    for (const auto& [name, type] : made->buffers) {
      declare(name, type);
    }
    nests_.nests[i] = made->rest;
    // After the first step of the other sum, and of sums that joined its walk before.
    const std::string parts = ir::flat_name(std::string(inner.number.str()) + "_parts");
    size_t at = 0;
    for (size_t k = 0; k < i; ++k) {
      if (lower::written_by(nests_.nests[k]).begin()->starts_with(parts)) at = k + 1;
    }
    const size_t rank = at > 0 ? nests_.nests[at - 1].axes.size() : 0;
    while (at < i && at > 0 && nests_.nests[at].axes.size() == rank) ++at;
    nests_.nests.insert(nests_.nests.begin() + static_cast<std::ptrdiff_t>(at), made->first.begin(),
                        made->first.end());
    return true;
  }

  void declare(ir::Name name, const ir::TensorType& type) {
    nests_.names.take(name.str());
    nests_.buffers.insert_or_assign(std::string(name.str()), type);
    made_.emplace_back(name, type);
  }

  lower::ProgramNests& nests_;
  lower::AskedKernels& asked_;
  const algebra::Signs& signs_;
  ir::PassContext& context_;
  StepBuffers made_;
  std::map<std::string, std::string> step_of_;  // by buffer, the kernel that asks for it
};

}  // namespace

std::optional<StepBuffers> make_asked_steps(const ir::Program& program, lower::ProgramNests& nests,
                                            lower::AskedKernels& asked, const algebra::Signs& signs,
                                            ir::PassContext& context) {
  AskedSteps steps(nests, asked, signs, context);
  if (!steps.run(program)) return std::nullopt;
  return steps.take_buffers();
}

}  // namespace nautilus::choose
