// SPDX-License-Identifier: Apache-2.0
#include "tune/records/shipped.h"

#include <algorithm>

namespace nautilus::tune {
namespace {

bool is_asked_for(const Query& query, const Problem& p) {
  return (query.equations.empty() || p.equations == query.equations) &&
         (!query.sizes || p.sizes == *query.sizes) &&
         (query.target.empty() || p.target == query.target) &&
         (query.machine.empty() || p.machine == query.machine);
}

}  // namespace

std::vector<Trial> shipped_trials(const Query& query) {
  std::vector<Trial> out;
  for (const ShippedText& shipped : shipped_texts()) {
    for (std::string_view rest = shipped.text; !rest.empty();) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(rest.size(), line.size() + 1));
      // Few lines are of one program: those of others are not parsed.
      if (line.empty() || line.find(query.equations) == std::string_view::npos) continue;
      std::string ignored;
      auto trial = trial_of_json(line, &ignored);
      if (trial && is_asked_for(query, trial->problem)) out.push_back(std::move(*trial));
    }
  }
  return out;
}

}  // namespace nautilus::tune
