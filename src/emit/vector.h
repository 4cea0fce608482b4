// SPDX-License-Identifier: Apache-2.0
// Register work that moves whole pieces: tensors in accesses of 16 bytes, and values between the
// warps of a group and between the groups of a role.
//
// A thread may move 16 bytes at once if its innermost registers are neighbours in memory, the
// address is aligned, and a condition holds for all of a piece or for none of it. The first and the
// last are shown here (with facts such as `N % 8 == 0`); the plan checks address and strides of the
// tensor (KernelText::vectors). Otherwise elements are moved one by one.
#pragma once

#include "emit/elementwise.h"

namespace nautilus::emit {

void emit_load(const matile::Load& op, const RegisterScope& scope, Writer& out);

// As emit_put, in pieces; false, and nothing written, if that is not possible.
bool emit_put_vectors(const matile::Put& op, const matile::Domain& domain,
                      const RegisterScope& scope, Writer& out);

// Shared memory and barrier for exchanges between the warps of a group.
struct Meeting {
  std::string address;  // text, of the first of two buffers
  int buffer_bytes = 0;
  std::string cursor;   // the variable that says which is next
  std::string barrier;  // text, of the group's named barrier
};
void emit_warps(const matile::Warps& op, const RegisterScope& scope, const Meeting& meeting,
                Writer& out);

// The same between the groups of a role: a word for each of their warps.
struct GroupMeeting {
  Meeting place;
  int groups = 0;
  std::string group;             // text of the number of this one
  bool are_warps_apart = false;  // warps still have shares: one barrier for all of them
};
void emit_groups(const matile::Groups& op, const RegisterScope& scope, const GroupMeeting& meeting,
                 Writer& out);

// True in one of the threads that hold copies of the same element; "" if there are no copies.
std::string one_of_copies(const layout::Layout& layout);

}  // namespace nautilus::emit
