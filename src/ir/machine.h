// SPDX-License-Identifier: Apache-2.0
// The name of the number of multiprocessors in a program: `sms`, unless the program uses that name
// for something else. Such a program declares the machine under another name (`machine sms_`) when
// it leaves level spec, and every later pass asks here.
#pragma once

#include <optional>
#include <set>
#include <string_view>

#include "ir/decl.h"

namespace nautilus::ir {

// The possible names of a `machine`: `sms`, `sms_`, `sms__`, ...
bool is_machine_name(std::string_view name);

// As declared, else `sms`.
Name machine_name(const Program& program, expr::ExprPool& pool);

// The declaration that a program with the names `taken` needs; nothing if `sms` is free.
std::optional<Op> own_machine(const std::set<std::string_view>& taken, expr::ExprPool& pool);

}  // namespace nautilus::ir
