// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "estimate/registers.h"
#include "matile/verify/verify_rules.h"
#include "target/target.h"

namespace nautilus::matile {
namespace {

using Fail = std::function<void(const std::string&)>;

// Registers that the products of compute roles keep, and those that all roles ask for.
void verify_registers(const Resources& r, const Fail& fail) {
  const target::Limits& limits = r.target->limits;
  int loader_registers = 0;
  int wanted = 0;
  const int64_t beside = r.target->tiles.spare.checked;
  for (const RoleInfo& role : r.roles) {
    const int regs = static_cast<int>(role.op->regs.value_or(0));
    if (role.is_compute()) {
      wanted += limits.group_threads * role.groups() * regs;
      const int64_t live = product_registers(*role.op, role.op->body);
      if (live + beside > std::min(regs, limits.thread_registers))
        fail(
            fmt::format("role `{}`: its products keep {} registers, with {} beside them that is "
                        "more than {}",
                        role.op->name.str(), live, beside, regs));
    } else if (loader_registers != 0 && loader_registers != regs) {
      fail("the loading roles share a warp group and need the same number of registers");
    } else {
      loader_registers = regs;
    }
  }
  wanted += limits.group_threads * loader_registers;
  // What the roles share is what the CTA was launched with.
  const int64_t pool = estimate::pool_registers(r.threads, r.resident, limits);
  if (r.moves_registers() && wanted > pool)
    fail(fmt::format("its roles want {} registers, {} threads share {}; it would never start",
                     wanted, r.threads, pool));
}

void verify_users(const Resources& r, const Fail& fail) {
  for (const RingInfo& ring : r.rings) {
    if (!ring.filler) fail(fmt::format("nobody fills ring `{}`", ring.op->name.str()));
    if (ring.readers == 0) fail(fmt::format("nobody reads ring `{}`", ring.op->name.str()));
  }
  for (const TilesInfo& tiles : r.tiles) {
    if (tiles.op->source == TileSource::Dynamic && tiles.readers == 0)
      fail(fmt::format("the dynamic tiles `{}` are walked by one role only", tiles.op->name.str()));
    if (tiles.op->source == TileSource::Dynamic && tiles.fetcher &&
        tiles.fetcher->unit != RoleUnit::Warp)
      fail(fmt::format("the first role that walks the dynamic tiles `{}` must be a loading role",
                       tiles.op->name.str()));
  }
}

}  // namespace

void verify_resources(const Kernel& kernel, diag::Span span, const Resources& r, diag::Sink& sink) {
  const Fail fail = [&](const std::string& message) {
    sink.report(diag::Code::NotVerified, span,
                fmt::format("kernel `{}`: {}", kernel.name.str(), message));
  };
  const target::Limits& limits = r.target->limits;
  if (kernel.resident && (*kernel.resident < 1 || *kernel.resident > limits.sm_ctas))
    return fail(fmt::format("a multiprocessor runs 1 to {} CTAs, not {}", limits.sm_ctas,
                            *kernel.resident));
  const int shared = limits.shared_bytes(r.resident);
  if (r.shared_bytes > shared)
    fail(fmt::format("needs {} bytes of shared memory, {} can have {}", r.shared_bytes,
                     r.resident > 1 ? fmt::format("each of {} CTAs", r.resident) : "a CTA",
                     shared));
  if (r.threads * r.resident > limits.sm_threads)
    return fail(fmt::format("{} CTAs of {} threads, a multiprocessor has {}", r.resident, r.threads,
                            limits.sm_threads));
  if (r.named_barriers > limits.named_barriers)
    fail(fmt::format("needs {} named barriers, there are {}", r.named_barriers,
                     limits.named_barriers));
  if (r.threads > limits.cta_threads)
    return fail(
        fmt::format("needs {} threads, a CTA has at most {}", r.threads, limits.cta_threads));
  if (r.threads == 0) return fail("has no role");
  verify_registers(r, fail);
  verify_users(r, fail);
}

}  // namespace nautilus::matile
