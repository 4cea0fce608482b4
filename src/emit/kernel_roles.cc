// SPDX-License-Identifier: Apache-2.0
// Roles: who runs which text, and what a role declares before its statements.
#include "emit/kernel_emitter.h"

namespace nautilus::emit {

using expr::Expr;
using ir::Op;
using matile::RingInfo;
using matile::RoleInfo;

void KernelEmitter::roles() {
  std::vector<const RoleInfo*> loaders;
  std::vector<const RoleInfo*> computes;
  for (const RoleInfo& role : r_.roles) (role.is_compute() ? computes : loaders).push_back(&role);
  bool is_first = true;
  if (!loaders.empty()) {
    out_.open("if (group == 0) {{");
    if (r_.moves_registers()) out_.line("registers_down<{}>();", *loaders[0]->op->regs);
    for (const RoleInfo* role : loaders) {
      out_.open("if (warp == {} && lane == 0) {{", *role->op->count);
      role_body(*role);
      out_.close();
    }
    is_first = false;
  }
  for (const RoleInfo* role : computes) {
    const bool is_last = role == computes.back();
    const std::string condition =
        fmt::format("if (group < {}) {{", role->first_group + role->groups());
    if (!is_first) {
      out_.close(is_last ? "} else {" : "} else " + condition);
      out_.indent(2);
    } else {
      out_.open("{}", is_last ? "{" : condition);
    }
    is_first = false;
    if (r_.moves_registers()) out_.line("registers_up<{}>();", *role->op->regs);
    role_body(*role);
  }
  out_.close();
}

void KernelEmitter::role_body(const RoleInfo& role) {
  role_ = &role;
  scope_ = RegisterScope{};
  facts_ = base_facts_;
  locals_.clear();
  descriptors_.clear();
  stage_used_ = false;
  scope_.globals = &globals_;
  scope_.facts = &facts_;
  scope_.pool = &pool_;
  scope_.variable = [this](Expr v) { return variable(v); };
  scope_.has_coarse_functions =
      ir::allows_coarse_functions(program_, matile::output_dtypes(program_));
  scope_.divisors = divisors_;
  scope_.vectors = &vectors_;
  out_.line("ROLE(\"{}\");", role.op->name.str());
  for (const Op& op : kernel_.body) {
    if (const auto* c = op.get<matile::Cta>()) cta(*c);
  }
  if (kernel_.rank) {
    define(kernel_.rank);
    facts_.add_size(pool_.index(kernel_.rank));
    out_.line("const int {} = {};", identifier(kernel_.rank.str()), rank());
  }
  if (role.op->index) {
    define(role.op->index);
    facts_.add_axis(pool_.index(role.op->index), pool_.integer(role.groups()));
    out_.line("const int {} = group - {};", identifier(role.op->index.str()), role.first_group);
  }
  if (role.is_compute()) out_.line("const bool leader = thread % 128 == 0;");
  rings();
  turns();
  maps_and_descriptors();
  stages();
  if (role.scratch_bytes) out_.line("int warps_at = 0;");
  if (role.meeting_bytes) out_.line("int groups_at = 0;");
  tiles_cursor();
  block(role.op->body);
  if (stage_used_) out_.line("if (leader) tma_wait_read<0>();");
}

std::string KernelEmitter::group_text() const {
  return role_->op->index ? identifier(role_->op->index.str()) : "0";
}

std::string KernelEmitter::ring_type(const RingInfo& ring) {
  return ring.ctas > 1 ? fmt::format("Ring<{}, {}>", ring.slots(), ring.ctas)
                       : fmt::format("Ring<{}>", ring.slots());
}

void KernelEmitter::rings() {
  for (const RingInfo& ring : r_.rings) {
    const ir::Name name = ring.op->name;
    if (!uses([&](const Op& op) {
          const auto* f = op.get<matile::Fill>();
          const auto* g = op.get<matile::Get>();
          const auto* s = op.get<matile::Skip>();
          const auto* j = op.get<matile::Jump>();
          return (j && j->ring == name) || (f && f->ring == name) || (g && g->ring == name) ||
                 (s && s->ring == name);
        }))
      continue;
    const bool is_own = ring.copies > 1 && role_->is_compute();
    out_.line("{} {}(smem + {}{});", ring_type(ring), identifier(name.str()), ring.barriers,
              is_own ? fmt::format(" + {} * {}", group_text(), ring.barrier_bytes()) : "");
  }
}

void KernelEmitter::turns() {
  for (const auto& turn : r_.turns) {
    if (turn.op->role == role_->op->name)
      out_.line("Turn<{}> {}({}, {});", turn.groups, identifier(turn.op->name.str()), turn.barrier,
                group_text());
  }
}

void KernelEmitter::stages() {
  for (const auto& stage : r_.stages) {
    if (stage.op->role != role_->op->name) continue;
    stage_used_ = uses([](const Op& op) { return op.is<matile::Store>(); });
    if (stage.buffers() > 1) out_.line("int {}_at = 0;", identifier(stage.op->name.str()));
  }
}

void KernelEmitter::tiles_cursor() {
  for (const auto& tiles : r_.tiles) {
    if (tiles.op->source == matile::TileSource::Dynamic && uses([&](const Op& op) {
          const auto* e = op.get<matile::Each>();
          return e && e->tiles == tiles.op->name;
        }))
      out_.line("Ring<2> {}(smem + {});", identifier(tiles.op->name.str()), tiles.barriers);
  }
}

Meeting KernelEmitter::meeting() const {
  const int bytes = role_->scratch_bytes;
  return {
      fmt::format("smem + {}{}", role_->scratch,
                  role_->groups() > 1 ? fmt::format(" + {} * {}", group_text(), 2 * bytes) : ""),
      bytes, "warps_at",
      fmt::format("{}{}", role_->sync, role_->op->index ? " + " + group_text() : "")};
}

GroupMeeting KernelEmitter::meeting_of_groups(bool are_warps_apart) const {
  return {{fmt::format("smem + {}", role_->meeting), role_->meeting_bytes, "groups_at",
           fmt::format("{}", role_->meeting_sync)},
          role_->groups(),
          group_text(),
          are_warps_apart};
}

}  // namespace nautilus::emit
