// SPDX-License-Identifier: Apache-2.0
// Values of a reduction that threads hold in parts, put together through shared memory: by the
// warps of a group, the groups of a CTA, the CTAs of a cluster.
#pragma once

#include <string>

#include "emit/elementwise.h"
#include "emit/writer.h"

namespace nautilus::emit {

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

// The same between the CTAs of a cluster: each writes its word into the shared memory of all.
struct CtaMeeting {
  std::string address;  // text, of the first of two buffers
  int buffer_bytes = 0;
  std::string cursor;  // the variable that says which is next
  int ctas = 0;
  std::string rank;  // text, of this CTA
};
void emit_ctas(const matile::Ctas& op, const RegisterScope& scope, const CtaMeeting& meeting,
               Writer& out);

}  // namespace nautilus::emit
