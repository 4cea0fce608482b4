// SPDX-License-Identifier: Apache-2.0
#include "driver/check/fires.h"

#include <fmt/format.h>

#include <algorithm>

#include "compile/passes.h"
#include "decision/decisions.h"
#include "driver/kernels/lower_to_kernels.h"
#include "driver/kernels/scheduling.h"
#include "schedule/text/schedule.h"

namespace nautilus::driver {
namespace {

std::vector<std::string> parts_of(std::string_view text, std::string_view separators) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of(separators), text.size());
    std::string_view part = text.substr(0, end);
    part.remove_prefix(std::min(part.find_first_not_of(' '), part.size()));
    if (!part.empty()) out.emplace_back(part);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

bool is_line(std::string_view name) {
  const std::string_view verb = name.substr(0, name.find('.'));
  const auto& vocabulary = decision::vocabulary();
  return std::any_of(vocabulary.begin(), vocabulary.end(), [&](const ir::OpInfo* info) {
    return info->format.substr(0, info->format.find_first_of(" {")) == verb;
  });
}

bool has_fired(std::string name, const ir::PassTrace& trace,
               const std::vector<std::string>& lines) {
  if (compile::find_pass(name)) {
    return std::any_of(trace.steps.begin(), trace.steps.end(),
                       [&](const ir::PassTrace::Step& step) { return step.pass == name; });
  }
  std::replace(name.begin(), name.end(), '.', ' ');
  return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
    return line == name || line.starts_with(name + " ");
  });
}

}  // namespace

std::optional<std::string> firing_difference(const ir::Program& program, const Rules& rules,
                                             const ScheduleEdit& edit, Unit& unit) {
  KernelRequest request;
  ir::PassTrace trace;
  request.trace = &trace;
  if (edit.is_on()) {
    request.schedule = edited_schedule(program, edit, unit);
    if (!request.schedule) return std::nullopt;
  }
  std::string error;
  const auto kernels = make_kernels(program, request, unit, &error);
  if (!kernels) return error.empty() ? std::nullopt : std::optional(error);
  // With the lines that passes decided, which the text that kernels are made with lacks.
  const auto scheduled = request.schedule
                             ? replay_schedule(program, *request.schedule, unit, &error)
                             : first_schedule(program, unit);
  if (!scheduled) return error.empty() ? std::nullopt : std::optional(error);
  const std::vector<std::string> lines = parts_of(schedule::print(scheduled->decisions), ";\n");
  std::string out;
  for (const bool is_wanted : {true, false}) {
    for (const std::string& name : parts_of(is_wanted ? rules.fires : rules.quiet, ",")) {
      if (!compile::find_pass(name) && !is_line(name)) {
        out += fmt::format("there is no pass and no line `{}`\n", name);
      } else if (has_fired(name, trace, lines) != is_wanted) {
        out += fmt::format("`{}` {}\n", name, is_wanted ? "does not fire" : "fires");
      }
    }
  }
  return out;
}

}  // namespace nautilus::driver
