// SPDX-License-Identifier: Apache-2.0
#include "schedule/nest/nest_work.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "algebra/contraction.h"
#include "algebra/op_slots.h"
#include "estimate/registers.h"
#include "ir/operand_width.h"
#include "ir/walk.h"
#include "schedule/nest/copied_read.h"
#include "target/target.h"

namespace nautilus::schedule {
namespace {

using expr::Op;
using scalar::For;
using scalar::LoopKind;

constexpr expr::DType kComputed = expr::DType::BF16;  // of an operand that the kernel computes
constexpr int64_t kFarStep = int64_t{1} << 30;

// Walks a scheduled nest and adds up what one step, and one tile, asks of each unit.
class Counter {
 public:
  Counter(const BuiltKernel& built, const WholeNest& whole, const ir::Program& program,
          const Target& target, expr::ExprPool& pool, NestCost& cost)
      : target_(target),
        threads_(target.limits.group_threads),
        pool_(pool),
        row_tile_(whole.row_tile),
        cost_(cost) {
    for (const scalar::Buffer& b : built.locals) locals_.insert(b.name);
    std::vector<expr::DType> outputs;
    for (const ir::Op& op : program.body) {
      const auto* b = op.get<scalar::Buffer>();
      if (!b) continue;
      tensors_.emplace(b->name, b->type);
      if (b->role == scalar::Role::Output) outputs.push_back(b->type.dtype);
    }
    is_coarse_ = ir::allows_coarse_functions(program, outputs);
    const auto& grid = built.nests[whole.nest].as<For>();
    cost_.grid = grid.axes;
    if (whole.is_once) cost_.grid.erase(cost_.grid.begin());
    cost_.cluster = whole.sizes.cluster;
    cost_.resident = whole.sizes.resident;
    cost_.row_tile = row_tile_;
    const ir::Block* body = &grid.body;
    if (const auto* g = (*body)[0].get<For>(); g && g->kind == LoopKind::Group) {
      group_var_ = pool_.index(g->axes[0].name);
      cost_.warp_groups = g->axes[0].extent.integer();
      body = &g->body;
    }
    block(*body, false);
  }

  NestWork work() const { return work_; }

 private:
  void block(const ir::Block& ops, bool is_step) {
    for (const ir::Op& op : ops) {
      if (const auto* l = op.get<scalar::Loop>()) {
        loop_var_ = pool_.index(l->var);
        const bool is_up = l->direction == scalar::Direction::Up;
        const Expr low = is_up ? l->from : l->to;
        const Expr high = is_up ? l->to : l->from;
        expr::Substitution assumed;
        assume(low, 0, assumed);
        assume(high, kFarStep, assumed);
        const Expr first = expr::substitute(pool_, low, assumed);
        const Expr last = expr::substitute(pool_, high, assumed);
        Expr n = first.is_int(0) ? last : pool_.binary(Op::Sub, last, first);
        if (!is_up) n = pool_.binary(Op::Add, n, pool_.integer(1));
        if (!assumed.empty()) n = live_part(n);
        if (group_var_)
          n = expr::substitute(pool_, n, {{group_var_, pool_.integer(cost_.warp_groups - 1)}});
        cost_.steps = n;
        block(l->body, true);
      } else if (const auto* f = op.get<For>()) {
        tile(f->axes, f->body, is_step);
      }
    }
  }

  // Data that bounds the steps is not known when kernels are chosen: the rest of the bound gives
  // their assumed number.
  void assume(Expr bound, int64_t value, expr::Substitution& assumed) {
    expr::for_each(bound, [&](Expr x) {
      if (x.op() != Op::Read) return;
      const Expr n = pool_.integer(value);
      assumed.emplace(x, x.dtype() == expr::DType::I64 ? n : pool_.cast(x.dtype(), n));
    });
  }

  // The number of those steps that are assumed to be live.
  Expr live_part(Expr steps) {
    const int64_t n = target_.costs.live_one_of;
    return pool_.binary(Op::FloorDiv, pool_.binary(Op::Add, steps, pool_.integer(n - 1)),
                        pool_.integer(n));
  }

  static double extent(const ir::Axes& axes) {
    double n = 1;
    for (const ir::Axis& a : axes) n *= static_cast<double>(a.extent.integer());
    return n;
  }

  void tile(const ir::Axes& axes, const ir::Block& body, bool is_step) {
    for (const ir::Op& op : body) {
      if (const auto* s = op.get<scalar::Store>()) {
        if (is_step && is_rescaled(*s)) continue;
        values(s->value, axes, extent(axes), is_step);
        const bool is_result = !locals_.contains(s->target);
        if (is_result) work_.results = std::max(work_.results, extent(axes));
      } else if (const auto* i = op.get<scalar::If>()) {
        tile(axes, i->body, is_step);
      } else if (const auto* f = op.get<For>()) {
        for (const ir::Op& inner : f->body) {
          const auto* u = inner.get<scalar::Update>();
          if (u) reduction(*u, axes, f->axes, is_step);
        }
      }
    }
  }

  // x = x * factor[row]: done in the few steps in which a reference moves.
  bool is_rescaled(const scalar::Store& s) const {
    const Expr v = s.value;
    if (v.op() != Op::Mul || v[0].op() != Op::Read || v[0].name() != s.target) return false;
    return v[1].op() == Op::Read && locals_.contains(v[1].name()) &&
           v[1].args().size() < v[0].args().size();
  }

  void reduction(const scalar::Update& u, const ir::Axes& axes, const ir::Axes& reduced,
                 bool is_step) {
    ir::Axes all = axes;
    all.insert(all.end(), reduced.begin(), reduced.end());
    const std::vector<Expr> terms = algebra::terms(u.value);
    const bool is_product =
        axes.size() == 2 && u.reducer == expr::Reducer::Sum && reduced.size() == 1 &&
        std::all_of(terms.begin(), terms.end(), [](Expr e) { return e.op() == Op::Mul; });
    if (is_product) {
      std::unordered_set<Expr> copied;
      for (Expr term : terms) {
        (is_step ? work_.matrix : work_.matrix_once) +=
            extent(all) / (target_.costs.products_per_cycle * width_of(term).speed);
        operand(term, all, is_step, copied);
      }
      if (is_step) hold(extent(axes), expr::bytes(expr::DType::F32));
      // Some are added up by themselves first.
      const target::OperandWidth width = width_of(terms[0]);
      const bool has_integers = width.kind == target::OperandKind::Integer;
      const bool is_apart = (terms.size() > 1 && !has_integers) || width.apart_depth > 0;
      if (is_step && is_apart) {
        work_.is_waited_for = true;
        hold(extent(axes), expr::bytes(expr::DType::F32));
        add(extent(axes), 1, axes.size(), is_step);
      }
      return;
    }
    const bool is_extreme = u.reducer == expr::Reducer::Max || u.reducer == expr::Reducer::Min;
    values(u.value, all, extent(all), is_step);
    add(extent(all), is_extreme ? extreme_slots() : 1, all.size(), is_step);
  }

  // What the matrix unit does with operands like those of the product. Scales of steps are none.
  target::OperandWidth width_of(Expr product) const {
    std::optional<expr::DType> widest;
    expr::for_each(product, [&](Expr e) {
      if (e.op() != Op::Read) return;
      const expr::DType dtype = locals_.contains(e.name()) ? kComputed : e.dtype();
      if (!expr::is_operand(dtype)) return;
      if (!widest || expr::bytes(dtype) > expr::bytes(*widest)) widest = dtype;
    });
    const target::OperandWidth* width =
        ir::operand_width(target_.matrix, widest.value_or(kComputed));
    return width ? *width : *ir::operand_width(target_.matrix, kComputed);
  }

  // Groups that share the matrix unit do not look for the extreme value in most steps
  // (matile/passes/branches/speculate.h).
  double extreme_slots() const {
    return cost_.warp_groups >= target_.tiles.speculating_groups ? target_.costs.speculated_slots
                                                                 : target_.costs.extreme_slots;
  }

  // Operands of a product: what is copied, once for all products of a statement, and what the
  // matrix unit reads from shared memory.
  void operand(Expr value, const ir::Axes& axes, bool is_step, std::unordered_set<Expr>& copied) {
    expr::for_each(value, [&](Expr e) {
      if (e.op() != Op::Read) return;
      double elements = 1;
      for (const ir::Axis& a : axes) {
        if (depends_on(e, pool_.index(a.name))) elements *= static_cast<double>(a.extent.integer());
      }
      if (locals_.contains(e.name())) {
        // The rounded copy of a computed operand.
        add(elements, target_.costs.cast_slots, 2, is_step);
        if (is_step) hold(elements, expr::bytes(kComputed));
        return;
      }
      const double bytes = elements * expr::bytes(e.dtype());
      if (!is_step || (loop_var_ && !depends_on(e, loop_var_))) {
        if (is_step) work_.read += bytes;
        return;
      }
      const bool is_own = group_var_ && depends_on(e, group_var_);
      const bool is_shared = cost_.cluster > 1 && row_tile_ && !depends_on(e, row_tile_);
      work_.read += bytes;
      if (!copied.insert(e).second) return;
      // Groups with rows of their own have copies of their own; a cluster loads a part each.
      work_.copied += bytes * (is_own ? static_cast<double>(cost_.warp_groups) : 1);
      work_.moved += bytes * (is_own      ? static_cast<double>(cost_.warp_groups)
                              : is_shared ? 1 / static_cast<double>(cost_.cluster)
                                          : 1);
      note_pitch(e);
    });
  }

  void note_pitch(Expr read) {
    const auto it = tensors_.find(read.name());
    if (it == tensors_.end() || it->second.dims.empty()) return;
    const Expr pitch = it->second.dims.back();
    const int64_t line = target_.memory.line_bytes / expr::bytes(read.dtype());
    if (pitch.op() == Op::IntConst && pitch.integer() % line == 0) return;
    const Expr ragged =
        pool_.binary(Op::Ne, pool_.binary(Op::Mod, pitch, pool_.integer(line)), pool_.integer(0));
    if (std::find(cost_.ragged.begin(), cost_.ragged.end(), ragged) == cost_.ragged.end())
      cost_.ragged.push_back(ragged);
  }

  // Issue slots of an expression for one element. Values that do not depend on the last axis are
  // computed once per row; a product under a sum belongs to the sum.
  void values(Expr value, const ir::Axes& axes, double elements, bool is_step) {
    const Expr column = axes.empty() ? Expr() : pool_.index(axes.back().name);
    double slots = 0;
    double instructions = 0;
    std::unordered_map<Expr, bool> is_fused;
    std::unordered_set<Expr> seen;
    auto go = [&](auto& self, Expr e) -> void {
      if (!seen.insert(e).second || (column && !depends_on(e, column))) return;
      if (e.op() == Op::Read) {
        if (!locals_.contains(e.name())) slots += read_slots(e, axes, is_step);
        return;
      }
      if (e.op() == Op::Add || e.op() == Op::Sub) {
        for (Expr a : e.args()) {
          if (a.op() == Op::Mul) is_fused[a] = true;
        }
      }
      instructions += instructions_of(e);
      slots += slots_of(e, axes) - (is_fused.contains(e) ? 1 : 0);
      for (Expr a : e.args()) {
        // Whether a mask applies is known for whole steps: steps without it skip it.
        if (e.op() == Op::Select && a == e[0] && is_known_by_steps(a, axes)) continue;
        self(self, a);
      }
    };
    go(go, value);
    add(elements, slots, axes.size(), is_step);
    if (is_step && axes.size() > 1) cost_.code += elements / threads_ * instructions;
  }

  double instructions_of(Expr e) const {
    const target::FunctionCode& code = target_.costs.code;
    switch (e.op()) {
      case Op::Sin:
      case Op::Cos:
        return code.sine;
      case Op::Pow:
        return code.power;
      case Op::Log:
      case Op::Log2:
        return is_coarse_ ? code.coarse_logarithm : code.logarithm;
      case Op::Log1p:
      case Op::Expm1:
        return code.logarithm;
      case Op::Erf:
        return is_coarse_ ? code.coarse_error_function : code.error_function;
      case Op::Tanh:
        return is_coarse_ ? code.coarse_hyperbolic_tangent : code.hyperbolic_tangent;
      case Op::Sigmoid:
        return code.sigmoid;
      case Op::Var:
      case Op::IntConst:
      case Op::FloatConst:
      case Op::BoolConst:
        return 0;
      default:
        return 1;
    }
  }

  // Whether most steps have a loop without the condition: positions alone, or `full or mask` with
  // steps that are known to be full.
  bool is_known_by_steps(Expr c, const ir::Axes& axes) const {
    if (expr::tensors_read(c).empty()) return true;
    if (c.op() == Op::And) return is_known_by_steps(c[0], axes) && is_known_by_steps(c[1], axes);
    const auto is_of_step = [&](Expr e) {
      return std::none_of(axes.begin(), axes.end(),
                          [&](const ir::Axis& a) { return depends_on(e, pool_.index(a.name)); });
    };
    return c.op() == Op::Or && (is_of_step(c[0]) || is_of_step(c[1]));
  }

  // Slots of one element of a tensor. Boxes and pieces of rows are copied to shared memory as
  // operands are (lower/tiles/tile_takes.h), others are read one by one.
  double read_slots(Expr e, const ir::Axes& axes, bool is_step) {
    const CopiedRead copied = copied_read(e, axes, target_, pool_);
    if (copied == CopiedRead::No) return target_.costs.load_slots;
    const bool is_box = copied == CopiedRead::Box;
    // An operand that several statements of a step read is copied once.
    if (is_step && copied_reads_.insert(e).second) {
      const int64_t columns = axes[1].extent.integer();
      const int64_t panel = target_.copies.panel_columns();
      const int64_t line = panel * expr::bytes(e.dtype());
      if (is_box) {
        const int64_t panels = (columns + panel - 1) / panel;
        const auto rows = static_cast<double>(axes[0].extent.integer());
        const double taken = rows * static_cast<double>(columns);
        work_.read += taken * expr::bytes(e.dtype());
        hold(taken, expr::bytes(e.dtype()));
        work_.copied += rows * static_cast<double>(panels * line * cost_.warp_groups);
        work_.moved += rows * static_cast<double>(panels * line * cost_.warp_groups);
      } else {
        work_.copied += static_cast<double>(columns * expr::bytes(e.dtype()));
        work_.moved += static_cast<double>(columns * expr::bytes(e.dtype()));
      }
    }
    return is_box ? target_.costs.take_slots : target_.costs.line_slots;
  }

  double slots_of(Expr e, const ir::Axes& axes) const {
    if (e.op() == Op::Select) return is_known_by_steps(e[0], axes) ? 0 : target_.costs.select_slots;
    return algebra::op_slots(e.op(), target_.costs);
  }

  void add(double elements, double slots, size_t rank, bool is_step) {
    // Four lanes hold a value per row: every thread has two values. Those of a step are in
    // row_slots.
    if (rank < 2 && is_step) return;
    const double per_thread = rank > 1 ? elements / threads_ : 2;
    (is_step ? work_.vector : work_.vector_once) += per_thread * slots;
  }

  // Threads hold their share of one more tile of a step.
  void hold(double elements, int64_t element_bytes) {
    work_.tile_registers +=
        estimate::tile_registers(static_cast<int64_t>(elements), element_bytes, target_.limits);
  }

  static bool depends_on(Expr e, Expr var) { return expr::depends_on(e, var); }

  const Target& target_;
  double threads_;  // of a group
  expr::ExprPool& pool_;
  std::unordered_set<ir::Name> locals_;
  std::unordered_map<ir::Name, ir::TensorType> tensors_;
  Expr row_tile_;
  Expr group_var_;
  Expr loop_var_;
  bool is_coarse_ = false;  // functions of the program
  std::unordered_set<Expr> copied_reads_;
  NestCost& cost_;
  NestWork work_;
};

}  // namespace

NestWork count_work(const BuiltKernel& built, const WholeNest& whole, const ir::Program& program,
                    const Target& target, expr::ExprPool& pool, NestCost& cost) {
  return Counter(built, whole, program, target, pool, cost).work();
}

}  // namespace nautilus::schedule
