// SPDX-License-Identifier: Apache-2.0
// Shared by the passes of this level: walks over kernels, which ops touch which register tile, new
// names.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "ir/pass.h"
#include "matile/ops.h"

namespace nautilus::matile {

// The program with f applied to every kernel of that form; nothing if f gave nothing.
std::optional<ir::Program> map_kernels(
    const ir::Program& program, KernelForm form,
    const std::function<std::optional<Kernel>(const Kernel&)>& f);
// As map_kernels, for the one role of every nest. f gets the kernel for its declarations.
std::optional<ir::Program> map_nests(
    const ir::Program& program,
    const std::function<std::optional<Role>(const Kernel&, const Role&)>& f);

// The block of an op that has one; null otherwise.
const ir::Block* block_of(const ir::Op& op);
ir::Op with_block(const ir::Op& op, ir::Block block);

// The block with f applied to the block of every op inside, innermost first, then to itself.
ir::Block map_blocks(const ir::Block& block, const std::function<ir::Block(ir::Block)>& f);

using Names = std::set<std::string, std::less<>>;
// Names of tensors and tiles that an op reads or writes, blocks included. The accumulator of a
// product with `add` is read and written.
struct Touched {
  Names reads;
  Names writes;
  bool mentions(std::string_view name) const {
    return reads.contains(name) || writes.contains(name);
  }
};
Touched touched_by(const ir::Op& op);
Touched touched_by(const ir::Block& block);

// The tiles that a role declares.
std::map<std::string, Tile, std::less<>> declared_tiles(const Role& role);

// Every name of a program, so that new ones can be found.
Names names_of(const ir::Program& program);
// `base`, or `base_2`, `base_3`, ...; remembered as taken.
ir::Name fresh_name(std::string_view base, Names& taken, expr::ExprPool& pool);

// Replaces tile names in all fields and expressions of an op.
using Renaming = std::map<std::string, ir::Name, std::less<>>;
ir::Op rename_tiles(const ir::Op& op, const Renaming& renaming, expr::ExprPool& pool);

// True if the read's indices are exactly the axes, in order.
bool is_identity_read(ir::Expr read, const ir::Axes& axes);

}  // namespace nautilus::matile
