// SPDX-License-Identifier: Apache-2.0
#include "lower/nest_kernels.h"

#include <algorithm>
#include <span>

#include "decision/lines.h"
#include "expr/walk.h"
#include "ir/machine.h"
#include "ir/target_of.h"
#include "ir/walk.h"
#include "lower/places/first_kernel.h"
#include "lower/places/scatter_nests.h"
#include "lower/places/sort_kernel.h"
#include "lower/points/column_nests.h"
#include "lower/points/part_nests.h"
#include "lower/points/points_alternatives.h"
#include "lower/rows/row_kernel.h"
#include "matile/ops.h"
#include "scalar/ops.h"

namespace nautilus::lower {

using ir::Op;

NestKernels::NestKernels(const ir::Program& program, ProgramNests& state, PointAnswers& rules,
                         PointAnswers* of_named, ir::PassContext& context)
    : state_(state),
      rules_(rules),
      of_named_(of_named),
      context_(context),
      target_(ir::target_of(program)),
      machine_(ir::machine_name(program, context.pool)),
      facts_(ir::facts_of(program, context.pool)),
      asked_(program) {}

bool NestKernels::next(size_t& i) {
  const bool is_from_parts = is_over_parts(state_.nests[i], state_.computed);
  AskedKernel* asked = &kernel_for(state_.nests[i], is_from_parts);
  const size_t limit = sharing_end(i, *asked);
  if (!are_all_there(i, limit, *asked)) return false;
  if (is_from_parts) return parts(i, limit, *asked);
  const std::string first = *written_by(state_.nests[i]).begin();
  if (parts_.contains(first) &&
      !decision::refuse_all(asked->split, "these are parts already", context_))
    return false;
  const bool is_split = is_split_.contains(first);
  if (!asked->split.empty() && !is_split) {
    const std::string why = refuse_parts(state_.nests[i], *asked);
    if (!why.empty()) {
      decision::refuse(asked->split.back(), why, context_);
      return false;
    }
    if (asked->parts().parts.value_or(1) > 1) return split(i, *asked);
  }
  if (asked->form == decision::Form::Scatter) return scatter(i, limit, *asked);
  if (asked->form == decision::Form::Sort) return sort(i, limit, *asked);
  return asked->form == decision::Form::Rows ? rows(i, limit, *asked) : points(i, limit, *asked);
}

bool NestKernels::skips_rows(size_t& i) {
  const bool is_from_parts = is_over_parts(state_.nests[i], state_.computed);
  AskedKernel& asked = kernel_for(state_.nests[i], is_from_parts);
  if (is_from_parts || asked.form != decision::Form::Rows || !asked.split.empty()) return false;
  asked.is_read = true;
  i = sharing_end(i, asked);
  return true;
}

// Parts of a reduction, and what a last tile left, may have no name: a thread for each point then.
AskedKernel& NestKernels::kernel_for(const MapNest& nest, bool is_from_parts) {
  const std::set<std::string> written = written_by(nest);
  if (AskedKernel* asked = asked_.find(written, is_from_parts)) return *asked;
  usual_ = AskedKernel();
  usual_.name = context_.pool.name(*written.begin());
  usual_.form = is_from_parts ? decision::Form::Parts : decision::Form::Points;
  usual_.alternatives.emplace_back();
  usual_.statements = written;
  return usual_;
}

// The end of the nests that the kernel names, from `i` on.
size_t NestKernels::sharing_end(size_t i, const AskedKernel& asked) {
  size_t end = i;
  for (; end < state_.nests.size() && !is_grid(state_.nests[end]); ++end) {
    const std::set<std::string> written = written_by(state_.nests[end]);
    if (!std::includes(asked.statements.begin(), asked.statements.end(), written.begin(),
                       written.end()))
      break;
  }
  return std::max(end, i + 1);
}

// The statement that the kernel is named after, too.
bool NestKernels::names_each_once(const AskedKernel& asked) {
  return asked.fuse[0].as<decision::Fuse>().statements.size() + 1 == asked.statements.size();
}

bool NestKernels::are_all_there(size_t begin, size_t end, AskedKernel& asked) {
  asked.is_read = true;
  std::set<std::string> found;
  for (size_t k = begin; k < end; ++k) found.merge(written_by(state_.nests[k]));
  if (found == asked.statements && asked.fuse.size() <= 1) {
    if (asked.fuse.empty() || names_each_once(asked)) return true;
    decision::refuse(asked.fuse[0], "the kernel names a statement twice", context_);
    return false;
  }
  refuse(asked, "its statements do not stand one behind the other, or are computed elsewhere",
         context_);
  return false;
}

// What is noted of a kernel besides its sizes: the statements that share it, and its parts.
ir::Block NestKernels::members_of(size_t begin, size_t end, std::string_view name,
                                  const AskedKernel& asked) {
  ir::Block out;
  decision::Fuse fuse;
  for (size_t k = begin; k < end; ++k) {
    for (const std::string& w : written_by(state_.nests[k])) {
      if (w != name) fuse.statements.push_back(context_.pool.name(w));
    }
  }
  if (!asked.fuse.empty()) fuse.by = decision::by(asked.fuse[0]);
  if (!fuse.statements.empty()) out.push_back(ir::make(fuse));
  out.insert(out.end(), asked.inner.begin(), asked.inner.end());
  if (const Op* made = split_in(begin, end)) {
    out.push_back(*made);
  } else if (end == begin + 1 && !parts_.contains(std::string(name))) {
    const ir::Name axis = splittable_axis(state_.nests[begin], state_.buffers, context_.pool);
    if (axis) out.push_back(ir::make(decision::Split{.axis = axis, .parts = 1}));
  }
  if (!asked.split.empty() && !out.empty() && out.back().is<decision::Split>())
    out.back() = decision::with_by(out.back(), decision::by(asked.split[0]));
  return out;
}

bool NestKernels::rows(size_t& i, size_t end, const AskedKernel& asked) {
  const std::span<const MapNest> nests(state_.nests.data() + i, end - i);
  auto group = row_group(nests, target_, context_.pool);
  if (!group) group = element_group(nests, target_, context_.pool);
  if (!group || group->nests != nests.size()) {
    refuse(asked, "its statements are not work along rows that a kernel can do together", context_);
    return false;
  }
  const std::set<std::string> kept = state_.kept_after(end);
  const RowContext context{*group, kept, state_.buffers, facts_, state_.names, context_.pool};
  const ir::Block members = members_of(i, end, group->statements.back().target.str(), asked);
  auto ops = lower_rows(context, asked.alternatives, members, context_);
  if (!ops) return false;
  for (Op& op : *ops) state_.kernels.push_back(std::move(op));
  i = end;
  return true;
}

std::vector<MapNest> NestKernels::nests_from(size_t begin, size_t end) const {
  return {state_.nests.begin() + static_cast<std::ptrdiff_t>(begin),
          state_.nests.begin() + static_cast<std::ptrdiff_t>(end)};
}

bool NestKernels::points(size_t& i, size_t end, const AskedKernel& asked) {
  std::set<std::string> written = written_by(state_.nests[i]);
  bool is_joined = true;
  for (size_t k = i + 1; k < end && is_joined; ++k) {
    is_joined = can_join(state_.nests[i], state_.nests[k], written, context_.pool);
    written.merge(written_by(state_.nests[k]));
  }
  const std::set<std::string> kept = state_.kept_after(end);
  std::vector<MapNest> group = nests_from(i, end);
  auto columns =
      is_joined ? std::nullopt : column_nests(group, kept, target_.points, context_.pool);
  is_joined |= columns.has_value();
  if (!is_joined || asked.alternatives.size() != 1) {
    refuse(asked,
           !is_joined
               ? "its statements do not share their points"
               : "kernels of points have one alternative, and a second where they have parts",
           context_);
    return false;
  }
  const ir::Block members = members_of(i, end, named_after(group, kept), asked);
  if (columns) group = std::move(*columns);
  auto parts =
      points_alternative({group, kept, state_.buffers, target_, state_.names, rules_for(asked)},
                         asked.alternatives[0], members, context_);
  if (!parts) return false;
  state_.add(std::move(*parts));
  i = end;
  return true;
}

// A kernel in front of another of the same lines begins like that one, if kernels are in front of
// it, too.
void NestKernels::add_front(LoweredKernel front, const LoweredKernel& kernel,
                            const ir::Block& read_last) {
  auto made = front.kernel.as<matile::Kernel>();
  decision::note_front(kernel.kernel.as<matile::Kernel>().name, made.name, context_);
  const bool is_behind =
      std::ranges::any_of(state_.kernels, [](const Op& op) { return op.is<matile::Launch>(); });
  ir::Block begin;
  for (const Op& line : read_last) {
    if (is_behind && line.is<decision::Begin>()) begin.push_back(line);
  }
  made.body = decision::with_lines(std::move(made.body), begin);
  front.kernel = ir::make(std::move(made));
  state_.add(std::move(front));
}

// Two kernels: what every element begins with, and the terms, which have the lines.
bool NestKernels::scatter(size_t& i, size_t limit, const AskedKernel& asked) {
  const auto nests =
      limit == i + 1 ? scatter_nests(state_.nests[i], state_.buffers, context_.pool) : std::nullopt;
  if (!nests || asked.alternatives.size() != 1) {
    refuse(asked,
           !nests ? "only reductions of which each term has one place have this form"
                  : "kernels that scatter have one alternative",
           context_);
    return false;
  }
  const std::set<std::string> kept = state_.kept_after(i);
  ir::Block members = members_of(i, i + 1, asked.name.str(), asked);
  ir::Block lines = asked.alternatives[0];
  ir::Block read_last;
  if (!rules_for(asked))
    std::ranges::copy_if(lines, std::back_inserter(read_last), decision::is_read_last);
  const std::vector<MapNest> elements = {nests->first};
  const std::vector<MapNest> terms = {nests->terms};
  PointAnswers* rules = rules_for(asked);
  auto first = first_kernel({elements, kept, state_.buffers, target_, state_.names, rules}, lines,
                            members, context_);
  auto made = first ? points_alternative({terms, kept, state_.buffers, target_, state_.names, rules,
                                          decision::Form::Scatter, machine_},
                                         lines, members, context_)
                    : std::nullopt;
  if (!made) return false;
  add_front(std::move(*first), *made, read_last);
  state_.add(std::move(*made));
  ++i;
  return true;
}

bool NestKernels::sort(size_t& i, size_t limit, const AskedKernel& asked) {
  const std::vector<MapNest> group = nests_from(i, limit);
  const auto nests = sort_nests(group, state_.names, target_, context_.pool);
  const std::set<std::string> kept = state_.kept_after(limit);
  if (!nests || nests->count != group.size()) {
    refuse(asked, "its statements are no count of an order and what chooses by it", context_);
    return false;
  }
  if (const std::string why = refuse_sort(*nests, kept); !why.empty()) {
    refuse(asked, why, context_);
    return false;
  }
  const ir::Block members = members_of(i, limit, named_after(group, kept), asked);
  auto made = sort_kernels({group, kept, state_.buffers, target_, state_.names, rules_for(asked),
                            decision::Form::Sort, machine_},
                           *nests, asked.alternatives, members, context_);
  if (!made) return false;
  for (SortKernel& one : *made) {
    for (LoweredKernel& front : one.front) add_front(std::move(front), one.kernel, one.read_last);
    state_.add(std::move(one.kernel));
  }
  i = limit;
  return true;
}

bool NestKernels::parts(size_t& i, size_t limit, const AskedKernel& asked) {
  size_t end = part_nests_end(state_.nests, i, state_.computed, context_.pool);
  if (end < limit) {
    refuse(asked, "its statements do not share their points", context_);
    return false;
  }
  end = std::min(end, limit);
  const std::vector<MapNest> group = nests_from(i, end);
  const std::set<std::string> kept = state_.kept_after(end);
  const ir::Block members = members_of(i, end, named_after(group, kept), asked);
  const bool is_open = asked.alternatives.size() == 1 && asked.alternatives[0].empty();
  PointAnswers* rules = rules_for(asked);
  const std::vector<ir::Block> alternatives =
      is_open && rules ? rules->part_alternatives() : asked.alternatives;
  auto made = parts_alternatives({group, kept, state_.buffers, target_, state_.names, rules},
                                 alternatives, is_open, members, context_);
  if (!made) return false;
  for (LoweredKernel& parts : *made) state_.add(std::move(parts));
  i = end;
  return true;
}

}  // namespace nautilus::lower
