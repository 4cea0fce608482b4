// SPDX-License-Identifier: Apache-2.0
#include "lower/tiles/nest_choices.h"

#include <algorithm>

namespace nautilus::lower {

using decision::OperandPath;

void NestChoices::begin(ir::Block& body) {
  groups.begin(body);
  order.begin(body);
  source.begin(body);
  fetch_.begin(body);
  bring_.begin(body);
  promote.begin(body);
}

bool NestChoices::end() {
  const bool ok[] = {groups.end("the kernel has no groups"),
                     order.end("the kernel has no tiles"),
                     source.end("the kernel has no tiles"),
                     fetch_.end("no loop has exactly one product, of a computed operand"),
                     bring_.end("the kernel does not read it in boxes for element-wise work"),
                     promote.end("the kernel does not copy it")};
  return std::all_of(std::begin(ok), std::end(ok), [](bool x) { return x; });
}

bool NestChoices::is_copied(ir::Name tensor) {
  const auto* asked = bring_.asked(tensor);
  const OperandPath path = asked ? asked->path : usual_path_;
  // What is copied is noted where it is: not everything that could be is.
  if (path == OperandPath::Direct) bring_.took({tensor, path, {}});
  return path == OperandPath::Copied;
}

bool NestChoices::is_fetched_early() {
  using decision::Moment;
  const auto* asked = fetch_.asked();
  const bool is_early = asked ? asked->moment == Moment::Early : usual_path_ == OperandPath::Copied;
  fetch_.took({is_early ? Moment::Early : Moment::Late, {}});
  return is_early;
}

}  // namespace nautilus::lower
