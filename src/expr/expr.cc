// SPDX-License-Identifier: Apache-2.0
#include "expr/expr.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/check.h"

namespace nautilus::expr {

const OpInfo& info(Op op) {
  static constexpr OpInfo kTable[] = {
#define OP(name, text, arity, form) {#name, text, arity, Form::form},
#include "expr/ops.def"
#undef OP
  };
  return kTable[static_cast<size_t>(op)];
}

bool is_comparison(Op op) { return op >= Op::Eq && op <= Op::Ge; }

bool is_bitwise(Op op) { return op >= Op::BitAnd && op <= Op::ShiftRight; }

bool is_commutative(Op op) {
  switch (op) {
    case Op::Add:
    case Op::Mul:
    case Op::Min:
    case Op::Max:
    case Op::Eq:
    case Op::Ne:
    case Op::And:
    case Op::Or:
    case Op::BitAnd:
    case Op::BitOr:
    case Op::BitXor:
      return true;
    default:
      return false;
  }
}

const std::vector<std::string_view>& reducer_names() {
  static const std::vector<std::string_view> names = {"sum", "prod", "max",    "min",
                                                      "any", "all",  "argmax", "argmin"};
  return names;
}

std::string_view name(Reducer reducer) { return reducer_names()[static_cast<size_t>(reducer)]; }

Op Expr::op() const { return node_->op; }
DType Expr::dtype() const { return node_->dtype; }
std::span<const Expr> Expr::args() const { return {node_->args, node_->arg_count}; }
uint32_t Expr::depth() const { return node_->depth; }
uint32_t Expr::tree_size() const { return node_->tree_size; }

int64_t Expr::integer() const {
  NAUT_CHECK(op() == Op::IntConst || op() == Op::BoolConst, "{} has no integer", info(op()).name);
  return node_->payload.integer;
}

double Expr::number() const {
  NAUT_CHECK(op() == Op::FloatConst, "{} has no number", info(op()).name);
  return node_->payload.number;
}

Name Expr::name() const {
  NAUT_CHECK(op() == Op::Var || op() == Op::Read, "{} has no name", info(op()).name);
  return Name(node_->payload.name);
}

Reducer Expr::reducer() const {
  NAUT_CHECK(op() == Op::Reduce, "{} has no reducer", info(op()).name);
  return node_->payload.reduce.reducer;
}

size_t Expr::axis_count() const {
  NAUT_CHECK(op() == Op::Reduce, "{} has no axes", info(op()).name);
  return node_->payload.reduce.axes;
}

Expr Expr::init() const { return node_->payload.reduce.has_init ? args().back() : Expr(); }

namespace {

size_t mix(size_t h, size_t v) { return (h ^ v) * 0x9E3779B97F4A7C15ULL + (h >> 29); }

uint64_t bits(Op op, const Payload& p) {
  switch (op) {
    case Op::IntConst:
    case Op::BoolConst:
      return static_cast<uint64_t>(p.integer);
    case Op::FloatConst:
      return std::bit_cast<uint64_t>(p.number);
    case Op::Var:
    case Op::Read:
      return reinterpret_cast<uintptr_t>(p.name);
    case Op::Reduce:
      return static_cast<uint64_t>(p.reduce.reducer) << 32 |
             static_cast<uint64_t>(p.reduce.axes) << 8 | static_cast<uint64_t>(p.reduce.has_init);
    default:
      return 0;
  }
}

}  // namespace

ExprPool::ExprPool() = default;

bool ExprPool::Equal::operator()(const Key& k, const Node* n) const {
  return k.hash == n->hash && k.op == n->op && k.dtype == n->dtype &&
         k.args.size() == n->arg_count && bits(k.op, k.payload) == bits(n->op, n->payload) &&
         std::equal(k.args.begin(), k.args.end(), n->args);
}

Expr ExprPool::make(Op op, DType dtype, std::span<const Expr> args, Payload payload) {
  size_t hash = mix(mix(static_cast<size_t>(op), static_cast<size_t>(dtype)), bits(op, payload));
  for (Expr a : args) hash = mix(hash, a.node()->hash);
  const Key key{op, dtype, payload, args, hash};
  if (const auto found = nodes_.find(key); found != nodes_.end()) return Expr(*found);

  uint32_t depth = 1;
  uint64_t tree_size = 1;
  for (Expr a : args) {
    depth = std::max(depth, a.depth() + 1);
    tree_size += a.tree_size();
  }
  auto* copy = static_cast<Expr*>(arena_.allocate(args.size() * sizeof(Expr), alignof(Expr)));
  std::uninitialized_copy(args.begin(), args.end(), copy);
  void* place = arena_.allocate(sizeof(Node), alignof(Node));
  auto* node = new (place) Node{op,
                                dtype,
                                static_cast<uint32_t>(args.size()),
                                depth,
                                static_cast<uint32_t>(std::min<uint64_t>(tree_size, UINT32_MAX)),
                                hash,
                                payload,
                                copy};
  nodes_.insert(node);
  return Expr(node);
}

Name ExprPool::name(std::string_view text) { return Name(&*names_.emplace(text).first); }

Expr ExprPool::integer(int64_t value, DType dtype) {
  NAUT_CHECK(is_int(dtype), "an integer constant of dtype {}", expr::name(dtype));
  return make(Op::IntConst, dtype, {}, {.integer = wrap_to(dtype, value)});
}

Expr ExprPool::floating(double value, DType dtype) {
  NAUT_CHECK(is_float(dtype), "a float constant of dtype {}", expr::name(dtype));
  return make(Op::FloatConst, dtype, {}, {.number = value});
}

Expr ExprPool::boolean(bool value) {
  return make(Op::BoolConst, DType::Bool, {}, {.integer = value ? 1 : 0});
}

Expr ExprPool::constant(double value, DType dtype) {
  if (is_float(dtype)) return floating(value, dtype);
  if (dtype == DType::Bool) return boolean(value != 0);
  return integer(float_to_int(dtype, value), dtype);
}

Expr ExprPool::var(Name name, DType dtype) {
  return make(Op::Var, dtype, {}, {.name = name.text_});
}

Expr ExprPool::read(Name tensor, DType dtype, std::span<const Expr> indices) {
  for (Expr i : indices) NAUT_CHECK(is_int(i.dtype()), "index of dtype {}", expr::name(i.dtype()));
  return make(Op::Read, dtype, indices, {.name = tensor.text_});
}

Expr ExprPool::unary(Op op, Expr x) {
  NAUT_CHECK(info(op).arity == 1 && op != Op::Cast, "{} is no unary operator", info(op).name);
  NAUT_CHECK(op == Op::Not ? x.dtype() == DType::Bool : x.dtype() != DType::Bool, "{} of {}",
             info(op).name, expr::name(x.dtype()));
  NAUT_CHECK(op == Op::Not || op == Op::Neg || op == Op::Abs || is_float(x.dtype()), "{} of {}",
             info(op).name, expr::name(x.dtype()));
  if (op == Op::Neg && x.op() == Op::FloatConst) return floating(-x.number(), x.dtype());
  if (op == Op::Neg && x.op() == Op::IntConst) {
    return integer(static_cast<int64_t>(-static_cast<uint64_t>(x.integer())), x.dtype());
  }
  return make(op, x.dtype(), {&x, 1}, {.integer = 0});
}

Expr ExprPool::binary(Op op, Expr x, Expr y) {
  NAUT_CHECK(info(op).arity == 2, "{} is no binary operator", info(op).name);
  NAUT_CHECK(x.dtype() == y.dtype(), "{} of {} and {}", info(op).name, expr::name(x.dtype()),
             expr::name(y.dtype()));
  const bool is_bool = x.dtype() == DType::Bool;
  switch (op) {
    case Op::And:
    case Op::Or:
      NAUT_CHECK(is_bool, "{} of {}", info(op).name, expr::name(x.dtype()));
      break;
    case Op::Eq:
    case Op::Ne:
      break;
    case Op::Div:
    case Op::Pow:
      NAUT_CHECK(is_float(x.dtype()), "{} of {}", info(op).name, expr::name(x.dtype()));
      break;
    case Op::FloorDiv:
    case Op::Mod:
      NAUT_CHECK(is_int(x.dtype()), "{} of {}", info(op).name, expr::name(x.dtype()));
      break;
    default:
      NAUT_CHECK(!is_bool, "{} of bool", info(op).name);
  }
  // x - 3 and x + -3 are one expression, printed as the first.
  if (op == Op::Sub && y.op() == Op::IntConst) return binary(Op::Add, x, unary(Op::Neg, y));
  const std::array<Expr, 2> args = {x, y};
  return make(op, is_comparison(op) ? DType::Bool : x.dtype(), args, {.integer = 0});
}

Expr ExprPool::select(Expr condition, Expr x, Expr y) {
  NAUT_CHECK(condition.dtype() == DType::Bool && x.dtype() == y.dtype(), "where({}, {}, {})",
             expr::name(condition.dtype()), expr::name(x.dtype()), expr::name(y.dtype()));
  const std::array<Expr, 3> args = {condition, x, y};
  return make(Op::Select, x.dtype(), args, {.integer = 0});
}

Expr ExprPool::cast(DType dtype, Expr x) {
  if (x.dtype() == dtype) return x;
  if (x.op() == Op::FloatConst) {
    if (is_float(dtype)) {
      return floating(
          holds_every_value(dtype, x.dtype()) ? x.number() : round_to(dtype, x.number()), dtype);
    }
    return constant(x.number(), dtype);
  }
  if (x.op() == Op::IntConst || x.op() == Op::BoolConst) {
    if (is_float(dtype)) return floating(round_to(dtype, static_cast<double>(x.integer())), dtype);
    return dtype == DType::Bool ? boolean(x.integer() != 0) : integer(x.integer(), dtype);
  }
  return make(Op::Cast, dtype, {&x, 1}, {.integer = 0});
}

Expr ExprPool::reduce(Reducer reducer, Expr body, std::span<const Expr> axes,
                      std::span<const Expr> extents, Expr init) {
  NAUT_CHECK(axes.size() == extents.size() && !axes.empty(), "{} axes, {} extents", axes.size(),
             extents.size());
  NAUT_CHECK(!init || init.dtype() == body.dtype(), "initial element of another dtype");
  std::vector<Expr> args = {body};
  for (size_t k = 0; k < axes.size(); ++k) {
    NAUT_CHECK(axes[k].op() == Op::Var && is_int(extents[k].dtype()),
               "a reduction axis is a variable");
    args.push_back(axes[k]);
    args.push_back(extents[k]);
  }
  if (init) args.push_back(init);
  Payload payload{.integer = 0};
  payload.reduce = {reducer, static_cast<bool>(init), static_cast<uint16_t>(axes.size())};
  return make(Op::Reduce, is_arg(reducer) ? DType::I64 : body.dtype(), args, payload);
}

Expr ExprPool::with_args(Expr like, std::span<const Expr> args) {
  switch (like.op()) {
    case Op::Cast:
      return cast(like.dtype(), args[0]);
    case Op::Select:
      return select(args[0], args[1], args[2]);
    case Op::Reduce: {
      const Node* n = like.node();
      return make(Op::Reduce, is_arg(like.reducer()) ? DType::I64 : args[0].dtype(), args,
                  n->payload);
    }
    default:
      if (info(like.op()).arity == 1) return unary(like.op(), args[0]);
      if (info(like.op()).arity == 2) return binary(like.op(), args[0], args[1]);
      return make(like.op(), like.dtype(), args, like.node()->payload);
  }
}

int compare(Expr a, Expr b) {
  if (a == b) return 0;
  if (a.op() != b.op()) return a.op() < b.op() ? -1 : 1;
  if (a.dtype() != b.dtype()) return a.dtype() < b.dtype() ? -1 : 1;
  switch (a.op()) {
    case Op::IntConst:
    case Op::BoolConst:
      return a.integer() < b.integer() ? -1 : 1;
    case Op::FloatConst: {
      const auto x = std::bit_cast<int64_t>(a.number());
      const auto y = std::bit_cast<int64_t>(b.number());
      return x < y ? -1 : 1;
    }
    case Op::Var:
    case Op::Read:
      if (a.name() != b.name()) return a.name().str() < b.name().str() ? -1 : 1;
      break;
    case Op::Reduce:
      if (a.reducer() != b.reducer()) return a.reducer() < b.reducer() ? -1 : 1;
      break;
    default:
      break;
  }
  if (a.args().size() != b.args().size()) return a.args().size() < b.args().size() ? -1 : 1;
  for (size_t i = 0; i < a.args().size(); ++i) {
    if (const int c = compare(a[i], b[i])) return c;
  }
  return 0;
}

}  // namespace nautilus::expr
