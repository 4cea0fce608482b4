// SPDX-License-Identifier: Apache-2.0
// Products of the matrix unit: descriptors of their operands in shared memory, their steps, and the
// waits for them.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "emit/kernel/kernel_scope.h"
#include "layout/descriptor.h"

namespace nautilus::emit {

class ProductEmitter {
 public:
  explicit ProductEmitter(KernelScope& scope) : scope_(scope), out_(scope.out) {}

  // Prints the descriptors of all products of the role; drops those of the previous role.
  void begin_role();

  void dot(const matile::Dot& op);
  // mma.sync on the rows of this warp; its accumulator has the layout of the warp group's product.
  void warp_dot(const matile::WarpDot& op);
  void wait(const matile::Wait& op);

 private:
  OperandDTypes operand_dtypes(const matile::Dot& op) const;
  // The name of the variable that describes a slot tile; declares it at its first use.
  std::string descriptor(ir::Name part_name, layout::Major major, expr::Expr rows);

  KernelScope& scope_;
  Writer& out_;
  std::vector<std::pair<std::tuple<ir::Name, layout::Major, expr::Expr>, std::string>> descriptors_;
  std::map<std::string, ir::Name> a_of_;  // register operand of the last product into a tile
};

}  // namespace nautilus::emit
