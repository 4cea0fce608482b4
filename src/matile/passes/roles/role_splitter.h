// SPDX-License-Identifier: Apache-2.0
// One kernel while it is split into roles (split_roles.h).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/pass.h"
#include "ir/target_of.h"
#include "matile/passes/roles/nest_resources.h"
#include "matile/passes/roles/ring_sequence.h"
#include "matile/rewrite.h"

namespace nautilus::matile {

class RoleSplitter {
 public:
  RoleSplitter(const ir::Program& program, const Kernel& kernel, const Role& role,
               ir::PassContext& context)
      : kernel_(kernel),
        role_(role),
        context_(context),
        target_(ir::target_of(program)),
        pool_(context.pool),
        sink_(context.sink),
        scalars_(program, kernel, role, context.pool),
        taken_(names_of(program)) {
    for (const ir::Op& op : program.body) {
      if (const auto* m = op.get<Map>()) maps_.emplace(m->name.str(), *m);
    }
  }

  std::optional<Kernel> run();

 private:
  std::nullopt_t refuse(std::string message);

  // role_splitter_rings.cc
  bool find_rings();
  // Names the operands of the rings by their tensors, and finds the lines about rings.
  void name_operands();
  bool take_ring_lines(ir::Block& body);
  void note_rings(const NestResources& chosen);
  bool depends_on_group(const std::string& slot_tile) const;
  bool is_loop_bound_only(const std::string& slot_tile) const;
  bool find_shared_range(NestRing& ring);
  expr::Expr bound(expr::Expr own, expr::Expr common);

  // role_splitter_loaders.cc
  // Warps that load: those of one group.
  int loader_warps() const { return target_.limits.group_threads / target_.limits.warp_threads; }
  bool assign_loaders();
  void fill(const NestRing& ring, const std::vector<Fetch>& fetches, ir::Block& to);
  expr::Expr read_first(expr::Expr at, std::vector<std::pair<expr::Expr, expr::Expr>>& read,
                        ir::Block& to);
  int64_t panels_of(const NestRing& ring, const Fetch& f) const;
  std::optional<Role> loader_role(int warp, int64_t registers);
  bool runs_once(const RingSequence& s) const;
  ir::Block projection(const ir::Block& block, const NestRing& ring);
  ir::Block shared_lets();

  // role_splitter_compute.cc
  std::optional<Role> compute_role(const NestResources& chosen);
  const NestRing* ring_of(std::string_view slot_tile) const;
  ir::Block with_gets(const ir::Block& block) const;
  bool uses(const ir::Op& op, ir::Name ring) const;
  // Iterations low <= x < high that a group does not run, with the rings that it jumps over there.
  struct SkippedRange {
    expr::Expr low;
    expr::Expr high;
    bool is_front;
    std::vector<ir::Name> rings;
  };
  void join_skips(std::vector<SkippedRange>& ranges) const;
  void add_skips(ir::Block& tile);
  bool add_jumps(ir::Block& before, ir::Block& tile);
  ir::Block with_stages(const ir::Block& block, const NestResources& chosen) const;

  expr::Expr plus(expr::Expr e, int64_t c) {
    if (c == 0) return e;
    if (e.op() == expr::Op::IntConst) return pool_.integer(e.integer() + c);
    return pool_.binary(expr::Op::Add, e, pool_.integer(c));
  }
  expr::Expr plus_one(expr::Expr e) const {
    return pool_.binary(expr::Op::Add, e, pool_.integer(1));
  }
  expr::Expr plus_simple(expr::Expr e, int64_t c) {
    if (e.op() == expr::Op::Add && e[1].op() == expr::Op::IntConst)
      return plus(e[0], e[1].integer() + c);
    return plus(e, c);
  }

  // The range of a ring's fills, in terms of scalars that all groups share.
  struct SharedRange {
    expr::Expr from;
    expr::Expr to;
  };

  const Kernel& kernel_;
  const Role& role_;
  ir::PassContext& context_;
  const target::Target& target_;
  expr::ExprPool& pool_;
  diag::Sink& sink_;
  Scalars scalars_;
  Names taken_;
  std::map<std::string, Map, std::less<>> maps_;
  const Each* each_ = nullptr;
  std::vector<NestRing> rings_;
  std::map<std::string, SharedRange, std::less<>> shared_;
  std::vector<std::pair<expr::Expr, ir::Name>> bounds_;
  bool is_refused_ = false;
};

}  // namespace nautilus::matile
