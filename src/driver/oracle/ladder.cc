// SPDX-License-Identifier: Apache-2.0
#include "driver/oracle/ladder.h"

#include <fmt/format.h>

#include "compile/manager.h"
#include "scalar/interp.h"

namespace nautilus::driver {

using expr::Tensor;

std::optional<ir::Environment> prepare(const ir::Program& program, const RunRequest& request,
                                       Unit& unit) {
  std::map<std::string, ir::TensorType> inputs;
  for (const ir::Op& op : program.body) {
    if (const auto* input = op.get<spec::Input>()) inputs.emplace(input->name.str(), input->type);
  }
  ir::Environment env = request.given;
  if (request.inputs == spec::InputKind::Exact) spec::set_exact_scalars(program, env);
  if (!ir::complete(program, inputs, env, unit.sink)) return std::nullopt;
  if (!spec::add_random_inputs(program, request.inputs, request.seed, env, unit.pool, unit.sink))
    return std::nullopt;
  return env;
}

std::optional<spec::Results> oracle_results(const ir::Program& program, const ir::Environment& env,
                                            const RunRequest& request, Unit& unit) {
  return request.must_judge ? spec::evaluate_to_judge(program, env, {}, unit.pool, unit.sink)
                            : spec::evaluate(program, env, {}, unit.pool, unit.sink);
}

std::string objection(const Tensor& got, const spec::Result& want, const ir::Program& program,
                      const RunRequest& request) {
  const spec::Comparison c = spec::compare(got, want, ir::numerics_of(program));
  if (c.verdict == spec::Verdict::NotJudged && !request.must_judge) return "";
  return spec::objection(c, got, want);
}

namespace {

std::string first_difference(const Tensor& a, const Tensor& b) {
  if (a.shape != b.shape)
    return fmt::format("shapes {} and {}", expr::shape_text(a.shape), expr::shape_text(b.shape));
  for (int64_t i = 0; i < a.size(); ++i) {
    Tensor x = Tensor::filled(a.dtype, {1}, a.data[static_cast<size_t>(i)]);
    Tensor y = Tensor::filled(b.dtype, {1}, b.data[static_cast<size_t>(i)]);
    if (!expr::same_bits(x, y))
      return fmt::format("element {}: {} and {}", i, a.number(i), b.number(i));
  }
  return "dtypes differ";
}

}  // namespace

std::optional<std::string> check_ladder(const ir::Program& program, const RunRequest& request,
                                        Unit& unit) {
  const auto env = prepare(program, request, unit);
  if (!env) return std::nullopt;
  const auto defined = spec::evaluate_by_definition(program, *env, unit.sink);
  if (!defined) return std::nullopt;
  const auto blocked = oracle_results(program, *env, request, unit);
  if (!blocked) return std::nullopt;
  ir::PassContext context{unit.pool, unit.sink, {}};
  const auto lowered = compile::lower_to("scalar", program, context);
  if (!lowered) return std::nullopt;
  const auto oracle = scalar::interpret(*lowered, *env, scalar::Arithmetic::Oracle, unit.sink);
  const auto declared = scalar::interpret(*lowered, *env, scalar::Arithmetic::Declared, unit.sink);
  if (!oracle || !declared) return std::nullopt;
  for (const auto& [name, want] : *defined) {
    const spec::Result& result = blocked->at(name);
    if (!expr::same_bits(want, result.value)) {
      return fmt::format("`{}`: definition and evaluator differ, {}", name,
                         first_difference(want, result.value));
    }
    if (!expr::same_bits(want, oracle->at(name))) {
      return fmt::format("`{}`: definition and scalar program differ, {}", name,
                         first_difference(want, oracle->at(name)));
    }
    const std::string why = objection(declared->at(name), result, program, request);
    if (!why.empty()) return fmt::format("`{}`: in declared dtypes, {}", name, why);
  }
  return "";
}

}  // namespace nautilus::driver
