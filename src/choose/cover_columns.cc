// SPDX-License-Identifier: Apache-2.0
// Covers with a thread that walks along an axis across memory: reductions and the elements that
// need them in one kernel.
#include <algorithm>

#include "choose/cover.h"
#include "choose/points/point_lines.h"
#include "expr/walk.h"
#include "ir/walk.h"
#include "lower/points/column_nests.h"
#include "lower/points/points_loops.h"
#include "scalar/ops.h"

namespace nautilus::choose {

using expr::Expr;
using lower::MapNest;
using EK = expr::Op;

namespace {

// The elements that several walks read, in the axes of the first, and the number of elements of a
// vector; 0 if neighbouring points do not read neighbouring elements.
struct Walked {
  Expr turns;
  int64_t tensors = 0;
  int64_t vector = 0;
};

Walked walked_by(const std::vector<MapNest>& nests, const target::Target& target,
                 expr::ExprPool& pool) {
  Walked out;
  std::set<std::string> read;
  int64_t widest = 1;
  bool is_line = true;
  for (const MapNest& nest : nests) {
    const Expr last = pool.index(nest.axes.back().name);
    ir::for_each_op(nest.body, [&](const ir::Op& op) {
      const auto* loop = op.get<scalar::For>();
      if (loop && !out.turns) out.turns = loop->axes[0].extent;
      ir::for_each_expr(op, [&](Expr root) {
        expr::for_each(root, [&](Expr e) {
          if (e.op() != EK::Read || !expr::depends_on(e, last)) return;
          if (e.args().size() > nest.axes.size()) read.emplace(e.name().str());
          widest = std::max<int64_t>(widest, expr::bytes(e.dtype()));
          is_line &= e.args().back() == last && expr::has_vectors(e.dtype());
        });
      });
    });
  }
  out.tensors = std::max<int64_t>(static_cast<int64_t>(read.size()), 1);
  out.vector = is_line ? target.memory.vector_bytes / widest : 0;
  return out;
}

}  // namespace

// The first `count` nests as such a kernel. A thread has several points where these make vectors.
// Where walks are short, their elements stay in registers, with as many points as fit there.
std::optional<Cover> Coverer::as_columns(const Nests& nests, size_t count,
                                         const lower::FreshNames& names) {
  const std::set<std::string> kept = kept_behind(nests, count);
  const auto columns =
      lower::column_nests(std::span(nests).first(count), kept, target_.points, context_.pool);
  if (!columns) return std::nullopt;
  const Walked walked = walked_by(*columns, target_, context_.pool);
  int64_t each = walked.vector > 1 && has_many(columns->front().axes, target_)
                     ? std::min(walked.vector, target_.points.line)
                     : 1;
  const double turns = costs_.hinted_extent(walked.turns);
  int64_t held = 1;
  while (static_cast<double>(held) < turns && held <= target_.points.held_registers) held *= 2;
  const int64_t registers = held * walked.tensors;
  if (registers > target_.points.held_registers)
    held = 0;
  else if (registers * each > target_.points.held_registers)
    each = 1;
  diag::Sink ignored(context_.sink.sources());
  ir::PassContext own{context_.pool, ignored, {}};
  lower::FreshNames scratch = names;
  auto parts = lower::lower_points(*columns, kept, buffers_, scratch, target_.points, own);
  if (!parts) return std::nullopt;
  if (each > 1 && !lower::widen(*parts, each, target_.points.threads, context_.pool)) each = 1;
  if (held > 0 && !lower::hold(*parts, held)) held = 0;
  Cover out;
  ChosenKernel made = kernel(decision::Form::Points, nests, count);
  made.lines.push_back(ir::make(decision::Lanes{1, {}}));
  made.lines.push_back(ir::make(decision::Each{each, {}}));
  if (held > 0) made.lines.push_back(ir::make(decision::Held{held, {}}));
  add([kernel =
           NestCosts::Points{
               .nests = *columns, .kept = kept, .where = where_, .each = each, .held = held}](
          const NestCosts& c) { return c.points(kernel); },
      out);
  out.kernels.push_back(std::move(made));
  return out;
}

}  // namespace nautilus::choose
