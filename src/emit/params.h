// SPDX-License-Identifier: Apache-2.0
// What a kernel gets from the plan: maps, tensors that it accesses element by element, scalars. One
// struct, which the host fills byte by byte.
#pragma once

#include <map>
#include <string>

#include "emit/emit.h"

namespace nautilus::emit {

// A tensor that the kernel reads or writes element by element: the pointer is `p.<name>`.
struct GlobalTensor {
  ir::TensorType type;
  bool is_scratch = false;  // other CTAs of the launch may write it
  // Of each dimension, in elements: a number for scratch and temp, which the plan lays out without
  // gaps, if the dimensions after it are constants; otherwise `p.<name>_stride<k>`. Numbers become
  // part of the address of an instruction, which keeps code that runs once short.
  std::vector<std::string> strides = {};

  // `<index> * <stride>` as 64 bits.
  std::string step(const std::string& index, size_t dimension) const;
};
using GlobalTensors = std::map<std::string, GlobalTensor, std::less<>>;

// Fills in the parameters of `text`.
GlobalTensors collect_params(const ir::Program& program, const matile::Kernel& kernel,
                             KernelText& text);

std::string params_struct(const KernelText& text, const GlobalTensors& globals);

}  // namespace nautilus::emit
