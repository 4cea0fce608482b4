// SPDX-License-Identifier: Apache-2.0
#include "ir/environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/nearest.h"
#include "expr/bounds/affine.h"
#include "expr/print.h"
#include "expr/walk.h"

namespace nautilus::ir {

using diag::Code;
using expr::Value;

Value evaluate(Expr e, const Environment& env) {
  using Kind = expr::Op;
  switch (e.op()) {
    case Kind::IntConst:
    case Kind::BoolConst:
      return expr::int_value(e.integer());
    case Kind::FloatConst:
      return expr::float_value(e.number());
    case Kind::Var: {
      const auto size = env.sizes.find(e.name().str());
      if (size != env.sizes.end()) return expr::int_value(size->second);
      const auto scalar = env.scalars.find(e.name().str());
      NAUT_CHECK(scalar != env.scalars.end(), "`{}` has no value", e.name().str());
      return scalar->second;
    }
    case Kind::Read:
    case Kind::Reduce:
      NAUT_CHECK(false, "{} in an expression of sizes", expr::to_string(e));
    default: {
      Value args[3];
      for (size_t i = 0; i < e.args().size(); ++i) args[i] = evaluate(e[i], env);
      return expr::apply(e.op(), e.dtype(), e.args().back().dtype(), args);
    }
  }
}

int64_t evaluate_size(Expr e, const Environment& env) {
  return std::max<int64_t>(0, evaluate(e, env).i);
}

std::optional<std::vector<int64_t>> evaluate_shape(const Exprs& dims, const Environment& env) {
  std::vector<int64_t> shape;
  for (Expr d : dims) shape.push_back(evaluate_size(d, env));
  if (!expr::element_count(shape)) return std::nullopt;
  return shape;
}

void compute_sizes(const Program& program, Environment& env) {
  for (const Op& op : program.body) {
    if (const auto* m = op.get<Machine>())
      env.sizes.insert_or_assign(std::string(m->name.str()), kInterpretedSms);
    if (const auto* s = op.get<Size>())
      env.sizes.insert_or_assign(std::string(s->name.str()), evaluate_size(s->value, env));
  }
}

std::optional<Value> parse_scalar(std::string_view text, DType dtype, std::string* error) {
  const char* end = text.data() + text.size();
  if (expr::is_float(dtype)) {
    double value = 0;
    const auto r = std::from_chars(text.data(), end, value);
    if (r.ec == std::errc() && r.ptr == end) return expr::float_value(expr::round_to(dtype, value));
    *error = fmt::format("`{}` is not a number", text);
    return std::nullopt;
  }
  if (dtype == DType::Bool && (text == "true" || text == "false"))
    return expr::int_value(text == "true");
  int64_t value = 0;
  const auto r = std::from_chars(text.data(), end, value);
  if (r.ec != std::errc() || r.ptr != end) {
    *error =
        fmt::format("`{}` is not {}", text, dtype == DType::Bool ? "true or false" : "an integer");
    return std::nullopt;
  }
  if (dtype == DType::Bool ? value != 0 && value != 1 : expr::wrap_to(dtype, value) != value) {
    *error = fmt::format("{} does not fit {}", value, expr::name(dtype));
    return std::nullopt;
  }
  return expr::int_value(value);
}

namespace {

bool is_closed(Expr e, const Environment& env) {
  const auto vars = expr::free_vars(e);
  return std::all_of(vars.begin(), vars.end(), [&](Expr v) {
    return env.sizes.contains(v.name().str()) || env.scalars.contains(v.name().str());
  });
}

// The value of a polynomial of known sizes.
std::optional<int64_t> known_value(const expr::Poly& poly, const Environment& env) {
  int64_t sum = 0;
  for (const auto& [monomial, coefficient] : poly.terms()) {
    int64_t product = coefficient;
    for (Expr atom : monomial) {
      if (!is_closed(atom, env)) return std::nullopt;
      product *= evaluate(atom, env).i;
    }
    sum += product;
  }
  return sum;
}

// Solves dim == extent for one unknown size: dim must be coefficient * size + known, where the
// coefficient may be a product of known sizes. True if a size was found.
bool solve_dim(Expr dim, int64_t extent, Environment& env) {
  const auto poly = expr::Poly::of(dim);
  if (!poly) return false;
  Expr unknown;
  for (Expr v : expr::free_vars(dim)) {
    if (env.sizes.contains(v.name().str())) continue;
    if (unknown) return false;
    unknown = v;
  }
  if (!unknown) return false;
  const auto parts = poly->split(unknown);
  if (!parts) return false;
  const auto coefficient = known_value(parts->first, env);
  const auto rest = known_value(parts->second, env);
  if (!coefficient || !rest || *coefficient == 0) return false;
  if ((extent - *rest) % *coefficient != 0)
    return false;  // the shape check afterwards says what does not fit
  const int64_t value = (extent - *rest) / *coefficient;
  return value >= 0 && env.sizes.emplace(unknown.name().str(), value).second;
}

// Solves until nothing is found any more: one tensor's sizes may be what another's need.
void solve_sizes(const std::map<std::string, TensorType>& inputs, Environment& env) {
  bool is_progress = true;
  while (is_progress) {
    is_progress = false;
    for (const auto& [name, type] : inputs) {
      const auto it = env.tensors.find(name);
      if (it == env.tensors.end() || it->second.shape.size() != type.dims.size()) continue;
      for (size_t k = 0; k < type.dims.size(); ++k)
        is_progress |= solve_dim(type.dims[k], it->second.shape[k], env);
    }
  }
}

using InputTypes = std::map<std::string, TensorType>;

// What is given belongs to the program.
void check_names(const Program& program, const InputTypes& inputs, const Environment& env,
                 diag::Sink& sink) {
  std::vector<std::string> size_names;
  std::vector<std::string> scalar_names;
  for (const Op& op : program.body) {
    if (const auto* d = op.get<Dim>()) size_names.emplace_back(d->name.str());
    if (const auto* p = op.get<Param>()) scalar_names.emplace_back(p->name.str());
  }
  auto known = [&](const std::string& name, const std::vector<std::string>& names,
                   std::string_view what) {
    if (std::find(names.begin(), names.end(), name) != names.end()) return;
    auto& d =
        sink.report(Code::BadInput, {}, fmt::format("the program has no {} `{}`", what, name));
    const auto near = base::nearest_name(name, names);
    if (!near.empty()) d.with_help(fmt::format("did you mean `{}`?", near));
  };
  for (const auto& [name, value] : env.sizes) known(name, size_names, "size");
  for (const auto& [name, value] : env.scalars) known(name, scalar_names, "scalar");
  std::vector<std::string> input_names;
  for (const auto& [name, type] : inputs) input_names.push_back(name);
  for (const auto& [name, tensor] : env.tensors) known(name, input_names, "input");
}

void check_given(const InputTypes& inputs, const Environment& env, diag::Sink& sink) {
  for (const auto& [name, value] : env.sizes) {
    if (value < 0) sink.report(Code::BadInput, {}, fmt::format("size `{}` is {}", name, value));
  }
  for (const auto& [name, type] : inputs) {
    const auto it = env.tensors.find(name);
    if (it == env.tensors.end()) continue;
    if (it->second.shape.size() != type.dims.size()) {
      sink.report(Code::BadInput, {},
                  fmt::format("input `{}` has {} dimensions, the values given have shape {}", name,
                              type.dims.size(), expr::shape_text(it->second.shape)));
    }
  }
}

// A size without a value has that of its hint, a scalar its default.
void take_hint(const Op& op, const Dim& d, Environment& env, diag::Sink& sink) {
  const std::string name(d.name.str());
  if (env.sizes.contains(name)) return;
  if (!d.hint) {
    sink.report(Code::MissingSize, op.span(), fmt::format("size `{}` has no value", name))
        .with_help(
            fmt::format("give one with `--shape {}=...`, or add a hint to the program", name));
  } else {
    env.sizes.emplace(name, *d.hint);
  }
}

void take_default(const Op& op, const Param& p, Environment& env, diag::Sink& sink) {
  const std::string name(p.name.str());
  if (env.scalars.contains(name)) return;
  if (!p.init) {
    sink.report(Code::MissingSize, op.span(), fmt::format("scalar `{}` has no value", name))
        .with_help(
            fmt::format("give one with `--set {}=...`, or add a default to the program", name));
  } else if (is_closed(p.init, env)) {
    const Value v = evaluate(p.init, env);
    env.scalars.emplace(
        name, expr::is_float(p.dtype) ? expr::float_value(expr::round_to(p.dtype, v.f)) : v);
  }
}

// Tensors have the shapes that sizes say.
void check_shapes(const InputTypes& inputs, const Environment& env, diag::Sink& sink) {
  for (const auto& [name, type] : inputs) {
    const auto it = env.tensors.find(name);
    if (it == env.tensors.end()) continue;
    for (size_t k = 0; k < type.dims.size(); ++k) {
      const int64_t wanted = evaluate_size(type.dims[k], env);
      if (wanted == it->second.shape[k]) continue;
      sink.report(
          Code::BadInput, {},
          fmt::format("dimension {} of input `{}` is {} = {}, the values given have shape {}",
                      k + 1, name, expr::to_string(type.dims[k]), wanted,
                      expr::shape_text(it->second.shape)));
    }
  }
}

void check_facts(const Program& program, const Environment& env, diag::Sink& sink) {
  for (const Op& op : program.body) {
    const auto* fact = op.get<Fact>();
    if (!fact || evaluate(fact->condition, env).i) continue;
    auto& d =
        sink.report(Code::FactViolated, op.span(),
                    fmt::format("the fact `{}` does not hold", expr::to_string(fact->condition)));
    std::string values;
    for (Expr v : expr::free_vars(fact->condition)) {
      const Value value = evaluate(v, env);
      values += fmt::format("{}{} = {}", values.empty() ? "" : ", ", v.name().str(),
                            expr::is_float(v.dtype()) ? value.f : static_cast<double>(value.i));
    }
    d.label("declared here").with_help(values);
  }
}

}  // namespace

bool complete(const Program& program, const std::map<std::string, TensorType>& inputs,
              Environment& env, diag::Sink& sink) {
  const size_t before = sink.all().size();
  const auto is_wrong = [&] { return sink.all().size() != before; };
  check_names(program, inputs, env, sink);
  if (is_wrong()) return false;
  check_given(inputs, env, sink);
  solve_sizes(inputs, env);
  for (const Op& op : program.body) {
    if (const auto* d = op.get<Dim>()) take_hint(op, *d, env, sink);
    if (const auto* p = op.get<Param>()) take_default(op, *p, env, sink);
  }
  if (is_wrong()) return false;
  check_shapes(inputs, env, sink);
  check_facts(program, env, sink);
  return !is_wrong();
}

}  // namespace nautilus::ir
