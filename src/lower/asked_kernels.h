// SPDX-License-Identifier: Apache-2.0
// Kernels of the forms rows, points and parts that a schedule names: the `kernel` ops of a
// scheduled program. Each computes the statements that it names, and no others; every statement
// has one (choose/choose_kernels.h).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "decision/decisions.h"
#include "ir/pass.h"

namespace nautilus::lower {

struct AskedKernel {
  ir::Name name;
  decision::Form form = decision::Form::Rows;
  std::vector<ir::Block> alternatives;  // without the lines that say which statements there are
  std::set<std::string> statements;     // that it computes, the one it is named after too
  ir::Block fuse;                       // the line that says so, if there is one
  ir::Block split;                      // the line about parts, if there is one
  ir::Block inner;                      // lines about steps, which its nests have
  bool is_read = false;

  // The line about parts, of a kernel that has one.
  const decision::Split& parts() const { return split[0].as<decision::Split>(); }
};

class AskedKernels {
 public:
  explicit AskedKernels(const ir::Program& program);

  // The kernel that computes one of the statements, from parts or not; null if none does.
  AskedKernel* find(const std::set<std::string>& written, bool is_from_parts);
  // Where that kernel stands among those that are named.
  std::optional<size_t> place(const std::set<std::string>& written, bool is_from_parts);
  // Refuses kernels that nothing was made for; whether there were none.
  bool end(ir::PassContext& context) const;

 private:
  std::vector<AskedKernel> kernels_;
};

// Reports that a kernel cannot be as it is asked for.
void refuse(const AskedKernel& kernel, std::string_view why, ir::PassContext& context);

}  // namespace nautilus::lower
