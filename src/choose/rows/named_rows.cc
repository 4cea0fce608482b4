// SPDX-License-Identifier: Apache-2.0
#include "choose/rows/named_rows.h"

#include <algorithm>

#include "ir/decl.h"
#include "ir/target_of.h"
#include "lower/points/split_reduction.h"

namespace nautilus::choose {
namespace {

bool is_of(const lower::MapNest& nest, const lower::AskedKernel& asked) {
  if (lower::is_grid(nest)) return false;
  const std::set<std::string> written = lower::written_by(nest);
  return std::includes(asked.statements.begin(), asked.statements.end(), written.begin(),
                       written.end());
}

}  // namespace

NamedRows::NamedRows(const ir::Program& program, expr::ExprPool& pool)
    : pool_(pool),
      target_(ir::target_of(program)),
      facts_(ir::facts_of(program, pool)),
      nests_(lower::program_nests(program, pool)),
      asked_(program) {}

const lower::AskedKernel& NamedRows::find(ir::Name statement) {
  return *asked_.find({std::string(statement.str())}, false);
}

std::optional<NamedRows::Rows> NamedRows::rows(const lower::AskedKernel& asked) const {
  size_t begin = 0;
  while (begin < nests_.nests.size() && !is_of(nests_.nests[begin], asked)) ++begin;
  size_t end = begin;
  while (end < nests_.nests.size() && is_of(nests_.nests[end], asked)) ++end;
  if (begin == end) return std::nullopt;
  std::vector<lower::MapNest> nests(nests_.nests.begin() + static_cast<std::ptrdiff_t>(begin),
                                    nests_.nests.begin() + static_cast<std::ptrdiff_t>(end));
  auto buffers = nests_.buffers;
  lower::FreshNames names = nests_.names;
  if (!asked.split.empty() && asked.parts().parts.value_or(1) > 1) {
    // Its parts have a kernel of their own: this one combines them.
    const auto split = lower::split_reduction(nests[0], buffers, asked.parts(), names, pool_);
    if (!split) return std::nullopt;
    nests[0] = split->final;
    buffers.emplace(split->buffer.str(), split->type);
  }
  auto group = lower::row_group(nests, target_, pool_);
  if (!group) group = lower::element_group(nests, target_, pool_);
  if (!group || group->nests != nests.size()) return std::nullopt;
  return Rows{std::move(*group), nests_.kept_after(end), std::move(buffers), std::move(names)};
}

}  // namespace nautilus::choose
