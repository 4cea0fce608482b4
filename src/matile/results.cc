// SPDX-License-Identifier: Apache-2.0
#include "matile/results.h"

#include "ir/walk.h"
#include "matile/ops.h"
#include "scalar/ops.h"
#include "vrtile/ops.h"

namespace nautilus::matile {

Names results_of(const ir::Block& kernel, const ir::Block& declared) {
  Names maps;
  Names out;
  ir::for_each_op(kernel, [&](const ir::Op& op) {
    if (const auto* s = op.get<scalar::Store>()) out.emplace(s->target.str());
    if (const auto* i = op.get<scalar::Init>()) out.emplace(i->target.str());
    if (const auto* s = op.get<vrtile::Store>()) out.emplace(s->target.str());
    if (const auto* w = op.get<Write>()) out.emplace(w->target.str());
    if (const auto* s = op.get<Scatter>()) out.emplace(s->target.str());
    if (const auto* p = op.get<Put>()) out.emplace(p->target.str());
    if (const auto* s = op.get<Store>()) maps.emplace(s->map.str());
  });
  for (const ir::Op& op : declared) {
    const auto* map = op.get<Map>();
    if (map && maps.contains(map->name.str())) out.emplace(map->value.name().str());
    const auto* buffer = op.get<scalar::Buffer>();
    if (buffer && buffer->role == scalar::Role::Local) out.erase(std::string(buffer->name.str()));
  }
  return out;
}

}  // namespace nautilus::matile
