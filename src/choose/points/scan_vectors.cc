// SPDX-License-Identifier: Apache-2.0
#include "choose/points/scan_vectors.h"

#include <algorithm>

#include "expr/walk.h"
#include "ir/walk.h"
#include "lower/points/scan_kernel.h"
#include "scalar/ops.h"

namespace nautilus::choose {

using expr::Expr;

std::optional<lower::ScanLines> scan_vectors(std::span<const lower::MapNest> nests,
                                             const std::set<std::string>& kept,
                                             const std::map<std::string, ir::TensorType>& buffers,
                                             const target::Target& target,
                                             const std::function<double(Expr)>& usual,
                                             expr::ExprPool& pool) {
  if (!lower::is_scan(nests[0])) return std::nullopt;
  const auto& loop = nests[0].body[0].as<scalar::Loop>();
  const Expr step = pool.index(loop.var);
  int64_t widest = 1;
  int64_t narrowest = target.memory.vector_bytes;
  const auto add = [&](expr::DType dtype) {
    widest = std::max<int64_t>(widest, expr::bytes(dtype));
    narrowest = std::min<int64_t>(narrowest, expr::bytes(dtype));
  };
  ir::for_each_op(loop.body, [&](const ir::Op& op) {
    ir::for_each_expr(op, [&](Expr root) {
      expr::for_each(root, [&](Expr e) {
        if (e.op() == expr::Op::Read && !e.args().empty() && e.args().back() == step)
          add(e.dtype());
      });
    });
  });
  for (const lower::MapNest& nest : nests) {
    for (const std::string& w : lower::written_by(nest)) {
      const auto type = buffers.find(w);
      if (kept.contains(w) && type != buffers.end()) add(type->second.dtype);
    }
  }
  lower::ScanLines out;
  // A vector of the narrowest elements is a word at least.
  constexpr int64_t kWord = 4;
  out.vector = std::max(target.memory.vector_bytes / widest, kWord / std::min(narrowest, kWord));
  // Half of the most, since it is there twice: scanned, and loaded for the next round.
  out.each = std::min(out.vector * target.points.walk_vectors, target.points.walk_each / 2);
  const bool is_up = loop.direction == scalar::Direction::Up;
  const double length = usual(is_up ? loop.to : loop.from);
  const auto round = static_cast<double>(target.points.walk_threads * out.each);
  out.lanes = length >= static_cast<double>(target.points.walk_rounds) * round
                  ? target.points.walk_threads
                  : target.limits.warp_threads;
  return out;
}

}  // namespace nautilus::choose
