// SPDX-License-Identifier: Apache-2.0
// What a pass did to a program, in a line for people. Independent of the pass: ops are counted and
// compared as lines of text.
#pragma once

#include <string>
#include <string_view>

#include "ir/op.h"

namespace nautilus::compile {

// `31 ops: 2 loop, 3 dot, 12 map`, blocks inside included; kinds in the order in which they come.
// Lines of decisions do not count.
std::string contents_text(const ir::Block& block);

// From printed ops to printed ops of the same level: `+2 vote, -1 fill; 5 set rewritten`. An op
// that stands elsewhere but reads the same counts as unchanged; where all do, `ops move`. Lines of
// decisions do not count: passes take them out when they read them; where nothing else changed,
// `lines alone`.
std::string change_text(std::string_view before, std::string_view after);

}  // namespace nautilus::compile
