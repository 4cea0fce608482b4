// SPDX-License-Identifier: Apache-2.0
#include "choose/steps/along_axis.h"

namespace nautilus::choose {

std::optional<AlongAxis> along_axis(const lower::MapNest& nest) {
  if (nest.body.size() != 2) return std::nullopt;
  const auto* loop = nest.body[1].get<scalar::For>();
  AlongAxis out;
  out.init = nest.body[0].get<scalar::Init>();
  if (!out.init || !loop || loop->kind != scalar::LoopKind::Reduce || loop->axes.size() != 1 ||
      loop->body.size() != 1)
    return std::nullopt;
  out.update = loop->body[0].get<scalar::Update>();
  out.axis = loop->axes[0];
  const bool is_one = out.update && out.update->target == out.init->target;
  return is_one ? std::optional(out) : std::nullopt;
}

const scalar::Store* element_of(const lower::MapNest& nest) {
  return nest.body.size() == 1 ? nest.body[0].get<scalar::Store>() : nullptr;
}

expr::Expr part_read(const AlongAxis& rest) {
  expr::Expr part = rest.update->value;
  if (part.op() == expr::Op::Mul) part = part[0];
  return part.op() == expr::Op::Read ? part : expr::Expr();
}

}  // namespace nautilus::choose
