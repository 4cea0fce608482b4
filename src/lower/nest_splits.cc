// SPDX-License-Identifier: Apache-2.0
// Reductions in parts, each of which has kernels of its own (split_reduction.h).
#include "decision/lines.h"
#include "lower/nest_kernels.h"
#include "lower/points/points_alternatives.h"
#include "matile/ops.h"

namespace nautilus::lower {

using ir::Op;

// Why the line about parts cannot be followed; empty if it can.
std::string NestKernels::refuse_parts(const MapNest& nest, const AskedKernel& asked) {
  const auto& line = asked.split.back().as<decision::Split>();
  const ir::Name axis = splittable_axis(nest, state_.buffers, context_.pool);
  if (asked.split.size() > 1) return "the kernel has another line of this kind";
  if (!axis) return "no reduction that begins this kernel can be in parts";
  if (line.axis != axis) return "the reduction is over `" + std::string(axis.str()) + "`";
  if (!line.parts || *line.parts < 1) return "parts are counted from 1";
  if (line.combine == decision::CombineKind::Last)
    return "a kernel of its own puts these parts together";
  const bool has_two = asked.alternatives.size() == 2 && asked.statements.size() == 1 &&
                       asked.form == decision::Form::Points;
  if ((line.terms || line.results) && !has_two)
    return "which sizes have parts is a choice between two alternatives of a kernel of points that "
           "computes one statement";
  return "";
}

// The line about the parts of a result of these nests; null if none has parts.
const Op* NestKernels::split_in(size_t begin, size_t end) const {
  for (size_t k = begin; k < end; ++k) {
    for (const std::string& w : written_by(state_.nests[k])) {
      const auto it = splits_.find(w);
      if (it != splits_.end()) return &it->second;
    }
  }
  return nullptr;
}

// Replaces nest `i` by two if that is always right; where it depends on sizes, the plan chooses
// between the nest, whose kernel is added here, and the two. False if something was reported.
bool NestKernels::split(size_t i, const AskedKernel& asked) {
  const MapNest nest = state_.nests[i];
  const std::string target = *written_by(nest).begin();
  is_split_.insert(target);
  auto s = split_reduction(nest, state_.buffers, asked.parts(), state_.names, context_.pool);
  if (!s) {
    decision::refuse(asked.split[0], "the reduction is shorter", context_);
    return false;
  }
  const std::string buffer(s->buffer.str());
  state_.buffers.emplace(buffer, s->type);
  is_split_.insert(buffer);
  parts_.insert(buffer);
  splits_.emplace(target, decision::with_by(asked.split[0], decision::By::Auto));
  state_.kernels.push_back(ir::make(matile::Tensor{s->buffer, s->type, matile::TensorRole::Temp}));
  const auto at = state_.nests.begin() + static_cast<std::ptrdiff_t>(i);
  if (!s->condition) {
    *at = s->final;
    state_.nests.insert(state_.nests.begin() + static_cast<std::ptrdiff_t>(i), s->partial);
    return true;
  }
  state_.nests.erase(at);
  return NestKernels::whole_or_parts(i, nest, *s, asked);
}

// Whether a kernel that is named for parts has lines about them alone.
bool NestKernels::is_of_parts_alone(AskedKernel& asked) {
  asked.is_read = true;
  bool ok = true;
  for (const ir::Block* lines : {&asked.fuse, &asked.split, &asked.inner})
    ok &= decision::refuse_all(*lines, "the kernel computes parts of one reduction", context_);
  if (asked.alternatives.size() == 1) return ok;
  refuse(asked, "kernels that compute parts have one alternative", context_);
  return false;
}

// Three kernels: the parts, what puts them together, and all at once. The plan launches the last
// where parts do not pay. It is another alternative of the second.
bool NestKernels::whole_or_parts(size_t i, const MapNest& nest, const SplitReduction& s,
                                 const AskedKernel& asked) {
  std::set<std::string> kept = state_.kept_after(i);
  kept.emplace(s.buffer.str());
  AskedKernel* partial = asked_.find({std::string(s.buffer.str())}, false);
  if (partial && !is_of_parts_alone(*partial)) return false;
  const auto lower = [&](const MapNest& n, const ir::Block& alternative, const ir::Block& members,
                         PointAnswers* rules, ir::Block& decided) {
    const std::vector<MapNest> nests = {n};
    ir::PassContext own = context_.with(context_.sink, decided);
    return points_alternative({nests, kept, state_.buffers, target_, state_.names, rules},
                              alternative, members, own);
  };
  // Names are given in the order of the launches; alternatives of one kernel are noted together.
  ir::Block notes[3];
  ir::Block members = asked.inner;
  members.push_back(splits_.at(*written_by(nest).begin()));
  auto whole = lower(nest, asked.alternatives[1], {}, of_named_, notes[2]);
  auto parts = lower(s.partial, partial ? partial->alternatives[0] : ir::Block(), {},
                     partial ? of_named_ : &rules_, notes[0]);
  auto all = lower(s.final, asked.alternatives[0], members, of_named_, notes[1]);
  if (!whole || !parts || !all) return false;
  for (const ir::Block& n : notes) {
    for (const Op& op : n) {
      if (context_.decided) context_.decided->push_back(op);
    }
  }
  expr::ExprPool& pool = context_.pool;
  for (LoweredKernel* made : {&*whole, &*parts, &*all}) {
    const auto& launch = made->launch.as<matile::Launch>();
    const expr::Expr none = pool.integer(0);
    const expr::Expr grid = made == &*whole ? pool.select(s.condition, none, launch.grid)
                                            : pool.select(s.condition, launch.grid, none);
    made->launch = ir::make(matile::Launch{launch.kernel, grid});
    state_.add(std::move(*made));
  }
  return true;
}

}  // namespace nautilus::lower
