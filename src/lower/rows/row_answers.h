// SPDX-License-Identifier: Apache-2.0
// What the lowering of a kernel along rows asks about the registers of a thread, where it has a
// choice. The lines of the kernel answer (row_lines.h); while they are chosen, rules do
// (choose/rows/row_rules.h).
#pragma once

#include "lower/rows/row_shapes.h"

namespace nautilus::lower {

// The kernel as far as it is made.
struct RowUse {
  const RowShape& shape;
  int64_t registers = 0;  // of a thread, for the tiles that there are
};

class RowAnswers {
 public:
  virtual ~RowAnswers() = default;

  // Whether elements of a tensor that all rows share are loaded piece by piece where elements are
  // written, not with the row. `early`: registers of all that is read, `pieces`: how many there
  // are.
  virtual bool is_late(ir::Name tensor, const RowUse& use, int64_t early, int64_t pieces) = 0;
  // Whether elements that several statements need stay in `more` registers.
  virtual bool is_held(ir::Name statement, const RowUse& use, int64_t more) = 0;
  // Whether elements of 16 bits stay unpacked behind a reduction, in `more` registers.
  virtual bool stays_unpacked(ir::Name reduction, const RowUse& use, int64_t more) = 0;
  // Whether a sum is taken in the walk that finds the numbers of its terms (row_moving.h).
  virtual bool moves(ir::Name sum, const RowUse& use) = 0;
  // Of a thread, when all tiles are known; so many of them have columns.
  virtual int64_t registers(const RowUse& use, int64_t tiles) = 0;
};

}  // namespace nautilus::lower
