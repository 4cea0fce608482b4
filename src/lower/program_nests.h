// SPDX-License-Identifier: Apache-2.0
// A scalar program as the list of its nests: what kernels are chosen for (choose/choose_kernels.h)
// and made from (program_to_matile.h).
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "lower/points/points_kernel.h"

namespace nautilus::lower {

struct ProgramNests {
  explicit ProgramNests(expr::ExprPool& pool) : names(pool) {}

  FreshNames names;  // those of the program are taken
  std::map<std::string, ir::TensorType> buffers;
  std::set<std::string> outputs;
  std::set<std::string> locals;
  std::unordered_set<expr::Expr> computed;  // extents that a schedule chose: they are short
  bool has_sizes = false;                   // that the plan computes
  bool has_own_machine = false;  // the program means something else by the machine's name
  std::vector<MapNest> nests;    // in the order of the program, grids too
  ir::Block kernels;             // of the nests so far, with their launches

  // Outputs, and what nests from `begin` on read.
  std::set<std::string> kept_after(size_t begin) const;
  void add(LoweredKernel parts);
};

// Statements without axes that belong together are one nest: an init and its loop.
ProgramNests program_nests(const ir::Program& program, expr::ExprPool& pool);

bool is_grid(const MapNest& nest);
// Sizes, scalars, facts, the target: what all levels have.
bool is_declaration(const ir::Op& op);

// Outputs, and what these nests read.
std::set<std::string> kept_for(std::set<std::string> outputs, std::span<const MapNest> nests);

}  // namespace nautilus::lower
