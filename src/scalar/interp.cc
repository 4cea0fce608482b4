// SPDX-License-Identifier: Apache-2.0
#include "scalar/interp.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <unordered_map>

#include "expr/scalar_ops.h"
#include "scalar/resolved_steps.h"

namespace nautilus::scalar {
namespace {

using expr::DType;
using expr::Expr;
using expr::Op;
using expr::Tensor;
using expr::Value;

class Interpreter {
 public:
  Interpreter(const ir::Environment& env, Arithmetic arithmetic, diag::Sink& sink)
      : env_{env.sizes, env.scalars, {}},
        inputs_(env.tensors),
        is_declared_(arithmetic == Arithmetic::Declared),
        sink_(sink) {}

  std::optional<std::map<std::string, Tensor>> run(const ir::Program& program) {
    ir::compute_sizes(program, env_);
    std::map<std::string, Tensor> out;
    for (const ir::Op& op : program.body) {
      const auto* b = op.get<Buffer>();
      if (b && !allocate(*b, op.span())) return std::nullopt;
    }
    const std::vector<Step> steps = resolve(program.body);
    for (const Step& s : steps) {
      if (!execute(s)) return std::nullopt;
    }
    for (const auto& [name, type] : buffers(program, Role::Output))
      out.emplace(name, buffers_.at(name));
    return out;
  }

 private:
  bool allocate(const Buffer& b, diag::Span span) {
    const std::string name(b.name.str());
    if (b.role == Role::Input) {
      buffers_.emplace(name, inputs_.find(name)->second);
      return true;
    }
    const auto shape = ir::evaluate_shape(b.type.dims, env_);
    if (!shape) {
      sink_.report(diag::Code::BadInput, span,
                   fmt::format("`{}` has more elements than can be evaluated", name));
      return false;
    }
    Tensor& t = buffers_.emplace(name, Tensor::filled(b.type.dtype, *shape, poison(b.type.dtype)))
                    .first->second;
    if (b.role == Role::Local) locals_.push_back(&t);
    return true;
  }

  // An element that is read before it is written shows up as NaN, or as an absurd integer.
  static Value poison(DType dtype) {
    if (is_float(dtype)) return expr::float_value(std::nan(""));
    return expr::int_value(expr::int_min(dtype == DType::Bool ? DType::I64 : dtype));
  }

  std::vector<Step> resolve(const ir::Block& block) {
    std::vector<Step> steps;
    for (const ir::Op& op : block) {
      if (std::optional<Step> s = resolve(op)) steps.push_back(std::move(*s));
    }
    return steps;
  }

  // Nothing for declarations.
  std::optional<Step> resolve(const ir::Op& op) {
    Step s{.kind = kind(op), .span = op.span()};
    switch (s.kind) {
      case Kind::Dim:
      case Kind::Static:
      case Kind::Param:
      case Kind::Fact:
      case Kind::Numerics:
      case Kind::Target:
      case Kind::Machine:
      case Kind::Size:
      case Kind::Decisions:
      case Kind::Kernel:
      case Kind::Buffer:
        return std::nullopt;
      case Kind::For:
        resolve(op.as<For>(), s);
        break;
      case Kind::Loop:
        resolve(op.as<Loop>(), s);
        break;
      case Kind::If:
        s.value = compile(op.as<If>().condition);
        s.body = resolve(op.as<If>().body);
        break;
      case Kind::Store:
        resolve_write(op.as<Store>(), s);
        break;
      case Kind::Init:
        resolve_write(op.as<Init>(), s);
        break;
      case Kind::Update:
        resolve_write(op.as<Update>(), s);
        s.reducer = op.as<Update>().reducer;
        break;
      case Kind::UpdateArg:
        resolve(op.as<UpdateArg>(), s);
        break;
      case Kind::Scatter:
        resolve(op.as<Scatter>(), s);
        break;
    }
    return s;
  }

  void resolve(const Scatter& scatter, Step& s) {
    resolve_write(scatter, s);
    s.reducer = scatter.reducer;
    if (scatter.condition) s.condition = compile(scatter.condition);
  }

  void resolve(const For& loop, Step& s) {
    s.is_grid = loop.kind == LoopKind::Grid;
    for (const ir::Axis& a : loop.axes) {
      s.extents.push_back(ir::evaluate_size(a.extent, env_));
      s.slots.push_back(new_slot());
      scope_.emplace_back(a.name, s.slots.back());
    }
    memo_.clear();
    s.body = resolve(loop.body);
    memo_.clear();
    scope_.resize(scope_.size() - loop.axes.size());
  }

  void resolve(const Loop& loop, Step& s) {
    s.from = compile(loop.from);
    s.to = compile(loop.to);
    s.is_down = loop.direction == Direction::Down;
    s.slots.push_back(new_slot());
    scope_.emplace_back(loop.var, s.slots.back());
    memo_.clear();
    s.body = resolve(loop.body);
    memo_.clear();
    scope_.pop_back();
  }

  void resolve(const UpdateArg& u, Step& s) {
    resolve_target(u.target, u.indices, s);
    s.best = &buffers_.at(std::string(u.best.str()));
    s.value = compile(u.value);
    s.position = compile(u.position);
    s.reducer = u.reducer;
  }

  // A store, an init or an update.
  template <typename T>
  void resolve_write(const T& op, Step& s) {
    resolve_target(op.target, op.indices, s);
    s.value = compile(op.value);
  }

  void resolve_target(ir::Name name, const ir::Exprs& indices, Step& s) {
    s.target = &buffers_.at(std::string(name.str()));
    s.target_name = name.str();
    for (Expr i : indices) s.indices.push_back(compile(i));
  }

  int new_slot() {
    slots_.push_back(0);
    set_at_.push_back(0);
    return static_cast<int>(slots_.size()) - 1;
  }

  // Slots are numbered from the outside in: where an inner one was not set again, no outer one was.
  void set(int slot, int64_t i) {
    slots_[static_cast<size_t>(slot)] = i;
    set_at_[static_cast<size_t>(slot)] = ++clock_;
  }

  const Code* compile(Expr e) {
    if (const auto it = memo_.find(e); it != memo_.end()) return it->second;
    Code c{.op = e.op(), .dtype = e.dtype(), .operand = e.dtype(), .name = {}, .args = {}};
    switch (e.op()) {
      case Op::IntConst:
      case Op::BoolConst:
      case Op::FloatConst:
        c.constant = constant(e);
        break;
      case Op::Var:
        for (const auto& [name, slot] : scope_) {
          if (name == e.name()) c.slot = slot;
        }
        if (c.slot < 0) c.constant = constant(e);
        c.innermost = c.slot;
        break;
      case Op::Read:
        c.buffer = &buffers_.at(std::string(e.name().str()));
        c.name = e.name().str();
        break;
      default:
        c.operand = e.args().back().dtype();
    }
    bool reads = e.op() == Op::Read;
    for (Expr a : e.args()) {
      c.args.push_back(compile(a));
      c.innermost = std::max(c.innermost, c.args.back()->innermost);
      reads |= c.args.back()->reads;
    }
    c.reads = reads;
    c.is_kept = !reads && !e.args().empty() && c.innermost >= 0;
    code_.push_back(std::move(c));
    memo_.emplace(e, &code_.back());
    return &code_.back();
  }

  Value constant(Expr e) {
    const Value v = ir::evaluate(e, env_);
    return is_declared_ && is_float(e.dtype()) ? expr::float_value(expr::round_to(e.dtype(), v.f))
                                               : v;
  }

  Value value(const Code& c) {
    if (!c.is_kept) return computed(c);
    const uint64_t now = set_at_[static_cast<size_t>(c.innermost)];
    if (c.kept_at != now) {
      c.kept = computed(c);
      c.kept_at = now;
    }
    return c.kept;
  }

  Value computed(const Code& c) {
    switch (c.op) {
      case Op::IntConst:
      case Op::BoolConst:
      case Op::FloatConst:
        return c.constant;
      case Op::Var:
        return c.slot < 0 ? c.constant : expr::int_value(slots_[static_cast<size_t>(c.slot)]);
      case Op::Read: {
        const int64_t at = address(*c.buffer, c.name, c.args);
        return at < 0 ? expr::int_value(0) : c.buffer->data[static_cast<size_t>(at)];
      }
      case Op::Select:
        return value(*c.args[0]).i ? value(*c.args[1]) : value(*c.args[2]);
      default: {
        Value args[3];
        for (size_t i = 0; i < c.args.size(); ++i) args[i] = value(*c.args[i]);
        return round(c.dtype, expr::apply(c.op, c.dtype, c.operand, args));
      }
    }
  }

  Value round(DType dtype, Value v) const {
    return is_declared_ && is_float(dtype) ? expr::float_value(expr::round_to(dtype, v.f)) : v;
  }

  // -1 after reporting an access outside the buffer.
  int64_t address(const Tensor& t, std::string_view name, const std::vector<const Code*>& indices) {
    int64_t flat = 0;
    for (size_t k = 0; k < indices.size(); ++k) {
      const int64_t i = value(*indices[k]).i;
      if (i < 0 || i >= t.shape[k]) {
        if (!has_failed_) {
          sink_.report(
              diag::Code::ReadOutside, span_,
              fmt::format("index {} of `{}` is {}, the extent is {}", k + 1, name, i, t.shape[k]));
        }
        has_failed_ = true;
        return -1;
      }
      flat = flat * t.shape[k] + i;
    }
    return flat;
  }

  bool execute(const Step& s) {
    span_ = s.span;
    if (s.kind == Kind::For) return loop(s, 0);
    if (s.kind == Kind::Loop) return steps(s);
    if (s.kind == Kind::If) return !value(*s.value).i || block(s.body);
    if (s.condition && !value(*s.condition).i) return !has_failed_;
    const Value x = value(*s.value);
    const int64_t at = address(*s.target, s.target_name, s.indices);
    if (has_failed_) return false;
    Value& element = s.target->data[static_cast<size_t>(at)];
    if (s.kind == Kind::Update || s.kind == Kind::Scatter) {
      const Value pair[2] = {element, x};
      const DType d = s.target->dtype;
      element = round(d, expr::apply(expr::combiner(s.reducer), d, d, pair));
    } else if (s.kind == Kind::UpdateArg) {
      Value& best = s.best->data[static_cast<size_t>(at)];
      if (expr::is_better(s.reducer, s.best->dtype, x, best, element.i < 0)) {
        best = x;
        element = value(*s.position);
      }
    } else {
      element = x;
    }
    return !has_failed_;
  }

  bool block(const std::vector<Step>& body) {
    for (const Step& inner : body) {
      if (!execute(inner)) return false;
    }
    return !has_failed_;
  }

  bool steps(const Step& s) {
    const int64_t from = value(*s.from).i;
    const int64_t to = value(*s.to).i;
    for (int64_t i = from; s.is_down ? i >= to : i < to; i += s.is_down ? -1 : 1) {
      set(s.slots[0], i);
      if (!block(s.body)) return false;
    }
    return !has_failed_;
  }

  bool loop(const Step& s, size_t axis) {
    if (axis == s.slots.size()) {
      if (s.is_grid) {
        for (Tensor* t : locals_) std::fill(t->data.begin(), t->data.end(), poison(t->dtype));
      }
      return block(s.body);
    }
    for (int64_t i = 0; i < s.extents[axis]; ++i) {
      set(s.slots[axis], i);
      if (!loop(s, axis + 1)) return false;
    }
    return true;
  }

  ir::Environment env_;  // sizes and scalars
  const std::map<std::string, Tensor, std::less<>>& inputs_;
  bool is_declared_;
  diag::Sink& sink_;
  std::map<std::string, Tensor> buffers_;
  std::vector<Tensor*> locals_;
  std::vector<std::pair<ir::Name, int>> scope_;
  std::vector<int64_t> slots_;
  std::vector<uint64_t> set_at_;  // when each was set, by the clock
  uint64_t clock_ = 0;
  std::deque<Code> code_;
  std::unordered_map<Expr, const Code*> memo_;
  diag::Span span_;
  bool has_failed_ = false;
};

}  // namespace

std::optional<std::map<std::string, Tensor>> interpret(const ir::Program& program,
                                                       const ir::Environment& env,
                                                       Arithmetic arithmetic, diag::Sink& sink) {
  return Interpreter(env, arithmetic, sink).run(program);
}

}  // namespace nautilus::scalar
