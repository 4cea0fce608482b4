// SPDX-License-Identifier: Apache-2.0
#include "lower/tiles/nest_choices.h"

#include <fmt/format.h>

#include <algorithm>

namespace nautilus::lower {

using decision::Moment;
using decision::OperandPath;
using decision::Switch;

void NestChoices::begin(ir::Block& body) {
  groups.begin(body);
  cluster.begin(body);
  resident.begin(body);
  order.begin(body);
  source.begin(body);
  fetch_.begin(body);
  bring_.begin(body);
  whole_.begin(body);
  promote.begin(body);
  decision::take<decision::Cost>(body);  // the plan's, which was read from the nest
  decision::take_followed(body);
}

void NestChoices::refuse_copies(const ir::Block& later, const std::set<std::string>& copied,
                                ir::PassContext& context) {
  const auto is_idle = [&](ir::Name operand) {
    if (copied.contains(std::string(operand.str()))) return false;
    const auto* bring = bring_.asked(operand);
    return bring && bring->path == OperandPath::Direct;
  };
  constexpr std::string_view kIdle = "`bring {} direct` copies nothing of it: delete this line";
  for (const ir::Op& line : promote.lines()) {
    const ir::Name operand = line.as<decision::Promote>().operand;
    if (is_idle(operand)) promote.refuse(operand, fmt::format(kIdle, operand.str()));
  }
  for (const ir::Op& line : whole_.lines()) {
    const ir::Name operand = line.as<decision::Whole>().operand;
    if (is_idle(operand)) whole_.refuse(operand, fmt::format(kIdle, operand.str()));
  }
  for (const ir::Op& line : later) {
    const auto* ring = line.get<decision::Ring>();
    if (!ring) continue;
    for (const ir::Name operand : ring->operands) {
      if (!is_idle(operand)) continue;
      decision::refuse(line, fmt::format(kIdle, operand.str()), context);
      has_idle_lines_ = true;
      break;
    }
  }
}

bool NestChoices::end() {
  if (has_idle_lines_) return false;
  // A box of which no use is one that a copy serves: its elements are read one by one.
  for (const auto& [tensor, is_copied] : copied_by_rule_) {
    if (!is_copied) bring_.took({tensor, OperandPath::Direct, {}});
  }
  end_fetch();
  const bool ok[] = {groups.end("the kernel has no groups"),
                     cluster.end("the kernel has no tiles"),
                     resident.end("the kernel has no tiles"),
                     order.end("the kernel has no tiles"),
                     source.end("the kernel has no tiles"),
                     fetch_.end("no loop has exactly one product, of a computed operand, "
                                "and copies that arrive at another time then"),
                     bring_.end("the kernel does not read it in boxes for element-wise work"),
                     whole_.end("the kernel has no box of it that could go to registers at once"),
                     promote.end("the kernel does not copy it")};
  return std::all_of(std::begin(ok), std::end(ok), [](bool x) { return x; });
}

std::string NestChoices::missing() const {
  return missing_.empty()
             ? ""
             : fmt::format("it has no line `{}`, which choose_tile_lines writes", missing_);
}

bool NestChoices::is_copied(ir::Name tensor, int64_t columns, int64_t copied_columns) {
  const auto line = answer(bring_.asked(tensor), [&](NestAnswers& rules) {
    return decision::Bring{tensor, rules.path(tensor, columns, copied_columns), {}};
  });
  if (!line) return false;
  // What is copied is noted where it is: not everything that could be is.
  if (line->path == OperandPath::Direct) bring_.took({tensor, line->path, {}});
  const bool is_by_rule = line->path == OperandPath::Copied && !bring_.asked(tensor);
  if (is_by_rule && !find_by_rule(tensor)) copied_by_rule_.emplace_back(tensor, false);
  return line->path == OperandPath::Copied;
}

std::pair<ir::Name, bool>* NestChoices::find_by_rule(ir::Name tensor) {
  for (auto& known : copied_by_rule_) {
    if (known.first == tensor) return &known;
  }
  return nullptr;
}

void NestChoices::took_copied(ir::Name tensor) {
  if (auto* known = find_by_rule(tensor)) known->second = true;
  bring_.took({tensor, OperandPath::Copied, {}});
}

bool NestChoices::is_whole(ir::Name tensor, int64_t row_bytes) {
  const auto line = answer(whole_.asked(tensor), [&](NestAnswers& rules) {
    return decision::Whole{
        tensor, rules.is_whole(tensor, row_bytes) ? Switch::On : Switch::Off, {}};
  });
  if (line) whole_.took({tensor, line->use, {}});
  return line && line->use == Switch::On;
}

bool NestChoices::is_fetched_early() {
  const auto* asked = fetch_.asked();
  if (asked)
    fetched_ = asked->moment;
  else if (rules_)
    fetched_ = rules_->fetch();
  return fetched_ == Moment::Early;
}

void NestChoices::took_fetch() {
  is_fetch_felt_ = true;
  if (!fetched_ && missing_.empty()) missing_ = decision::Fetch::info().mnemonic();
}

// Texts printed before this was asked say `fetch early` where it changes nothing.
void NestChoices::end_fetch() {
  const auto* line = fetch_.asked();
  if (fetched_ && is_fetch_felt_) fetch_.took({*fetched_, {}});
  if (fetched_ && !is_fetch_felt_ && line && line->by == decision::By::Auto &&
      line->moment == Moment::Early)
    fetch_.drop();
}

int64_t NestChoices::promoted_bytes(ir::Name operand, const CopyFacts& facts) {
  const auto line = answer(promote.asked(operand), [&](NestAnswers& rules) {
    return decision::Promote{operand, rules.promoted_bytes(facts), {}};
  });
  return line ? line->bytes.value_or(-1) : 0;
}

}  // namespace nautilus::lower
