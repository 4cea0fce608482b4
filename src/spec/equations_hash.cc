// SPDX-License-Identifier: Apache-2.0
#include "spec/equations_hash.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <unordered_map>
#include <vector>

#include "spec/ops.h"

namespace nautilus::spec {
namespace {

using expr::Expr;
using EK = expr::Op;

struct Hash {
  uint64_t a = 0x243F6A8885A308D3ULL;
  uint64_t b = 0x13198A2E03707344ULL;
  friend auto operator<=>(const Hash&, const Hash&) = default;
};

uint64_t mixed(uint64_t h, uint64_t v, uint64_t factor) {
  h = (h ^ v) * factor;
  return h ^ std::rotr(h, 29);
}

Hash with(Hash h, uint64_t v) {
  return {mixed(h.a, v, 0x9E3779B97F4A7C15ULL), mixed(h.b, v, 0xC2B2AE3D27D4EB4FULL)};
}
Hash with(Hash h, Hash v) { return with(with(h, v.a), v.b); }

// The number of an operator in hashes. They are stored with schedules and trials, so it stays when
// operators are added: `kAdded` has those that came later, in the order of ops.def.
uint64_t operator_number(EK op) {
  constexpr EK kAdded[] = {EK::Log1p,  EK::Expm1,     EK::BitAnd,    EK::BitOr,
                           EK::BitXor, EK::ShiftLeft, EK::ShiftRight};
  constexpr uint64_t kFirstAdded = 1000;
  auto number = static_cast<uint64_t>(op);
  for (size_t k = 0; k < std::size(kAdded); ++k) {
    if (kAdded[k] == op) return kFirstAdded + k;
    if (kAdded[k] < op) --number;
  }
  return number;
}

// The meaning of a name, as a number that begins the hash of its use.
enum class Use : uint64_t { Axis = 1, Dim, Param, Input, Equation, Free, Open };

// First every use of an input, a size or a scalar is the same (numbers_ is empty): that orders the
// operands of commutative operators. In that order all of them get numbers, from the outputs on.
// With the numbers everything is hashed again.
class Hasher {
 public:
  explicit Hasher(const ir::Program& program) {
    for (const ir::Op& op : program.body) {
      if (const auto* i = op.get<Input>()) inputs_.emplace(i->name.str(), i->type);
      if (const auto* l = op.get<Let>()) lets_.emplace(l->name.str(), l);
      if (const auto* o = op.get<Output>()) outputs_.emplace_back(o->name.str());
      if (const auto* s = op.get<ir::Static>())
        statics_.emplace(s->name.str(), s->value.value_or(0));
      if (const auto* p = op.get<ir::Param>()) params_.emplace(p->name.str(), p->dtype);
      if (const auto* f = op.get<ir::Fact>()) facts_.push_back(f->condition);
      if (const auto* n = op.get<ir::Numerics>()) numerics_ = *n;
    }
  }

  const std::vector<std::string>& number_all() {
    for (const std::string& name : outputs_) number(name);
    return met_;
  }

  std::string run() {
    number_all();
    done_.clear();
    is_numbered_ = true;
    Hash h;
    for (const std::string& name : outputs_) h = with(h, tensor(name));
    std::vector<Hash> facts;
    for (Expr f : facts_) {
      memo_.clear();
      is_known_ = true;
      const Hash fact = expression(f);
      if (is_known_) facts.push_back(fact);
    }
    std::sort(facts.begin(), facts.end());
    for (const Hash& f : facts) h = with(h, f);
    h = with(h, static_cast<uint64_t>(numerics_.rounding));
    for (const auto& bound : {numerics_.rel, numerics_.abs})
      h = with(h, bound ? std::bit_cast<uint64_t>(*bound) : 0);
    return fmt::format("{:016x}{:016x}", h.a, h.b);
  }

 private:
  // Numbers for what the tensor's definition uses, in an order that names do not change.
  void number(const std::string& name) {
    if (!numbers_.emplace(name, numbers_.size() + 1).second) return;
    met_.push_back(name);
    if (const auto input = inputs_.find(name); input != inputs_.end()) {
      for (Expr d : input->second.dims) number(d);
    }
    const auto let = lets_.find(name);
    if (let == lets_.end()) return;
    for (const ir::Axis& a : let->second->axes) {
      met_.emplace_back(a.name.str());
      number(a.extent);
    }
    const Scope scope(*this, let->second->axes);
    number(let->second->body);
  }

  void number(Expr e) {
    if (e.op() == EK::Read) number(std::string(e.name().str()));
    const std::string name(e.op() == EK::Var ? e.name().str() : "");
    if (e.op() == EK::Var && !axes_.contains(e) && !names_.contains(name) &&
        !statics_.contains(name)) {
      if (numbers_.emplace(name, numbers_.size() + 1).second) met_.push_back(name);
    }
    if (e.op() == EK::Reduce) {
      for (size_t k = 0; k < e.axis_count(); ++k) met_.emplace_back(e.axis(k).name().str());
    }
    std::vector<Expr> args(e.args().begin(), e.args().end());
    enter(e);
    if (expr::is_commutative(e.op())) {
      std::stable_sort(args.begin(), args.end(),
                       [&](Expr x, Expr y) { return expression(x) < expression(y); });
    }
    for (Expr x : args) number(x);
    leave(e);
  }

  // The axes of an equation are its first places.
  class Scope {
   public:
    Scope(Hasher& hasher, const ir::Axes& axes) : hasher_(hasher) {
      exchange();
      for (const ir::Axis& a : axes) hasher.names_.emplace(a.name.str(), hasher.names_.size());
    }
    ~Scope() { exchange(); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    void exchange() {
      std::swap(axes_, hasher_.axes_);
      std::swap(names_, hasher_.names_);
      std::swap(memo_, hasher_.memo_);
    }
    Hasher& hasher_;
    std::unordered_map<Expr, size_t> axes_;
    std::map<std::string, size_t> names_;
    std::unordered_map<Expr, Hash> memo_;
  };

  // The axes of a reduction get the next places while its arguments are hashed.
  void enter(Expr e) {
    if (e.op() != EK::Reduce) return;
    for (size_t k = 0; k < e.axis_count(); ++k) axes_.emplace(e.axis(k), kReduced + axes_.size());
    memo_.clear();
  }
  void leave(Expr e) {
    if (e.op() != EK::Reduce) return;
    for (size_t k = 0; k < e.axis_count(); ++k) axes_.erase(e.axis(k));
    memo_.clear();
  }

  Hash expression(Expr e) {
    if (const auto it = memo_.find(e); it != memo_.end()) return it->second;
    Hash h = with(with(Hash{}, operator_number(e.op())), static_cast<uint64_t>(e.dtype()));
    if (e.op() == EK::IntConst || e.op() == EK::BoolConst)
      h = with(h, static_cast<uint64_t>(e.integer()));
    if (e.op() == EK::FloatConst) h = with(h, std::bit_cast<uint64_t>(e.number()));
    if (e.op() == EK::Var) h = with(h, variable(e));
    if (e.op() == EK::Read) h = with(h, tensor(std::string(e.name().str())));
    enter(e);
    if (e.op() == EK::Reduce)
      h = with(with(h, static_cast<uint64_t>(e.reducer())), e.init() ? 1 : 0);
    std::vector<Hash> args;
    for (Expr x : e.args()) args.push_back(expression(x));
    if (expr::is_commutative(e.op())) std::sort(args.begin(), args.end());
    for (const Hash& x : args) h = with(h, x);
    leave(e);
    memo_.emplace(e, h);
    return h;
  }

  Hash used(Use use, uint64_t value) {
    return with(with(Hash{}, static_cast<uint64_t>(use)), value);
  }

  uint64_t number_of(const std::string& name) {
    const auto it = numbers_.find(name);
    is_known_ &= it != numbers_.end();
    return is_numbered_ && it != numbers_.end() ? it->second : 0;
  }

  Hash variable(Expr e) {
    const std::string name(e.name().str());
    if (const auto it = axes_.find(e); it != axes_.end()) return used(Use::Axis, it->second);
    if (const auto it = names_.find(name); it != names_.end()) return used(Use::Axis, it->second);
    if (const auto it = statics_.find(name); it != statics_.end())
      return used(Use::Free, static_cast<uint64_t>(it->second));
    if (const auto it = params_.find(name); it != params_.end())
      return with(used(Use::Param, number_of(name)), static_cast<uint64_t>(it->second));
    return used(Use::Dim, number_of(name));
  }

  Hash tensor(const std::string& name) {
    if (const auto it = done_.find(name); it != done_.end()) return it->second;
    // An equation that needs itself through this many others.
    if (const auto it = std::find(open_.rbegin(), open_.rend(), name); it != open_.rend())
      return used(Use::Open, static_cast<uint64_t>(it - open_.rbegin()));
    Hash h;
    if (const auto input = inputs_.find(name); input != inputs_.end()) {
      h = with(used(Use::Input, number_of(name)), static_cast<uint64_t>(input->second.dtype));
      for (Expr d : input->second.dims) h = with(h, expression(d));
    } else if (const auto let = lets_.find(name); let != lets_.end()) {
      h = with(used(Use::Equation, 0), static_cast<uint64_t>(let->second->dtype));
      const Scope scope(*this, let->second->axes);
      open_.push_back(name);
      for (const ir::Axis& a : let->second->axes) h = with(h, expression(a.extent));
      h = with(h, expression(let->second->body));
      open_.pop_back();
    }
    done_.emplace(name, h);
    return h;
  }

  static constexpr size_t kReduced = 1000;  // places of reduced axes, after those of equations

  std::map<std::string, ir::TensorType> inputs_;
  std::map<std::string, const Let*> lets_;
  std::vector<std::string> outputs_;
  std::map<std::string, int64_t> statics_;
  std::map<std::string, expr::DType> params_;
  std::vector<Expr> facts_;
  ir::Numerics numerics_;

  std::map<std::string, uint64_t> numbers_;
  std::vector<std::string> met_;  // all names, while numbers are given
  bool is_numbered_ = false;
  bool is_known_ = true;  // all that the expression names has a number
  std::map<std::string, Hash> done_;
  std::vector<std::string> open_;          // equations that are being hashed
  std::unordered_map<Expr, size_t> axes_;  // of reductions around
  std::map<std::string, size_t> names_;    // axes of the equation, by place
  std::unordered_map<Expr, Hash> memo_;
};

}  // namespace

std::string equations_hash(const ir::Program& program) { return Hasher(program).run(); }

std::vector<std::string> names_in_equations(const ir::Program& program) {
  return Hasher(program).number_all();
}

}  // namespace nautilus::spec
