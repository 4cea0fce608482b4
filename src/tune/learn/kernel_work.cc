// SPDX-License-Identifier: Apache-2.0
#include "tune/learn/kernel_work.h"

#include <algorithm>
#include <unordered_map>

#include "expr/walk.h"
#include "ir/walk.h"

namespace nautilus::tune {
namespace {

using expr::Expr;
using EK = expr::Op;

constexpr int64_t kSamples = 8;  // of tiles

bool is_special(EK op) {
  switch (op) {
    case EK::Exp:
    case EK::Exp2:
    case EK::Log:
    case EK::Log2:
    case EK::Log1p:
    case EK::Expm1:
    case EK::Sqrt:
    case EK::Rsqrt:
    case EK::Tanh:
    case EK::Erf:
    case EK::Sigmoid:
    case EK::Sin:
    case EK::Cos:
    case EK::Pow:
    case EK::Div:
      return true;
    default:
      return false;
  }
}

class Counter {
 public:
  Counter(const matile::Kernel& kernel, const ir::Environment& env, int64_t grid)
      : kernel_(kernel), env_(env), grid_(grid) {
    ir::for_each_op(kernel.body, [&](const ir::Op& op) {
      if (const auto* t = op.get<matile::Tile>()) types_[t->name] = t->type;
      if (const auto* p = op.get<matile::SlotTile>()) types_[p->name] = p->type;
      if (const auto* t = op.get<matile::Tiles>()) tiles_ = known(t->count).value_or(grid);
      has_tiles_ |= op.is<matile::Each>();
    });
  }

  KernelWork count() {
    out_.tiles = static_cast<double>(has_tiles_ ? tiles_ : grid_);
    // Without a persistent loop every CTA runs the whole text.
    has_tiles_ ? block(kernel_.body, 1) : sampled(grid_, [&](int64_t cta, double times) {
      cta_ = cta;
      block(kernel_.body, times);
    });
    return out_;
  }

 private:
  template <class F>
  void sampled(int64_t count, F&& f) {
    const int64_t n = std::min(count, kSamples);
    for (int64_t s = 0; s < n; ++s)
      f((2 * s + 1) * count / (2 * n), static_cast<double>(count) / static_cast<double>(n));
  }

  // Nothing if it depends on data, or has no value: guarded expressions are evaluated as well.
  std::optional<int64_t> known(Expr e) const {
    if (!e || expr::is_float(e.dtype()) || expr::has_reduce(e) || !expr::tensors_read(e).empty())
      return std::nullopt;
    for (Expr v : expr::free_vars(e)) {
      if (!env_.sizes.contains(v.name().str()) && !env_.scalars.contains(v.name().str()))
        return std::nullopt;
    }
    bool has_value = true;
    expr::for_each(e, [&](Expr x) {  // operands first
      if (!has_value || (x.op() != EK::FloorDiv && x.op() != EK::Mod)) return;
      has_value = ir::evaluate(x[1], env_).i != 0;
    });
    return has_value ? std::optional(ir::evaluate(e, env_).i) : std::nullopt;
  }

  double extent(const ir::Axes& axes) const {
    double n = 1;
    for (const ir::Axis& a : axes)
      n *= static_cast<double>(std::max<int64_t>(known(a.extent).value_or(1), 0));
    return n;
  }
  double elements(ir::Name tile) const {
    const auto it = types_.find(tile);
    if (it == types_.end()) return 1;
    double n = 1;
    for (Expr d : it->second.dims) n *= static_cast<double>(known(d).value_or(1));
    return n;
  }
  double bytes(ir::Name tile) const {
    const auto it = types_.find(tile);
    return elements(tile) * (it == types_.end() ? 4 : expr::bytes(it->second.dtype));
  }

  void bind(ir::Name name, int64_t value) {
    env_.sizes.insert_or_assign(std::string(name.str()), value);
  }

  // An expression of `times` elements. Index arithmetic is not counted.
  void value(Expr e, double times) {
    if (!e) return;
    expr::for_each(e, [&](Expr x) {
      if (x.op() == EK::Read && !types_.contains(x.name()))
        out_.loaded += times * expr::bytes(x.dtype());
      if (x.args().empty() || x.op() == EK::Read || x.dtype() == expr::DType::I64) return;
      out_.operations += times;
      if (is_special(x.op())) out_.special += times;
    });
  }

  void block(const ir::Block& body, double times) {
    for (const ir::Op& op : body) visit(op, times);
  }

  void loop(const ir::Block& body, ir::Name var, int64_t from, int64_t to, double times) {
    const auto trips = static_cast<double>(std::max<int64_t>(to - from, 0));
    if (trips == 0) return;
    bind(var, (from + to) / 2);
    out_.turns += times * trips;
    block(body, times * trips);
  }

  void visit(const ir::Op& op, double times) {
    using namespace matile;
    if (const auto* cta = op.get<Cta>()) {
      bind(cta->index, cta_);
      bind(cta->count, grid_);
    } else if (const auto* let = op.get<Let>()) {
      if (const auto v = known(let->value)) bind(let->name, *v);
      value(let->value, times);
    } else if (const auto* role = op.get<Role>()) {
      groups_ = role->unit == RoleUnit::Groups ? static_cast<double>(*role->count) : 1;
      if (role->index) bind(role->index, 0);
      block(role->body, times * groups_);
    } else if (const auto* each = op.get<Each>()) {
      const double share = each->alternate ? times / groups_ : times;
      sampled(tiles_, [&](int64_t tile, double n) {
        bind(each->var, tile);
        block(each->body, share * n);
      });
    } else if (const auto* l = op.get<Loop>()) {
      const bool is_up = l->direction == Direction::Up;
      const int64_t from = known(is_up ? l->from : l->to).value_or(0);
      const int64_t to = known(is_up ? l->to : l->from).value_or(0) + (is_up ? 0 : 1);
      loop(l->body, l->var, from, to, times);
    } else if (const auto* u = op.get<Unroll>()) {
      for (const ir::Axis& a : u->axes) bind(a.name, 0);
      block(u->body, times * extent(u->axes));
    } else if (const auto* f = op.get<If>()) {
      if (known(f->condition).value_or(1) != 0) block(f->body, times);
    } else if (const auto* p = op.get<Points>()) {
      for (const ir::Axis& a : p->axes) bind(a.name, known(a.extent).value_or(0) / 2);
      // The grid has them all.
      block(p->body, times * extent(p->axes) / static_cast<double>(std::max<int64_t>(grid_, 1)));
    } else if (const auto* s = op.get<SharedLoop>()) {
      loop(s->body, s->var, 0, known(s->to).value_or(1), times);
    } else if (const auto* w = op.get<LaneLoop>()) {
      loop(w->body, w->var, 0, known(w->count).value_or(1), times);
    } else if (const auto* o = op.get<Sort>()) {
      const double elements = static_cast<double>(known(o->axes[0].extent).value_or(1));
      bind(o->axes[0].name, 0);
      value(o->key, times * elements);
      // Every step of sorting exchanges each of them.
      const double doublings = std::log2(std::max(elements, 2.0));
      out_.exchanged += times * elements * doublings * (doublings + 1) / 2;
      loop(o->body, o->place, 0, known(o->places).value_or(1), times);
    } else if (const auto* q = op.get<Search>()) {
      const double numbers = static_cast<double>(known(q->axes[0].extent).value_or(1));
      bind(q->axes[0].name, 0);
      value(q->condition, times * std::log2(std::max(numbers, 2.0)));
    } else {
      leaf(op, times);
    }
  }

  void leaf(const ir::Op& op, double times) {
    using namespace matile;
    if (const auto* fill = op.get<Fill>()) {
      out_.waits += times;
      block(fill->body, times);
    } else if (const auto* copy = op.get<Copy>()) {
      out_.copied += times * bytes(copy->slot_tile);
    } else if (const auto* dot = op.get<Dot>()) {
      const auto acc = types_.find(dot->acc);
      const double rows =
          acc == types_.end() ? 1 : static_cast<double>(known(acc->second.dims[0]).value_or(1));
      out_.products += times * rows * elements(dot->b);
    } else if (const auto* set = op.get<Set>()) {
      value(set->value, times * elements(set->target));
    } else if (const auto* fold = op.get<Fold>()) {
      double n = elements(fold->target);
      expr::for_each(fold->value, [&](Expr e) {
        if (e.op() == EK::Reduce) n *= reduced(e);
      });
      value(fold->value, times * n);
    } else if (const auto* load = op.get<Load>()) {
      out_.loaded += times * bytes(load->target);
      value(load->condition, times);
    } else if (const auto* store = op.get<Store>()) {
      out_.copied += times * bytes(store->tile);
      out_.stored += times * bytes(store->tile);
    } else if (const auto* put = op.get<Put>()) {
      const double n = times * extent(put->axes);
      out_.stored += n * expr::bytes(put->value.dtype());
      value(put->value, n);
    } else if (const auto* write = op.get<Write>()) {
      out_.stored += times * expr::bytes(write->value.dtype());
      value(write->value, times);
    } else if (const auto* scatter = op.get<Scatter>()) {
      out_.stored += times * expr::bytes(scatter->value.dtype());
      value(scatter->value, times);
    } else if (const auto* v = op.get<Value>()) {
      value(v->init, times);
    } else if (const auto* assign = op.get<Assign>()) {
      value(assign->value, times);
    } else if (const auto* take = op.get<Take>()) {
      out_.operations += times * elements(take->tile);
    } else if (const auto* lanes = op.get<Lanes>()) {
      out_.exchanged += times * elements(lanes->tile);
    } else if (const auto* warps = op.get<Warps>()) {
      out_.exchanged += times * elements(warps->tile);
      out_.waits += times;
    } else if (const auto* groups = op.get<Groups>()) {
      out_.exchanged += times * elements(groups->tile);
      out_.waits += times;
    } else if (const auto* ctas = op.get<Ctas>()) {
      out_.exchanged += times * elements(ctas->tile);
      out_.waits += times;
    } else if (op.is<Get>() || op.is<Wait>() || op.is<Enter>() || op.is<Ticket>()) {
      out_.waits += times;
    }
  }

  // Elements that a reduction walks over for each of its results.
  double reduced(Expr reduce) const {
    double n = 1;
    for (size_t k = 0; k < reduce.axis_count(); ++k)
      n *= static_cast<double>(known(reduce.extent(k)).value_or(1));
    return n;
  }

  const matile::Kernel& kernel_;
  ir::Environment env_;
  int64_t grid_;
  int64_t cta_ = 0;
  int64_t tiles_ = 0;
  bool has_tiles_ = false;
  double groups_ = 1;
  std::unordered_map<ir::Name, ir::TensorType> types_;
  KernelWork out_;
};

}  // namespace

KernelWork work_of(const matile::Kernel& kernel, const ir::Environment& env, int64_t grid) {
  return Counter(kernel, env, grid).count();
}

}  // namespace nautilus::tune
