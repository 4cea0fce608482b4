// SPDX-License-Identifier: Apache-2.0
//
// A parallel loop for work that is uneven and has no order: test files, fuzz cases, rows of a
// reference evaluation. Indices are handed out in chunks as threads become free. The template
// only adapts the body; threads live in the .cc file behind a plain function pointer.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace nautilus::base {

// The positive number in the environment variable NAUTILUS_THREADS, else the number of hardware
// threads, never less than 1.
int default_threads();

// Calls body(context, begin, end) for disjoint ranges that cover [0, count).
using RangeBody = void (*)(void* context, int64_t begin, int64_t end);
void parallel_ranges(int64_t count, int threads, RangeBody body, void* context);

// Calls body(index) once for every index in [0, count) on up to `threads` threads, the caller's
// among them, and returns when all calls have. With one thread the calls are made in order on
// the caller's thread; otherwise in any order and at the same time. Nested use is allowed.
template <typename F>
void parallel_for(int64_t count, int threads, F&& body) {
  using Body = std::remove_reference_t<F>;
  parallel_ranges(
      count, threads,
      [](void* context, int64_t begin, int64_t end) {
        Body& call = *static_cast<Body*>(context);
        for (int64_t i = begin; i < end; ++i) call(i);
      },
      const_cast<void*>(static_cast<const void*>(std::addressof(body))));
}

}  // namespace nautilus::base
