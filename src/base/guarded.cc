// SPDX-License-Identifier: Apache-2.0
#include "base/guarded.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/failure_scope.h"

namespace nautilus::base {
namespace {

// Shared with a thread that may outlive the call.
struct Outcome {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_over = false;
  std::string report;

  void end(std::string text) {
    {
      const std::lock_guard lock(mutex);
      if (!is_over) report = std::move(text);  // the first of several failures
      is_over = true;
    }
    changed.notify_all();
  }
};

}  // namespace

std::string run_guarded(const std::string& what, std::function<void()> work) {
  const auto outcome = std::make_shared<Outcome>();
  std::thread([outcome, what, work = std::move(work)]() mutable {
    {
      const StageScope stage(what, "");
      const FailureScope scope(
          [](void* context, std::string report) {
            static_cast<Outcome*>(context)->end(std::move(report));
          },
          outcome.get());
      work();
      work = nullptr;  // releases what it owns before the caller continues
    }
    outcome->end("");
  }).detach();
  std::unique_lock lock(outcome->mutex);
  outcome->changed.wait(lock, [&] { return outcome->is_over; });
  return outcome->report;
}

}  // namespace nautilus::base
