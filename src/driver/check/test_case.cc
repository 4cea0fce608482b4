// SPDX-License-Identifier: Apache-2.0
#include "driver/check/test_case.h"

#include <fmt/format.h>

#include <map>

#include "diag/render.h"
#include "driver/check/case_runner.h"
#include "driver/check/hide_costs.h"
#include "driver/kernels/scheduling.h"
#include "driver/report/explain.h"

namespace nautilus::driver {

std::string CaseRunner::misuse() const {
  const std::string& c = test_.command;
  const bool takes_options = c == "eval" || c == "run" || c == "kernels" || c == "pass" ||
                             c == "same" || c == "check" || c == "like" || c == "schedule" ||
                             c == "run_scheduled" || c == "regenerate" || c == "sweep" ||
                             c == "fusion" || c == "explain" || c == "replay" || c == "launches" ||
                             c == "fires" || c == "warnings";
  if (!takes_options && !test_.options.empty()) {
    return fmt::format("`{}` takes no option `{}`", c, test_.options.begin()->first);
  }
  if (!costs_option_.empty() && (costs_option_ != "shown" || (c != "schedule" && c != "explain" &&
                                                              c != "sweep" && c != "summary"))) {
    return "`costs=shown` is an option of `schedule`, `explain`, `summary` and `sweep`";
  }
  if (test_.has_expect &&
      (c == "run" || c == "kernels" || c == "run_scheduled" || c == "roundtrip" || c == "verify" ||
       c == "same" || c == "check" || c == "like" || c == "fires")) {
    return fmt::format("`{}` has no expectation", c);
  }
  return "";
}

CaseResult CaseRunner::run() {
  if (std::string why = misuse(); !why.empty()) return failed(std::move(why));
  const std::string& c = test_.command;
  if (c == "diag") return diag();
  if (c == "verify") return verify_case();
  if (c == "regenerate") return regenerate();
  if (c == "fill") return fill();
  if (c == "replay") return replay_case();
  if (c == "launches") return launches();
  std::map<std::string, int64_t> statics;
  const auto program = load_text(file_, test_.input, statics, unit_);
  if (!program) return failed(rendered());
  if (const std::string why = roundtrip(*program); !why.empty()) return failed(why);
  if (c == "roundtrip") return {};
  if (c == "print") return lower(*program, test_.argument.empty() ? "spec" : test_.argument);
  if (c == "lower") return lower(*program, test_.argument);
  if (c == "pass" || c == "same") return passes(*program);
  if (c == "check") return check(*program);
  if (c == "like") return like(*program);
  if (c == "graph") return graph(*program);
  if (c == "schedule" || c == "run_scheduled") return schedule(*program);
  if (c == "sweep") return sweep_case(*program);
  if (c == "explain") return explain_case(*program);
  if (c == "summary") return summary(*program);
  if (c == "warnings") return warnings(*program);
  if (c == "emit") return emit_case(*program);
  if (c == "resources") return resources(*program);
  if ((c == "eval" || c == "run" || c == "kernels" || c == "fusion" || c == "fires") &&
      program->level->name != "spec") {
    return failed(
        "eval, run, kernels, fusion and fires take a program of the math language or of level "
        "spec");
  }
  if (c == "eval") return eval(*program);
  if (c == "run") return ladder(*program);
  if (c == "kernels") return kernels(*program);
  if (c == "fusion") {
    const CaseResult checked = kernels(*program);
    return checked.is_ok ? shown(without_cycles(fusion(*program, unit_))) : checked;
  }
  if (c == "fires") return fires(*program);
  std::string known;
  for (const auto& [name, meaning] : test_commands()) known += fmt::format(" {}", name);
  return failed(fmt::format("unknown test command `{}`; known are{}", c, known));
}

std::string CaseRunner::rendered() const { return diag::render_all(unit_.sink); }

CaseResult run_case(const TestCase& test, const std::string& file_name, RunsOn on) {
  return CaseRunner(test, file_name, on).run();
}

bool runs_kernels(const TestCase& test) {
  return test.command == "kernels" || test.command == "fusion" || test.command == "fires";
}

}  // namespace nautilus::driver
