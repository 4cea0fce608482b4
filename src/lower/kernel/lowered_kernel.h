// SPDX-License-Identifier: Apache-2.0
// What one nest of a scalar program becomes: a kernel, its launch, and the plan ops before
// them. Names are the program's own or start with the kernel's name.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "diag/diagnostic.h"
#include "ir/flat_name.h"
#include "ir/op.h"

namespace nautilus::lower {

// Why a nest has no kernel: a sentence, and what it is reported as. A line of its schedule that
// cannot be followed stays one of those.
struct NoKernel {
  std::string why = {};
  diag::Code code = diag::Code::BadPass;
};

// How CTAs of a kernel share the machine.
struct CtaPacking {
  int64_t cluster = 1;   // CTAs that run together and share what they load
  int64_t resident = 1;  // CTAs on a multiprocessor
};

struct LoweredKernel {
  ir::Block plan;  // `let`, `map`, scratch tensors
  ir::Op kernel;
  ir::Op launch;
  // Of a kernel of tiles: the coordinates of a tile, as its roles call them; the name of the
  // group, where groups have tiles of their own, and how many there are.
  ir::Axes tiles = {};
  ir::Name group = {};
  int64_t groups = 1;
};

// Names that are taken: a new one never hides or meets another, as a name of the program and as one
// of the emitted text, where `a.b` is written `a_b`.
class FreshNames {
 public:
  explicit FreshNames(expr::ExprPool& pool) : pool_(&pool) {}

  void take(std::string_view name) { ++taken_[ir::flat_name(name)]; }
  // One of those who have it no longer needs it.
  void release(std::string_view name) {
    const auto known = taken_.find(ir::flat_name(name));
    if (known != taken_.end() && --known->second == 0) taken_.erase(known);
  }
  ir::Name make(std::string_view stem) {
    const std::string base = ir::flat_name(stem);
    std::string name = base;
    for (int n = 2; !taken_.emplace(name, 1).second; ++n) name = base + "_" + std::to_string(n);
    return pool_->name(name);
  }

 private:
  expr::ExprPool* pool_;
  std::map<std::string, int> taken_;  // by how many
};

}  // namespace nautilus::lower
