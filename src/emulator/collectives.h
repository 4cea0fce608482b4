// SPDX-License-Identifier: Apache-2.0
// What lanes bring to a rendezvous.
#pragma once

#include "emulator/machine.h"

namespace nautilus::emulator {

struct LaneXorArgument {
  float x;
  int mask;
};

struct LaneFromArgument {
  float x;
  int lane;
};

struct StmatrixArgument {
  uint32_t address;
  const unsigned* registers;
};

struct LdmatrixArgument {
  uint32_t address;
  unsigned* registers;
  bool is_transposed;  // each block is transposed
};

struct BarrierArgument {
  int id;
  int threads;
};

struct RegistersArgument {
  int count;
  bool is_up;
};

struct WaitArgument {
  int pending;
  const RegisterArray* arrays;
  int count;
};

}  // namespace nautilus::emulator
