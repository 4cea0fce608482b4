// SPDX-License-Identifier: Apache-2.0
// The parts of the verifier (verify.cc). Each reports its findings and skips whatever an earlier
// part has refused.
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

// False if later parts must not use the map.
bool verify_map(const Map& map, const target::Copies& copies, ir::Verifier& verifier);

// Maps of the plan by name.
using KernelMaps = std::map<std::string, const Map*, std::less<>>;
// Kernels in nest or roles form: names, shapes and dtypes.
void verify_nest(const Kernel& kernel, const KernelMaps& maps, ir::Verifier& verifier);

// Asynchronous work of one role: waits and releases, slots held, turns, what is in flight over a
// loop's back edge (R4, R5, R10, R12).
void verify_flow(const Role& role, const Resources& resources, diag::Sink& sink);

// Values that lanes or warps hold in shares are whole where they are used as whole values (R7).
void verify_lanes(const ir::Program& program, const Kernel& kernel, const Role& role,
                  diag::Sink& sink);

// All groups of a role execute `groups` equally often (R8).
void verify_groups(const Role& role, diag::Sink& sink);

// The CTAs of a cluster agree on what they multicast, and how often; all execute `ctas` equally
// often.
void verify_clusters(const Kernel& kernel, diag::Sink& sink);

// Shared memory, named barriers, threads, registers (R6).
void verify_resources(const Kernel& kernel, diag::Span span, const Resources& resources,
                      diag::Sink& sink);

// All roles of a kernel step every ring equally often, tile by tile, and enter equally many turns
// (R9). Checked on sampled sizes (`samples`): the roles' loops are run without their work.
void verify_skeletons(const ir::Program& program, const Kernel& kernel, diag::Span span,
                      const Resources& resources, const std::vector<ir::Environment>& samples,
                      diag::Sink& sink);

// Why a role may not read an expression from tensors as a scalar: it must be a small integer, the
// same for all readers. Empty if it may.
std::string number_problem(ir::Expr e, const ir::Program& program);

// A kernel of scalar code.
void verify_points(const Kernel& kernel, const target::Target& target,
                   const std::map<std::string, TensorRole, std::less<>>& roles, ir::Verifier& v);

}  // namespace nautilus::matile
