// SPDX-License-Identifier: Apache-2.0
// nautilus propose: schedules of a program as JSON lines, answered with what became of them.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "command.h"
#include "diag/render.h"
#include "tune/measure/lowered.h"
#include "tune/measure/workbench.h"
#include "tune_subject.h"

namespace nautilus::tool {
namespace {

// One line: {"schedule": TEXT, "only": "lower" or "compile", "id": ANY}; `id` is in the answer.
std::string answer(tune::Workbench& bench, const std::string& line) {
  const nlohmann::json request = nlohmann::json::parse(line, nullptr, false);
  const auto text = [&](const char* name) -> std::string {
    const auto it = request.find(name);
    return it != request.end() && it->is_string() ? it->get<std::string>() : "";
  };
  const bool is_right =
      request.is_object() && request.contains("schedule") && request["schedule"].is_string();
  nlohmann::json out;
  if (!is_right) {
    out = {{"verdict", "refused"}, {"reason", "a line is {\"schedule\": TEXT}"}};
  } else if (text("only") == "lower") {
    out = nlohmann::json::parse(tune::to_json(tune::lower(bench.subject(), text("schedule"))),
                                nullptr, false);
  } else if (text("only") == "compile") {
    const std::string why = bench.compile(text("schedule"));
    out = {{"verdict", why.empty() ? "compiled" : "refused"}};
    if (!why.empty()) out["reason"] = why;
  } else {
    out = nlohmann::json::parse(tune::to_json(bench.measure(text("schedule"))), nullptr, false);
  }
  if (request.is_object() && request.contains("id")) out["id"] = request["id"];
  return out.dump();
}

int run_propose(const SubjectOptions& o) {
  tune::Subject subject;
  int code = kOk;
  if (!read_subject(o, subject, code)) return code;
  driver::Unit unit;
  if (!tune::load(subject, unit)) {
    fmt::print(stderr, "{}", diag::render_all(unit.sink));
    return kProgramError;
  }
  tune::Workbench bench(subject);
  char* buffer = nullptr;
  size_t capacity = 0;
  for (ssize_t n = 0; (n = getline(&buffer, &capacity, stdin)) > 0;) {
    std::string line(buffer, static_cast<size_t>(n));
    if (line.back() == '\n') line.pop_back();
    if (line.empty()) continue;
    fmt::print("{}\n", answer(bench, line));
    std::fflush(stdout);
  }
  std::free(buffer);
  return kOk;
}

}  // namespace

void add_propose(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<SubjectOptions>();
  CLI::App* c = app.add_subcommand(
      "propose", "Answer schedules, one JSON line each, with legality, correctness and time");
  add_subject_options(*c, *o);
  c->footer(
      "A line is {\"schedule\": TEXT}; an empty text is the compiler's choice. The answer is a "
      "trial\n(docs/tuning.md).\n"
      "Example: echo '{\"schedule\": \"\"}' | nautilus propose examples/softmax.naut --emulate");
  c->callback([o, &exit_code] { exit_code = run_propose(*o); });
}

}  // namespace nautilus::tool
