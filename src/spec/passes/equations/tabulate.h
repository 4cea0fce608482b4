// SPDX-License-Identifier: Apache-2.0
// Costly values that are the same for many elements are computed once, into a tensor.
//
//   let Y[b < B, i < M, d < 128] : f32 = X[b, i, d] * cos(w[i, d % 64])
// becomes
//   let Y.table[i < M, place.1 < 64] : f32 = cos(w[i, place.1])
//   let Y[b < B, i < M, d < 128] : f32 = X[b, i, d] * Y.table[i, d % 64]
//
// Why: a sine or a power is dozens of instructions for each element. What is read from the cache
// instead has to be cheaper: the instructions that are saved, at the sizes that kernels are chosen
// for, are compared with those that make the values once, the bytes that these take, and one more
// launch. Cheap functions stay, and so does what only the last axes lack: kernels compute it once
// per row. Equal values of several equations share a tensor.
//
// A value that needs a reduction stays: its kernel goes on with the elements. So does one whose
// reads are inside their tensors only under a condition. Exactness class: exact. Test:
// test/spec/tabulate.spec
#pragma once

#include "ir/pass.h"

namespace nautilus::spec {

std::optional<ir::Program> tabulate(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::spec
