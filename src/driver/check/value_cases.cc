// SPDX-License-Identifier: Apache-2.0
// Cases that compute: evaluators, interpreted programs and kernels against the oracle.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/files.h"
#include "driver/check/case_options.h"
#include "driver/check/case_runner.h"
#include "driver/check/emulated_check.h"
#include "driver/check/fires.h"
#include "driver/load/tensor_text.h"
#include "driver/oracle/ladder.h"
#include "driver/oracle/oracle_check.h"

namespace nautilus::driver {

CaseResult CaseRunner::eval(const ir::Program& program) {
  RunRequest r;
  std::string error;
  if (!read_request(program, test_.options, r, error)) return failed(error);
  const auto env = prepare(program, r, unit_);
  if (!env) return shown(rendered());
  const auto results = spec::evaluate(program, *env, {}, unit_.pool, unit_.sink);
  if (!results) return shown(rendered());
  std::string out;
  for (ir::Name n : spec::outputs(program)) {
    const spec::Result& result = results->at(std::string(n.str()));
    out += fmt::format("{} : {}{}\n{}", n.str(), expr::name(result.value.dtype),
                       expr::shape_text(result.value.shape), tensor_text(result.value, 1 << 20));
  }
  return shown(out);
}

CaseResult CaseRunner::ladder(const ir::Program& program) {
  RunRequest r;
  std::string error;
  if (!read_request(program, test_.options, r, error)) return failed(error);
  const auto difference = check_ladder(program, r, unit_);
  if (!difference) return failed(rendered());
  return difference->empty() ? CaseResult{} : failed(*difference);
}

CaseResult CaseRunner::check(const ir::Program& program) {
  std::string error;
  const auto text = base::read_file(test_.folder + test_.argument, &error);
  if (!text) return failed(error);
  std::map<std::string, int64_t> statics;
  for (const ir::Op& op : program.body) {
    if (const auto* s = op.get<ir::Static>()) statics.emplace(s->name.str(), *s->value);
  }
  const auto oracle = load_text(test_.argument, *text, statics, unit_);
  if (!oracle) return failed(rendered());
  ir::PassContext context{unit_.pool, unit_.sink, {}};
  ir::Program current = program;
  if (const auto it = test_.options.find("pass"); it != test_.options.end()) {
    if (!run_passes(it->second, current, context, error))
      return failed(error.empty() ? rendered() : error);
  }
  std::map<std::string, std::string> values = test_.options;
  values.erase("pass");
  size_t run = 0;
  for (const auto& options : options_of_runs(values)) {
    ++run;
    RunRequest r;
    if (!read_request(*oracle, options, r, error)) return failed(error);
    const auto difference = current.level->name == "matile"
                                ? check_emulated(*oracle, current, r, unit_)
                                : check_against(*oracle, current, r, unit_);
    if (!difference) return failed(rendered());
    if (!difference->empty()) return failed(fmt::format("run {}: {}", run, *difference));
  }
  return {};
}

CaseResult CaseRunner::kernels(const ir::Program& program) {
  RunRequest r;
  std::string error;
  std::map<std::string, std::string> options = test_.options;
  const bool every = options.erase("every") > 0;
  const ScheduleEdit edit = taken_schedule_edit(options);
  if (!read_request(program, options, r, error)) return failed(error);
  const auto difference = check_kernels(program, r, unit_, {on_, every, edit});
  if (!difference) return failed(rendered());
  return difference->empty() ? CaseResult{} : failed(*difference);
}

CaseResult CaseRunner::fires(const ir::Program& program) {
  const auto quiet = test_.options.extract("quiet");
  std::map<std::string, std::string> options = test_.options;
  options.erase("every");
  const ScheduleEdit edit = taken_schedule_edit(options);
  const auto difference = firing_difference(
      program, {test_.argument, quiet.empty() ? std::string() : quiet.mapped()}, edit, unit_);
  if (!difference) return failed(rendered());
  return difference->empty() ? kernels(program) : failed(*difference);
}

}  // namespace nautilus::driver
