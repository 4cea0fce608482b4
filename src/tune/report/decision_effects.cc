// SPDX-License-Identifier: Apache-2.0
#include "tune/report/decision_effects.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "ir/print.h"
#include "schedule/text/schedule.h"

namespace nautilus::tune {
namespace {

namespace dc = decision;

struct DecisionKey {
  std::string kernel;
  std::string decision;
  friend auto operator<=>(const DecisionKey&, const DecisionKey&) = default;
};

struct DecisionValues {
  std::vector<std::string> values;  // of each alternative; empty where it has no such line
  bool is_taken = false;            // by a search or a person
};

struct ScheduleDecisions {
  double median = 0;
  std::map<DecisionKey, DecisionValues> decisions;
  std::map<std::string, size_t> alternatives;  // of each kernel

  bool has_kernel(const std::string& name) const {
    return name.empty() || alternatives.contains(name);
  }
  DecisionValues of(const DecisionKey& key) const {
    if (const auto it = decisions.find(key); it != decisions.end()) return it->second;
    const auto kernel = alternatives.find(key.kernel);
    return {std::vector<std::string>(kernel == alternatives.end() ? 1 : kernel->second), false};
  }
};

// Which kernels there are is a decision, too; no line says it.
const DecisionKey kKernels = {"", "kernels"};

// The subject of a line, and its value: `tile i` and `128`.
std::pair<std::string, std::string> topic_and_value(const ir::Op& line) {
  const std::string text = ir::print(dc::with_by(line, dc::By::Auto));
  const bool is_member = dc::topic(line.info()) == dc::Topic::Members;
  size_t end = std::min(text.find(' '), text.size());
  const ir::Field& first = line.info().fields[0];
  const bool has_subject = first.kind == ir::FieldKind::Name ||
                           first.kind == ir::FieldKind::NameList || line.is<dc::Algebra>();
  // Names of a list have `, ` between them.
  for (bool is_more = has_subject && !is_member; is_more && end < text.size();) {
    end = std::min(text.find(' ', end + 1), text.size());
    is_more = text[end - 1] == ',';
  }
  return {text.substr(0, end), end < text.size() ? text.substr(end + 1) : "yes"};
}

class DecisionReader {
 public:
  std::optional<ScheduleDecisions> read(const Winner& w) {
    const auto parsed = schedule::parse_schedule(w.schedule, pool_);
    if (!parsed) return std::nullopt;
    ScheduleDecisions out;
    out.median = w.median;
    for (const ir::Op& line : parsed->lines) add(out, "", 0, 1, line);
    std::string kernels;
    for (const schedule::KernelSchedule& k : parsed->kernels) {
      const size_t count = k.alternatives.size();
      out.alternatives.emplace(k.name, count);
      kernels += fmt::format("{}{} {}", kernels.empty() ? "" : ", ", k.name,
                             dc::words(k.form)[static_cast<size_t>(k.form)]);
      for (size_t n = 0; n < count; ++n) {
        for (const ir::Op& line : k.alternatives[n]) add(out, k.name, n, count, line);
      }
    }
    out.decisions[kKernels] = {{kernels}, true};
    return out;
  }

 private:
  static void add(ScheduleDecisions& out, const std::string& kernel, size_t alternative,
                  size_t count, const ir::Op& line) {
    // The first alternative says which statements there are.
    const bool is_member = dc::topic(line.info()) == dc::Topic::Members;
    const auto [topic, value] = topic_and_value(line);
    DecisionValues& d = out.decisions[{kernel, topic}];
    d.values.resize(is_member ? 1 : count);
    std::string& place = d.values[is_member ? 0 : alternative];
    place += (place.empty() ? "" : "; ") + value;
    d.is_taken |= dc::by_of(line) != dc::By::Auto;
  }

  expr::ExprPool pool_;
};

enum class Compared : uint8_t { Same, Other, Unclear };

Compared compared(const DecisionKey& key, const ScheduleDecisions& a, const ScheduleDecisions& b) {
  if (!a.has_kernel(key.kernel) || !b.has_kernel(key.kernel)) return Compared::Unclear;
  const std::vector<std::string> x = a.of(key).values;
  const std::vector<std::string> y = b.of(key).values;
  if (x.size() == y.size()) return x == y ? Compared::Same : Compared::Other;
  const std::set<std::string> of_x(x.begin(), x.end());
  const std::set<std::string> of_y(y.begin(), y.end());
  if (of_x == of_y && of_x.size() == 1) return Compared::Same;
  const bool is_apart =
      std::none_of(of_x.begin(), of_x.end(), [&](const auto& v) { return of_y.contains(v); });
  return is_apart ? Compared::Other : Compared::Unclear;
}

bool is_taken(const DecisionKey& key, const ScheduleDecisions& a, const ScheduleDecisions& b) {
  return a.of(key).is_taken || b.of(key).is_taken;
}

// Other decisions that differ, or may differ, and are not `auto` in both.
size_t further_differences(const DecisionKey& key, const ScheduleDecisions& a,
                           const ScheduleDecisions& b) {
  std::set<DecisionKey> keys;
  for (const auto& [k, v] : a.decisions) keys.insert(k);
  for (const auto& [k, v] : b.decisions) keys.insert(k);
  return static_cast<size_t>(std::count_if(keys.begin(), keys.end(), [&](const DecisionKey& k) {
    return k != key && is_taken(k, a, b) && compared(k, a, b) != Compared::Same;
  }));
}

constexpr size_t kMostValues = 4;  // that a text names

std::string listed(std::vector<std::string> values, std::string_view between) {
  const size_t more = values.size() - std::min(values.size(), kMostValues);
  values.resize(values.size() - more);
  return fmt::format("{}{}", fmt::join(values, between),
                     more > 0 ? fmt::format("{}{} more", between, more) : "");
}

std::string or_none(const std::string& value) { return value.empty() ? "none" : value; }

// The value that all alternatives have, or the different ones with ` / ` between them.
std::string value_text(const DecisionValues& d) {
  std::vector<std::string> different;
  for (const std::string& v : d.values) {
    if (std::find(different.begin(), different.end(), v) == different.end()) different.push_back(v);
  }
  if (different.size() == 1) return different[0];
  for (std::string& v : different) v = or_none(v);
  return listed(std::move(different), " / ");
}

// Of as many alternatives as the winner has, only those that differ.
std::string other_text(const DecisionValues& d, const DecisionValues& winner) {
  if (d.values.size() != winner.values.size() || d.values.size() == 1) return value_text(d);
  std::vector<std::string> different;
  for (size_t k = 0; k < d.values.size(); ++k) {
    if (d.values[k] == winner.values[k]) continue;
    different.push_back(fmt::format("alternative {}: {}, not {}", k + 1, or_none(d.values[k]),
                                    or_none(winner.values[k])));
  }
  return listed(std::move(different), "; ");
}

// Nothing if no schedule has another value, or rules took all of them.
std::optional<DecisionEffect> effect_of(const DecisionKey& key,
                                        const std::vector<ScheduleDecisions>& all,
                                        const ScheduleDecisions& winner) {
  DecisionEffect out;
  out.kernel = key.kernel;
  out.decision = key.decision;
  out.value = value_text(winner.of(key));
  bool is_of_a_search = false;
  for (const ScheduleDecisions& s : all) {
    const Compared side = compared(key, winner, s);
    if (side == Compared::Unclear) continue;
    if (side == Compared::Same) {
      if (out.with++ == 0 || s.median < out.best_with) out.best_with = s.median;
      continue;
    }
    is_of_a_search |= is_taken(key, winner, s);
    const OtherValue other{other_text(s.of(key), winner.of(key)), s.median,
                           further_differences(key, winner, s)};
    const auto is_better = [&](const OtherValue& than) {
      return std::tuple(other.median, other.further) < std::tuple(than.median, than.further);
    };
    if (out.without++ == 0 || is_better(out.best_without)) out.best_without = other;
    if (other.further == 0 && (!out.alone || is_better(*out.alone))) out.alone = other;
  }
  if (!is_of_a_search) return std::nullopt;
  return out;
}

}  // namespace

DecisionEffects decision_effects(const std::vector<Winner>& schedules, const std::string& winner,
                                 const std::optional<std::string>& choice) {
  DecisionEffects out;
  DecisionReader reader;
  std::vector<ScheduleDecisions> all;
  std::optional<ScheduleDecisions> best;
  std::optional<ScheduleDecisions> own;
  for (const Winner& w : schedules) {
    auto read = reader.read(w);
    if (!read) {
      ++out.unread;
      continue;
    }
    if (w.schedule == winner) best = *read;
    if (w.schedule == choice) own = *read;
    all.push_back(std::move(*read));
  }
  if (!best) return out;
  std::set<DecisionKey> keys;
  for (const ScheduleDecisions& s : all) {
    for (const auto& [key, values] : s.decisions) {
      if (best->has_kernel(key.kernel)) keys.insert(key);
    }
  }
  for (const DecisionKey& key : keys) {
    auto effect = effect_of(key, all, *best);
    if (effect) {
      if (own && compared(key, *best, *own) != Compared::Same)
        effect->choice = other_text(own->of(key), best->of(key));
      out.effects.push_back(std::move(*effect));
      continue;
    }
    const bool is_same = std::all_of(all.begin(), all.end(), [&](const ScheduleDecisions& s) {
      return compared(key, *best, s) == Compared::Same;
    });
    if (is_same && key != kKernels)
      out.untried.push_back(
          fmt::format("{}{}{}", key.kernel, key.kernel.empty() ? "" : " ", key.decision));
  }
  std::stable_sort(
      out.effects.begin(), out.effects.end(),
      [](const DecisionEffect& a, const DecisionEffect& b) { return a.change() > b.change(); });
  return out;
}

}  // namespace nautilus::tune
