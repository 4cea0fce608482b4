// SPDX-License-Identifier: Apache-2.0
// Scopes in which a failed check (check.h) does not end the process: for a library inside another
// program.
#pragma once

#include <string>

namespace nautilus::base {

// From construction to destruction, a failed check of this thread, or of one that inherits the
// scope, ends the thread instead of the process: `on_failure` gets the report, and the thread
// sleeps from then on. It must not run again, since its state is known to be wrong, and the core
// has no way to unwind it.
class FailureScope {
 public:
  using Handler = void (*)(void* context, std::string report);
  FailureScope(Handler on_failure, void* context);
  ~FailureScope();
  FailureScope(const FailureScope&) = delete;
  FailureScope& operator=(const FailureScope&) = delete;

  // The innermost scope of the calling thread, or null.
  static const FailureScope* innermost();
  // Hands the report over; does not return.
  [[noreturn]] void end_thread(std::string report) const;

 private:
  Handler on_failure_;
  void* context_;
  const FailureScope* outer_;
};

// Lets a worker thread fail as the thread that started it. The scope must outlive this object,
// which holds when the starting thread waits for the worker.
class FailureInheritance {
 public:
  explicit FailureInheritance(const FailureScope* innermost);
  ~FailureInheritance();
  FailureInheritance(const FailureInheritance&) = delete;
  FailureInheritance& operator=(const FailureInheritance&) = delete;

 private:
  const FailureScope* saved_;
};

}  // namespace nautilus::base
