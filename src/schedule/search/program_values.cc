// SPDX-License-Identifier: Apache-2.0
#include "schedule/search/program_values.h"

#include <utility>

#include "ir/print.h"

namespace nautilus::schedule {
namespace {

namespace dc = decision;

// Half and twice as long.
template <class Line>
void add_lengths(const Line& line, ir::Block& out) {
  for (const int64_t length : {*line.length / 2, *line.length * 2})
    out.push_back(ir::make(Line{line.tensor, length, By::Tuned}));
}

ir::Block other_program_values(const ir::Op& line) {
  ir::Block out;
  if (const auto* chunk = line.get<dc::Chunk>(); chunk && chunk->length) add_lengths(*chunk, out);
  if (const auto* piece = line.get<dc::Piece>(); piece && piece->length) add_lengths(*piece, out);
  if (const auto* algebra = line.get<dc::Algebra>()) {
    const dc::Switch other = algebra->use == dc::Switch::On ? dc::Switch::Off : dc::Switch::On;
    out.push_back(ir::make(dc::Algebra{algebra->rewrite, other, By::Tuned}));
  } else if (const auto* depth = line.get<dc::Depth>(); depth && !depth->axes.empty()) {
    out.push_back(ir::make(dc::Depth{depth->tensor, {}, By::Tuned}));
  } else if (const auto* store = line.get<dc::Store>(); store && store->as != dc::StoredAs::Off) {
    out.push_back(ir::make(dc::Store{store->tensors, dc::StoredAs::Off, {}, By::Tuned}));
    if (store->axes.size() > 1) {  // the last two the other way round
      dc::Store swapped = *store;
      swapped.by = By::Tuned;
      std::swap(swapped.axes.end()[-1], swapped.axes.end()[-2]);
      out.push_back(ir::make(std::move(swapped)));
    }
  }
  return out;
}

// Rewrites are said by every schedule; what they make of operands is for rules that know them.
bool is_left_to_rules(const ir::Op& line) {
  return dc::by_of(line) == By::Auto && !line.is<dc::Algebra>();
}

}  // namespace

std::vector<OtherProgram> with_other_program_lines(const Schedule& complete) {
  std::vector<OtherProgram> out;
  for (size_t n = 0; n < complete.lines.size(); ++n) {
    for (const ir::Op& other : other_program_values(complete.lines[n])) {
      OtherProgram next{complete, ir::print(dc::with_by(other, By::Auto))};
      next.schedule.lines[n] = other;
      std::erase_if(next.schedule.lines, is_left_to_rules);
      next.schedule.kernels.clear();
      out.push_back(std::move(next));
    }
  }
  return out;
}

}  // namespace nautilus::schedule
