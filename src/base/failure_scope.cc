// SPDX-License-Identifier: Apache-2.0
#include "base/failure_scope.h"

#include <chrono>
#include <thread>
#include <utility>

namespace nautilus::base {
namespace {

thread_local const FailureScope* innermost_failure_scope = nullptr;

}  // namespace

FailureScope::FailureScope(Handler on_failure, void* context)
    : on_failure_(on_failure), context_(context), outer_(innermost_failure_scope) {
  innermost_failure_scope = this;
}

FailureScope::~FailureScope() { innermost_failure_scope = outer_; }

const FailureScope* FailureScope::innermost() { return innermost_failure_scope; }

void FailureScope::end_thread(std::string report) const {
  on_failure_(context_, std::move(report));
  for (;;) std::this_thread::sleep_for(std::chrono::hours(24));
}

FailureInheritance::FailureInheritance(const FailureScope* innermost)
    : saved_(innermost_failure_scope) {
  innermost_failure_scope = innermost;
}

FailureInheritance::~FailureInheritance() { innermost_failure_scope = saved_; }

}  // namespace nautilus::base
