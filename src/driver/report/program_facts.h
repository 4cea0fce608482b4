// SPDX-License-Identifier: Apache-2.0
// What a compiled program does at given sizes: which kernels are launched, what they read and
// write, which tensors pass through memory between them, and the least time that the machine needs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "driver/kernels/lower_to_kernels.h"
#include "driver/report/memory_use.h"
#include "driver/run/work_count.h"
#include "ir/environment.h"

namespace nautilus::driver {

struct LaunchFacts {
  std::string kernel;
  const KernelNote* note = nullptr;  // none if the kernel was given as MA-tile text
  int64_t ctas = 0;
  int threads = 0;  // of a CTA
  MemoryUse use;

  int64_t all_threads() const { return ctas * threads; }
  std::string form() const;  // "tile"
};

// A tensor that one kernel writes and a later one reads.
struct PassedTensor {
  std::string name;
  ir::TensorType type;
  double bytes = 0;
  std::vector<std::string> writers;
  std::vector<std::string> readers;
  std::vector<std::string> reasons;  // lines of the derivation about it and its readers
};

struct ProgramFacts {
  ir::Environment sizes;             // and scalars: those given, hints, defaults
  std::vector<std::string> guessed;  // sizes without a given value or hint
  std::vector<LaunchFacts> launches;
  std::vector<PassedTensor> passed;
  Work work;
  double bytes_us = 0;     // the least time to move the bytes of `work`
  double products_us = 0;  // the least time of its products on the matrix unit

  double least_us() const { return std::max(bytes_us, products_us); }
  double bytes_of(const std::string& tensor) const;
  std::map<std::string, double> tensor_bytes;
};

// `program` is what the kernels were made of. Sizes come from its hints; for a size without a hint
// the target's usual size is assumed. Nothing if such sizes break a fact of the program.
std::optional<ProgramFacts> program_facts(const ir::Program& program, const Kernels& kernels,
                                          Unit& unit);

}  // namespace nautilus::driver
