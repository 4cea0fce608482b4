// SPDX-License-Identifier: Apache-2.0
// How the threads of a scan along memory share its rows.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "lower/points/points_kernel.h"
#include "lower/points/scan_lines.h"
#include "target/target.h"

namespace nautilus::choose {

// Vectors of the widest elements along the steps, several for each thread, so that enough bytes are
// in flight. A row has as many threads as leave each of them a few rounds: the rounds of one warp
// run one after the other, and the last rows would leave most of the machine idle. `kept`: tensors
// that are written; `usual`: about how long an axis is. Nothing if the first nest is not a scan.
std::optional<lower::ScanLines> scan_vectors(std::span<const lower::MapNest> nests,
                                             const std::set<std::string>& kept,
                                             const std::map<std::string, ir::TensorType>& buffers,
                                             const target::Target& target,
                                             const std::function<double(expr::Expr)>& usual,
                                             expr::ExprPool& pool);

}  // namespace nautilus::choose
