// SPDX-License-Identifier: Apache-2.0
// The parts of the verifier (verify.cc). Each reports what it finds and looks at nothing that an
// earlier part has refused.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "diag/diagnostic.h"
#include "ir/environment.h"
#include "ir/verify.h"
#include "layout/digits.h"
#include "matile/ops.h"
#include "matile/resources.h"
#include "target/target.h"

namespace nautilus::target {
struct Copies;
}

namespace nautilus::matile {

struct TileUse {
  const Tile* op = nullptr;
  layout::Layout layout;
};
using RoleTiles = std::map<std::string, TileUse, std::less<>>;
RoleTiles tiles_of_role(const Role& role);

// False if the map is not to be used further.
bool verify_map(const Map& map, const target::Copies& copies, ir::Verifier& verifier);

// Maps of the plan by name.
using KernelMaps = std::map<std::string, const Map*, std::less<>>;
// Kernels in nest or roles form: names, shapes and dtypes.
void verify_nest(const Kernel& kernel, const KernelMaps& maps, ir::Verifier& verifier);

// Asynchronous work of one role: waits and releases, slots held, turns, what is in flight over a
// loop's back edge (R4, R5, R10, R12).
void verify_flow(const Role& role, const Resources& resources, diag::Sink& sink);

// Values of which lanes or warps hold shares are whole where they are used as such (R7).
void verify_lanes(const ir::Program& program, const Role& role, diag::Sink& sink);

// Where the groups of a role meet, all of them come, equally often (R8).
void verify_groups(const Role& role, diag::Sink& sink);

// What the CTAs of a cluster must agree on: what they multicast, and how often.
void verify_clusters(const Kernel& kernel, diag::Sink& sink);

// Shared memory, named barriers, threads, registers (R6).
void verify_resources(const Kernel& kernel, diag::Span span, const Resources& resources,
                      diag::Sink& sink);

// All roles of a kernel step every ring equally often, tile by tile, and take equally many turns
// (R9). Tried on sampled sizes (`samples`): the roles' loops are run without their work.
void verify_skeletons(const ir::Program& program, const Kernel& kernel, diag::Span span,
                      const Resources& resources, const std::vector<ir::Environment>& samples,
                      diag::Sink& sink);

// Why an expression is no number that a role may read from tensors: it must be a small integer, the
// same for all who read it. Empty if it is one.
std::string number_problem(ir::Expr e, const ir::Program& program);

// A kernel of scalar code.
void verify_points(const Points& points, const target::Target& target,
                   const std::map<std::string, TensorRole, std::less<>>& roles, ir::Verifier& v);

}  // namespace nautilus::matile
