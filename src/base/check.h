// SPDX-License-Identifier: Apache-2.0
//
// Internal checks. NAUT_CHECK guards the compiler's own invariants and stays on in every build:
// a wrong kernel is worse than a stopped compiler. Mistakes in the user's input are diagnostics
// and never come through here. A StageScope names what is being done and the command that does
// only that, so that a failed check can be reproduced from its message alone.
#pragma once

#include <string>
#include <string_view>

#include <fmt/core.h>

namespace nautilus::base {

// The exit status of a failed check (EX_SOFTWARE of sysexits.h); scripts tell it from a diagnosed
// input, which exits with 1.
inline constexpr int kInternalErrorStatus = 70;

// Prints the message and the stage stack, innermost first, to stderr and leaves the process
// without running destructors: the state is known to be wrong.
[[noreturn]] void internal_error(const char* file, int line, std::string_view message);

// One entry of the calling thread's stage stack, from construction to destruction. Scopes must
// end in the reverse order of their beginning; an empty `reproduce` prints no such line.
class StageScope {
 public:
  StageScope(std::string what, std::string reproduce);
  ~StageScope();
  StageScope(const StageScope&) = delete;
  StageScope& operator=(const StageScope&) = delete;

  // The innermost scope of the calling thread, or null.
  static const StageScope* innermost();

 private:
  friend class StageInheritance;
  friend void internal_error(const char*, int, std::string_view);

  std::string what_;
  std::string reproduce_;
  const StageScope* outer_;
};

// Lets a worker thread report the stages of the thread that started it. The scopes must outlive
// this object, which holds when the starting thread waits for the worker.
class StageInheritance {
 public:
  explicit StageInheritance(const StageScope* innermost);
  ~StageInheritance();
  StageInheritance(const StageInheritance&) = delete;
  StageInheritance& operator=(const StageInheritance&) = delete;

 private:
  const StageScope* saved_;
};

}  // namespace nautilus::base

#define NAUT_CHECK(cond, ...)                                                           \
  do {                                                                                  \
    if (!(cond)) [[unlikely]] {                                                         \
      ::nautilus::base::internal_error(__FILE__, __LINE__, ::fmt::format(__VA_ARGS__)); \
    }                                                                                   \
  } while (false)
