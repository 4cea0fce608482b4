// SPDX-License-Identifier: Apache-2.0
#include "driver/load/hints.h"

#include "ir/decl.h"

namespace nautilus::driver {

ir::Program with_hints(ir::Program program, const std::map<std::string, int64_t>& sizes) {
  for (ir::Op& op : program.body) {
    const auto* d = op.get<ir::Dim>();
    const auto size = d ? sizes.find(std::string(d->name.str())) : sizes.end();
    if (size != sizes.end())
      op = ir::make(ir::Dim{d->name, size->second, ir::HintKind::Asked}, op.span());
  }
  return program;
}

ir::Program with_hints_of(ir::Program program, const ir::Program& other) {
  std::map<std::string, ir::Dim> hints;
  for (const ir::Op& op : other.body) {
    if (const auto* d = op.get<ir::Dim>()) hints.emplace(d->name.str(), *d);
  }
  for (ir::Op& op : program.body) {
    const auto* d = op.get<ir::Dim>();
    const auto hint = d ? hints.find(std::string(d->name.str())) : hints.end();
    if (hint != hints.end())
      op = ir::make(ir::Dim{d->name, hint->second.hint, hint->second.kind}, op.span());
  }
  return program;
}

}  // namespace nautilus::driver
