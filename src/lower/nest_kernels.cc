// SPDX-License-Identifier: Apache-2.0
#include "lower/nest_kernels.h"

#include <algorithm>
#include <span>

#include "decision/lines.h"
#include "expr/walk.h"
#include "ir/target_of.h"
#include "ir/walk.h"
#include "lower/part_nests.h"
#include "lower/points_ways.h"
#include "lower/row_kernel.h"
#include "matile/ops.h"
#include "scalar/ops.h"

namespace nautilus::lower {

using ir::Op;

std::set<std::string> ProgramNests::kept_after(size_t begin) const {
  std::set<std::string> kept = outputs;
  for (size_t k = begin; k < nests.size(); ++k) {
    for (const Op& op : nests[k].body) {
      ir::for_each_expr(op, [&](expr::Expr e) {
        for (ir::Name t : expr::tensors_read(e)) kept.emplace(t.str());
      });
    }
  }
  return kept;
}

void ProgramNests::add(KernelParts parts) {
  for (Op& op : parts.plan) kernels.push_back(std::move(op));
  kernels.push_back(std::move(parts.kernel));
  kernels.push_back(std::move(parts.launch));
}

bool is_grid(const MapNest& nest) {
  const auto* f = nest.body[0].get<scalar::For>();
  return f && f->kind == scalar::LoopKind::Grid;
}

NestKernels::NestKernels(const ir::Program& program, ProgramNests& state, ir::PassContext& context)
    : state_(state),
      context_(context),
      target_(ir::target_of(program)),
      facts_(ir::facts_of(program, context.pool)),
      asked_(program) {}

bool NestKernels::next(size_t& i) {
  const bool is_from_parts = is_over_parts(state_.nests[i], state_.computed);
  AskedKernel* asked = asked_.find(written_by(state_.nests[i]), is_from_parts);
  const size_t limit = sharing_end(i, asked);
  if (asked && !are_all_there(i, limit, *asked)) return false;
  if (is_from_parts) return parts(i, limit, asked);
  const bool is_rows = asked ? asked->form == decision::Form::Rows : true;
  const bool asks_parts = asked && !asked->split.empty();
  const bool is_split = is_split_.contains(*written_by(state_.nests[i]).begin());
  if (asks_parts && !is_split) {
    const std::string why = refuse_parts(state_.nests[i], *asked);
    if (!why.empty()) {
      decision::refuse(asked->split.back(), why, context_);
      return false;
    }
    if (asked->parts() > 1) {
      if (split(i, asked)) return true;
      decision::refuse(asked->split[0], "the reduction is shorter", context_);
      return false;
    }
  }
  const std::span<const MapNest> rest(state_.nests.data() + i, limit - i);
  if (is_rows) {
    auto group = row_group(rest, target_, context_.pool);
    if (!group && asked) group = element_group(rest, target_, context_.pool);
    if (group && (!asked || group->nests == rest.size())) return rows(i, *group, asked);
    if (asked) {
      refuse(*asked, "its statements are not work along rows that a kernel can do together",
             context_);
      return false;
    }
  }
  if (!asks_parts && (!asked || rest.size() == 1) && split(i, asked)) return true;
  if (!asked) {
    if (const auto elements = element_group(rest, target_, context_.pool))
      return rows(i, *elements, nullptr);
  }
  return points(i, points_end(i, limit, asked != nullptr), limit, asked);
}

// The end of the nests that may share a kernel with nest `i`: those that the kernel names, or
// those that none names.
size_t NestKernels::sharing_end(size_t i, const AskedKernel* asked) {
  size_t end = i;
  for (; end < state_.nests.size() && !is_grid(state_.nests[end]); ++end) {
    const std::set<std::string> written = written_by(state_.nests[end]);
    if (asked && !std::includes(asked->statements.begin(), asked->statements.end(), written.begin(),
                                written.end()))
      break;
    if (!asked && (asked_.find(written, true) || asked_.find(written, false)) && end > i) break;
  }
  return std::max(end, i + 1);
}

bool NestKernels::are_all_there(size_t begin, size_t end, AskedKernel& asked) {
  asked.is_read = true;
  std::set<std::string> found;
  for (size_t k = begin; k < end; ++k) found.merge(written_by(state_.nests[k]));
  if (found == asked.statements && asked.fuse.size() <= 1) return true;
  refuse(asked, "its statements do not stand one behind the other, or are computed elsewhere",
         context_);
  return false;
}

// What is noted of a kernel besides its sizes: the statements that share it, and its parts.
ir::Block NestKernels::members_of(size_t begin, size_t end, std::string_view name,
                                  const AskedKernel* asked) {
  ir::Block out;
  decision::Fuse fuse;
  for (size_t k = begin; k < end; ++k) {
    for (const std::string& w : written_by(state_.nests[k])) {
      if (w != name) fuse.statements.push_back(context_.pool.name(w));
    }
  }
  if (asked && !asked->fuse.empty()) fuse.by = decision::by(asked->fuse[0]);
  if (!fuse.statements.empty()) out.push_back(ir::make(fuse));
  if (const Op* made = split_in(begin, end)) {
    out.push_back(*made);
  } else if (end == begin + 1 && !parts_.contains(std::string(name))) {
    const ir::Name axis = splittable_axis(state_.nests[begin], state_.buffers, context_.pool);
    if (axis) out.push_back(ir::make(decision::Split{axis, 1, {}, {}}));
  }
  if (asked && !asked->split.empty() && !out.empty() && out.back().is<decision::Split>())
    out.back() = decision::with_by(out.back(), decision::by(asked->split[0]));
  return out;
}

bool NestKernels::rows(size_t& i, const RowGroup& group, const AskedKernel* asked) {
  const std::set<std::string> kept = state_.kept_after(i + group.nests);
  const RowContext context{group, kept, state_.buffers, facts_, state_.names, context_.pool};
  const ir::Block members =
      NestKernels::members_of(i, i + group.nests, group.statements.back().target.str(), asked);
  auto ops = lower_rows(context, asked ? asked->ways : std::vector<ir::Block>(), members, context_);
  if (!ops) return false;
  for (Op& op : *ops) state_.kernels.push_back(std::move(op));
  i += group.nests;
  return true;
}

std::vector<MapNest> NestKernels::nests_from(size_t begin, size_t end) const {
  return {state_.nests.begin() + static_cast<std::ptrdiff_t>(begin),
          state_.nests.begin() + static_cast<std::ptrdiff_t>(end)};
}

bool NestKernels::points(size_t& i, size_t end, size_t limit, const AskedKernel* asked) {
  if (asked && (end != limit || asked->ways.size() != 1)) {
    refuse(*asked,
           end != limit
               ? "its statements do not share their points"
               : "kernels of points have one alternative, and a second where they have parts",
           context_);
    return false;
  }
  const std::vector<MapNest> group = nests_from(i, end);
  const std::set<std::string> kept = state_.kept_after(end);
  const ir::Block members = members_of(i, end, named_after(group, kept), asked);
  auto parts =
      points_way({group, kept, state_.buffers, target_, state_.names},
                 asked ? asked->ways[0] : ir::Block(), LanesRule::AlongMemory, members, context_);
  if (!parts) return false;
  state_.add(std::move(*parts));
  i = end;
  return true;
}

bool NestKernels::parts(size_t& i, size_t limit, const AskedKernel* asked) {
  size_t end = part_nests_end(state_.nests, i, state_.computed, context_.pool);
  if (asked && end < limit) {
    refuse(*asked, "its statements do not share their points", context_);
    return false;
  }
  end = std::min(end, limit);
  const std::vector<MapNest> group = nests_from(i, end);
  const std::set<std::string> kept = state_.kept_after(end);
  const ir::Block members = members_of(i, end, named_after(group, kept), asked);
  const auto ways = asked ? std::span<const ir::Block>(asked->ways) : std::span<const ir::Block>();
  auto made =
      parts_ways({group, kept, state_.buffers, target_, state_.names}, ways, members, context_);
  if (!made) return false;
  for (KernelParts& parts : *made) state_.add(std::move(parts));
  i = end;
  return true;
}

// The first nest behind those that share a kernel with nest `i`, before `limit`. By rule, rows
// have a kernel of their own.
size_t NestKernels::points_end(size_t i, size_t limit, bool is_asked) {
  std::set<std::string> written = written_by(state_.nests[i]);
  size_t end = i + 1;
  for (; end < limit; ++end) {
    if (is_grid(state_.nests[end]) ||
        !can_join(state_.nests[i], state_.nests[end], written, context_.pool))
      break;
    const std::span<const MapNest> rest(state_.nests.data() + end, limit - end);
    if (!is_asked && row_group(rest, target_, context_.pool)) break;
    written.merge(written_by(state_.nests[end]));
  }
  return end;
}

}  // namespace nautilus::lower
