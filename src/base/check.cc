// SPDX-License-Identifier: Apache-2.0
//
// The stage stack is an intrusive list through the StageScope objects, which live on the C++
// stack, so that entering a stage on a hot path costs no more than its two strings.
#include "base/check.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/failure_scope.h"

namespace nautilus::base {

namespace {

thread_local const StageScope* innermost_scope = nullptr;

}  // namespace

StageScope::StageScope(std::string what, std::string reproduce)
    : what_(std::move(what)), reproduce_(std::move(reproduce)), outer_(innermost_scope) {
  innermost_scope = this;
}

StageScope::~StageScope() { innermost_scope = outer_; }

const StageScope* StageScope::innermost() { return innermost_scope; }

StageInheritance::StageInheritance(const StageScope* innermost) : saved_(innermost_scope) {
  innermost_scope = innermost;
}

StageInheritance::~StageInheritance() { innermost_scope = saved_; }

void internal_error(const char* file, int line, std::string_view message) {
  // One string and one write: messages of two failing threads must not interleave.
  std::string text = fmt::format("internal error: {}\n  at {}:{}\n", message, file, line);
  for (const StageScope* scope = innermost_scope; scope != nullptr; scope = scope->outer_) {
    text += fmt::format("  while {}\n", scope->what_);
    if (!scope->reproduce_.empty()) {
      text += fmt::format("  reproduce with: {}\n", scope->reproduce_);
    }
  }
  if (const FailureScope* scope = FailureScope::innermost()) scope->end_thread(std::move(text));
  std::fflush(stdout);
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
  std::_Exit(kInternalErrorStatus);
}

}  // namespace nautilus::base
