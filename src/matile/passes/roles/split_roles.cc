// SPDX-License-Identifier: Apache-2.0
#include "matile/passes/roles/split_roles.h"

#include <fmt/format.h>

#include "decision/lines.h"
#include "matile/passes/roles/role_splitter.h"

namespace nautilus::matile {

using ir::Op;

std::optional<Kernel> RoleSplitter::run() {
  for (const Op& op : role_.body) {
    if (const auto* each = op.get<Each>()) each_ = each;
  }
  if (!each_) return refuse("a nest walks tiles with `each`");
  if (!find_rings()) return std::nullopt;
  name_operands();
  ir::Block lines = {kernel_.body};
  if (!take_ring_lines(lines)) return std::nullopt;
  ResourceChoices choices(context_);
  choices.stages.begin(lines);
  choices.registers.begin(lines);
  for (NestRing& ring : rings_) {
    ring.sequence = ring_sequence(each_->body, ring.slot_tiles, scalars_, pool_);
    if (!find_shared_range(ring)) return std::nullopt;
  }
  if (!assign_loaders()) return std::nullopt;
  const auto chosen =
      choose_resources({kernel_, role_, rings_, maps_, target_}, taken_, choices, context_);
  if (!chosen) return std::nullopt;
  const bool has_stages = choices.stages.end("the kernel does not store it through shared memory");
  if (!choices.registers.end("") || !has_stages) return std::nullopt;
  note_rings(*chosen);
  Kernel out{.name = kernel_.name,
             .form = KernelForm::Roles,
             .resident = kernel_.resident,
             .cluster = kernel_.cluster,
             .rank = kernel_.rank};
  for (const Op& op : kernel_.body) {
    if (op.is<Tiles>() || op.is<Cta>()) out.body.push_back(op);
  }
  for (const Op& op : chosen->declarations) out.body.push_back(op);
  for (int warp = 0; warp < loader_warps(); ++warp) {
    auto loader = loader_role(warp, chosen->loader_registers);
    if (loader) out.body.push_back(ir::make(std::move(*loader)));
    if (is_refused_) return std::nullopt;
  }
  auto compute = compute_role(*chosen);
  if (!compute) return std::nullopt;
  out.body.push_back(ir::make(std::move(*compute)));
  out.body = decision::with_lines(std::move(out.body), decision::lines(lines));
  return out;
}

std::nullopt_t RoleSplitter::refuse(std::string message) {
  is_refused_ = true;
  sink_.report(diag::Code::NotVerified, {},
               fmt::format("kernel `{}`: {}", kernel_.name.str(), message));
  return std::nullopt;
}

std::optional<ir::Program> split_roles(const ir::Program& program, ir::PassContext& context) {
  return map_kernels(program, KernelForm::Nest, [&](const Kernel& k) -> std::optional<Kernel> {
    for (const Op& op : k.body) {
      if (const auto* role = op.get<Role>()) return RoleSplitter(program, k, *role, context).run();
    }
    return k;
  });
}

}  // namespace nautilus::matile
