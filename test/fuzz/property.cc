// SPDX-License-Identifier: Apache-2.0
#include "property.h"

#include <fmt/format.h>

#include "base/random.h"
#include "compile/manager.h"
#include "diag/render.h"
#include "driver/check/kernel_check.h"
#include "driver/load/load.h"
#include "driver/oracle/ladder.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "scalar/interp.h"
#include "small_run.h"
#include "spec/eval/judge.h"
#include "text/utf8.h"
#include "work.h"

namespace nautilus::fuzz {
namespace {

using driver::RunRequest;
using driver::Unit;
using Tensors = std::map<std::string, expr::Tensor>;

std::optional<diag::Code> first_error(const diag::Sink& sink) {
  for (const diag::Diagnostic& d : sink.all()) {
    if (d.is_error()) return d.code;
  }
  return std::nullopt;
}

// Which two things disagree, from "`Y`: definition and evaluator differ, element 0: ...".
std::string kind_of(const std::string& difference) {
  const size_t tick = difference.find("`: ");
  const std::string kind = difference.substr(tick == std::string::npos ? 0 : tick + 3);
  return kind.substr(0, kind.find(','));
}

class Checker {
 public:
  Verdict program(const std::string& text, uint64_t seed) {
    const auto program = driver::load_text("program.naut", text, {}, unit_);
    if (!program) return refused();
    verdict_.is_accepted = true;
    if (const double work = work_at(*program, {}); work > kMaxDefinitionWork)
      return fail("a program that takes long", fmt::format("{} operations", work));
    if (!round_trip(*program, "spec")) return verdict_;
    ir::PassContext context{unit_.pool, unit_.sink, {}};
    const auto scalar = compile::lower_to("scalar", *program, context);
    if (!scalar) return fail("lowering reports", rendered());
    if (!round_trip(*scalar, "scalar")) return verdict_;
    if (!run_passes(*program)) return verdict_;

    base::Random random(seed);
    RunRequest request;
    request.must_judge = false;
    request.seed = random.next() % 1000000;
    if (!run(*program, request)) return verdict_;
    request.inputs = spec::InputKind::Exact;
    if (!run(*program, request)) return verdict_;
    request.inputs = spec::InputKind::Normal;
    // Sizes of their own, smaller ones where the definition would take long.
    for (const int64_t largest : {5, 3, 2, 1}) {
      request.given.sizes.clear();
      for (const ir::Op& op : program->body) {
        if (const auto* dim = op.get<ir::Dim>())
          request.given.sizes.emplace(dim->name.str(), random.integer(0, largest));
      }
      if (work_at(*program, request.given) <= kMaxDefinitionWork) break;
    }
    run(*program, request);
    return verdict_;
  }

  Verdict compiled(const std::string& text, uint64_t seed) {
    const auto program = driver::load_text("program.naut", text, {}, unit_);
    if (!program) return refused();
    verdict_.is_accepted = true;
    base::Random random(seed);
    RunRequest request;
    request.must_judge = false;
    request.seed = random.next() % 1000000;
    for (const bool is_exact : {false, true}) {
      request.inputs = is_exact ? spec::InputKind::Exact : spec::InputKind::Normal;
      const auto env = driver::prepare(*program, request, unit_);
      if (!env || !spec::evaluate(*program, *env, {}, unit_.pool, unit_.sink)) return verdict_;
      const auto difference = driver::check_kernels(*program, request, unit_);
      if (!difference) return fail("compiling reports", rendered());
      if (!difference->empty())
        return fail("kernels: " + kind_of(*difference), *difference + describe(request));
      for (const ir::Op& op : program->body) {
        if (const auto* dim = op.get<ir::Dim>())
          request.given.sizes.emplace(dim->name.str(), random.integer(0, 5));
      }
    }
    return verdict_;
  }

  // A mutated text may declare that it tolerates less than any evaluator is exact to.
  static ir::Program without_tolerance(ir::Program program) {
    for (ir::Op& op : program.body) {
      if (const auto* numerics = op.get<ir::Numerics>())
        op = ir::make(ir::Numerics{.rounding = numerics->rounding, .rel = {}, .abs = {}});
    }
    return program;
  }

  Verdict any_text(const std::string& text) {
    const auto program = driver::load_text("program.naut", text, {}, unit_);
    const std::string messages = rendered();
    if (text::find_invalid_utf8(messages)) return fail("messages are not UTF-8", messages);
    if (!program) return refused();
    verdict_.is_accepted = true;
    if (!round_trip(*program, "text")) return verdict_;
    const ir::Program judged = without_tolerance(*program);
    if (const std::string difference = run_small(judged, unit_); !difference.empty())
      return fail("small run: " + kind_of(difference), difference);
    if (program->level->name != "spec") return verdict_;
    ir::PassContext context{unit_.pool, unit_.sink, {}};
    const auto scalar = compile::lower_to("scalar", *program, context);
    if (!scalar) {
      if (!first_error(unit_.sink)) return fail("lowering fails silently", "");
      return verdict_;
    }
    round_trip(*scalar, "lowered");
    return verdict_;
  }

 private:
  std::string rendered() const { return diag::render_all(unit_.sink); }

  Verdict& fail(std::string key, std::string message) {
    verdict_.key = std::move(key);
    verdict_.message = std::move(message);
    return verdict_;
  }

  Verdict& refused() {
    verdict_.code = first_error(unit_.sink);
    if (!verdict_.code || rendered().empty()) return fail("refused without a message", "");
    return verdict_;
  }

  bool round_trip(const ir::Program& program, std::string_view what) {
    const std::string text = ir::print(program);
    const uint32_t file = unit_.sources.add("printed", text);
    const auto again = ir::parse(file, driver::levels(), unit_.pool, unit_.sink);
    if (!again) {
      fail(fmt::format("{}: the printed text does not parse", what), rendered() + text);
    } else if (!(*again == program) || ir::print(*again) != text) {
      fail(fmt::format("{}: the printed text parses to another program", what),
           text + "---\n" + ir::print(*again));
    } else if (!driver::verify(*again, unit_.sink)) {
      fail(fmt::format("{}: the parsed program does not verify", what), rendered() + text);
    }
    return verdict_.key.empty();
  }

  // Each pass on its own; the ladder runs them one after the other.
  bool run_passes(const ir::Program& program) {
    ir::PassContext context{unit_.pool, unit_.sink, {}};
    for (const std::string_view name :
         {"simplify", "split_reductions", "merge_equal", "drop_unused"}) {
      const compile::PassInfo& pass = compile::the_pass(name);
      const auto once = compile::run_pass(pass, program, context);
      const auto twice = once ? compile::run_pass(pass, *once, context) : std::nullopt;
      if (!twice) return fail(fmt::format("pass {} reports", pass.name), rendered()), false;
      if (!(*once == *twice)) {
        fail(fmt::format("pass {} is not idempotent", pass.name),
             ir::print(*once) + "---\n" + ir::print(*twice));
        return false;
      }
      if (*once == program) continue;
      if (!round_trip(*once, pass.name)) return false;
      changed_.emplace_back(pass.name, *once);
    }
    return true;
  }

  // False after a failure, or where the values given lead to a diagnostic.
  bool run(const ir::Program& program, const RunRequest& request) {
    const auto env = driver::prepare(program, request, unit_);
    const auto defined =
        env ? spec::evaluate_by_definition(program, *env, unit_.sink) : std::nullopt;
    if (!defined) {
      verdict_.code = first_error(unit_.sink);
      if (!verdict_.code) fail("the run fails silently", "");
      return false;
    }
    // Kernels decide some guards by rounding, and may then read where the definition does not.
    diag::Sink sink(unit_.sources);
    if (!spec::evaluate(program, *env, {}, unit_.pool, sink) && !sink.all().empty() &&
        sink.all().front().message.find("rounding decides") != std::string::npos) {
      verdict_.code = first_error(sink);
      return false;
    }
    const auto difference = driver::check_ladder(program, request, unit_);
    if (!difference) return fail("the ladder reports", rendered()), false;
    if (!difference->empty()) {
      const std::string kind = kind_of(*difference);
      const bool is_declared = kind == "in declared dtypes";
      fail("ladder: " + kind,
           *difference + (is_declared ? ratio(program, *env) : "") + describe(request));
      return false;
    }
    return passes_keep_values(*env, *defined, request);
  }

  std::string ratio(const ir::Program& program, const ir::Environment& env) {
    ir::PassContext context{unit_.pool, unit_.sink, {}};
    const auto lowered = compile::lower_to("scalar", program, context);
    const auto got = scalar::interpret(*lowered, env, scalar::Arithmetic::Declared, unit_.sink);
    const auto want = spec::evaluate(program, env, {}, unit_.pool, unit_.sink);
    std::string out;
    for (const auto& [name, result] : *want) {
      const auto c = spec::compare(got->at(name), result, ir::numerics_of(program));
      out += fmt::format("\n`{}`: {} times what is allowed", name, c.worst_ratio);
    }
    return out;
  }

  bool passes_keep_values(const ir::Environment& env, const Tensors& want,
                          const RunRequest& request) {
    for (const auto& [pass, changed] : changed_) {
      const auto got = spec::evaluate_by_definition(changed, env, unit_.sink);
      if (!got) {
        fail(fmt::format("pass {} makes a program that fails", pass),
             rendered() + ir::print(changed) + describe(request));
        return false;
      }
      for (const auto& [name, tensor] : want) {
        if (expr::same_bits(tensor, got->at(name))) continue;
        fail(fmt::format("pass {} changes values", pass),
             fmt::format("`{}` differs after\n{}{}", name, ir::print(changed), describe(request)));
        return false;
      }
    }
    return true;
  }

  static std::string describe(const RunRequest& request) {
    std::string out =
        fmt::format("\n{} inputs, seed {}",
                    request.inputs == spec::InputKind::Exact ? "exact" : "normal", request.seed);
    for (const auto& [name, value] : request.given.sizes)
      out += fmt::format(", {}={}", name, value);
    return out + "\n";
  }

  Unit unit_;
  std::vector<std::pair<std::string_view, ir::Program>> changed_;  // by which pass
  Verdict verdict_;
};

}  // namespace

Verdict check_program(const std::string& text, uint64_t seed) {
  return Checker().program(text, seed);
}

Verdict check_compiled(const std::string& text, uint64_t seed) {
  return Checker().compiled(text, seed);
}

Verdict check_text(const std::string& text) { return Checker().any_text(text); }

}  // namespace nautilus::fuzz
