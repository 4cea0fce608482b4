// SPDX-License-Identifier: Apache-2.0
#include "lower/tiles/eager_loops.h"

#include <algorithm>
#include <set>
#include <string>

#include "vrtile/ops.h"

namespace nautilus::lower {

using ir::Op;

bool has_one_computed_product(const ir::Block& body) {
  const vrtile::Dot* product = nullptr;
  std::set<std::string> loaded;
  for (const Op& op : body) {
    if (const auto* l = op.get<vrtile::Load>()) loaded.emplace(l->name.str());
    // Where loads begin may depend on scalars of the loop, which stay where they are.
    if (op.is<vrtile::Let>() || op.is<vrtile::For>() || (op.is<vrtile::Dot>() && product))
      return false;
    if (const auto* d = op.get<vrtile::Dot>()) product = d;
  }
  return product && !loaded.contains(std::string(product->a.str()));
}

bool has_late_operand(const ir::Block& body) {
  std::set<std::string> late;
  bool is_late = false;
  for (const Op& op : body) {
    const auto* d = op.get<vrtile::Dot>();
    if (d && (late.contains(std::string(d->a.str())) || late.contains(std::string(d->b.str()))))
      return true;
    const auto* l = op.get<vrtile::Load>();
    if (l && is_late) late.emplace(l->name.str());
    is_late |= !l && !op.is<vrtile::Carry>();
  }
  return false;
}

ir::Block loads_first(const ir::Block& body) {
  ir::Block out = body;
  std::stable_partition(out.begin(), out.end(), [](const Op& op) {
    return op.is<vrtile::Carry>() || op.is<vrtile::Load>();
  });
  return out;
}

}  // namespace nautilus::lower
