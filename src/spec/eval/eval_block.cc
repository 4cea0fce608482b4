// SPDX-License-Identifier: Apache-2.0
#include "spec/eval/eval_block.h"

#include <algorithm>
#include <cmath>

#include "expr/walk.h"

namespace nautilus::spec {

using expr::DType;
using expr::Op;
using expr::Value;
using ir::Expr;

BlockMachine::BlockMachine(const BlockProgram& program, Noise noise, bool is_product_exact)
    : program_(program), noise_(noise), is_product_exact_(is_product_exact) {
  for (const Instruction& in : program.code()) {
    const size_t lanes = in.is_varying ? kRun : 1;
    values_.emplace_back(lanes, in.constant);
    bounds_.emplace_back(in.is_exact ? 0 : lanes,
                         noise ? 0 : constant_bound(in.op, in.dtype, in.constant));
  }
}

bool BlockMachine::run(const std::vector<int64_t>& axes, int64_t count) {
  axes_ = axes;
  if (noise_) noise_here_ = noise_.at(axes);
  const auto& code = program_.code();
  for (size_t k = 0; k < code.size(); ++k) {
    const Instruction& in = code[k];
    switch (in.op) {
      case Op::IntConst:
      case Op::BoolConst:
      case Op::FloatConst:
        break;
      case Op::Var:
        if (in.axis < 0) break;
        for (int64_t i = 0; i < (in.is_varying ? count : 1); ++i) {
          values_[k][static_cast<size_t>(i)].i = axes[static_cast<size_t>(in.axis)] + i;
        }
        break;
      case Op::Read:
        if (!read(k, in.is_varying ? count : 1)) return false;
        break;
      default:
        elementwise(k, in.is_varying ? count : 1);
        if (noise_ && !in.is_exact && is_float(in.dtype) &&
            !(is_product_exact_ && in.op == Op::Mul && k + 1 == code.size()))
          add_noise(k, in.is_varying ? count : 1);
    }
  }
  return true;
}

BlockMachine::Lanes BlockMachine::lanes(size_t reg) const {
  const Instruction& in = program_.code()[reg];
  return {values_[reg].data(), in.is_exact ? nullptr : bounds_[reg].data(), in.is_varying ? 1 : 0};
}

bool BlockMachine::fail(const Instruction& in, size_t dimension, int64_t value,
                        bool is_by_rounding) {
  outside_ = {in.name, dimension, value, in.tensor->value.shape[dimension], is_by_rounding};
  return false;
}

// One base address and one stride for the whole run; false: the general code has to do it.
bool BlockMachine::read_strided(const Instruction& in, size_t k, int64_t count) {
  int64_t base = 0;
  int64_t stride = 0;
  for (size_t d = 0; d < in.indices.size(); ++d) {
    const auto reg = static_cast<size_t>(in.indices[d]);
    const int64_t first = values_[reg][0].i;
    const bool is_run = program_.code()[reg].is_varying;
    if (first < 0 || first + (is_run ? count - 1 : 0) >= in.tensor->value.shape[d]) return false;
    base += first * in.strides[d];
    if (is_run) stride += in.strides[d];
  }
  const Value* from = in.tensor->value.data.data() + base;
  Value* to = values_[k].data();
  for (int64_t i = 0; i < count; ++i) to[i] = from[i * stride];
  if (!in.is_exact) {
    const double* bound = in.tensor->bound.empty() ? nullptr : in.tensor->bound.data() + base;
    for (int64_t i = 0; i < count; ++i)
      bounds_[k][static_cast<size_t>(i)] = bound ? bound[i * stride] : 0;
  }
  return true;
}

bool BlockMachine::read(size_t k, int64_t count) {
  const Instruction& in = program_.code()[k];
  if (in.is_strided && in.mask < 0 && read_strided(in, k, count)) return true;
  for (int64_t i = 0; i < count; ++i) {
    const auto lane = static_cast<size_t>(i);
    values_[k][lane] = is_float(in.dtype) ? expr::float_value(0) : expr::int_value(0);
    if (!in.is_exact) bounds_[k][lane] = 0;
    // An element that the guard leaves out is still read where it exists: if a kernel may decide
    // the guard the other way, the bound is taken from it.
    bool is_left_out = false;
    bool is_by_rounding = false;
    if (in.mask >= 0) {
      const Lanes guard = lanes(static_cast<size_t>(in.mask));
      is_left_out = !guard[i].v.i;
      is_by_rounding = is_left_out && guard[i].e != 0;
    }
    int64_t flat = 0;
    bool is_certain = true;
    bool is_inside = true;
    for (size_t d = 0; d < in.indices.size(); ++d) {
      const auto reg = static_cast<size_t>(in.indices[d]);
      const Instruction& source = program_.code()[reg];
      const size_t l = source.is_varying ? lane : 0;
      const int64_t index = values_[reg][l].i;
      if (index < 0 || index >= in.tensor->value.shape[d]) {
        if (!is_left_out || is_by_rounding) return fail(in, d, index, is_by_rounding);
        is_inside = false;
        break;
      }
      flat += index * in.strides[d];
      is_certain &= source.is_exact || bounds_[reg][l] == 0;
    }
    if (!is_inside) continue;
    const auto at = static_cast<size_t>(flat);
    values_[k][lane] = in.tensor->value.data[at];
    if (in.is_exact) continue;
    bounds_[k][lane] = !is_certain                ? expr::kInf
                       : in.tensor->bound.empty() ? 0
                                                  : in.tensor->bound[at];
  }
  return true;
}

// Adds to each value at most what its own operation may be off: its bound if its operands were
// exact.
void BlockMachine::add_noise(size_t k, int64_t count) {
  const Instruction& in = program_.code()[k];
  if (in.op == Op::Select || (in.op == Op::Cast && !in.is_position)) return;
  const Lanes a = lanes(static_cast<size_t>(in.args[0]));
  const Lanes b = in.args[1] >= 0 ? lanes(static_cast<size_t>(in.args[1])) : a;
  const bool is_unary = in.args[1] < 0;
  // An approximation may be off in one direction wherever it is used.
  const double common = noise_.error(k + 1, 0);
  for (int64_t i = 0; i < count; ++i) {
    double& value = values_[k][static_cast<size_t>(i)].f;
    const double own =
        in.is_position ? expr::coarse_position_error(value)
        : is_unary ? expr::unary_bound(in.op, in.dtype, a[i].v.f, 0, value, program_.functions())
                   : expr::binary_bound(in.op, in.dtype, {a[i].v, 0}, {b[i].v, 0}, value);
    // Nothing can be promised for what leaves the range.
    double error = noise_here_.error(k + 1, i);
    if (is_unary) error = (error + common) / 2;
    value = std::isfinite(own) ? value + own * error : std::nan("");
  }
}

namespace {

// An instruction over the lanes of a run.
struct LaneLoop {
  const Instruction& in;
  int64_t count;
  BlockMachine::Lanes a;
  BlockMachine::Lanes b;
  Value* out;
  double* bound;  // null: none is kept

  // Calls body(lane, x[, y]) with the operands' values; the lambdas inline into tight loops.
  template <class Body>
  void one(Body&& body) const {
    for (int64_t i = 0; i < count; ++i) body(i, a.values[i * a.stride]);
  }
  template <class Body>
  void two(Body&& body) const {
    for (int64_t i = 0; i < count; ++i) body(i, a.values[i * a.stride], b.values[i * b.stride]);
  }
  template <class Compute>
  void set_bound(Compute&& compute) const {
    if (!bound) return;
    for (int64_t i = 0; i < count; ++i) bound[i] = compute(i);
  }
};

void select_lanes(const LaneLoop loop, const BlockMachine::Lanes c) {
  loop.two([&](int64_t i, Value condition, Value x) {
    loop.out[i] = condition.i ? x : c.values[i * c.stride];
  });
  loop.set_bound(
      [&](int64_t i) { return expr::select_bound(loop.in.dtype, loop.a[i], loop.b[i], c[i]); });
}

void cast_lanes(const LaneLoop loop) {
  const Instruction& in = loop.in;
  loop.one([&](int64_t i, Value x) { loop.out[i] = expr::cast_value(in.dtype, in.operand, x); });
  loop.set_bound([&](int64_t i) {
    const double own = in.is_position ? expr::coarse_position_error(loop.out[i].f) : 0;
    return expr::cast_bound(in.dtype, in.operand, loop.a[i], loop.out[i]) + own;
  });
}

void comparison_lanes(const LaneLoop loop) {
  const Instruction& in = loop.in;
  expr::with_comparison(in.op, [&](auto f) {
    if (is_float(in.operand)) {
      loop.two([&](int64_t i, Value x, Value y) { loop.out[i].i = f(x.f, y.f); });
    } else {
      loop.two([&](int64_t i, Value x, Value y) { loop.out[i].i = f(x.i, y.i); });
    }
  });
  loop.set_bound([&](int64_t i) {
    // A value compared with itself: whatever its error, it is a number or not (isnan).
    if (in.args[0] == in.args[1]) return loop.a[i].e == expr::kInf ? 1.0 : 0.0;
    return expr::comparison_bound(is_float(in.operand), loop.a[i], loop.b[i]);
  });
}

void float_binary_lanes(const LaneLoop loop) {
  const Instruction& in = loop.in;
  const auto& a = loop.a;
  const auto& b = loop.b;
  expr::with_float_binary(in.op, [&](auto f) {
    loop.two([&](int64_t i, Value x, Value y) { loop.out[i].f = f(x.f, y.f); });
  });
  if (in.op != Op::Mul) {
    loop.set_bound(
        [&](int64_t i) { return expr::binary_bound(in.op, in.dtype, a[i], b[i], loop.out[i].f); });
    return;
  }
  // The inner loop of every contraction.
  const expr::Rounding rounding(in.dtype);
  if (!a.bounds && !b.bounds) {
    loop.set_bound([&](int64_t i) {
      return expr::product_bound(rounding, {a.values[i * a.stride], 0}, {b.values[i * b.stride], 0},
                                 loop.out[i].f);
    });
  } else {
    loop.set_bound(
        [&](int64_t i) { return expr::product_bound(rounding, a[i], b[i], loop.out[i].f); });
  }
}

}  // namespace

void BlockMachine::elementwise(size_t k, int64_t count) {
  const Instruction& in = program_.code()[k];
  const Lanes a = lanes(static_cast<size_t>(in.args[0]));
  const LaneLoop loop{in,
                      count,
                      a,
                      in.args[1] >= 0 ? lanes(static_cast<size_t>(in.args[1])) : a,
                      values_[k].data(),
                      in.is_exact || noise_ ? nullptr : bounds_[k].data()};
  if (in.op == Op::Select) {
    select_lanes(loop, lanes(static_cast<size_t>(in.args[2])));
  } else if (in.op == Op::Cast) {
    cast_lanes(loop);
  } else if (in.op == Op::Not) {
    loop.one([&](int64_t i, Value x) { loop.out[i].i = x.i == 0; });
    loop.set_bound([&](int64_t i) { return a[i].e; });
  } else if (is_comparison(in.op)) {
    comparison_lanes(loop);
  } else if (is_float(in.operand) && expr::info(in.op).arity == 1) {
    expr::with_float_unary(
        in.op, [&](auto f) { loop.one([&](int64_t i, Value x) { loop.out[i].f = f(x.f); }); });
    loop.set_bound([&](int64_t i) {
      return expr::unary_bound(in.op, in.dtype, a[i].v.f, a[i].e, loop.out[i].f,
                               program_.functions());
    });
  } else if (is_float(in.operand)) {
    float_binary_lanes(loop);
  } else if (expr::info(in.op).arity == 1) {
    loop.one(
        [&](int64_t i, Value x) { loop.out[i] = expr::apply(in.op, in.dtype, in.operand, &x); });
    loop.set_bound([&](int64_t i) { return a[i].e; });
  } else {
    expr::with_int_binary(in.op, [&](auto f) {
      loop.two([&](int64_t i, Value x, Value y) {
        loop.out[i].i = expr::wrap_to(in.dtype, f(x.i, y.i));
      });
    });
    loop.set_bound([&](int64_t i) { return expr::int_binary_bound(in.op, a[i], loop.b[i]); });
  }
}

}  // namespace nautilus::spec
