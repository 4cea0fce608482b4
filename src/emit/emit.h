// SPDX-License-Identifier: Apache-2.0
// CUDA text of a verified MA-tile kernel. A printer: every decision is already in the program.
//
// The body calls prelude names only (prelude/sm_90a.cuh), so that the same text runs on the device
// and in the emulator; the instruction wrappers it needs (one per matrix shape) are a text of their
// own, for the device alone.
#pragma once

#include <string>
#include <vector>

#include "matile/ops.h"
#include "matile/resources.h"

namespace nautilus::emit {

// A member of the kernel's parameter struct.
struct KernelParam {
  enum class Kind : uint8_t { Map, Pointer, Stride, Int, Float, Long, Double };
  Kind kind = Kind::Int;
  std::string name;    // member
  std::string source;  // map, tensor, or scalar of the plan
  int dimension = 0;   // Stride
  int offset = 0;      // bytes
};

struct KernelText {
  std::string name;
  std::string instructions;  // device only
  std::string body;
  std::vector<KernelParam> params;
  // Tensors that are read or written 16 bytes at a time: the last axis must be contiguous, address
  // and other strides multiples of 16 bytes.
  std::vector<std::string> vectors;
  int param_bytes = 0;
  int threads = 0;
  int shared_bytes = 0;
  // Waits for the results of earlier kernels: it may begin before they have ended.
  bool may_begin_early = false;
  bool has_ordered_reads = false;  // of global memory, by its threads
  int cluster = 1;                 // CTAs that run together; the grid is a multiple
};

// The kernels of a program in the order of the text.
std::vector<KernelText> emit_kernels(const ir::Program& program, expr::ExprPool& pool);

// One self-contained file for the device: prelude, instruction wrappers, body.
std::string device_source(const KernelText& kernel);
// The same for all kernels of a program, each in a namespace of its own: their parameters and
// wrappers have the same names. If one of them has ordered reads of global memory, all have.
std::string device_source(const std::vector<KernelText>& kernels);
// The line that separates the prelude from the body in such a file.
inline constexpr std::string_view kBodyMarker = "// ---- kernel ----\n";

// Text of prelude/reads.cuh, which stands behind the prelude.
std::string_view reads_prelude();
// Text of prelude/sm_90a.cuh.
std::string_view device_prelude();

}  // namespace nautilus::emit
