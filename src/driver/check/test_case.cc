// SPDX-License-Identifier: Apache-2.0
#include "driver/check/test_case.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/diff.h"
#include "base/files.h"
#include "compile/manager.h"
#include "diag/render.h"
#include "driver/check/emulated_check.h"
#include "driver/check/fires.h"
#include "driver/check/hide_costs.h"
#include "driver/check/kernel_check.h"
#include "driver/check/numbered_names.h"
#include "driver/check/regenerate.h"
#include "driver/kernels/explain.h"
#include "driver/kernels/given_schedule.h"
#include "driver/kernels/lower_to_kernels.h"
#include "driver/kernels/sweep.h"
#include "driver/load/hints.h"
#include "driver/load/tensor_text.h"
#include "driver/oracle/ladder.h"
#include "driver/oracle/oracle_check.h"
#include "emit/emit.h"
#include "expr/rules/rules.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "matile/resources_text.h"
#include "schedule/fusion/statement_text.h"
#include "schedule/text/schedule.h"

namespace nautilus::driver {
namespace {

bool is_rule(std::string_view name) {
  const auto& rules = expr::rule_texts();
  return std::any_of(rules.begin(), rules.end(),
                     [&](const expr::RuleText& r) { return r.name == name; });
}

constexpr size_t kMostShown = 20;  // schedules of a sweep

CaseResult failed(std::string message) { return {false, "", std::move(message), false}; }
CaseResult shown(std::string output) { return {true, std::move(output), "", true}; }

class CaseRunner {
 public:
  CaseRunner(TestCase test, const std::string& file_name, RunsOn on)
      : test_(std::move(test)), file_(file_name), on_(on) {
    if (const auto costs = test_.options.extract("costs"); !costs.empty())
      costs_option_ = costs.mapped();
  }

  CaseResult run() {
    const std::string& c = test_.command;
    const bool takes_options = c == "eval" || c == "run" || c == "kernels" || c == "pass" ||
                               c == "same" || c == "check" || c == "like" || c == "schedule" ||
                               c == "run_scheduled" || c == "regenerate" || c == "sweep" ||
                               c == "fusion" || c == "explain" || c == "replay" || c == "fires";
    if (!takes_options && !test_.options.empty()) {
      return failed(fmt::format("`{}` takes no option `{}`", c, test_.options.begin()->first));
    }
    if (!costs_option_.empty() &&
        (costs_option_ != "shown" || (c != "schedule" && c != "explain" && c != "sweep"))) {
      return failed("`costs=shown` is an option of `schedule`, `explain` and `sweep`");
    }
    if (test_.has_expect &&
        (c == "run" || c == "kernels" || c == "run_scheduled" || c == "roundtrip" ||
         c == "verify" || c == "same" || c == "check" || c == "like" || c == "fires")) {
      return failed(fmt::format("`{}` has no expectation", c));
    }
    if (c == "diag") return diag();
    if (c == "verify") return verify_case();
    if (c == "regenerate") return regenerate();
    if (c == "fill") return fill();
    if (c == "replay") return replay_case();
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
      return checked.is_ok ? shown(fusion(*program, unit_)) : checked;
    }
    if (c == "fires") return fires(*program);
    std::string known;
    for (const auto& [name, meaning] : test_commands()) known += fmt::format(" {}", name);
    return failed(fmt::format("unknown test command `{}`; known are{}", c, known));
  }

 private:
  std::string rendered() const { return diag::render_all(unit_.sink); }

  // Printing is the identity on what was printed: checked on every program any test reads.
  std::string roundtrip(const ir::Program& program) {
    const std::string text = ir::print(program);
    const uint32_t file = unit_.sources.add("printed", text);
    const auto again = ir::parse(file, levels(), unit_.pool, unit_.sink);
    if (!again) return "the printed text does not parse\n" + rendered();
    if (!(*again == program) || ir::print(*again) != text)
      return "the printed text parses to another program\n" + text;
    if (test_.command != "roundtrip") return "";
    return text == strip_comments(test_.input)
               ? ""
               : "the text is not in printed form; it prints as\n" + text;
  }

  static std::string strip_comments(std::string_view text) {
    std::string out;
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
      std::string_view line = text.substr(0, end);
      const size_t first = line.find_first_not_of(" \n");
      if (first != std::string_view::npos && line[first] != '#') out += line;
      text.remove_prefix(end);
    }
    return out;
  }

  CaseResult lower(const ir::Program& program, const std::string& level) {
    ir::PassContext context{unit_.pool, unit_.sink, {}};
    const auto out = compile::lower_to(level, program, context);
    return shown(out ? ir::print(*out) : rendered());
  }

  CaseResult passes(const ir::Program& program) {
    ir::PassContext context{unit_.pool, unit_.sink, {}};
    for (const auto& [name, value] : test_.options) {
      if (name != "disable" || !is_rule(value))
        return failed(fmt::format("there is no option `{}={}`", name, value));
      context.disabled_rules.push_back(value);
    }
    ir::Program current = program;
    std::string error;
    if (run_passes(test_.argument, current, context, error)) return shown(ir::print(current));
    return error.empty() ? shown(rendered()) : failed(error);
  }

  // False if there is no such pass (`error` says so), or if a pass reported something.
  bool run_passes(std::string_view names, ir::Program& program, ir::PassContext& context,
                  std::string& error) {
    while (!names.empty()) {
      const size_t comma = std::min(names.find(','), names.size());
      const compile::PassInfo* pass = compile::find_pass(names.substr(0, comma));
      if (!pass) {
        error = fmt::format("there is no pass `{}`", names.substr(0, comma));
        return false;
      }
      auto next = run_single_pass(*pass, program, context, unit_);
      if (!next) return false;
      program = std::move(*next);
      names.remove_prefix(std::min(comma + 1, names.size()));
    }
    return true;
  }

  // The program after the passes of the option `pass` is that of another file but for names.
  CaseResult like(const ir::Program& program) {
    std::string error;
    const auto text = base::read_file(test_.folder + test_.argument, &error);
    if (!text) return failed(error);
    const auto other = load_text(test_.argument, *text, {}, unit_);
    if (!other) return failed(rendered());
    ir::PassContext context{unit_.pool, unit_.sink, {}};
    ir::Program current = program;
    if (const auto it = test_.options.find("pass"); it != test_.options.end()) {
      if (!run_passes(it->second, current, context, error))
        return failed(error.empty() ? rendered() : error);
    }
    const std::string want = with_numbered_names(ir::print(*other));
    const std::string got = with_numbered_names(ir::print(current));
    return want == got ? CaseResult{} : failed(base::unified_diff(want, got, "other", "this"));
  }

  // The input is a schedule; the argument names the kernel that it is held against.
  CaseResult regenerate() {
    std::string kernel;
    for (const auto& [name, value] : test_.options) {
      if (name != "kernel") return failed(fmt::format("`regenerate` takes no option `{}`", name));
      kernel = value;
    }
    std::string error;
    const auto difference = regeneration_difference(
        test_.folder + test_.argument, strip_comments(test_.input), kernel, unit_, &error);
    if (!difference) return failed(error.empty() ? rendered() : error);
    return shown(*difference);
  }

  // The input is a schedule with holes; the argument names its program.
  CaseResult fill() {
    std::string error;
    const auto text = base::read_file(test_.folder + test_.argument, &error);
    if (!text) return failed(error);
    const auto program = load_text(test_.argument, *text, {}, unit_);
    if (!program) return failed(rendered());
    const auto swept = sweep_holes(*program, test_.input, kMostShown, unit_, &error);
    if (!swept) return shown(error + "\n" + rendered());
    const auto as_it_is = replay_schedule(*program, test_.input, unit_, &error);
    return shown((as_it_is ? "" : error + "\n\n") + without_cycles(sweep_text(*swept, true)));
  }

  // The input is a schedule, perhaps of some kernels; the argument names its program.
  CaseResult replay_case() {
    std::string error;
    GivenSchedule given{file_, "", test_.input};
    for (const auto& [name, value] : test_.options) {
      if (name != "kernel") return failed(fmt::format("`replay` takes no option `{}`", name));
      given.kernel = value;
    }
    const auto text = base::read_file(test_.folder + test_.argument, &error);
    if (!text) return failed(error);
    const auto program = load_text(test_.argument, *text, {}, unit_);
    if (!program) return failed(rendered());
    const auto schedule = join_schedules({given}, *program, unit_, &error);
    auto scheduled = schedule ? replay_schedule(*program, *schedule, unit_, &error) : std::nullopt;
    if (!scheduled) return shown(error + "\n" + rendered());
    const std::string refused = refused_lines(*scheduled, unit_);
    if (!refused.empty()) return shown(refused + "\n");
    complete(*scheduled, unit_);
    return shown(schedule::print(scheduled->decisions));
  }

  CaseResult sweep_case(const ir::Program& program) {
    RunRequest r;
    std::string error;
    if (!request(program, r, error)) return failed(error);
    std::map<std::string, int64_t> sizes(r.given.sizes.begin(), r.given.sizes.end());
    const auto limit = sizes.extract("limit");
    const auto swept =
        sweep(with_hints(program, sizes),
              limit.empty() ? kMostShown : static_cast<size_t>(limit.mapped()), unit_);
    return swept ? shown(with_or_without_cycles(sweep_text(*swept, true))) : failed(rendered());
  }

  // The derivation; or what the passes did, which is no part of it: a test of one should not break
  // by the other.
  CaseResult explain_case(const ir::Program& program) {
    ExplainRequest request{
        .schedule = {}, .has_derivation = true, .has_passes = false, .passes = {}};
    for (const auto& [name, value] : test_.options) {
      if (name == "kernel") {
        request.passes.kernel = value;
      } else if (name != "passes" || (value != "shown" && value != "programs")) {
        return failed(fmt::format("`explain` takes no option `{}={}`", name, value));
      } else {
        request.has_derivation = false;
        request.has_passes = true;
        request.passes.shows_programs = value == "programs";
      }
    }
    std::string error;
    const auto text = explain(program, request, unit_, &error);
    if (!text) return shown(error.empty() ? rendered() : error + "\n");
    return shown(with_or_without_cycles(*text));
  }

  // The program, after the passes of the option `pass`, against the oracle named by the argument.
  CaseResult check(const ir::Program& program) {
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
    // `M=1,70 N=33`: the k-th run takes the k-th value of each list, or its last.
    for (size_t run = 0, runs = 1; run < runs; ++run) {
      std::map<std::string, std::string> options;
      for (const auto& [name, list] : test_.options) {
        if (name == "pass") continue;
        const size_t values = 1 + static_cast<size_t>(std::count(list.begin(), list.end(), ','));
        runs = std::max(runs, values);
        size_t begin = 0;
        for (size_t k = 0; k < std::min(run, values - 1); ++k) begin = list.find(',', begin) + 1;
        options.emplace(name, list.substr(begin, list.find(',', begin) - begin));
      }
      RunRequest r;
      if (!request(*oracle, options, r, error)) return failed(error);
      const auto difference = current.level->name == "matile"
                                  ? check_emulated(*oracle, current, r, unit_)
                                  : check_against(*oracle, current, r, unit_);
      if (!difference) return failed(rendered());
      if (!difference->empty()) return failed(fmt::format("run {}: {}", run + 1, *difference));
    }
    return {};
  }

  CaseResult emit_case(const ir::Program& program) {
    if (program.level->name != "matile") return failed("emit takes a program of level matile");
    if (!matile::verify_final(program, unit_.sink)) return shown(rendered());
    std::string out;
    for (const emit::KernelText& k : emit::emit_kernels(program, unit_.pool)) out += k.body;
    return shown(out);
  }

  CaseResult resources(const ir::Program& program) {
    if (program.level->name != "matile") return failed("resources takes a program of level matile");
    if (!matile::verify_final(program, unit_.sink)) return shown(rendered());
    return shown(matile::resources_text(program));
  }

  CaseResult graph(const ir::Program& program) {
    ir::PassContext context{unit_.pool, unit_.sink, {}};
    const auto out = compile::lower_to("scalar", program, context);
    return out ? shown(schedule::block_graph(*out, unit_.pool)) : failed(rendered());
  }

  CaseResult schedule(const ir::Program& program) {
    RunRequest r;
    std::string error;
    std::map<std::string, std::string> options = test_.options;
    const ScheduleEdit edit = schedule_edit(options);
    if (!request(program, options, r, error)) return failed(error);
    std::optional<FirstSchedule> scheduled;
    if (edit.is_on()) {
      const auto text = edited_schedule(program, edit, unit_);
      if (text) scheduled = replay_schedule(program, *text, unit_, &error);
      if (!error.empty() && test_.command == "schedule") return shown(error + "\n");
    } else {
      scheduled = first_schedule(program, unit_);
    }
    if (!scheduled) return failed(error + rendered());
    const auto difference = check_scheduled(program, scheduled->program, r, unit_);
    if (!difference) return failed(rendered());
    if (!difference->empty()) return failed(*difference + "\n" + ir::print(scheduled->program));
    if (test_.command != "schedule") return {};
    return shown(ir::print(costs_option_.empty() ? without_costs(scheduled->program, unit_.pool)
                                                 : scheduled->program));
  }

  std::string with_or_without_cycles(std::string text) const {
    return costs_option_.empty() ? without_cycles(text) : text;
  }

  // Takes its words out of the options.
  static ScheduleEdit schedule_edit(std::map<std::string, std::string>& options) {
    const auto taken = [&](const char* name) {
      const auto node = options.extract(name);
      return node.empty() ? std::string() : node.mapped();
    };
    return {taken("split"), taken("combine"), taken("reference")};
  }

  bool request(const ir::Program& program, RunRequest& out, std::string& error) {
    return request(program, test_.options, out, error);
  }

  static bool request(const ir::Program& program, const std::map<std::string, std::string>& options,
                      RunRequest& out, std::string& error) {
    for (const auto& [name, text] : options) {
      const ir::Param* param = nullptr;
      for (const ir::Op& op : program.body) {
        if (op.is<ir::Param>() && op.as<ir::Param>().name.str() == name)
          param = &op.as<ir::Param>();
      }
      if (name == "inputs") {
        if (text != "exact" && text != "normal") {
          error = fmt::format("inputs are `normal` or `exact`, not `{}`", text);
          return false;
        }
        out.inputs = text == "exact" ? spec::InputKind::Exact : spec::InputKind::Normal;
        continue;
      }
      const auto value = ir::parse_scalar(text, param ? param->dtype : expr::DType::I64, &error);
      if (!value) {
        error = fmt::format("`{}`: {}", name, error);
        return false;
      }
      if (name == "seed") {
        out.seed = static_cast<uint64_t>(value->i);
      } else if (name == "idle_limit") {
        out.idle_limit = value->i;
      } else if (name == "unjudged") {
        out.must_judge = value->i == 0;
      } else if (param) {
        out.given.scalars.emplace(name, *value);
      } else {
        out.given.sizes.emplace(name, value->i);
      }
    }
    return true;
  }

  CaseResult eval(const ir::Program& program) {
    RunRequest r;
    std::string error;
    if (!request(program, r, error)) return failed(error);
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

  CaseResult ladder(const ir::Program& program) {
    RunRequest r;
    std::string error;
    if (!request(program, r, error)) return failed(error);
    const auto difference = check_ladder(program, r, unit_);
    if (!difference) return failed(rendered());
    return difference->empty() ? CaseResult{} : failed(*difference);
  }

  CaseResult kernels(const ir::Program& program) {
    RunRequest r;
    std::string error;
    std::map<std::string, std::string> options = test_.options;
    const bool every = options.erase("every") > 0;
    const ScheduleEdit edit = schedule_edit(options);
    if (!request(program, options, r, error)) return failed(error);
    const auto difference = check_kernels(program, r, unit_, {on_, every, edit});
    if (!difference) return failed(rendered());
    return difference->empty() ? CaseResult{} : failed(*difference);
  }

  // The rules fire, and the kernels that come of them are right.
  CaseResult fires(const ir::Program& program) {
    const auto quiet = test_.options.extract("quiet");
    std::map<std::string, std::string> options = test_.options;
    options.erase("every");
    const ScheduleEdit edit = schedule_edit(options);
    const auto difference = firing_difference(
        program, {test_.argument, quiet.empty() ? std::string() : quiet.mapped()}, edit, unit_);
    if (!difference) return failed(rendered());
    return difference->empty() ? kernels(program) : failed(*difference);
  }

  CaseResult diag() {
    load_text(file_, test_.input, {}, unit_);
    return shown(rendered());
  }

  // `#~ E0702 text` on a line: that line must be rejected so. No annotation: the program must
  // verify.
  CaseResult verify_case() {
    load_text(file_, test_.input, {}, unit_);
    std::map<uint32_t, std::string> wanted;
    uint32_t line = 1;
    std::string_view rest = test_.input;
    while (!rest.empty()) {
      const std::string_view text = rest.substr(0, rest.find('\n'));
      if (const size_t at = text.find("#~ "); at != std::string_view::npos)
        wanted.emplace(line, text.substr(at + 3));
      rest.remove_prefix(std::min(text.size() + 1, rest.size()));
      ++line;
    }
    std::map<uint32_t, std::string> got;
    for (const diag::Diagnostic& d : unit_.sink.all()) {
      const uint32_t at = d.primary.span.is_known()
                              ? unit_.sources.place(d.primary.span.file, d.primary.span.begin).line
                              : 0;
      std::string& text = got[at];
      text +=
          fmt::format("{}{} {}", text.empty() ? "" : "; ", diag::info(d.code).number, d.message);
    }
    if (got == wanted) return {};
    std::string message;
    for (const auto& [at, text] : wanted) {
      if (!got.contains(at))
        message += fmt::format("line {}: expected `{}`, nothing reported\n", at, text);
    }
    for (const auto& [at, text] : got) {
      const auto it = wanted.find(at);
      if (it == wanted.end()) message += fmt::format("line {}: unexpected `{}`\n", at, text);
      if (it != wanted.end() && it->second != text)
        message += fmt::format("line {}: expected `{}`, got `{}`\n", at, it->second, text);
    }
    return failed(message);
  }

  TestCase test_;
  std::string costs_option_;  // predicted cycles are hidden unless a test is about them
  const std::string& file_;
  const RunsOn on_;
  mutable Unit unit_;
};

}  // namespace

const std::vector<std::pair<std::string, std::string>>& test_commands() {
  static const std::vector<std::pair<std::string, std::string>> commands = {
      {"roundtrip", "the text is exactly what printing the parsed program gives"},
      {"verify", "lines with `#~ CODE message` are rejected so, no other line is"},
      {"pass=NAME[,NAME]", "the program after these passes is the expectation"},
      {"print[=LEVEL]", "the program at that level (spec) is the expectation"},
      {"lower=LEVEL", "the program lowered by the pipeline is the expectation"},
      {"same pass=NAME", "all cases of the file give the same program"},
      {"graph", "the block graph is the expectation"},
      {"emit", "the body of the emitted kernels is the expectation"},
      {"resources", "what the kernels occupy is the expectation"},
      {"schedule [SIZE=n] [seed=n] [inputs=exact] [split=n] [combine=last] [costs=shown]",
       "the first schedule's program is the expectation, and agrees with the definition; split, "
       "combine: as for kernels, and why not, if that is refused; costs: predicted cycles as they "
       "are, not as `...`"},
      {"run_scheduled [SIZE=n] [seed=n] [inputs=exact]",
       "the first schedule's program agrees with the definition; no expectation"},
      {"sweep [SIZE=n] [limit=n] [costs=shown]",
       "the schedules to try at these sizes, and what was left out, are the expectation"},
      {"fill=PROGRAM",
       "the input is a schedule with holes; why it makes no kernels and its fillings are the "
       "expectation"},
      {"replay=PROGRAM [kernel=NAME]",
       "the input is a schedule, of it only the kernel; the complete schedule that comes of it, or "
       "why it is refused, is the expectation"},
      {"explain [costs=shown] [passes=shown] [kernel=NAME]",
       "the derivation of the first schedule is the expectation; passes: instead of it what each "
       "pass did to the program and its kernels, `programs`: in their texts"},
      {"fusion [SIZE=n] [seed=n] [inputs=exact]",
       "what each kernel computes, how its reductions follow each other, and why others stayed "
       "outside is the expectation; the kernels agree with the oracle"},
      {"eval [SIZE=n] [seed=n] [inputs=exact]", "the printed outputs are the expectation"},
      {"run [SIZE=n] [seed=n] [inputs=exact]", "all evaluators agree; no expectation"},
      {"kernels [SIZE=n] [seed=n] [inputs=exact] [every=1] [split=n] [combine=last] "
       "[reference=WAY]",
       "the kernels, in the emulator, agree with the oracle; every: each kernel that the plan "
       "chooses between; split, combine: the first schedule with so many parts of every streamed "
       "axis, and who puts them together; reference: with that line; no expectation"},
      {"fires=RULE[,RULE] [quiet=RULE[,RULE]] [SIZE=n] [seed=n] [inputs=exact] [every=1]",
       "these rules (passes, lines of the schedule) fire on the program and those do not, and its "
       "kernels, in the emulator, agree with the oracle; options as for kernels; no expectation"},
      {"check=ORACLE [pass=NAME[,NAME]] [SIZE=n[,n]]",
       "the program after these passes, interpreted, is within the bounds of the oracle"},
      {"like=FILE [pass=NAME[,NAME]]",
       "the program after these passes is that of the file but for names"},
      {"regenerate=FILE [kernel=NAME]",
       "the input is a schedule; how the kernel from the oracle of that file differs from the "
       "file's is the expectation"},
      {"diag", "the rendered messages are the expectation"},
  };
  return commands;
}

CaseResult run_case(const TestCase& test, const std::string& file_name, RunsOn on) {
  return CaseRunner(test, file_name, on).run();
}

bool runs_kernels(const TestCase& test) {
  return test.command == "kernels" || test.command == "fusion" || test.command == "fires";
}

}  // namespace nautilus::driver
