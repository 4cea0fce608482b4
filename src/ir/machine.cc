// SPDX-License-Identifier: Apache-2.0
#include "ir/machine.h"

namespace nautilus::ir {

namespace {
constexpr std::string_view kUsual = "sms";
}  // namespace

bool is_machine_name(std::string_view name) {
  return name.starts_with(kUsual) && name.find_first_not_of('_', kUsual.size()) == name.npos;
}

Name machine_name(const Program& program, expr::ExprPool& pool) {
  for (const Op& op : program.body) {
    if (const auto* machine = op.get<Machine>()) return machine->name;
  }
  return pool.name(kUsual);
}

std::optional<Op> own_machine(const std::set<std::string_view>& taken, expr::ExprPool& pool) {
  if (!taken.contains(kUsual)) return std::nullopt;
  std::string name(kUsual);
  while (taken.contains(name)) name += '_';
  return make(Machine{pool.name(name)});
}

}  // namespace nautilus::ir
