// SPDX-License-Identifier: Apache-2.0
// nautilus propose: schedules of a program as JSON lines, answered with what became of them.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "command.h"
#include "runtime/cuda_device.h"
#include "tune/measure.h"
#include "tune_subject.h"

namespace nautilus::tool {
namespace {

// One line: {"schedule": TEXT, "compile_only": BOOL, "id": ANY}; `id` is in the answer.
std::string answer(const tune::Subject& subject, const std::string& line) {
  const nlohmann::json request = nlohmann::json::parse(line, nullptr, false);
  const bool is_right =
      request.is_object() && request.contains("schedule") && request["schedule"].is_string();
  nlohmann::json out;
  if (is_right) {
    const auto only = request.find("compile_only");
    const bool compiles_only = only != request.end() && only->is_boolean() && only->get<bool>();
    const tune::Trial trial =
        tune::measure(subject, request["schedule"].get<std::string>(), compiles_only);
    out = nlohmann::json::parse(tune::to_json(trial), nullptr, false);
  } else {
    out = {{"verdict", "refused"}, {"reason", "a line is {\"schedule\": TEXT}"}};
  }
  if (request.is_object() && request.contains("id")) out["id"] = request["id"];
  return out.dump();
}

int run_propose(const SubjectOptions& o) {
  tune::Subject subject;
  int code = kOk;
  if (!read_subject(o, subject, code)) return code;
  std::string error;
  const auto problem = tune::problem_of(subject, &error);
  if (!problem) {
    fmt::print(stderr, "nautilus: {}\n", error);
    return kProgramError;
  }
  // Held open: every trial would open it again, which takes longer than most kernels.
  std::string ignored;
  const auto device =
      subject.emulates ? nullptr : runtime::Device::open(0, problem->target, &ignored);
  char* buffer = nullptr;
  size_t capacity = 0;
  for (ssize_t n = 0; (n = getline(&buffer, &capacity, stdin)) > 0;) {
    std::string line(buffer, static_cast<size_t>(n));
    if (line.back() == '\n') line.pop_back();
    if (line.empty()) continue;
    fmt::print("{}\n", answer(subject, line));
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
