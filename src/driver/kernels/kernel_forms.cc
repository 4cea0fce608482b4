// SPDX-License-Identifier: Apache-2.0
#include "driver/kernels/kernel_forms.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "choose/choose_kernels.h"
#include "ir/print.h"
#include "ir/target_of.h"

namespace nautilus::driver {
namespace {

using decision::Form;

// The kernels as a schedule has them: alternatives of one kernel follow its first list.
std::vector<schedule::KernelSchedule> kernels_of(const ir::Block& kernels) {
  std::vector<schedule::KernelSchedule> out;
  for (const ir::Op& op : kernels) {
    const auto& k = op.as<decision::Kernel>();
    const bool is_alternative =
        !out.empty() && out.back().name == k.name.str() && out.back().form == k.form;
    if (!is_alternative) out.push_back({std::string(k.name.str()), {}, k.form});
    out.back().alternatives.push_back(k.body);
  }
  return out;
}

// "rows Y; points s, split j into 64": what tells it from others.
std::string name_of(const std::vector<schedule::KernelSchedule>& kernels) {
  std::vector<std::string> words;
  for (const schedule::KernelSchedule& k : kernels) {
    std::string text =
        fmt::format("{} {}", decision::words(k.form)[static_cast<size_t>(k.form)], k.name);
    for (const ir::Op& line : k.alternatives[0]) {
      if (!line.is<decision::Split>() && !line.is<decision::Inner>()) continue;
      std::string said = ir::print(line);
      std::erase_if(said, [](char c) { return c == '\n' || c == ','; });
      text += fmt::format(" ({})", said);
    }
    words.push_back(std::move(text));
  }
  return fmt::format("{}", fmt::join(words, "; "));
}

}  // namespace

std::vector<KernelForms> kernel_forms(const FirstSchedule& first, Unit& unit) {
  diag::Sink ignored(unit.sources);
  ir::PassContext context{unit.pool, ignored, {}};
  std::vector<choose::KernelChoice> choices = choose::kernel_choices(first.program, context);
  if (!choices.empty()) {
    std::stable_sort(choices.begin() + 1, choices.end(),
                     [](const auto& a, const auto& b) { return a.cost < b.cost; });
  }
  const target::Target& target = ir::target_of(first.program);
  std::vector<KernelForms> out;
  std::set<std::string> known;
  for (choose::KernelChoice& choice : choices) {
    std::vector<schedule::KernelSchedule> kernels = kernels_of(choice.kernels);
    KernelForms forms{{first.decisions, name_of(kernels), 0}, std::move(choice.cycles_on)};
    if (!first.kernels.empty()) forms.cycles_on = [](const target::Target&) { return 0.0; };
    forms.swept.cycles = forms.cycles_on(target);
    auto& all = forms.swept.schedule.kernels;
    std::erase_if(all, [](const schedule::KernelSchedule& k) { return k.form != Form::Tile; });
    all.insert(all.end(), kernels.begin(), kernels.end());
    if (known.insert(schedule::print(forms.swept.schedule)).second) out.push_back(std::move(forms));
  }
  return out;
}

}  // namespace nautilus::driver
