// SPDX-License-Identifier: Apache-2.0
#include "lower/points/nest_reduction.h"

namespace nautilus::lower {

std::optional<NestReduction> reduction_of(const MapNest& nest) {
  if (nest.body.size() != 2) return std::nullopt;
  NestReduction out;
  out.init = nest.body[0].get<scalar::Init>();
  out.loop = nest.body[1].get<scalar::For>();
  if (!out.init || !out.loop || out.loop->kind != scalar::LoopKind::Reduce ||
      out.loop->body.size() != 1)
    return std::nullopt;
  out.update = out.loop->body[0].get<scalar::Update>();
  if (!out.update || out.update->target != out.init->target) return std::nullopt;
  return out;
}

}  // namespace nautilus::lower
