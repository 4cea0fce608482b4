// SPDX-License-Identifier: Apache-2.0
// The kernel around its roles: parameters, the function's head, barriers.
#include <algorithm>

#include "emit/kernel_emitter.h"
#include "emit/launch_order.h"
#include "emit/points.h"
#include "estimate/registers.h"
#include "ir/decl.h"
#include "target/target.h"

namespace nautilus::emit {

using expr::Expr;
using ir::Op;
using matile::RingInfo;
using matile::RoleInfo;

KernelText KernelEmitter::run() {
  KernelText text;
  text.name = kernel_identifier(kernel_.name.str());
  text.threads = r_.threads;
  text.shared_bytes = r_.shared_bytes;
  text.cluster = r_.cluster;
  globals_ = collect_params(program_, kernel_, text);
  for (const Op& op : program_.body) {
    if (const auto* dim = op.get<ir::Dim>()) base_facts_.add_size(pool_.index(dim->name));
    if (const auto* fact = op.get<ir::Fact>()) {
      base_facts_.assume(fact->condition);
      expr::assume_divisor(fact->condition, divisors_);
    }
    if (const auto* let = op.get<matile::Let>()) know(base_facts_, let->name, let->value);
  }
  const LaunchOrder order = launch_order(program_, kernel_);
  text.may_begin_early = order.is_behind;
  header(text, order.is_followed);
  roles();
  // Nobody leaves while others may still arrive at its barriers.
  if (r_.cluster > 1) out_.line("sync_cluster();");
  out_.close();
  text.body = params_struct(text, globals_) + out_.take();
  text.instructions = instructions_.text();
  text.vectors.assign(vectors_.begin(), vectors_.end());
  return text;
}

// A variable that is known not to be negative divides as in C++.
void KernelEmitter::know(expr::Facts& facts, ir::Name name, Expr value) {
  if (value.dtype() != expr::DType::I64) return;
  const auto poly = expr::Poly::of(value);
  if (poly && facts.is_nonnegative(*poly)) facts.add_size(pool_.index(name));
}

void KernelEmitter::header(const KernelText& text, bool is_followed) {
  describe();
  const int ctas = ctas_beside();
  if (r_.cluster > 1)
    out_.open("KERNEL_CLUSTER({}, {}, {}) {{", text.name, text.threads, r_.cluster);
  else if (ctas > 1)
    out_.open("KERNEL_MIN_CTAS({}, {}, {}) {{", text.name, text.threads, ctas);
  else
    out_.open("KERNEL({}, {}) {{", text.name, text.threads);
  out_.line("SHARED_BASE(smem);");
  out_.line("const int thread = thread_index();");
  out_.line(
      "const int group = uniform(thread / 128), warp = uniform(thread / 32) % 4, lane = thread % "
      "32;");
  const bool has_barriers =
      !r_.rings.empty() || std::any_of(r_.tiles.begin(), r_.tiles.end(), [](const auto& t) {
        return t.op->source == matile::TileSource::Dynamic;
      });
  if (is_followed) out_.line("let_next_kernel_begin();");
  if (!has_barriers) {
    if (text.may_begin_early) out_.line("wait_for_kernels_in_front();");
    return;
  }
  out_.open("if (thread == 0) {{");
  for (const RingInfo& ring : r_.rings) {
    for (int c = 0; c < ring.copies; ++c)
      out_.line("{}::init(smem + {}, {});", ring_type(ring),
                ring.barriers + c * ring.barrier_bytes(), ring.readers);
  }
  for (const auto& tiles : r_.tiles) {
    if (tiles.op->source == matile::TileSource::Dynamic)
      out_.line("Ring<2>::init(smem + {}, {});", tiles.barriers, tiles.readers);
  }
  out_.line("mbar_init_fence();");
  out_.close();
  if (text.may_begin_early) out_.line("wait_for_kernels_in_front();");
  out_.line("{}();", r_.cluster > 1 ? "sync_cluster" : "sync_cta");
}

// The kernel's own decision; without it and without loading roles registers do not move between
// groups: what the roles ask for decides how many CTAs share a multiprocessor.
int KernelEmitter::ctas_beside() const {
  if (kernel_.resident) return r_.resident;
  const target::Limits& limits = r_.target->limits;
  int64_t regs = 0;
  for (const RoleInfo& role : r_.roles) {
    if (!role.is_compute() || !role.op->regs) return 1;
    regs = std::max(regs, *role.op->regs);
  }
  if (regs == 0) return 1;
  return static_cast<int>(estimate::ctas_that_fit(r_.threads, regs, limits));
}

void KernelEmitter::describe() {
  out_.line("// {} threads, {} bytes of shared memory", r_.threads, r_.shared_bytes);
  if (r_.cluster > 1) out_.line("// clusters of {} CTAs", r_.cluster);
  for (const RingInfo& ring : r_.rings)
    out_.line("// ring {}: {} slots of {} bytes{}, filled by {}, read by {} warps{}",
              ring.op->name.str(), ring.slots(), ring.slot_bytes,
              ring.copies > 1 ? fmt::format(" for each of {} groups", ring.copies) : "",
              ring.filler ? ring.filler->name.str() : "nobody", ring.readers,
              ring.ctas > 1 ? fmt::format(" of {} CTAs", ring.ctas) : "");
  for (const auto& turn : r_.turns)
    out_.line("// turn {}: {} groups issue matrix work one after the other", turn.op->name.str(),
              turn.groups);
  for (const auto& tiles : r_.tiles)
    out_.line("// tiles {}: {}", tiles.op->name.str(),
              tiles.op->source == matile::TileSource::Dynamic ? "next free CTA, from a counter"
              : r_.cluster > 1                                ? "each for a cluster"
                                                              : "every grid-th");
}

std::vector<KernelText> emit_kernels(const ir::Program& program, expr::ExprPool& pool) {
  std::vector<KernelText> out;
  for (const Op& op : program.body) {
    const auto* kernel = op.get<matile::Kernel>();
    if (!kernel) continue;
    const bool is_scalar_code = !kernel->body.empty() && kernel->body[0].is<matile::Points>();
    out.push_back(is_scalar_code ? emit_points(program, *kernel, pool)
                                 : KernelEmitter(program, *kernel, pool).run());
  }
  return out;
}

}  // namespace nautilus::emit
