// SPDX-License-Identifier: Apache-2.0
#include "matile/verify/flow_tiles.h"

#include <fmt/format.h>

#include "expr/walk.h"

namespace nautilus::matile {

void TileFlow::read(ir::Name tile) {
  const std::string name(tile.str());
  if (!c_.tiles.contains(name)) return;  // a tensor in global memory
  for (const IssuedProduct& p : c_.state.pending) {
    if (p.acc == name)
      c_.fail(fmt::format("`{}` is read while the product into it runs; a wait is missing", name));
  }
  if (!c_.state.has_value.contains(name) && !in_branch_)
    c_.fail(fmt::format("`{}` is read before it has a value", name));
  if (!loops_.empty()) loops_.back().insert(name);
}

void TileFlow::read(ir::Expr e) {
  for (ir::Name n : expr::tensors_read(e)) read(n);
}

void TileFlow::write(ir::Name tile) {
  const std::string name(tile.str());
  for (const IssuedProduct& p : c_.state.pending) {
    if (p.acc == name)
      c_.fail(
          fmt::format("`{}` is written while the product into it runs; a wait is missing", name));
    if (p.a_tile == name)
      c_.fail(fmt::format("`{}` is written while the product into `{}` reads it; a wait is missing",
                          name, p.acc));
  }
  c_.state.has_value.insert(name);
}

void TileFlow::leave_loop() {
  // The assembler serialises matrix work otherwise.
  for (const IssuedProduct& p : c_.state.pending) {
    if (loops_.back().contains(p.acc))
      c_.fail(
          fmt::format("the product into `{}` is in flight over the end of a loop that reads `{}`",
                      p.acc, p.acc));
  }
  const std::set<std::string> read = std::move(loops_.back());
  loops_.pop_back();
  if (!loops_.empty()) loops_.back().insert(read.begin(), read.end());
}

}  // namespace nautilus::matile
