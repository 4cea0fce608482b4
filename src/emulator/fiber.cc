// SPDX-License-Identifier: Apache-2.0
#include "emulator/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <boost/context/detail/fcontext.hpp>

#include "base/check.h"

// The address sanitizer has to be told when the stack changes, and that the frames of a dropped
// fiber are no longer there.
#if defined(__SANITIZE_ADDRESS__)
#define NAUTILUS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define NAUTILUS_ASAN 1
#endif
#endif
#ifdef NAUTILUS_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace nautilus::emulator {

namespace context = boost::context::detail;

namespace {

// Of the running thread; a fiber never moves to another one.
thread_local context::fcontext_t main_context = nullptr;
#ifdef NAUTILUS_ASAN
thread_local const void* main_bottom = nullptr;
thread_local size_t main_bytes = 0;
#endif

}  // namespace

Stacks::Stacks(int count, size_t bytes) {
  guard_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  stride_ = (bytes + guard_ - 1) / guard_ * guard_ + guard_;
  total_ = stride_ * static_cast<size_t>(count);
  void* at = mmap(nullptr, total_, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  NAUT_CHECK(at != MAP_FAILED, "no address space for {} stacks of {} bytes", count, bytes);
  base_ = static_cast<char*>(at);
  for (int i = 0; i < count; ++i) {
    mprotect(base_ + static_cast<size_t>(i) * stride_, guard_, PROT_NONE);
  }
#ifdef NAUTILUS_ASAN
  __asan_unpoison_memory_region(base_, total_);
#endif
}

Stacks::~Stacks() {
#ifdef NAUTILUS_ASAN
  __asan_unpoison_memory_region(base_, total_);
#endif
  munmap(base_, total_);
}

struct FiberEntry {
  static void enter(context::transfer_t transfer) {
#ifdef NAUTILUS_ASAN
    __sanitizer_finish_switch_fiber(nullptr, &main_bottom, &main_bytes);
#endif
    main_context = transfer.fctx;
    auto* fiber = static_cast<Fiber*>(transfer.data);
    fiber->entry_(fiber->argument_);
    NAUT_CHECK(false, "a fiber was resumed after its end");
  }
};

void Fiber::start(char* stack, size_t bytes, void (*entry)(void*), void* argument) {
  stack_ = stack;
  bytes_ = bytes;
  entry_ = entry;
  argument_ = argument;
#ifdef NAUTILUS_ASAN
  __asan_unpoison_memory_region(stack, bytes);
#endif
  context_ = context::make_fcontext(stack + bytes, bytes, FiberEntry::enter);
}

void Fiber::resume() {
#ifdef NAUTILUS_ASAN
  void* fake = nullptr;
  __sanitizer_start_switch_fiber(&fake, stack_, bytes_);
#endif
  context_ = context::jump_fcontext(context_, this).fctx;
#ifdef NAUTILUS_ASAN
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
}

void Fiber::suspend() {
#ifdef NAUTILUS_ASAN
  void* fake = nullptr;
  __sanitizer_start_switch_fiber(&fake, main_bottom, main_bytes);
#endif
  main_context = context::jump_fcontext(main_context, nullptr).fctx;
#ifdef NAUTILUS_ASAN
  __sanitizer_finish_switch_fiber(fake, &main_bottom, &main_bytes);
#endif
}

}  // namespace nautilus::emulator
