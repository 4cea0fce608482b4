// SPDX-License-Identifier: Apache-2.0
#include "emit/kernel/roles.h"

namespace nautilus::emit {

using ir::Op;
using matile::RingInfo;
using matile::RoleInfo;

void RoleEmitter::run() {
  std::vector<const RoleInfo*> loaders;
  std::vector<const RoleInfo*> computes;
  for (const RoleInfo& role : scope_.resources.roles)
    (role.is_compute() ? computes : loaders).push_back(&role);
  bool is_first = true;
  if (!loaders.empty()) {
    out_.open("if (group == 0) {{");
    if (scope_.resources.moves_registers())
      out_.line("registers_down<{}>();", *loaders[0]->op->regs);
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
    if (scope_.resources.moves_registers()) out_.line("registers_up<{}>();", *role->op->regs);
    role_body(*role);
  }
  out_.close();
}

void RoleEmitter::role_body(const RoleInfo& role) {
  scope_.begin_role(role);
  out_.line("ROLE(\"{}\");", role.op->name.str());
  for (const Op& op : scope_.kernel.body) {
    if (const auto* c = op.get<matile::Cta>()) cta(*c);
  }
  if (scope_.kernel.rank) {
    scope_.define(scope_.kernel.rank);
    scope_.facts.add_size(scope_.pool.index(scope_.kernel.rank));
    out_.line("const int {} = {};", identifier(scope_.kernel.rank.str()), scope_.rank());
  }
  if (role.op->index) {
    scope_.define(role.op->index);
    scope_.facts.add_axis(scope_.pool.index(role.op->index), scope_.pool.integer(role.groups()));
    out_.line("const int {} = group - {};", identifier(role.op->index.str()), role.first_group);
  }
  if (role.is_compute()) out_.line("const bool leader = thread % 128 == 0;");
  rings();
  turns();
  products_.begin_role();
  prefetch_maps();
  const bool is_stage_used = stages();
  if (role.scratch_bytes) out_.line("int warps_at = 0;");
  if (role.meeting_bytes) out_.line("int groups_at = 0;");
  if (role.cluster_meeting_bytes) out_.line("int ctas_at = 0;");
  tiles_cursor();
  statements_.block(role.op->body);
  if (is_stage_used) out_.line("if (leader) tma_wait_read<0>();");
}

void RoleEmitter::cta(const matile::Cta& op) {
  for (ir::Name name : {op.index, op.count}) {
    scope_.define(name);
    scope_.facts.add_size(scope_.pool.index(name));
  }
  out_.line("const int {} = {}, {} = {};", identifier(op.index.str()), scope_.first_tile(),
            identifier(op.count.str()), scope_.tile_step());
}

void RoleEmitter::rings() {
  for (const RingInfo& ring : scope_.resources.rings) {
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
    const bool is_own = ring.copies > 1 && scope_.role->is_compute();
    out_.line("{} {}(smem + {}{});", scope_.ring_type(ring), identifier(name.str()), ring.barriers,
              is_own ? fmt::format(" + {} * {}", scope_.group_text(), ring.barrier_bytes()) : "");
  }
}

void RoleEmitter::turns() {
  for (const auto& turn : scope_.resources.turns) {
    if (turn.op->role == scope_.role->op->name)
      out_.line("Turn<{}> {}({}, {});", turn.groups, identifier(turn.op->name.str()), turn.barrier,
                scope_.group_text());
  }
}

void RoleEmitter::prefetch_maps() {
  std::set<std::string> maps;
  ir::for_each_op(scope_.role->op->body, [&](const Op& op) {
    if (const auto* c = op.get<matile::Copy>()) maps.emplace(c->map.str());
  });
  for (const std::string& map : maps) out_.line("tma_prefetch(&p.{});", identifier(map));
}

bool RoleEmitter::stages() {
  bool is_used = false;
  for (const auto& stage : scope_.resources.stages) {
    if (stage.op->role != scope_.role->op->name) continue;
    is_used = uses([](const Op& op) { return op.is<matile::Store>(); });
    if (stage.buffers() > 1) out_.line("int {}_at = 0;", identifier(stage.op->name.str()));
  }
  return is_used;
}

void RoleEmitter::tiles_cursor() {
  for (const auto& tiles : scope_.resources.tiles) {
    if (tiles.op->source == matile::TileSource::Dynamic && uses([&](const Op& op) {
          const auto* e = op.get<matile::Each>();
          return e && e->tiles == tiles.op->name;
        }))
      out_.line("Ring<2> {}(smem + {});", identifier(tiles.op->name.str()), tiles.barriers);
  }
}

}  // namespace nautilus::emit
