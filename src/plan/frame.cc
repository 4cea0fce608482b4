// SPDX-License-Identifier: Apache-2.0
#include "plan/frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "expr/print.h"
#include "expr/tensor.h"
#include "expr/walk.h"

namespace nautilus::plan {
namespace {

size_t at(int index) { return static_cast<size_t>(index); }

template <class T>
void put(unsigned char* to, const T& value) {
  std::memcpy(to, &value, sizeof(T));
}

}  // namespace

Frame::Frame(const Prepared& plan)
    : plan_(plan),
      slots_(at(plan.slots), expr::int_value(0)),
      is_known_(at(plan.slots)),
      stack_(at(plan.depth)),
      is_given_(plan.values.size()),
      given_(plan.values.size(), expr::int_value(0)),
      bindings_(plan.tensors.size()),
      shapes_(at(plan.dimensions)),
      strides_(at(plan.dimensions)) {
  constexpr size_t kUnit = sizeof(runtime::EncodedMap);
  for (const Prepared::Launch& l : plan.launches)
    params_.emplace_back((at(l.param_bytes) + kUnit - 1) / kUnit);
  launches_.reserve(plan.launches.size());
}

bool Frame::bind(int tensor, const TensorView& view) {
  const Prepared::Tensor& t = plan_.tensors[at(tensor)];
  if (view.shape.size() != t.dims.size() || view.strides.size() != t.dims.size()) return false;
  std::copy(view.shape.begin(), view.shape.end(), shapes_.begin() + t.first);
  std::copy(view.strides.begin(), view.strides.end(), strides_.begin() + t.first);
  bindings_[at(tensor)] = {true, view.address};
  return true;
}

void Frame::set(int value, expr::Value to) {
  is_given_[at(value)] = 1;
  given_[at(value)] = to;
}

void Frame::forget() {
  std::fill(is_given_.begin(), is_given_.end(), uint8_t{0});
  std::fill(bindings_.begin(), bindings_.end(), Binding{});
}

int64_t Frame::extent(int tensor, int dimension) {
  return std::max<int64_t>(0, run(plan_.tensors[at(tensor)].extents[at(dimension)]).i);
}

bool Frame::evaluate(int multiprocessors, std::string* error) {
  for (size_t v = 0; v < plan_.values.size(); ++v) {
    const Prepared::Value& value = plan_.values[v];
    is_known_[at(value.slot)] = is_given_[v];
    if (!is_given_[v]) continue;
    slots_[at(value.slot)] = given_[v];
    if (!value.is_size || given_[v].i >= 0) continue;
    *error = fmt::format("size `{}` is {}", value.name, given_[v].i);
    return false;
  }
  solve_sizes();
  if (!complete_values(error) || !check_shapes(error) || !check_facts(error)) return false;
  for (int slot : plan_.machine) slots_[at(slot)] = expr::int_value(multiprocessors);
  for (const Prepared::Let& let : plan_.lets) {
    expr::Value value = run(let.value);
    if (expr::is_float(let.dtype)) value.f = expr::round_to(let.dtype, value.f);
    slots_[at(let.slot)] = value;
  }
  return true;
}

// Solves until nothing is found any more: one tensor's sizes may be what another's need.
void Frame::solve_sizes() {
  int unknown = 0;
  for (const Prepared::Value& v : plan_.values) unknown += v.is_size && !is_known_[at(v.slot)];
  bool is_progress = true;
  while (is_progress) {
    is_progress = false;
    for (const Prepared::Solve& s : plan_.solves) {
      if (unknown == 0) return;
      if (!solve(s)) continue;
      --unknown;
      is_progress = true;
    }
  }
}

bool Frame::solve(const Prepared::Solve& s) {
  if (!bindings_[at(s.tensor)].is_bound) return false;
  int unknown = -1;
  for (int slot : s.sizes) {
    if (is_known_[at(slot)]) continue;
    if (unknown >= 0) return false;
    unknown = slot;
  }
  if (unknown < 0) return false;
  for (const Prepared::SizeEquation& equation : s.equations) {
    if (equation.slot != unknown) continue;
    const int64_t coefficient = run(equation.coefficient).i;
    const int64_t extent = shapes_[at(plan_.tensors[at(s.tensor)].first + s.dimension)];
    const int64_t rest = expr::wrapping_sub(extent, run(equation.rest).i);
    // The shape check afterwards says what does not fit.
    if (coefficient == 0 || expr::floor_mod(rest, coefficient) != 0) return false;
    const int64_t value = expr::floor_div(rest, coefficient);
    if (value < 0) return false;
    slots_[at(unknown)] = expr::int_value(value);
    is_known_[at(unknown)] = 1;
    return true;
  }
  return false;
}

bool Frame::complete_values(std::string* error) {
  for (const Prepared::Value& v : plan_.values) {
    if (is_known_[at(v.slot)]) continue;
    if (v.is_size ? !v.hint : !v.has_default) {
      *error = fmt::format("{} `{}` has no value", v.is_size ? "size" : "scalar", v.name);
      return false;
    }
    if (v.is_size) slots_[at(v.slot)] = expr::int_value(*v.hint);
  }
  for (const Prepared::Value& v : plan_.values) {
    if (v.is_size || is_known_[at(v.slot)]) continue;
    expr::Value value = run(v.default_value);
    if (expr::is_float(v.dtype)) value.f = expr::round_to(v.dtype, value.f);
    slots_[at(v.slot)] = value;
  }
  return true;
}

bool Frame::check_shapes(std::string* error) {
  for (int tensor : plan_.by_name) {
    if (!bindings_[at(tensor)].is_bound) continue;
    const Prepared::Tensor& t = plan_.tensors[at(tensor)];
    const int64_t* shape = shapes_.data() + t.first;
    for (int k = 0; k < t.rank(); ++k) {
      const int64_t wanted = extent(tensor, k);
      if (wanted == shape[k]) continue;
      *error = fmt::format("dimension {} of input `{}` is {} = {}, the values given have shape {}",
                           k + 1, t.name, expr::to_string(t.dims[at(k)]), wanted,
                           expr::shape_text({shape, shape + t.rank()}));
      return false;
    }
  }
  return true;
}

bool Frame::check_facts(std::string* error) {
  for (const Prepared::Check& fact : plan_.facts) {
    if (run(fact.condition).i) continue;
    std::string values;
    for (ir::Expr v : expr::free_vars(fact.text)) {
      const int number = plan_.value(v.name().str());
      if (number < 0) continue;
      const expr::Value value = slot(plan_.values[at(number)].slot);
      values += fmt::format("{}{} = {}", values.empty() ? " (" : ", ", v.name().str(),
                            expr::is_float(v.dtype()) ? value.f : static_cast<double>(value.i));
    }
    *error = fmt::format("the fact `{}` does not hold{}{}", expr::to_string(fact.text), values,
                         values.empty() ? "" : ")");
    return false;
  }
  return true;
}

bool Frame::pack(const MapEncoder& encode, std::string* error) {
  launches_.clear();
  misaligned_.clear();
  needs_empty_backing_ = false;
  for (size_t i = 0; i < plan_.launches.size(); ++i) {
    if (plan_.launches[i].is_other) continue;
    int64_t grid = run(plan_.launches[i].grid).i;
    if (grid <= 0) continue;
    const int cluster = plan_.launches[i].cluster;
    if (grid <= std::numeric_limits<int32_t>::max())
      grid = (grid + cluster - 1) / cluster * cluster;
    if (grid > std::numeric_limits<int32_t>::max()) {
      *error = "the grid is too large";
      return false;
    }
    // One tensor that does not fit is not the end: all of them are looked for. The first is
    // reported.
    std::string why;
    const auto keep_first = [&] {
      if (misaligned_.empty() || error->empty()) *error = std::move(why);
    };
    size_t chosen = i;
    for (int tensor : plan_.launches[i].vectors) {
      if (is_aligned(tensor, &why)) continue;
      if (plan_.launches[i].other >= 0) {
        chosen = at(plan_.launches[i].other);
        continue;
      }
      keep_first();
      misaligned_.insert(tensor);
    }
    const Prepared::Launch& l = plan_.launches[chosen];
    auto* params = reinterpret_cast<unsigned char*>(params_[chosen].data());
    for (const Prepared::Param& p : l.params) {
      if (pack(p, params + p.offset, encode, &why)) continue;
      keep_first();
      const bool is_map = p.kind == emit::KernelParam::Kind::Map;
      if (needs_empty_backing_ || !is_map ||
          !bindings_[at(plan_.maps[at(p.source)].tensor)].is_bound)
        return false;
      misaligned_.insert(plan_.maps[at(p.source)].tensor);
    }
    launches_.push_back({l.kernel, static_cast<int>(grid), params, at(l.param_bytes)});
  }
  return misaligned_.empty();
}

TensorView Frame::view(int tensor) const {
  const Prepared::Tensor& t = plan_.tensors[at(tensor)];
  const auto part = [&](const std::vector<int64_t>& all) {
    return std::span<const int64_t>(all).subspan(at(t.first), t.dims.size());
  };
  return {bindings_[at(tensor)].address, part(shapes_), part(strides_)};
}

std::optional<expr::Value> Frame::given(int value) const {
  if (!is_given_[at(value)]) return std::nullopt;
  return given_[at(value)];
}

// Whether a kernel may move the tensor 16 bytes at a time.
bool Frame::is_aligned(int tensor, std::string* error) const {
  const Prepared::Tensor& t = plan_.tensors[at(tensor)];
  const int64_t bytes = expr::bytes(t.dtype);
  bool ok = bindings_[at(tensor)].address % 16 == 0;
  const size_t rank = t.dims.size();
  for (size_t k = 0; k < rank; ++k) {
    const size_t i = at(t.first) + k;
    if (shapes_[i] <= 1) continue;
    ok &= k + 1 == rank ? strides_[i] == 1 : strides_[i] * bytes % 16 == 0;
  }
  if (!ok)
    *error = fmt::format(
        "tensor `{}`: the kernel moves 16 bytes at a time, so the last axis must be contiguous, "
        "the address and all other strides multiples of 16 bytes",
        t.name);
  return ok;
}

bool Frame::pack(const Prepared::Param& p, unsigned char* to, const MapEncoder& encode,
                 std::string* error) {
  using Kind = emit::KernelParam::Kind;
  const auto is_bound = [&](int tensor) {
    if (bindings_[at(tensor)].is_bound) return true;
    *error = fmt::format("tensor `{}` is not bound", plan_.tensors[at(tensor)].name);
    return false;
  };
  switch (p.kind) {
    case Kind::Map:
      return is_bound(plan_.maps[at(p.source)].tensor) &&
             pack_map(plan_.maps[at(p.source)], to, encode, error);
    case Kind::Pointer:
      if (!is_bound(p.source)) return false;
      put(to, bindings_[at(p.source)].address);
      return true;
    case Kind::Stride:
      if (!is_bound(p.source)) return false;
      put(to, strides_[at(plan_.tensors[at(p.source)].first + p.dimension)]);
      return true;
    case Kind::Int: {
      const int64_t value = slots_[at(p.source)].i;
      if (value > std::numeric_limits<int32_t>::max() ||
          value < std::numeric_limits<int32_t>::min()) {
        *error = fmt::format("`{}` is {}, kernels count in 32 bits", p.name, value);
        return false;
      }
      put(to, static_cast<int32_t>(value));
      return true;
    }
    case Kind::Float:
      put(to, static_cast<float>(slots_[at(p.source)].f));
      return true;
    case Kind::Long:
      put(to, slots_[at(p.source)].i);
      return true;
    case Kind::Double:
      put(to, slots_[at(p.source)].f);
      return true;
  }
  return false;
}

// The stride of a map's axis is what one step of it adds to the tensor's address.
bool Frame::pack_map(const Prepared::Map& map, unsigned char* to, const MapEncoder& encode,
                     std::string* error) {
  const int64_t* strides = strides_.data() + plan_.tensors[at(map.tensor)].first;
  runtime::TensorMapView view = map.view;
  view.address = bindings_[at(map.tensor)].address;
  for (size_t a = 0; a < map.extents.size(); ++a) view.dims[a] = run(map.extents[a]).i;
  for (const Prepared::Term& t : map.terms)
    view.strides[t.axis] += run(t.coefficient).i * strides[t.dimension] * map.bytes;
  for (const Prepared::Term& t : map.origin)
    view.address += static_cast<uint64_t>(run(t.coefficient).i * strides[t.dimension] * map.bytes);
  // A map has no empty dimensions. One element that is zero reads as the empty tensor does: zeros.
  const bool is_empty = std::find(view.dims, view.dims + view.rank, 0) != view.dims + view.rank;
  needs_empty_backing_ |= is_empty && empty_backing_ == 0;
  if (is_empty && empty_backing_ != 0) {
    view.address = empty_backing_ + (map.is_stored ? kEmptyBackingBytes / 2 : 0);
    for (int a = 0; a < view.rank; ++a) {
      view.dims[a] = map.is_stored && a == 0 ? 16 / map.bytes : 1;
      view.strides[a] = a == 0 ? map.bytes : 16;
    }
  }
  // The copy engine stores whole 16 bytes: it drops rows and boxes outside the extents, but not
  // the rest of a piece that the last element shares (seen on an H200, runtime/cuda_queue_test.cc).
  if (map.is_stored && view.dims[0] * map.bytes % 16 != 0) {
    *error = fmt::format(
        "map `{}` of tensor `{}`: rows of {} elements do not end at a multiple of 16 bytes, and a "
        "store would write the rest of the last 16; use a row length that is a multiple of {}",
        map.name, plan_.tensors[at(map.tensor)].name, view.dims[0], 16 / map.bytes);
    return false;
  }
  // The parameters are made of such maps, so the place is one as far as alignment goes.
  if (encode(view, reinterpret_cast<runtime::EncodedMap*>(to), error)) return true;
  *error = fmt::format("map `{}` of tensor `{}`: {}", map.name, plan_.tensors[at(map.tensor)].name,
                       *error);
  return false;
}

}  // namespace nautilus::plan
