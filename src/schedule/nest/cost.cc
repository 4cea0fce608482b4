// SPDX-License-Identifier: Apache-2.0
#include "schedule/nest/cost.h"

#include <algorithm>
#include <cmath>

#include "estimate/registers.h"
#include "expr/bounds/affine.h"
#include "ir/walk.h"
#include "target/target.h"

namespace nautilus::schedule {
namespace {

using expr::Op;
using scalar::For;
using scalar::LoopKind;

constexpr int64_t kHalfBytes = 2;  // of an operand of products
constexpr int64_t kFarStep = int64_t{1} << 30;
constexpr int64_t kLiveOneOf = 2;  // steps that data leaves: one of so many, a guess

// Walks a scheduled nest and adds up what one step, and one tile, asks of each unit.
class Counter {
 public:
  Counter(const BuiltKernel& built, const WholeNest& whole, const ir::Program& program,
          const Target& target, expr::ExprPool& pool)
      : target_(target),
        threads_(target.limits.group_threads),
        pool_(pool),
        row_tile_(whole.row_tile) {
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
    finish();
  }

  NestCost take() { return std::move(cost_); }

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

  // Data that bounds the steps is not known when kernels are chosen: they are taken to be as many
  // as the rest of the bound leaves.
  void assume(Expr bound, int64_t value, expr::Substitution& assumed) {
    expr::for_each(bound, [&](Expr x) {
      if (x.op() != Op::Read) return;
      const Expr n = pool_.integer(value);
      assumed.emplace(x, x.dtype() == expr::DType::I64 ? n : pool_.cast(x.dtype(), n));
    });
  }

  // Of those steps so many are taken to be live.
  Expr live_part(Expr steps) {
    const int64_t n = kLiveOneOf;
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
        if (is_result) results_ = std::max(results_, extent(axes));
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
    const bool is_product = axes.size() == 2 && u.reducer == expr::Reducer::Sum &&
                            u.value.op() == Op::Mul && reduced.size() == 1;
    if (is_product) {
      const double products = extent(all);
      (is_step ? matrix_ : matrix_once_) += products / target_.costs.products_per_cycle;
      if (is_step) hold(extent(axes), expr::bytes(expr::DType::F32));
      operand(u.value, all, is_step);
      return;
    }
    const bool is_extreme = u.reducer == expr::Reducer::Max || u.reducer == expr::Reducer::Min;
    values(u.value, all, extent(all), is_step);
    add(extent(all), is_extreme ? extreme_slots() : 1, all.size(), is_step);
  }

  // Groups that share the matrix unit do not look for the extreme value in most steps
  // (matile/passes/branches/speculate.h).
  double extreme_slots() const {
    return cost_.warp_groups >= target_.tiles.speculating_groups ? target_.costs.speculated_slots
                                                                 : target_.costs.extreme_slots;
  }

  // Operands of a product: what is copied, and what the matrix unit reads from shared memory.
  void operand(Expr value, const ir::Axes& axes, bool is_step) {
    expr::for_each(value, [&](Expr e) {
      if (e.op() != Op::Read) return;
      double elements = 1;
      for (const ir::Axis& a : axes) {
        if (depends_on(e, pool_.index(a.name))) elements *= static_cast<double>(a.extent.integer());
      }
      if (locals_.contains(e.name())) {
        // The rounded copy of a computed operand.
        add(elements, target_.costs.cast_slots, 2, is_step);
        if (is_step) hold(elements, kHalfBytes);
        return;
      }
      const double bytes = elements * expr::bytes(e.dtype());
      if (!is_step || (loop_var_ && !depends_on(e, loop_var_))) {
        if (is_step) read_ += bytes;
        return;
      }
      const bool is_own = group_var_ && depends_on(e, group_var_);
      const bool is_shared = cost_.cluster > 1 && row_tile_ && !depends_on(e, row_tile_);
      read_ += bytes;
      // Groups with rows of their own have copies of their own; a cluster loads a part each.
      copied_ += bytes * (is_own ? static_cast<double>(cost_.warp_groups) : 1);
      moved_ += bytes * (is_own      ? static_cast<double>(cost_.warp_groups)
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

  // Issue slots of an expression for one element. What does not depend on the last axis is
  // computed once per row; a product under a sum is part of it.
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
        // Where a mask lies is known for whole steps: those without it skip it.
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
  // operands are (lower/tiles/tile_takes.cc), others are read one by one.
  double read_slots(Expr e, const ir::Axes& axes, bool is_step) {
    const CopiedRead copied = copied_read(e, axes, target_, pool_);
    if (copied == CopiedRead::No) return target_.costs.load_slots;
    const bool is_box = copied == CopiedRead::Box;
    // What several statements of a step read is copied once.
    if (is_step && copied_reads_.insert(e).second) {
      const int64_t columns = axes[1].extent.integer();
      const int64_t panel = target_.copies.panel_columns();
      const int64_t line = panel * expr::bytes(e.dtype());
      if (is_box) {
        const int64_t panels = (columns + panel - 1) / panel;
        const auto rows = static_cast<double>(axes[0].extent.integer());
        const double taken = rows * static_cast<double>(columns);
        read_ += taken * expr::bytes(e.dtype());
        hold(taken, expr::bytes(e.dtype()));
        copied_ += rows * static_cast<double>(panels * line * cost_.warp_groups);
        moved_ += rows * static_cast<double>(panels * line * cost_.warp_groups);
      } else {
        copied_ += static_cast<double>(columns * expr::bytes(e.dtype()));
        moved_ += static_cast<double>(columns * expr::bytes(e.dtype()));
      }
    }
    return is_box ? target_.costs.take_slots : target_.costs.line_slots;
  }

  double slots_of(Expr e, const ir::Axes& axes) const {
    switch (e.op()) {
      case Op::Exp:
      case Op::Exp2:
      case Op::Log:
      case Op::Log2:
      case Op::Sqrt:
      case Op::Rsqrt:
      case Op::Div:
        return target_.costs.special_slots;
      case Op::Sin:
      case Op::Cos:
        return 3 * target_.costs.special_slots;
      case Op::Pow:
        return 8 * target_.costs.special_slots;
      case Op::Tanh:
      case Op::Sigmoid:
        return 2 * target_.costs.special_slots;
      case Op::Erf:
        return 3 * target_.costs.special_slots;
      case Op::Max:
      case Op::Min:
        return target_.costs.extreme_slots;
      case Op::Select:
        return is_known_by_steps(e[0], axes) ? 0 : 2;
      case Op::Cast:
        return target_.costs.cast_slots;
      case Op::Var:
      case Op::IntConst:
      case Op::FloatConst:
      case Op::BoolConst:
        return 0;
      default:
        return 1;
    }
  }

  void add(double elements, double slots, size_t rank, bool is_step) {
    // A value per row lies in four lanes: every thread has two. Those of a step are in row_slots.
    if (rank < 2 && is_step) return;
    const double per_thread = rank > 1 ? elements / threads_ : 2;
    (is_step ? vector_ : vector_once_) += per_thread * slots;
  }

  // Threads hold their share of one more tile of a step.
  void hold(double elements, int64_t element_bytes) {
    tile_registers_ +=
        estimate::tile_registers(static_cast<int64_t>(elements), element_bytes, target_.limits);
  }

  static bool depends_on(Expr e, Expr var) { return expr::depends_on(e, var); }

  void finish() {
    // Tiles on one multiprocessor take a step each.
    const int64_t all_groups = cost_.warp_groups * cost_.resident;
    const auto groups = static_cast<double>(all_groups);
    const auto tiles = static_cast<double>(cost_.resident);
    const bool is_alone = vector_ == 0;
    cost_.is_alternating = is_alone && cost_.warp_groups == 1;
    const size_t g = static_cast<size_t>(std::clamp<int64_t>(all_groups, 1, 4));
    StepFloors& f = cost_.floors;
    f.matrix = groups *
               (is_alone ? matrix_ * target_.costs.alone_factor
                         : matrix_ * target_.costs.mixed_factor[g] + target_.costs.turn_cycles[g]);
    f.vector =
        is_alone ? 0 : groups * (vector_ * target_.costs.group_factor[g] + target_.costs.row_slots);
    f.shared = (groups * read_ + tiles * copied_) / target_.costs.shared_bytes_per_cycle;
    f.copy = tiles * moved_ / target_.costs.copy_bytes_per_cycle;
    f.copy_unaligned = f.copy * target_.costs.unaligned_factor;
    const double p = target_.costs.hiding[g];
    const double work =
        is_alone ? f.matrix : std::pow(std::pow(f.matrix, p) + std::pow(f.vector, p), 1 / p);
    // CTAs that share a multiprocessor are counted as one with all their groups.
    const int64_t budget =
        estimate::compute_registers({.groups = static_cast<int64_t>(g)}, target_);
    const double missing =
        static_cast<double>(tile_registers_ - budget) + target_.costs.other_registers;
    const double spills =
        is_alone ? 0 : groups * std::max(0.0, missing) * target_.costs.spill_cycles;
    const double least = std::max({work + spills, f.shared, target_.costs.step_floor});
    const double together = cost_.cluster > 1 ? target_.costs.cluster_factor : 1;
    cost_.step = std::max(least, f.copy) * together;
    cost_.step_unaligned = std::max(least, f.copy_unaligned) * together;
    const double after = groups * vector_once_;
    if (is_alone) {
      const double results = results_ * groups / (128.0 * 128.0);
      const double epilogue = target_.costs.epilogue_cycles * results + after;
      if (cost_.is_alternating) {
        // The other group's products run meanwhile; of the last tile nothing hides.
        cost_.kernel_once = epilogue + target_.costs.start_cycles;
      } else {
        cost_.once = epilogue;
        cost_.kernel_once = target_.costs.start_cycles;
      }
    } else {
      cost_.once = target_.costs.tile_cycles + target_.costs.tile_steps * cost_.step + after;
    }
    cost_.once += groups * matrix_once_;
  }

  const Target& target_;
  double threads_;  // of a group
  expr::ExprPool& pool_;
  std::unordered_set<ir::Name> locals_;
  std::unordered_map<ir::Name, ir::TensorType> tensors_;
  Expr row_tile_;
  Expr group_var_;
  Expr loop_var_;
  double matrix_ = 0;       // cycles of one group and step
  double matrix_once_ = 0;  // of one group and tile
  double vector_ = 0;       // slots of a warp of one group and step
  double vector_once_ = 0;
  double read_ = 0;    // bytes of operands in shared memory, of one group and step
  double copied_ = 0;  // bytes written to shared memory in a step
  double moved_ = 0;   // bytes asked of the second-level cache
  double results_ = 0;
  int64_t tile_registers_ = 0;  // of a thread, in the tiles of a step
  bool is_coarse_ = false;      // functions of the program
  std::unordered_set<Expr> copied_reads_;
  NestCost cost_;
};

// The factor of a variable that stands in an index linearly; nothing if it stands otherwise.
std::optional<int64_t> factor_in(Expr index, Expr var) {
  if (!expr::depends_on(index, var)) return 0;
  const auto poly = expr::Poly::of(index);
  const auto parts = poly ? poly->split(var) : std::nullopt;
  return parts ? parts->first.constant() : std::nullopt;
}

int64_t rounded(double x) { return std::max<int64_t>(1, std::llround(x)); }

}  // namespace

CopiedRead copied_read(Expr read, const ir::Axes& axes, const Target& target,
                       expr::ExprPool& pool) {
  const bool is_held = expr::is_float(read.dtype()) &&
                       (expr::bytes(read.dtype()) == 2 || expr::bytes(read.dtype()) == 4);
  if (axes.size() != 2 || !is_held || read.args().empty()) return CopiedRead::No;
  const Expr row = pool.index(axes[0].name);
  const Expr column = pool.index(axes[1].name);
  const size_t last = read.args().size() - 1;
  int rows = 0;
  for (size_t k = 0; k <= last; ++k) {
    if (!expr::tensors_read(read[k]).empty()) return CopiedRead::No;
    const auto along_row = factor_in(read[k], row);
    const auto along_column = factor_in(read[k], column);
    if (!along_row || along_column != (k == last ? 1 : 0)) return CopiedRead::No;
    if (*along_row == 0) continue;
    if (*along_row != 1 || k == last) return CopiedRead::No;
    ++rows;
  }
  if (rows > 1) return CopiedRead::No;
  const int64_t columns = axes[1].extent.integer();
  const int64_t panel = target.copies.panel_columns();
  const int64_t panels = (columns + panel - 1) / panel * panel;
  if (rows == 0) return CopiedRead::RowPiece;
  return columns % target.matrix.depth == 0 && 2 * columns > panels ? CopiedRead::Box
                                                                    : CopiedRead::No;
}

NestCost cost_of(const BuiltKernel& built, const WholeNest& whole, const ir::Program& program,
                 const Target& target, expr::ExprPool& pool) {
  return Counter(built, whole, program, target, pool).take();
}

Expr cycles_of(const NestCost& cost, const Target& target, expr::ExprPool& pool) {
  const auto bin = [&](Op op, Expr a, Expr b) { return pool.binary(op, a, b); };
  const auto num = [&](int64_t n) { return pool.integer(n); };
  const auto scaled = [&](Expr x, Expr n) { return n.is_int(1) ? x : bin(Op::Mul, x, n); };
  const auto ceil_div = [&](Expr x, int64_t n) {
    return n == 1 ? x : bin(Op::FloorDiv, bin(Op::Add, x, num(n - 1)), num(n));
  };
  Expr tiles = num(1);
  expr::Substitution first;
  expr::Substitution middle;
  expr::Substitution last;
  bool is_growing = false;
  for (const ir::Axis& a : cost.grid) {
    const Expr var = pool.index(a.name);
    const Expr n = var == cost.row_tile ? ceil_div(a.extent, cost.cluster) : a.extent;
    tiles = tiles.is_int(1) ? n : bin(Op::Mul, tiles, n);
    if (!cost.steps || !expr::depends_on(cost.steps, var)) continue;
    is_growing = true;
    const Expr end = bin(Op::Sub, a.extent, num(1));
    first.emplace(var, num(0));
    middle.emplace(var, bin(Op::FloorDiv, end, num(2)));
    last.emplace(var, end);
  }
  Expr step = num(rounded(cost.step));
  if (!cost.ragged.empty() && cost.step_unaligned > cost.step) {
    Expr ragged;
    for (Expr r : cost.ragged) ragged = ragged ? bin(Op::Or, ragged, r) : r;
    step = pool.select(ragged, num(rounded(cost.step_unaligned)), step);
  }
  const Expr once = num(rounded(cost.once));
  const auto tile = [&](Expr steps) { return bin(Op::Add, scaled(steps, step), once); };
  const int64_t units = target.board.sms / cost.cluster * cost.resident;
  const Expr steps = cost.steps ? cost.steps : num(1);
  Expr all;
  if (!is_growing) {
    all = bin(Op::Mul, ceil_div(tiles, units), tile(steps));
  } else {
    const auto at = [&](const expr::Substitution& s) { return expr::substitute(pool, steps, s); };
    const Expr longest = tile(bin(Op::Max, at(first), at(last)));
    const Expr fetch = num(rounded(target.costs.dynamic_cycles));
    const Expr mean = bin(Op::Add, tile(at(middle)), fetch);
    const Expr spread = bin(Op::Add, bin(Op::FloorDiv, bin(Op::Mul, tiles, mean), num(units)),
                            bin(Op::Add, once, num(rounded(cost.step))));
    all = bin(Op::Max, longest, spread);
  }
  return cost.kernel_once > 0 ? bin(Op::Add, all, num(rounded(cost.kernel_once))) : all;
}

}  // namespace nautilus::schedule
