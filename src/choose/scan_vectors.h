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
// under way; and as many threads for a row as have some rounds of it each: a row that one warp
// walks along takes as long as its rounds follow each other, and the last rows leave most of the
// machine idle. `kept`: what is written; `usual`: about how long an axis is. Nothing if the first
// nest is no scan.
std::optional<lower::ScanLines> scan_vectors(std::span<const lower::MapNest> nests,
                                             const std::set<std::string>& kept,
                                             const std::map<std::string, ir::TensorType>& buffers,
                                             const target::Target& target,
                                             const std::function<double(expr::Expr)>& usual,
                                             expr::ExprPool& pool);

}  // namespace nautilus::choose
