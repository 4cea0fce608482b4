// SPDX-License-Identifier: Apache-2.0
//
// Fibers: stacks that are switched by hand. One level only: the main stack resumes a fiber, a fiber
// suspends back to the main stack. A fiber that is never resumed again is dropped without running
// destructors, so nothing on its stack may own memory at a suspension that can be the last.
#pragma once

#include <cstddef>

namespace nautilus::emulator {

// Equal stacks in one mapping, each with an inaccessible page below it. Pages that are never
// touched take no memory.
class Stacks {
 public:
  Stacks(int count, size_t bytes);
  ~Stacks();
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;

  char* bottom(int index) const { return base_ + static_cast<size_t>(index) * stride_ + guard_; }
  size_t bytes() const { return stride_ - guard_; }

 private:
  char* base_ = nullptr;
  size_t total_ = 0;
  size_t stride_ = 0;
  size_t guard_ = 0;
};

class Fiber {
 public:
  // The entry must not return; its last act is suspend().
  void start(char* stack, size_t bytes, void (*entry)(void* argument), void* argument);
  // From the main stack; returns when the fiber suspends.
  void resume();
  // From the running fiber.
  static void suspend();

 private:
  friend struct FiberEntry;
  void* context_ = nullptr;
  char* stack_ = nullptr;
  size_t bytes_ = 0;
  void (*entry_)(void*) = nullptr;
  void* argument_ = nullptr;
};

}  // namespace nautilus::emulator
