// SPDX-License-Identifier: Apache-2.0
#include "schedule/build.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "expr/affine.h"
#include "expr/print.h"
#include "expr/quotient.h"
#include "expr/scalar_ops.h"
#include "schedule/dot.h"
#include "schedule/stream_range.h"

namespace nautilus::schedule {
namespace {

using expr::DType;
using expr::Op;
using scalar::For;
using scalar::LoopKind;

enum class Phase : uint8_t { Before, Loop, After };
// Inline members have no tile of their own: their readers compute them.
enum class Place : uint8_t { Inline, Before, Loop, Rolled };

const std::vector<RangeGuard> kNoGuards;

struct Local {
  ir::Name name;
  std::vector<Expr> axes;
};

class NestBuilder {
 public:
  NestBuilder(const Group& group, const Sizes& sizes, const std::set<int>& stored,
              const ir::Program& program, const algebra::Signs& signs, expr::ExprPool& pool,
              Names& names, const SplitSizes* split)
      : group_(with_guarded_references(group, pool)),
        sizes_(sizes),
        stored_(stored),
        program_(program),
        signs_(signs),
        pool_(pool),
        names_(names),
        tiling_(group_, sizes, pool, names),
        split_(split),
        facts_(ir::facts_of(program, pool)),
        inputs_(scalar::buffers(program, scalar::Role::Input)) {
    for (const ir::Op& op : program.body) {
      if (const auto* b = op.get<scalar::Buffer>()) types_.emplace(b->name.str(), b->type);
    }
  }

  // `once`: an axis around the kernel, or none.
  BuiltKernel run(const ir::Axes& once) {
    find_needed();
    for (size_t k = 0; k < members().size(); ++k) place(k);
    choose_guards();
    if (tiling_.has_loop())
      range_ = step_range(group_, rolled_, tiling_, program_, signs_, pool_, names_);
    if (split_ && tiling_.has_loop()) range_ = part_of(range_);
    ir::Block body;
    for (size_t k = 0; k < members().size(); ++k) before(k, body);
    loop(body);
    if (split_) {
      for (size_t k : rolled_) store_part(k, body);
    }
    for (size_t k = 0; k < members().size(); ++k) {
      if (!stored_.contains(member(k).statement)) continue;
      if (!split_ || is_before(k)) after(k, body);
    }
    if (tiling_.group_var()) {
      For groups{{{tiling_.group_var().name(), pool_.integer(sizes_.groups)}},
                 LoopKind::Group,
                 std::move(body)};
      body.clear();
      body.push_back(ir::make(std::move(groups)));
    }
    For grid{once, LoopKind::Grid, std::move(body)};
    for (Expr a : tiling_.order()) {
      const TileAxis& t = tiling_.at(a);
      if (t.kind == AxisKind::Batch) grid.axes.push_back({a.name(), t.extent});
    }
    for (const AxisKind kind : {AxisKind::Row, AxisKind::Cut}) {
      for (Expr a : tiling_.order()) {
        const TileAxis& t = tiling_.at(a);
        if (t.kind == kind) grid.axes.push_back({t.tile.name(), tile_count(group_, t, pool_)});
      }
    }
    if (split_) grid.axes.push_back({split_->part.name(), split_->split});
    if (sizes_.cluster > 1) grid.cluster = sizes_.cluster;
    if (sizes_.resident > 1) grid.resident = sizes_.resident;
    if (split_ && split_->combines_last) grid.combine = scalar::Combine::Last;
    BuiltKernel out{{},
                    std::move(locals_),
                    std::move(range_.live.buffers),
                    std::move(range_.live.statements),
                    {ir::make(std::move(grid))},
                    {},
                    std::move(notes_)};
    if (split_) {
      for (ir::Op& op : combined(out.locals)) out.nests.push_back(std::move(op));
    } else {
      out.wholes.push_back({0, sizes_, tiling_.at(group_.row).tile, !once.empty()});
    }
    return out;
  }
  const Tiling& tiling() const { return tiling_; }

 private:
  const std::vector<Member>& members() const { return group_.members; }
  const Member& member(size_t k) const { return group_.members[k]; }

  static bool is_extreme(const Member& m) {
    return is_float(m.dtype) &&
           (m.reducer == expr::Reducer::Max || m.reducer == expr::Reducer::Min);
  }
  static double identity(const Member& m) { return expr::identity(m.reducer, m.dtype).f; }

  // Members that stored ones need, each computed once: a member that equals an earlier one is
  // another name for it.
  void find_needed() {
    expr::Substitution same;
    for (size_t k = 0; k < members().size(); ++k) {
      Member& m = group_.members[k];
      m.value = expr::substitute(pool_, m.value, same);
      if (m.init) m.init = expr::substitute(pool_, m.init, same);
      alias_.push_back(k);
      for (size_t p = 0; p < k; ++p) {
        const Member& o = member(p);
        if (o.is_rolled == m.is_rolled && o.axes == m.axes && o.inner == m.inner &&
            o.dtype == m.dtype && (!m.is_reduction() || o.reducer == m.reducer) &&
            o.init == m.init && m.is_reduction() &&
            group_.inlined(pool_, o.value) == group_.inlined(pool_, m.value)) {
          alias_.back() = alias_[p];
          same.emplace(m.read, member(alias_[p]).read);
          break;
        }
      }
    }
    needed_.assign(members().size(), false);
    for (size_t k = 0; k < members().size(); ++k) {
      if (stored_.contains(member(k).statement)) need(alias_[k]);
    }
  }
  void need(size_t k) {
    if (needed_[k]) return;
    needed_[k] = true;
    auto visit = [&](Expr e) {
      if (const auto p = index_of(e)) need(*p);
    };
    expr::for_each(member(k).value, visit);
    if (member(k).init) expr::for_each(member(k).init, visit);
  }
  std::optional<size_t> index_of(Expr read) const {
    if (read.op() != Op::Read) return std::nullopt;
    for (size_t k = 0; k < members().size(); ++k) {
      if (member(k).read == read) return alias_[k];
    }
    return std::nullopt;
  }

  void place(size_t k) {
    const Member& m = member(k);
    places_.push_back(Place::Inline);
    local_.emplace_back();
    new_local_.emplace_back();
    if (!needed_[k]) return;
    const bool is_late = !m.is_reduction() && !m.has(group_.stream) && group_.depends_on_rolled(m);
    if (is_late || group_.tile_axes(m).empty()) return;
    if (m.is_rolled) {
      places_[k] = Place::Rolled;
      rolled_.push_back(k);
    } else {
      places_[k] = m.has(group_.stream) ? Place::Loop : Place::Before;
    }
    local_[k] = make_local(m.target.str(), m.dtype, tile_axes(m));
  }

  // Rows come first: the tile of an accumulator is [rows, columns].
  std::vector<Expr> tile_axes(const Member& m) const {
    std::vector<Expr> axes = group_.tile_axes(m);
    std::stable_partition(axes.begin(), axes.end(), [&](Expr a) { return a == group_.row; });
    return axes;
  }

  ir::Name fresh_buffer(std::string_view stem) {
    std::string name(stem);
    for (int n = 2; names_.variables.contains(name) || !names_.buffers.insert(name).second; ++n)
      name = fmt::format("{}_{}", stem, n);
    return pool_.name(name);
  }

  Local make_local(std::string_view stem, DType dtype, std::vector<Expr> axes) {
    scalar::Buffer b{fresh_buffer(stem), {dtype, {}}, scalar::Role::Local};
    for (Expr a : axes) b.type.dims.push_back(pool_.integer(lane_extent(a)));
    locals_.push_back(b);
    return {b.name, std::move(axes)};
  }

  int64_t lane_extent(Expr axis) const {
    const TileAxis& t = tiling_.at(axis);
    return t.kind == AxisKind::Row ? sizes_.rows : t.size;
  }

  Expr local_read(const Local& local, DType dtype) {
    return pool_.read(local.name, dtype, local.axes);
  }

  ir::Axes lanes(const std::vector<Expr>& axes) {
    ir::Axes out;
    for (Expr a : axes) out.push_back({a.name(), pool_.integer(lane_extent(a))});
    return out;
  }

  Expr both(Expr a, Expr b) { return !a ? b : !b ? a : pool_.binary(Op::And, a, b); }

  // The condition that a place of a tile lies inside of the axes an expression uses.
  Expr range_of(Expr e) {
    Expr condition;
    if (group_.row_block > 0) {
      const Expr block = pool_.binary(Op::FloorDiv, group_.row, group_.block_rows);
      e = expr::substitute(pool_, e, {{block, pool_.integer(0)}});
    }
    for (Expr a : tiling_.order()) {
      const TileAxis& t = tiling_.at(a);
      if (t.in_range && expr::depends_on(e, a)) condition = both(condition, in_tensor(e, t));
    }
    return condition;
  }

  // The condition for one axis: its own range, or that the tensor goes on. Rows and columns beyond
  // the range are never stored, so `X[i + r]` may read what lies there.
  Expr in_tensor(Expr e, const TileAxis& t) {
    const bool is_free = (t.kind == AxisKind::Row && group_.row_block == 0) ||
                         (t.kind == AxisKind::Cut && t.var != group_.stream);
    const auto type = e.op() == Op::Read ? types_.find(e.name().str()) : types_.end();
    if (!is_free || type == types_.end()) return t.in_range;
    Expr condition;
    for (size_t k = 0; k < e.args().size(); ++k) {
      if (!expr::depends_on(e[k], t.var)) continue;
      const auto p = expr::Poly::of(e[k]);
      const auto parts = p ? p->split(t.var) : std::nullopt;
      if (e[k] == t.var || condition || !parts || parts->first.constant() != 1) return t.in_range;
      condition = pool_.binary(Op::Lt, translated(e[k], Phase::Loop), type->second.dims[k]);
    }
    return condition ? condition : t.in_range;
  }

  // An expression of the group inside of the kernel.
  Expr translated(Expr e, Phase phase) {
    std::unordered_map<Expr, Expr> memo;
    return translated(e, phase, memo);
  }
  Expr translated(Expr e, Phase phase, std::unordered_map<Expr, Expr>& memo) {
    if (const auto it = memo.find(e); it != memo.end()) return it->second;
    const Expr result = new_translation(e, phase, memo);
    memo.emplace(e, result);
    return result;
  }
  Expr new_translation(Expr e, Phase phase, std::unordered_map<Expr, Expr>& memo) {
    if (const auto it = range_.instead.find(e); it != range_.instead.end())
      return instead_of(it->second, phase);
    switch (e.op()) {
      case Op::Var: {
        if (!group_.extents.contains(e)) return e;
        return tiling_.at(e).position;
      }
      case Op::Read: {
        if (const auto k = index_of(e)) return member_value(*k, phase, memo);
        const Expr condition = range_of(e);
        std::vector<Expr> indices;
        for (Expr i : e.args()) indices.push_back(translated(i, phase, memo));
        const Expr read = pool_.with_args(e, indices);
        return condition ? pool_.select(condition, read, pool_.constant(0, e.dtype())) : read;
      }
      default: {
        if (e.args().empty()) return e;
        // The number of a block of rows, and the place in it.
        const bool is_block = group_.row_block > 0 && e.args().size() == 2 && e[0] == group_.row &&
                              e[1] == group_.block_rows;
        if (is_block && e.op() == Op::FloorDiv) return tiling_.at(group_.row).tile;
        if (is_block && e.op() == Op::Mod) return group_.row;
        std::vector<Expr> args;
        for (Expr a : e.args()) args.push_back(translated(a, phase, memo));
        return pool_.with_args(e, args);
      }
    }
  }

  // What is written in the place of a part of a mask may contain that part.
  Expr instead_of(Expr other, Phase phase) {
    const expr::Substitution others = std::exchange(range_.instead, {});
    const Expr result = translated(other, phase);
    range_.instead = others;
    return result;
  }

  Expr member_value(size_t k, Phase phase, std::unordered_map<Expr, Expr>& memo) {
    const Member& m = member(k);
    if (places_[k] == Place::Inline) return translated(m.value, phase, memo);
    const bool is_new = phase == Phase::Loop && new_local_[k];
    return local_read(is_new ? *new_local_[k] : *local_[k], m.dtype);
  }

  void emit_store(ir::Block& out, const Local& local, Expr value) {
    For loop{lanes(local.axes), LoopKind::Map, {}};
    loop.body.push_back(ir::make(scalar::Store{local.name, local.axes, value}));
    out.push_back(ir::make(std::move(loop)));
  }

  // init, and / or a reduce loop with the update.
  void emit_reduction(ir::Block& out, const Local& local, Expr init, Expr axis,
                      expr::Reducer reducer, Expr value) {
    For loop{lanes(local.axes), LoopKind::Map, {}};
    if (init) loop.body.push_back(ir::make(scalar::Init{local.name, local.axes, init}));
    if (value) {
      For reduce{lanes({axis}), LoopKind::Reduce, {}};
      reduce.body.push_back(ir::make(scalar::Update{local.name, local.axes, reducer, value}));
      loop.body.push_back(ir::make(std::move(reduce)));
    }
    out.push_back(ir::make(std::move(loop)));
  }

  void choose_guards() {
    if (!tiling_.at(group_.stream).in_range) return;
    std::vector<size_t> candidates;
    for (size_t k = 0; k < members().size(); ++k) {
      if (places_[k] == Place::Loop) candidates.push_back(k);
    }
    for (size_t k : rolled_) {
      if (is_settled(k)) continue;
      const auto g = range_guard(group_, member(k), guards_, candidates, signs_, pool_);
      if (g) guards_.push_back(*g);
    }
    // Guards act on all that reads them; who is left guards its own terms.
    for (size_t k : rolled_) {
      if (!is_settled(k)) own_guard_.insert(k);
    }
  }

  // Whether a rolled reduction gets nothing from beyond the streamed extent as things stand.
  bool is_settled(size_t k) {
    return is_zero_filled(k, group_.stream) ||
           is_identity_beyond(group_, member(k), guards_, signs_, pool_);
  }

  // Whether the value depends on what other kernels computed.
  bool reads_results(Expr e) const {
    std::vector<Expr> todo = {e};
    std::set<const Member*> seen;
    while (!todo.empty()) {
      const Expr next = todo.back();
      todo.pop_back();
      bool found = false;
      expr::for_each(next, [&](Expr x) {
        if (x.op() != Op::Read) return;
        const Member* m = group_.find(x);
        if (!m) found |= !inputs_.contains(std::string(x.name().str()));
        if (m && seen.insert(m).second) todo.push_back(m->value);
      });
      if (found) return true;
    }
    return false;
  }

  // A contraction whose tensor operand reads as 0 beyond the axis, and whose other operand is
  // finite there. Results of reductions are, unless they are over nothing: the first step runs even
  // then.
  bool is_zero_filled(size_t k, Expr axis) {
    const Dot* d = group_.dot_of(k);
    if (!d || d->depth != axis) return false;
    const Expr any = pool_.binary(Op::Ge, group_.extents.at(axis), pool_.integer(1));
    const bool may_be_empty = facts_.prove(any) != expr::Truth::True;
    for (Expr f : d->a) {
      if (may_be_empty && reads_results(f)) return false;
      const Limit x =
          limit_beyond(group_, f, axis == group_.stream ? guards_ : kNoGuards, signs_, pool_);
      if (x != Limit::Finite && x != Limit::Zero) return false;
    }
    return true;
  }

  Expr number(double value, DType dtype) {
    if (is_float(dtype)) return pool_.floating(value, dtype);
    return pool_.constant(value, dtype);
  }
  Expr identity_of(const Member& m) {
    const expr::Value v = expr::identity(m.reducer, m.dtype);
    if (is_float(m.dtype)) return pool_.floating(v.f, m.dtype);
    return m.dtype == DType::Bool ? pool_.boolean(v.i != 0) : pool_.integer(v.i, m.dtype);
  }

  // The value a reduction adds for one place of a tile. A computed operand of a contraction gets a
  // tile of its own, in front.
  Expr term(size_t k, Expr axis, ir::Block& out, Phase phase) {
    const Member& m = member(k);
    const Expr in_range = tiling_.at(axis).in_range;
    const bool is_own =
        in_range && (axis == group_.stream ? own_guard_.contains(k) : !is_zero_filled(k, axis));
    const Dot* d = group_.dot_of(k);
    if (!d) {
      const Expr value = translated(m.value, phase);
      return is_own ? pool_.select(in_range, value, identity_of(m)) : value;
    }
    Expr a;
    for (Expr f : d->a) a = a ? pool_.binary(Op::Mul, a, f) : f;
    const bool is_member = d->a.size() == 1 && index_of(a) && local_[*index_of(a)];
    Expr operand = translated(a, phase);
    const auto storage = [](Expr f) { return f.op() == Op::Cast ? f[0].dtype() : f.dtype(); };
    const bool is_plain =
        is_member || (d->a.size() == 1 && is_half_read(a) && storage(a) == storage(d->b));
    if (!is_plain || (is_own && is_member)) {
      if (is_own) operand = pool_.select(in_range, operand, pool_.constant(0, operand.dtype()));
      const Local tile =
          make_local(fmt::format("{}.a", m.target.str()), operand.dtype(), {group_.row, axis});
      emit_store(out, tile, operand);
      operand = local_read(tile, operand.dtype());
    }
    return pool_.binary(Op::Mul, operand, translated(d->b, phase));
  }

  void before(size_t k, ir::Block& out) {
    const Member& m = member(k);
    if (places_[k] == Place::Before) tile(k, out, Phase::Before);
    if (places_[k] != Place::Rolled) return;
    // The initial element is taken once, where parts come together.
    const Expr init = split_ ? identity_of(m) : translated(m.init, Phase::Before);
    emit_reduction(out, *local_[k], init, {}, m.reducer, {});
  }

  // An element-wise tile or an inner reduction.
  void tile(size_t k, ir::Block& out, Phase phase) {
    const Member& m = member(k);
    const auto guard = std::find_if(guards_.begin(), guards_.end(),
                                    [&](const RangeGuard& g) { return g.member == k; });
    const bool is_guarded = guard != guards_.end();
    const Expr in_range = tiling_.at(group_.stream).in_range;
    if (!m.inner.empty()) {
      const Expr value = term(k, m.inner[0], out, phase);
      emit_reduction(out, *local_[k], translated(m.init, phase), m.inner[0], m.reducer, value);
      if (!is_guarded) return;
      const Local inside =
          make_local(fmt::format("{}.in", m.target.str()), m.dtype, local_[k]->axes);
      emit_store(
          out, inside,
          pool_.select(in_range, local_read(*local_[k], m.dtype), number(guard->value, m.dtype)));
      local_[k] = inside;
      return;
    }
    Expr value = translated(m.value, phase);
    if (is_guarded) {
      const bool is_select = value.op() == Op::Select && m.value.op() == Op::Select &&
                             value[2].op() == Op::FloatConst && value[2].number() == guard->value;
      value = is_select ? pool_.select(both(value[0], in_range), value[1], value[2])
                        : pool_.select(in_range, value, number(guard->value, m.dtype));
    }
    emit_store(out, *local_[k], value);
  }

  bool is_read_in_loop(size_t k) {
    bool is_read = false;
    for (size_t r = 0; r < members().size(); ++r) {
      if (places_[r] != Place::Loop && places_[r] != Place::Rolled) continue;
      if (r == k) continue;
      expr::for_each(group_.inlined(pool_, member(r).value), [&](Expr e) {
        const auto p = index_of(e);
        is_read |= p && *p == k;
      });
    }
    return is_read;
  }

  void loop(ir::Block& out) {
    ir::Block body;
    ir::Block commits;
    std::vector<algebra::Moved> moved;
    for (size_t k = 0; k < members().size(); ++k) {
      if (places_[k] == Place::Loop) tile(k, body, Phase::Loop);
      if (places_[k] == Place::Rolled) roll(k, body, commits, moved);
    }
    for (ir::Op& op : commits) body.push_back(std::move(op));
    if (!tiling_.has_loop()) {
      for (ir::Op& op : body) out.push_back(std::move(op));
      return;
    }
    const StepRange& range = range_;
    for (Expr mask : range.masks)
      notes_.push_back(fmt::format("steps in which `{}` is false everywhere are left out: {} to {}",
                                   expr::to_string(mask), expr::to_string(range.first),
                                   expr::to_string(range.count)));
    for (Expr c : range.live.conditions)
      notes_.push_back(fmt::format(
          "steps in which `{}` is false everywhere are left out, by summaries of the tiles: {} to "
          "{}",
          expr::to_string(c), expr::to_string(range.live.first), expr::to_string(range.live.end)));
    for (Expr c : range.live.settled)
      notes_.push_back(fmt::format("steps in which `{}` is true everywhere: {}", expr::to_string(c),
                                   expr::to_string(range.live.full)));
    const ir::Name var = tiling_.at(group_.stream).tile.name();
    scalar::Loop steps{var, range.first, scalar::Direction::Up, range.count, std::move(body)};
    if (sizes_.is_descending) {
      steps = {var, pool_.binary(Op::Add, range.count, pool_.integer(-1)), scalar::Direction::Down,
               range.first, std::move(steps.body)};
    }
    out.push_back(ir::make(std::move(steps)));
  }

  void roll(size_t k, ir::Block& out, ir::Block& commits, std::vector<algebra::Moved>& moved) {
    const Member& m = member(k);
    const bool is_running = is_read_in_loop(k);
    const auto part = rolled_part(group_, m, signs_, pool_);
    NAUT_CHECK(part, "`{}` was accepted and cannot be rolled: {}", m.target.str(),
               part.rejection().message);
    const Expr factor = algebra::repair_factor(pool_, *part, moved, signs_);
    const Local& state = *local_[k];
    const Expr old = local_read(state, m.dtype);
    std::optional<Local> repair;
    if (factor) repair = repair_tile(factor, out);
    auto repaired = [&](Expr x) {
      return repair ? pool_.binary(Op::Mul, x, local_read(*repair, m.dtype)) : x;
    };
    if (!is_running) {
      if (repair) emit_store(out, state, repaired(old));
      const Expr value = term(k, group_.stream, out, Phase::Loop);
      emit_reduction(out, state, {}, group_.stream, m.reducer, value);
    } else {
      const Local part_of_tile =
          make_local(fmt::format("{}.step", m.target.str()), m.dtype, state.axes);
      const Expr value = term(k, group_.stream, out, Phase::Loop);
      emit_reduction(out, part_of_tile, identity_of(m), group_.stream, m.reducer, value);
      const Local next = make_local(fmt::format("{}.new", m.target.str()), m.dtype, state.axes);
      emit_store(out, next,
                 pool_.binary(expr::combiner(m.reducer), repaired(old),
                              local_read(part_of_tile, m.dtype)));
      new_local_[k] = next;
      emit_store(commits, state, local_read(next, m.dtype));
      moved.push_back({m.read, local_read(next, m.dtype), is_extreme(m) ? identity(m) : 0.0});
    }
    notes_.push_back(fmt::format("roll {}: {}", m.target.str(),
                                 factor ? fmt::format("repaired by {}", expr::to_string(factor))
                                        : std::string("nothing in its terms moves")));
  }

  // The factor is computed once for all that share it.
  Local repair_tile(Expr factor, ir::Block& out) {
    for (const auto& [f, local] : repairs_) {
      if (f == factor) return local;
    }
    const Expr value = expr::rebuild(pool_, factor, [&](Expr e) {
      const auto k = index_of(e);
      return k && places_[*k] == Place::Rolled ? local_read(*local_[*k], member(*k).dtype) : e;
    });
    std::vector<Expr> axes;
    for (Expr a : tiling_.order()) {
      if (group_.is_tile_axis(a) && expr::depends_on(value, a)) axes.push_back(a);
    }
    std::stable_partition(axes.begin(), axes.end(), [&](Expr a) { return a == group_.row; });
    const Local local = make_local("repair", factor.dtype(), axes);
    emit_store(out, local, value);
    repairs_.emplace_back(factor, local);
    return local;
  }

  // The steps of one part. One that the masks leave nothing of runs a step that is masked.
  StepRange part_of(StepRange range) {
    const Expr one = pool_.integer(1);
    const Expr begin = pool_.binary(Op::Mul, split_->part, split_->each);
    const Expr end =
        pool_.binary(Op::Min, split_->steps, pool_.binary(Op::Add, begin, split_->each));
    Expr first = begin;
    if (!range.first.is_int(0)) {
      first = pool_.binary(Op::Min, pool_.binary(Op::Max, range.first, begin),
                           pool_.binary(Op::Max, begin, pool_.binary(Op::Sub, end, one)));
    }
    const bool is_open = range.masks.empty() && range.live.conditions.empty();
    const Expr last = is_open ? end : pool_.binary(Op::Min, range.count, end);
    range.first = first;
    range.count = pool_.binary(Op::Max, pool_.binary(Op::Add, first, one), last);
    return range;
  }

  // Writes what a part has of a rolled value.
  void store_part(size_t k, ir::Block& out) {
    const Member& m = member(k);
    scalar::Buffer parts{{}, {m.dtype, {}}, scalar::Role::Temp};
    ir::Exprs indices;
    Expr condition;
    for (Expr a : m.axes) {
      const TileAxis& t = tiling_.at(a);
      parts.type.dims.push_back(t.extent);
      indices.push_back(t.position);
      if (t.in_range) condition = both(condition, t.in_range);
    }
    const auto place = static_cast<std::ptrdiff_t>(place_of_part(group_, m, *split_));
    parts.type.dims.insert(parts.type.dims.begin() + place, split_->split);
    indices.insert(indices.begin() + place, split_->part);
    parts.name = fresh_buffer(fmt::format("{}.parts", m.target.str()));
    condition = both(condition, is_writer(m));
    store(parts.name, indices, local_read(*local_[k], m.dtype), condition, tile_axes(m), out);
    part_values_.push_back({k, parts.name, {}});
    locals_.push_back(std::move(parts));
  }

  // A reduction that every part has before its steps; the first part hands it out.
  bool is_before(size_t k) const {
    const size_t p = alias_[k];
    return places_[p] == Place::Before && member(p).is_reduction();
  }

  // The nests that put parts together, and their buffers.
  ir::Block combined(std::vector<scalar::Buffer>& buffers) {
    std::vector<LateValue> late;
    for (PartValue& v : part_values_) {
      const Member& m = member(v.member);
      if (stored_.contains(m.statement)) {
        v.whole = m.target;
        continue;
      }
      v.whole = fresh_buffer(fmt::format("{}.all", m.target.str()));
      scalar::Buffer whole{v.whole, {m.dtype, {}}, scalar::Role::Temp};
      for (Expr a : m.axes) whole.type.dims.push_back(tiling_.at(a).extent);
      buffers.push_back(std::move(whole));
    }
    for (size_t k = 0; k < members().size(); ++k) {
      if (!stored_.contains(member(k).statement)) continue;
      if (is_before(k)) continue;
      if (alias_[k] != k) {
        late.push_back({k, member(alias_[k]).read});
      } else if (places_[k] != Place::Rolled) {
        late.push_back({k, member(k).value});
      }
    }
    return combine_parts(group_, part_values_, late, *split_, signs_, pool_);
  }

  // Writes a member's value to memory.
  void after(size_t k, ir::Block& out) {
    const Member& m = member(k);
    const std::vector<Expr> axes = tile_axes(m);
    ir::Exprs indices;
    Expr condition;
    for (Expr a : m.axes) {
      const TileAxis& t = tiling_.at(a);
      indices.push_back(t.position);
      if (t.in_range) condition = both(condition, t.in_range);
    }
    condition = both(condition, is_writer(m));
    if (split_) condition = both(condition, pool_.binary(Op::Eq, split_->part, pool_.integer(0)));
    std::unordered_map<Expr, Expr> memo;
    store(m.target, indices, member_value(alias_[k], Phase::After, memo), condition, axes, out);
  }

  // One of the tiles that have the same value writes it: the condition, or null.
  Expr is_writer(const Member& m) {
    Expr condition;
    for (Expr a : tiling_.order()) {
      const TileAxis& t = tiling_.at(a);
      if ((t.kind == AxisKind::Cut || t.kind == AxisKind::Batch) && !m.has(a))
        condition = both(condition, pool_.binary(Op::Eq, t.kind == AxisKind::Cut ? t.tile : a,
                                                 pool_.integer(0)));
    }
    return condition;
  }

  void store(ir::Name target, const ir::Exprs& indices, Expr value, Expr condition,
             const std::vector<Expr>& axes, ir::Block& out) {
    ir::Op store = ir::make(scalar::Store{target, indices, value});
    For loop{lanes(axes), LoopKind::Map, {}};
    if (condition) {
      loop.body.push_back(ir::make(scalar::If{condition, {store}}));
    } else {
      loop.body.push_back(store);
    }
    out.push_back(ir::make(std::move(loop)));
  }

  Group group_;
  const Sizes& sizes_;
  const std::set<int>& stored_;
  const ir::Program& program_;
  const algebra::Signs& signs_;
  expr::ExprPool& pool_;
  Names& names_;
  Tiling tiling_;
  std::map<std::string, ir::TensorType, std::less<>> types_;
  const SplitSizes* split_;  // null: the streamed axis is whole
  expr::Facts facts_;
  std::map<std::string, ir::TensorType> inputs_;
  std::vector<PartValue> part_values_;
  std::vector<size_t> alias_;
  std::vector<bool> needed_;
  std::vector<Place> places_;
  std::vector<std::optional<Local>> local_;
  std::vector<std::optional<Local>> new_local_;
  std::vector<size_t> rolled_;
  std::vector<RangeGuard> guards_;
  std::set<size_t> own_guard_;
  std::vector<std::pair<Expr, Local>> repairs_;
  StepRange range_;
  std::vector<scalar::Buffer> locals_;
  std::vector<std::string> notes_;
};

}  // namespace

BuiltKernel build_kernel(const Group& group, const Sizes& sizes, const std::vector<Sizes>& others,
                         const Split& split, const std::set<int>& stored,
                         const ir::Program& program, const algebra::Signs& signs,
                         expr::ExprPool& pool, Names& names) {
  BuiltKernel out;
  ir::Axes once;
  if (split.is_on()) {
    const SplitSizes s = name_split_sizes(group, split, pool, names);
    NestBuilder parts(group, sizes, stored, program, signs, pool, names, &s);
    out = parts.run({});
    const Expr tiles = count_tiles(group, parts.tiling(), pool);
    out.sizes = declare_split_sizes(s, group, sizes, split, tiles, pool);
    out.notes.push_back(fmt::format("{} parts of {} steps, for {} tiles", s.parts.name().str(),
                                    s.each.name().str(), expr::to_string(tiles)));
    if (!split.or_whole) return out;
    once.push_back({s.once.name(), s.whole});
  }
  const auto add_whole = [&](const Sizes& own) {
    BuiltKernel whole =
        NestBuilder(group, own, stored, program, signs, pool, names, nullptr).run(once);
    whole.wholes[0].nest = out.nests.size();
    if (out.notes.empty()) out.notes = whole.notes;
    out.wholes.push_back(whole.wholes[0]);
    out.locals.insert(out.locals.end(), whole.locals.begin(), whole.locals.end());
    out.summaries.insert(out.summaries.end(), whole.summaries.begin(), whole.summaries.end());
    out.before.insert(out.before.end(), whole.before.begin(), whole.before.end());
    out.nests.push_back(std::move(whole.nests[0]));
  };
  add_whole(sizes);
  for (const Sizes& other : others) add_whole(other);
  return out;
}

std::set<int> needs_of(const Group& group, const StatementList& list, const std::set<int>& stored) {
  std::set<int> members;
  for (const Member& m : group.members) members.insert(m.statement);
  std::set<int> needs;
  std::set<int> seen;
  auto visit = [&](auto& self, int id) -> void {
    if (!seen.insert(id).second) return;
    for (int r : list.statements[static_cast<size_t>(id)].reads_from)
      members.contains(r) ? self(self, r) : void(needs.insert(r));
  };
  for (int id : stored) visit(visit, id);
  return needs;
}

}  // namespace nautilus::schedule
