// SPDX-License-Identifier: Apache-2.0
// A hash of a program's equations: equal for programs that compute the same in the same way. The
// names of tensors, axes and sizes do not matter, nor does the order of equations, of declarations
// and of operands of commutative operators. Stored schedules name their program by it.
//
// It counts what the oracle evaluates: operators, constants, reducers, index expressions, dtypes
// and casts, static extents, which tensors are inputs, the order of the outputs, facts and
// numerics. It does not count names, hints, default values of scalars, or equations that no output
// needs.
#pragma once

#include <string>
#include <vector>

#include "ir/op.h"

namespace nautilus::spec {

// 32 hexadecimal digits.
std::string equations_hash(const ir::Program& program);

// The names that are met on a walk through the equations, in an order that does not depend on them
// (but between operands of commutative operators that are equal without names): where two programs
// have one hash, names at one place mean the same. A name stands in the list as often as it is met.
std::vector<std::string> names_in_equations(const ir::Program& program);

}  // namespace nautilus::spec
