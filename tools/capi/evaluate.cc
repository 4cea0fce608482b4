// SPDX-License-Identifier: Apache-2.0
// nautilus_evaluate: a program on host memory.
//
// Inputs are copied before the evaluator's threads start and outputs after they ended: a thread
// that never ends, behind a failed check, must not hold memory of the caller's.
#include <fmt/format.h>

#include <cstring>

#include "arguments.h"
#include "driver/run/run.h"
#include "spec/eval/eval.h"

using namespace nautilus;
using capi::Failure;
using capi::report;

namespace {

// Calls body(number of the element, its byte offset) for all elements of a strided tensor.
template <class Body>
void for_each_element(const plan::TensorView& view, int64_t width, Body&& body) {
  const size_t rank = view.shape.size();
  int64_t count = 1;
  for (int64_t extent : view.shape) count *= extent;
  std::vector<int64_t> index(rank, 0);
  int64_t offset = 0;
  for (int64_t i = 0; i < count; ++i) {
    body(i, offset * width);
    for (size_t k = rank; k-- > 0;) {
      offset += view.strides[k];
      if (++index[k] < view.shape[k]) break;
      offset -= view.strides[k] * view.shape[k];
      index[k] = 0;
    }
  }
}

expr::Tensor tensor_of(const plan::TensorView& view, expr::DType given, expr::DType declared) {
  expr::Tensor out =
      expr::Tensor::zeros(declared, std::vector<int64_t>(view.shape.begin(), view.shape.end()));
  const auto* data = reinterpret_cast<const unsigned char*>(view.address);
  const int width = expr::bytes(given);
  for_each_element(view, width, [&](int64_t i, int64_t at) {
    uint64_t bits = 0;
    std::memcpy(&bits, data + at, static_cast<size_t>(width));
    out.data[static_cast<size_t>(i)] =
        expr::is_float(given)
            ? expr::float_value(expr::round_to(declared, expr::decode(given, bits)))
            : expr::int_value(expr::wrap_to(declared, static_cast<int64_t>(bits)));
  });
  return out;
}

void write_tensor(const expr::Tensor& from, const plan::TensorView& view, expr::DType given) {
  auto* data = reinterpret_cast<unsigned char*>(view.address);
  const int width = expr::bytes(given);
  for_each_element(view, width, [&](int64_t i, int64_t at) {
    const expr::Value v = from.data[static_cast<size_t>(i)];
    const uint64_t bits =
        expr::is_float(given) ? expr::encode(given, v.f) : static_cast<uint64_t>(v.i);
    std::memcpy(data + at, &bits, static_cast<size_t>(width));
  });
}

// What an evaluation owns while it runs.
struct Evaluation {
  nautilus_evaluate_options options = {};
  ir::Environment env;
  std::map<std::string, expr::Tensor> outputs;
  std::map<std::string, std::vector<double>> bounds;
};

Failure evaluate_equations(capi::State& s, Evaluation& e) {
  if (s.loaded->level->name != "spec")
    return {
        NAUTILUS_ERROR_UNSUPPORTED,
        fmt::format("a program of the level {} has no oracle: open the one of the math language, "
                    "or use the emulator",
                    s.loaded->level->name)};
  const size_t before = s.unit.sink.all().size();
  const auto wrong = [&] {
    return Failure{NAUTILUS_ERROR_ARGUMENT, capi::messages_since(s.unit, before)};
  };
  std::map<std::string, ir::TensorType> inputs;
  for (const driver::Signature::Tensor& t : s.signature.tensors) {
    if (!t.is_output) inputs.emplace(t.name, t.type);
  }
  if (!ir::complete(*s.loaded, inputs, e.env, s.unit.sink)) return wrong();
  if (e.options.evaluator == NAUTILUS_EVALUATE_DEFINITION) {
    auto results = spec::evaluate_by_definition(*s.loaded, e.env, s.unit.sink);
    if (!results) return wrong();
    e.outputs = std::move(*results);
    return {};
  }
  auto results =
      spec::evaluate(*s.loaded, e.env, {e.options.threads, false}, s.unit.pool, s.unit.sink);
  if (!results) return wrong();
  for (auto& [name, result] : *results) {
    e.outputs.emplace(name, std::move(result.value));
    e.bounds.emplace(name, std::move(result.bound));
  }
  return {};
}

Failure evaluate_kernels(capi::State& s, Evaluation& e) {
  if (Failure f = capi::lower(s); !f.is_ok()) return f;
  const ir::Program& kernels = s.lowered->kernels.program;
  driver::EmulateOptions options;
  options.seed = e.options.seed ? e.options.seed : 1;
  std::string error;
  auto got = driver::run_emulated(kernels, driver::environment_of(kernels, e.env), options,
                                  s.unit.pool, &error);
  if (!got) return {NAUTILUS_ERROR_SYSTEM, error};
  e.outputs = std::move(*got);
  return {};
}

// Inputs, sizes and scalars of the call.
void fill_environment(const capi::State& s, const capi::Arguments& read,
                      const nautilus_arguments& arguments, plan::Frame& frame,
                      ir::Environment& env) {
  for (size_t i = 0; i < read.tensors.size(); ++i) {
    const driver::Signature::Tensor& t = s.signature.tensors[i];
    if (t.is_output) continue;
    env.tensors.emplace(
        t.name, tensor_of(read.tensors[i], static_cast<expr::DType>(arguments.tensors[i].dtype),
                          t.type.dtype));
  }
  for (const plan::Prepared::Value& v : s.sizing->values) {
    if (v.is_size)
      env.sizes.emplace(v.name, frame.slot(v.slot).i);
    else
      env.scalars.emplace(v.name, frame.slot(v.slot));
  }
}

}  // namespace

nautilus_status nautilus_evaluate(nautilus_program* program, const nautilus_arguments* arguments,
                                  const nautilus_evaluate_options* options) {
  if (!program) return report({NAUTILUS_ERROR_USAGE, "the program is null"});
  auto e = std::make_shared<Evaluation>();
  if (!capi::read_struct(options, e->options))
    return report({NAUTILUS_ERROR_USAGE, "nautilus_evaluate_options has no struct_size"});
  if (e->options.evaluator < NAUTILUS_EVALUATE_ORACLE ||
      e->options.evaluator > NAUTILUS_EVALUATE_EMULATOR)
    return report(
        {NAUTILUS_ERROR_USAGE, fmt::format("there is no evaluator {}", e->options.evaluator)});
  double* const* bounds = e->options.bounds;
  e->options.bounds = nullptr;
  const capi::State& s = *program->state;
  capi::Arguments read;
  plan::Frame frame(*s.sizing);
  Failure f = capi::read_arguments(s, arguments, capi::Wanted::AnyFloat, read);
  if (f.is_ok()) f = capi::solve(s, read, frame);
  if (!f.is_ok()) return report(f);
  for (size_t i = 0; i < read.tensors.size(); ++i) {
    if (expr::element_count({read.tensors[i].shape.begin(), read.tensors[i].shape.end()})) continue;
    return report({NAUTILUS_ERROR_ARGUMENT,
                   fmt::format("tensor `{}` is too large", s.signature.tensors[i].name)});
  }
  fill_environment(s, read, *arguments, frame, e->env);
  f = capi::with_state(program->state, "evaluating a program", [e](capi::State& state) {
    return e->options.evaluator == NAUTILUS_EVALUATE_EMULATOR ? evaluate_kernels(state, *e)
                                                              : evaluate_equations(state, *e);
  });
  if (!f.is_ok()) return report(f);
  for (size_t i = 0; i < read.tensors.size(); ++i) {
    const driver::Signature::Tensor& t = s.signature.tensors[i];
    if (!t.is_output) continue;
    write_tensor(e->outputs.at(t.name), read.tensors[i],
                 static_cast<expr::DType>(arguments->tensors[i].dtype));
    if (!bounds || !bounds[i]) continue;
    const auto found = e->bounds.find(t.name);
    if (found == e->bounds.end())
      return report({NAUTILUS_ERROR_UNSUPPORTED, "only the oracle knows bounds"});
    std::copy(found->second.begin(), found->second.end(), bounds[i]);
  }
  return NAUTILUS_OK;
}
