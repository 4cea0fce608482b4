// SPDX-License-Identifier: Apache-2.0
#include "tune/records/trial_names.h"

#include "schedule/text/sized_schedules.h"
#include "spec/equations_hash.h"

namespace nautilus::tune {
namespace {

using Places = std::map<std::string, int64_t>;

Places places_of(const std::string& schedule) {
  expr::ExprPool pool;
  const auto parsed = schedule::parse_sized_schedules(schedule, pool);
  return parsed && !parsed->empty() ? parsed->front().schedule.places : Places();
}

}  // namespace

std::vector<Trial> with_names_of(const ir::Program& program, std::vector<Trial> trials) {
  const std::vector<std::string> names = spec::names_in_equations(program);
  std::map<std::string, Places> known;
  for (Trial& t : trials) {
    const auto [it, is_new] = known.emplace(t.schedule, Places());
    if (is_new) it->second = places_of(t.schedule);
    std::map<std::string, int64_t> sizes;
    for (const auto& [name, size] : t.problem.sizes) {
      const auto place = it->second.find(name);
      const bool is_there = place != it->second.end() && place->second >= 0 &&
                            static_cast<size_t>(place->second) < names.size();
      sizes.emplace(is_there ? names[static_cast<size_t>(place->second)] : name, size);
    }
    if (sizes.size() == t.problem.sizes.size()) t.problem.sizes = std::move(sizes);
  }
  return trials;
}

}  // namespace nautilus::tune
