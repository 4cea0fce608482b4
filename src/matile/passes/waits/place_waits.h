// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/pass.h"

namespace nautilus::matile {

// Waits for products and releases of slots (R4, R5).
//
//   set s[i < 64, j < 256] = 0.0            get AB
//   loop k from 0 up kb                     dot s init a, b trans
//     get AB                                loop k from 1 up kb
//     dot s add a, b trans          ->        get AB
//   set y[...] = bf16(s[...])                 dot s add a, b trans
//                                             wait 1
//                                             release AB
//                                           wait 0 for s
//                                           release AB
//                                           set y[...] = bf16(s[...])
//
// A wait comes before the first op that touches the accumulator, or overwrites the register
// operand, of a product in flight. A slot is released as soon as no product in flight and no later
// op reads it. A loop of products alone keeps the products of one iteration in flight (`decide
// in_flight = 0`: none) if it is known to run; its first iteration is then peeled and needs no
// zeros. A loop with one product of an operand that it computes in registers does so, too: its wait
// comes where the operand is written again. All other loops end with nothing in flight.
//
// A tile taken from a slot is read by one op: the release comes after that op, and the waits that
// the op needs come before the take.
//
// Needs roles form with turns placed, gives a kernel that can be emitted. Test:
// test/matile/passes/place_waits.matile.
std::optional<ir::Program> place_waits(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::matile
