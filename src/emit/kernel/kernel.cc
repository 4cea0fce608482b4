// SPDX-License-Identifier: Apache-2.0
// The kernel around its roles: parameters, the function's head, barriers.
#include <algorithm>
#include <unordered_set>

#include "emit/kernel/kernel_emitter.h"
#include "emit/kernel/roles.h"
#include "emit/launch_order.h"
#include "emit/points/points.h"
#include "estimate/registers.h"
#include "expr/walk.h"
#include "ir/decl.h"
#include "ir/walk.h"
#include "matile/point_layout.h"
#include "target/target.h"

namespace nautilus::emit {

using ir::Op;
using matile::RingInfo;
using matile::RoleInfo;

KernelText KernelEmitter::run() {
  KernelText text;
  text.name = kernel_identifier(scope_.kernel.name.str());
  text.threads = scope_.resources.threads;
  text.cluster = scope_.resources.cluster;
  scope_.globals = collect_params(scope_.program, scope_.kernel, text);
  learn_facts();
  const LaunchOrder order = launch_order(scope_.program, scope_.kernel);
  text.may_begin_early = order.is_early;
  text.has_ordered_reads = scope_.kernel.reads == decision::ReadOrder::Ordered;
  text.shared_bytes = asked_shared_bytes(order, scope_.resources);
  header(text, order.is_followed);
  RoleEmitter(scope_).run();
  // Nobody leaves while others may still arrive at its barriers.
  if (scope_.resources.cluster > 1) out_.line("sync_cluster();");
  out_.close();
  text.body = params_struct(text, scope_.globals) + out_.take();
  text.instructions = scope_.instructions.text();
  text.vectors.assign(scope_.vectors.begin(), scope_.vectors.end());
  return text;
}

namespace {

void add_variables(const Op& op, std::unordered_set<ir::Name>& names) {
  ir::for_each_expr(op, [&](ir::Expr root) {
    expr::for_each(root, [&](ir::Expr e) {
      if (e.op() == expr::Op::Var) names.insert(e.name());
    });
  });
}

// Variables of the kernel, or of the plan's tensors and maps, and those that they are computed
// from. A plan has many more: the costs of all kernels that it chooses from.
std::unordered_set<ir::Name> variables_for(const matile::Kernel& kernel,
                                           const ir::Program& program) {
  std::unordered_set<ir::Name> names;
  for (const Op& op : kernel.body) add_variables(op, names);
  for (auto op = program.body.rbegin(); op != program.body.rend(); ++op) {
    if (op->is<matile::Kernel>() || op->is<matile::Launch>()) continue;
    const auto* let = op->get<matile::Let>();
    if (!let || names.contains(let->name)) add_variables(*op, names);
  }
  return names;
}

}  // namespace

void KernelEmitter::learn_facts() {
  const auto used = variables_for(scope_.kernel, scope_.program);
  for (const Op& op : scope_.program.body) {
    if (const auto* dim = op.get<ir::Dim>())
      scope_.base_facts.add_size(scope_.pool.index(dim->name));
    if (const auto* fact = op.get<ir::Fact>()) {
      scope_.base_facts.assume(fact->condition);
      expr::assume_divisor(fact->condition, scope_.divisors);
    }
    if (const auto* let = op.get<matile::Let>(); let && used.contains(let->name))
      scope_.know(scope_.base_facts, let->name, let->value);
  }
}

void KernelEmitter::header(const KernelText& text, bool is_followed) {
  describe();
  const int ctas = ctas_together();
  if (scope_.resources.cluster > 1 && ctas > 1)
    out_.open("KERNEL_CLUSTER_MIN_CTAS({}, {}, {}, {}) {{", text.name, text.threads,
              scope_.resources.cluster, ctas);
  else if (scope_.resources.cluster > 1)
    out_.open("KERNEL_CLUSTER({}, {}, {}) {{", text.name, text.threads, scope_.resources.cluster);
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
      !scope_.resources.rings.empty() ||
      std::any_of(scope_.resources.tiles.begin(), scope_.resources.tiles.end(),
                  [](const auto& t) { return t.op->source == matile::TileSource::Dynamic; });
  if (is_followed) out_.line("let_next_kernel_begin();");
  if (has_barriers) barriers();
  if (text.may_begin_early) out_.line("wait_for_kernels_in_front();");
  // CTAs use barriers and memory of each other only after all of them have begun.
  const bool meet =
      std::any_of(scope_.resources.roles.begin(), scope_.resources.roles.end(),
                  [](const matile::RoleInfo& role) { return role.cluster_meeting_bytes > 0; });
  if (has_barriers || meet)
    out_.line("{}();", scope_.resources.cluster > 1 ? "sync_cluster" : "sync_cta");
}

void KernelEmitter::barriers() {
  out_.open("if (thread == 0) {{");
  for (const RingInfo& ring : scope_.resources.rings) {
    for (int c = 0; c < ring.copies; ++c)
      out_.line("{}::init(smem + {}, {});", scope_.ring_type(ring),
                ring.barriers + c * ring.barrier_bytes(), ring.readers);
  }
  for (const auto& tiles : scope_.resources.tiles) {
    if (tiles.op->source == matile::TileSource::Dynamic)
      out_.line("Ring<2>::init(smem + {}, {});", tiles.barriers, tiles.readers);
  }
  out_.line("mbar_init_fence();");
  out_.close();
}

// The kernel's own decision; without it and without loading roles registers do not move between
// groups: what the roles ask for decides how many CTAs share a multiprocessor.
int KernelEmitter::ctas_together() const {
  if (scope_.kernel.resident) return scope_.resources.resident;
  const target::Limits& limits = scope_.resources.target->limits;
  int64_t regs = 0;
  for (const RoleInfo& role : scope_.resources.roles) {
    if (!role.is_compute() || !role.op->regs) return 1;
    regs = std::max(regs, *role.op->regs);
  }
  if (regs == 0) return 1;
  return static_cast<int>(estimate::ctas_that_fit(scope_.resources.threads, regs, limits));
}

void KernelEmitter::describe() {
  out_.line("// {} threads, {} bytes of shared memory", scope_.resources.threads,
            scope_.resources.shared_bytes);
  if (scope_.resources.cluster > 1) out_.line("// clusters of {} CTAs", scope_.resources.cluster);
  for (const RingInfo& ring : scope_.resources.rings)
    out_.line("// ring {}: {} slots of {} bytes{}, filled by {}, read by {} warps{}",
              ring.op->name.str(), ring.slots(), ring.slot_bytes,
              ring.copies > 1 ? fmt::format(" for each of {} groups", ring.copies) : "",
              ring.filler ? ring.filler->name.str() : "nobody", ring.readers,
              ring.ctas > 1 ? fmt::format(" of {} CTAs", ring.ctas) : "");
  for (const auto& turn : scope_.resources.turns)
    out_.line("// turn {}: {} groups issue matrix work one after the other", turn.op->name.str(),
              turn.groups);
  for (const auto& tiles : scope_.resources.tiles)
    out_.line("// tiles {}: {}", tiles.op->name.str(),
              tiles.op->source == matile::TileSource::Dynamic ? "next free CTA, from a counter"
              : scope_.resources.cluster > 1                  ? "each for a cluster"
                                                              : "every grid-th");
}

std::vector<KernelText> emit_kernels(const ir::Program& program, expr::ExprPool& pool) {
  std::vector<KernelText> out;
  for (const Op& op : program.body) {
    const auto* kernel = op.get<matile::Kernel>();
    if (!kernel) continue;
    out.push_back(matile::find_points(*kernel) ? emit_points(program, *kernel, pool)
                                               : KernelEmitter(program, *kernel, pool).run());
  }
  return out;
}

}  // namespace nautilus::emit
