// SPDX-License-Identifier: Apache-2.0
#include "choose/steps/along_axis.h"

#include "lower/points/nest_reduction.h"

namespace nautilus::choose {

std::optional<AlongAxis> along_axis(const lower::MapNest& nest) {
  const auto reduction = lower::reduction_of(nest);
  if (!reduction || reduction->loop->axes.size() != 1) return std::nullopt;
  AlongAxis out;
  out.init = reduction->init;
  out.update = reduction->update;
  out.axis = reduction->loop->axes[0];
  return out;
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
