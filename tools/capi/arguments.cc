// SPDX-License-Identifier: Apache-2.0
#include "arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace nautilus::capi {
namespace {

Failure wrong_argument(std::string text) { return {NAUTILUS_ERROR_ARGUMENT, std::move(text)}; }

std::string given_text(const nautilus_tensor& t) {
  const char* dtype = nautilus_dtype_name(t.dtype);
  std::string out = dtype ? dtype : fmt::format("dtype {}", t.dtype);
  if (t.rank < 0 || !t.shape) return out + fmt::format(" of rank {}", t.rank);
  return out + fmt::format("[{}]", fmt::join(t.shape, t.shape + t.rank, ", "));
}

Failure check_tensor(const driver::Signature::Tensor& declared, const nautilus_tensor& t,
                     Wanted wanted) {
  const auto differs = [&] {
    return wrong_argument(fmt::format("tensor `{}`: {} was expected, {} came", declared.name,
                                      declared_text(declared), given_text(t)));
  };
  const auto rank = static_cast<int32_t>(declared.dims.size());
  if (t.rank != rank || (rank > 0 && !t.shape)) return differs();
  if (t.dtype < 0 || t.dtype >= expr::kDTypeCount) return differs();
  const auto dtype = static_cast<expr::DType>(t.dtype);
  const bool may_differ =
      wanted != Wanted::Memory && expr::is_float(dtype) && expr::is_float(declared.type.dtype);
  if (dtype != declared.type.dtype && !may_differ) return differs();
  bool is_empty = false;
  for (int32_t k = 0; k < rank; ++k) {
    if (t.shape[k] < 0) return differs();
    is_empty |= t.shape[k] == 0;
  }
  if (wanted != Wanted::Shapes && !t.data && !is_empty)
    return wrong_argument(fmt::format("tensor `{}` has no memory", declared.name));
  return {};
}

void add_tensor(const nautilus_tensor& t, Arguments& out) {
  const auto rank = static_cast<size_t>(t.rank);
  const int64_t* strides = t.strides;
  if (!strides && rank > 0) {
    const size_t first = out.dense.size();
    out.dense.resize(first + rank);  // has room: pointers into it stay
    int64_t step = 1;
    for (size_t k = rank; k-- > 0;) {
      out.dense[first + k] = step;
      step = expr::wrapping_mul(step, t.shape[k]);
    }
    strides = out.dense.data() + first;
  }
  out.tensors.push_back({reinterpret_cast<uint64_t>(t.data), {t.shape, rank}, {strides, rank}});
  out.is_given.push_back(1);
}

Failure add_value(const State& state, const nautilus_value& v, Arguments& out) {
  if (v.index < 0 || v.index >= static_cast<int32_t>(state.signature.values.size()))
    return {NAUTILUS_ERROR_USAGE, fmt::format("there is no size or scalar {}", v.index)};
  const driver::Signature::Value& declared = state.signature.values[static_cast<size_t>(v.index)];
  using Kind = driver::Signature::Kind;
  if (declared.kind == Kind::Static) {
    if (declared.hint == v.integer) return {};
    return wrong_argument(fmt::format(
        "size `{}` is {} since the program was opened, {} came; open it again with another value",
        declared.name, declared.hint.value_or(0), v.integer));
  }
  if (expr::is_float(declared.dtype)) {
    out.values.push_back({v.index, expr::float_value(expr::round_to(declared.dtype, v.number))});
    return {};
  }
  const bool fits = declared.kind == Kind::Size ? v.integer >= 0
                    : declared.dtype == expr::DType::Bool
                        ? v.integer == 0 || v.integer == 1
                        : expr::wrap_to(declared.dtype, v.integer) == v.integer;
  if (!fits)
    return wrong_argument(fmt::format(
        "{} `{}`: {} was expected, {} came", declared.kind == Kind::Size ? "size" : "scalar",
        declared.name, declared.kind == Kind::Size ? "a number from 0" : expr::name(declared.dtype),
        v.integer));
  out.values.push_back({v.index, expr::int_value(v.integer)});
  return {};
}

}  // namespace

std::string declared_text(const driver::Signature::Tensor& tensor) {
  return fmt::format("{}[{}]", expr::name(tensor.type.dtype), fmt::join(tensor.dims, ", "));
}

Failure read_arguments(const State& state, const nautilus_arguments* from, Wanted wanted,
                       Arguments& out) {
  nautilus_arguments a = {};
  if (!from || !read_struct(from, a) || (a.tensor_count > 0 && !a.tensors) ||
      (a.value_count > 0 && !a.values) || a.tensor_count < 0 || a.value_count < 0)
    return {NAUTILUS_ERROR_USAGE,
            "the arguments are null, have no struct_size, or a count without a list"};
  const auto& declared = state.signature.tensors;
  const auto count = static_cast<int32_t>(declared.size());
  if (a.tensor_count > count || (wanted != Wanted::Shapes && a.tensor_count < count))
    return wrong_argument(
        fmt::format("the program has {} tensors, {} came", count, a.tensor_count));
  out.tensors.clear();
  out.is_given.clear();
  out.values.clear();
  out.dense.clear();
  size_t dimensions = 0;
  for (const driver::Signature::Tensor& t : declared) dimensions += t.dims.size();
  out.dense.reserve(dimensions);
  for (int32_t i = 0; i < count; ++i) {
    const bool is_absent = i >= a.tensor_count || a.tensors[i].rank == NAUTILUS_ABSENT;
    const driver::Signature::Tensor& t = declared[static_cast<size_t>(i)];
    if (!is_absent) {
      if (Failure f = check_tensor(t, a.tensors[i], wanted); !f.is_ok()) return f;
      add_tensor(a.tensors[i], out);
      continue;
    }
    if (wanted != Wanted::Shapes)
      return wrong_argument(
          fmt::format("tensor `{}`: {} was expected, nothing came", t.name, declared_text(t)));
    out.tensors.emplace_back();
    out.is_given.push_back(0);
  }
  for (int32_t i = 0; i < a.value_count; ++i) {
    if (Failure f = add_value(state, a.values[i], out); !f.is_ok()) return f;
  }
  return {};
}

Failure solve(const State& state, const Arguments& arguments, plan::Frame& frame) {
  for (size_t i = 0; i < arguments.tensors.size(); ++i) {
    if (arguments.is_given[i]) frame.bind(static_cast<int>(i), arguments.tensors[i]);
  }
  for (const plan::Call::Value& v : arguments.values) {
    const int number =
        state.sizing->value(state.signature.values[static_cast<size_t>(v.number)].name);
    if (number >= 0) frame.set(number, v.value);
  }
  std::string error;
  if (frame.evaluate(1, &error)) return {};
  return wrong_argument(std::move(error));
}

}  // namespace nautilus::capi
