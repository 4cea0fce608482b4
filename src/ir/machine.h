// SPDX-License-Identifier: Apache-2.0
// The name that a program has for the number of multiprocessors: `sms`, unless it means something
// else by that. A program that does declares the machine under another name (`machine sms_`) when
// it leaves the level spec, and every later pass asks here.
#pragma once

#include <optional>
#include <set>
#include <string_view>

#include "ir/decl.h"

namespace nautilus::ir {

// What a `machine` may be called: `sms`, `sms_`, `sms__`, ...
bool is_machine_name(std::string_view name);

// As declared, else `sms`.
Name machine_name(const Program& program, expr::ExprPool& pool);

// The declaration that a program needs which has `taken` names of its own; nothing if `sms` is
// free.
std::optional<Op> own_machine(const std::set<std::string_view>& taken, expr::ExprPool& pool);

}  // namespace nautilus::ir
