// SPDX-License-Identifier: Apache-2.0
// Lines about the program that say how long something of a tensor is (`chunk S 64`, `piece C 128`):
// they are read, refused and noted alike.
#pragma once

#include <fmt/format.h>

#include "decision/lines.h"
#include "decision/program_lines.h"

namespace nautilus::decision {

// Which lengths there are, and how a refusal names them: "a chunk has a multiple of 16 steps".
struct Lengths {
  int64_t usual;  // where no line says it
  int64_t step;   // of which a length is a multiple
  int64_t most;
  std::string_view what;   // "a chunk"
  std::string_view units;  // "steps"
};

// As the line about the tensor says, which the lines then no longer have; else the usual length.
// Nothing if the line is refused.
template <class D>
std::optional<int64_t> read_length(ir::Block& lines, ir::Name tensor, const Lengths& lengths,
                                   ir::PassContext& context) {
  int64_t length = lengths.usual;
  bool is_refused = false;
  std::erase_if(lines, [&](const ir::Op& line) {
    const auto* asked = line.get<D>();
    if (!asked || asked->tensor != tensor) return false;
    length = asked->length.value_or(0);
    if (length >= lengths.step && length <= lengths.most && length % lengths.step == 0) return true;
    refuse(line,
           fmt::format("{} has a multiple of {} {}, {} at most", lengths.what, lengths.step,
                       lengths.units, lengths.most),
           context);
    is_refused = true;
    return true;
  });
  if (is_refused) return std::nullopt;
  note(ir::make(D{tensor, length, {}}), context);
  return length;
}

}  // namespace nautilus::decision
