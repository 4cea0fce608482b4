// SPDX-License-Identifier: Apache-2.0
//
// Threads are started for each loop: the loops here last milliseconds to minutes, against which
// some tens of microseconds are not worth a pool with its own lifetime.
#include "base/parallel.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/failure_scope.h"

namespace nautilus::base {

namespace {

// Enough chunks for the threads to end together when the work is uneven, few enough that the
// shared counter does not matter when it is tiny.
constexpr int64_t kChunksPerThread = 32;
constexpr int kMaxThreads = 1024;

}  // namespace

int default_threads() {
  if (const char* text = std::getenv("NAUTILUS_THREADS")) {
    int value = 0;
    const char* end = text + std::strlen(text);
    const auto parsed = std::from_chars(text, end, value);
    if (parsed.ec == std::errc() && parsed.ptr == end && value > 0) {
      return std::min(value, kMaxThreads);
    }
  }
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void parallel_ranges(int64_t count, int threads, RangeBody body, void* context) {
  if (count <= 0) return;
  const int64_t workers = std::min<int64_t>({count, threads, kMaxThreads});
  if (workers <= 1) {
    body(context, 0, count);
    return;
  }

  const int64_t chunk = std::max<int64_t>(1, count / (workers * kChunksPerThread));
  const int64_t chunks = (count - 1) / chunk + 1;
  std::atomic<int64_t> next{0};
  auto drain = [&] {
    for (;;) {
      const int64_t index = next.fetch_add(1, std::memory_order_relaxed);
      if (index >= chunks) return;
      const int64_t begin = index * chunk;
      body(context, begin, std::min(chunk, count - begin) + begin);
    }
  };

  const StageScope* stage = StageScope::innermost();
  const FailureScope* failure = FailureScope::innermost();
  std::vector<std::thread> started;
  started.reserve(static_cast<size_t>(workers - 1));
  for (int64_t i = 1; i < workers; ++i) {
    started.emplace_back([&drain, stage, failure] {
      StageInheritance inherited(stage);
      FailureInheritance inherited_failure(failure);
      drain();
    });
  }
  drain();
  for (std::thread& thread : started) thread.join();
}

}  // namespace nautilus::base
