// SPDX-License-Identifier: Apache-2.0
#include "lower/tiles/last_tile.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "expr/bounds/affine.h"
#include "expr/rules/simplify.h"
#include "expr/walk.h"
#include "ir/walk.h"
#include "lower/tiles/point_reductions.h"
#include "lower/tiles/tile_of_parts.h"
#include "matile/point_layout.h"

namespace nautilus::lower {
namespace {

using expr::DType;
using expr::Expr;
using ir::Op;
using EK = expr::Op;

class LastTile {
 public:
  LastTile(const LoweredKernel& kernel, const LastTileScope& scope, LastTileChoice& choice,
           std::string* why)
      : out_(kernel),
        buffers_(scope.buffers),
        target_(scope.target),
        threads_(target_.limits.group_threads),
        choice_(choice),
        names_(scope.names),
        pool_(scope.pool),
        simplifier_(pool_),
        why_(why) {}

  std::optional<LoweredKernel> run(const matile::Points& points) {
    auto kernel = out_.kernel.as<matile::Kernel>();
    matile::Role* role = nullptr;
    std::vector<matile::Role> roles;
    size_t place = 0;
    for (size_t k = 0; k < kernel.body.size(); ++k) {
      const auto* r = kernel.body[k].get<matile::Role>();
      if (!r || r->unit != matile::RoleUnit::Groups) continue;
      roles.push_back(*r);
      place = k;
    }
    if (roles.size() == 1) role = &roles[0];
    if (!role || !role->body.back().is<matile::Each>())
      return fail("the kernel has no role that walks its tiles");
    auto each = role->body.back().as<matile::Each>();
    if (!read_tile_of_parts(each.body, points, out_.tiles, pool_, parts_, why_) ||
        !read_reductions(points.body, pool_, reductions_, why_))
      return std::nullopt;
    read_sizes();
    if (!choice_.refused.empty()) return fail(choice_.refused);
    choose_domain();
    ir::Block last;
    if (!combine(last)) return std::nullopt;
    take_ticket(std::move(last), each.body);
    role->body.back() = ir::make(std::move(each));
    role->body.insert(role->body.begin(), tiles_.begin(), tiles_.end());
    kernel.body[place] = ir::make(std::move(*role));
    out_.kernel = ir::make(std::move(kernel));
    return std::move(out_);
  }

 private:
  std::nullopt_t fail(std::string reason) {
    if (why_->empty()) *why_ = std::move(reason);
    return std::nullopt;
  }
  bool refuse(std::string reason) {
    fail(std::move(reason));
    return false;
  }

  Expr bin(EK op, Expr a, Expr b) { return pool_.binary(op, a, b); }
  Expr num(int64_t n) { return pool_.integer(n); }
  Expr both(Expr a, Expr b) { return !a ? b : !b ? a : bin(EK::And, a, b); }

  // The row that a condition ends the tile at; null if it says something else.
  Expr end_of_rows(Expr condition) {
    if (condition.op() != EK::Lt) return {};
    const auto rest = expr::difference(condition[1], condition[0]);
    const auto parts = rest ? rest->split(parts_.lanes[0].first) : std::nullopt;
    if (!parts || parts->first.constant() != -1) return {};
    const Expr end = expr::to_expr(pool_, parts->second);
    return parts_.lanes.size() > 1 && expr::depends_on(end, parts_.lanes[1].first) ? Expr() : end;
  }

  // Rows of the tile that exist: a number, or an expression of the sizes.
  Expr rows_of_tile() {
    Expr rows = num(parts_.lanes[0].second);
    for (Expr c : parts_.conditions) {
      if (const Expr end = end_of_rows(c)) rows = bin(EK::Min, rows, end);
    }
    return simplifier_.simplify(bin(EK::Max, rows, num(0)));
  }

  int64_t columns_of_tile() const { return parts_.lanes.size() > 1 ? parts_.lanes[1].second : 1; }

  // Elements of the tile, at most.
  int64_t most_elements(Expr rows) const {
    const bool is_constant = rows.op() == EK::IntConst;
    return (is_constant ? rows.integer() : parts_.lanes[0].second) * columns_of_tile();
  }

  LastTileFacts facts() {
    LastTileFacts out{most_elements(rows_of_tile()), threads_, {}};
    std::set<int> levels;
    for (const PointNumber& n : reductions_.numbers) {
      const bool is_loop = n.update && tensors_of(n.level) > 0;
      if (is_loop && levels.insert(n.level).second) out.tensors.push_back(tensors_of(n.level));
    }
    return out;
  }

  // How much of the parts is taken at once: by the line, or as the scheduler's rules say.
  void read_sizes() {
    const LastTileFacts known = facts();
    choice_.taken = choice_.asked ? *choice_.asked : choice_.rules.last_tile(known);
    choice_.refused = refuse_last_tile(choice_.taken, known, target_);
  }

  // The elements of the tile as one row of points.
  void choose_domain() {
    points_ = *choice_.taken.points;
    const int64_t columns = columns_of_tile();
    const Expr rows = rows_of_tile();
    const bool is_constant = rows.op() == EK::IntConst;
    const int64_t all = most_elements(rows);
    axis_ = pool_.index(names_.make("x"));
    const Expr width = num(columns);
    chunks_ = is_constant
                  ? num((all + points_ - 1) / points_)
                  : bin(EK::FloorDiv, bin(EK::Add, bin(EK::Mul, rows, width), num(points_ - 1)),
                        num(points_));
    Expr point = axis_;
    if (!chunks_.is_int(1)) {
      chunk_ = names_.make("chunk");
      point = bin(EK::Add, bin(EK::Mul, num(points_), pool_.index(chunk_)), axis_);
    }
    expr::Substitution at;
    at.emplace(parts_.lanes[0].first, columns == 1 ? point : bin(EK::FloorDiv, point, width));
    if (parts_.lanes.size() > 1) at.emplace(parts_.lanes[1].first, bin(EK::Mod, point, width));
    for (auto& [axis, position] : parts_.positions)
      position = expr::substitute(pool_, position, at);
    for (Expr c : parts_.conditions) {
      // Points are those of a constant number of rows already.
      if (!is_constant || !end_of_rows(c))
        is_inside_ = both(is_inside_, expr::substitute(pool_, c, at));
    }
    if (all % points_ != 0) is_inside_ = both(is_inside_, bin(EK::Lt, point, num(all)));
  }

  // An expression of the points at the elements of the tile. Parts are read at the nearest element
  // that exists: their loads have no conditions. `part`: which one, or null.
  Expr at_point(Expr e, Expr part_var, Expr part) {
    return expr::rebuild(pool_, e, [&](Expr x) {
      if (x.op() == EK::Var) {
        if (part_var && x == part_var) return part;
        if (const auto it = parts_.positions.find(x); it != parts_.positions.end())
          return it->second;
        const auto n = reductions_.by_name.find(x);
        return n == reductions_.by_name.end() ? x : reductions_.numbers[n->second].element;
      }
      if (x.op() != EK::Read || made_.contains(std::string(x.name().str()))) return x;
      if (!parts_.put_of(x))
        return is_inside_ ? pool_.select(is_inside_, x, pool_.constant(0, x.dtype())) : x;
      const auto& dims = buffers_.at(std::string(x.name().str())).dims;
      std::vector<Expr> at(x.args().begin(), x.args().end());
      for (size_t k = 0; k < at.size(); ++k) {
        const bool is_open =
            is_inside_ && expr::depends_on(at[k], axis_) &&
            !(dims[k].op() == EK::IntConst && at[k].op() == EK::Mod && at[k][1] == dims[k]);
        if (is_open) at[k] = bin(EK::Min, at[k], bin(EK::Sub, dims[k], num(1)));
      }
      return pool_.with_args(x, at);
    });
  }

  ir::Axes domain() const { return {{axis_.name(), pool_.integer(points_)}}; }

  Expr new_tile(std::string_view stem) {
    const ir::Name name = names_.make(stem);
    made_.emplace(name.str());
    const ir::TensorType type{DType::F32, {num(points_)}};
    tiles_.push_back(ir::make(matile::Tile{name, type, matile::Spread::RowVector, 1}));
    return pool_.read(name, DType::F32, {&axis_, 1});
  }

  void set(Expr element, Expr value, ir::Block& out) const {
    out.push_back(ir::make(matile::Set{element.name(), domain(), value}));
  }

  // Whether the value is used more than once: then it has a tile.
  size_t uses_of(Expr var) const {
    size_t uses = 0;
    const auto look = [&](Expr e) { uses += e && expr::depends_on(e, var) ? 1 : 0; };
    for (const PointNumber& n : reductions_.numbers) {
      look(n.init);
      look(n.update);
    }
    for (const PointResult& r : reductions_.results) look(r.write.value);
    return uses;
  }

  bool combine(ir::Block& out) {
    ir::Block body;
    int levels = 0;
    for (const PointNumber& n : reductions_.numbers) levels = std::max(levels, n.level + 1);
    for (int level = -1; level < levels; ++level) {
      for (PointNumber& n : reductions_.numbers) {
        if (n.is_let || n.level != level) continue;
        n.element = new_tile(n.var.name().str());
        set(n.element, at_point(n.init, {}, {}), body);
      }
      if (level >= 0) over_parts(level, body);
      for (PointNumber& n : reductions_.numbers) {
        if (!n.is_let || n.level != level) continue;
        const Expr value = at_point(n.init, {}, {});
        n.element = value;
        if (value.dtype() != DType::F32 || uses_of(n.var) < 2) continue;
        n.element = new_tile(n.var.name().str());
        set(n.element, value, body);
      }
    }
    for (const PointResult& r : reductions_.results) {
      if (!put(r, body)) return false;
    }
    if (!chunk_) {
      out = std::move(body);
    } else {
      out.push_back(
          ir::make(matile::Loop{chunk_, num(0), matile::Direction::Up, chunks_, std::move(body)}));
    }
    return true;
  }

  // Tensors of parts that the loop of a level reads; 0 if it has none.
  int64_t tensors_of(int level) const {
    std::unordered_set<Expr> reads;
    for (const PointNumber& n : reductions_.numbers) {
      if (!n.update || n.level != level) continue;
      expr::for_each(n.update, [&](Expr x) {
        if (x.op() == EK::Read && parts_.put_of(x)) reads.insert(x);
      });
    }
    return static_cast<int64_t>(reads.size());
  }

  void over_parts(int level, ir::Block& out) {
    const int64_t parts_at_once = parts_of_step(choice_.taken, tensors_of(level), threads_);
    const ir::Name step = names_.make("step");
    const ir::Name place = names_.make("place");
    const Expr at_once = num(parts_at_once);
    const Expr number = bin(EK::Add, bin(EK::Mul, at_once, pool_.index(step)), pool_.index(place));
    const Expr part = bin(EK::Min, number, bin(EK::Sub, reductions_.parts, num(1)));
    const Expr is_there = bin(EK::Lt, number, reductions_.parts);
    matile::Unroll unroll{{{place, at_once}}, {}};
    // Every load has a tile of its own: none waits for a condition, and what several reductions
    // need is loaded once.
    expr::Substitution loaded;
    ir::Block updates;
    for (const PointNumber& n : reductions_.numbers) {
      if (!n.update || n.level != level) continue;
      const Expr value = at_point(n.update, n.part, part);
      expr::for_each(value, [&](Expr x) {
        if (x.op() != EK::Read || !parts_.put_of(x) || loaded.contains(x)) return;
        if (loads_.size() == loaded.size()) loads_.push_back(new_tile("part"));
        set(loads_[loaded.size()], x, unroll.body);
        loaded.emplace(x, loads_[loaded.size()]);
      });
      const Expr next = expr::substitute(pool_, value, loaded);
      set(n.element, pool_.select(is_there, next, n.element), updates);
    }
    if (updates.empty()) return;
    unroll.body.insert(unroll.body.end(), updates.begin(), updates.end());
    const Expr steps =
        bin(EK::FloorDiv, bin(EK::Add, reductions_.parts, num(parts_at_once - 1)), at_once);
    ir::Block body;
    body.push_back(ir::make(std::move(unroll)));
    out.push_back(
        ir::make(matile::Loop{step, num(0), matile::Direction::Up, steps, std::move(body)}));
  }

  bool put(const PointResult& r, ir::Block& out) {
    Expr value = at_point(r.write.value, {}, {});
    const bool is_half = value.dtype() == DType::BF16 || value.dtype() == DType::F16;
    if (value.dtype() != DType::F32 && !is_half)
      return refuse(fmt::format("elements of {} cannot be stored", expr::name(value.dtype())));
    bool reads_tile = false;
    expr::for_each(value, [&](Expr x) {
      reads_tile |= x.op() == EK::Read && made_.contains(std::string(x.name().str()));
    });
    if (!reads_tile) {
      const Expr element = new_tile(std::string(r.write.target.str()) + "_out");
      set(element, is_half ? pool_.cast(DType::F32, value) : value, out);
      value = is_half ? pool_.cast(value.dtype(), element) : element;
    }
    matile::Put put;
    put.axes = domain();
    put.target = r.write.target;
    put.value = value;
    for (Expr e : r.write.indices) put.indices.push_back(at_point(e, {}, {}));
    put.condition = is_inside_;
    if (r.condition) put.condition = both(put.condition, at_point(r.condition, {}, {}));
    out.push_back(ir::make(std::move(put)));
    return true;
  }

  // A counter for every tile without its part, and for every group that has its own.
  void take_ticket(ir::Block last, ir::Block& body) {
    Expr index;
    Expr counters;
    const auto digit = [&](Expr value, Expr extent) {
      index = index ? bin(EK::Add, bin(EK::Mul, index, extent), value) : value;
      counters = counters ? bin(EK::Mul, counters, extent) : extent;
    };
    for (const ir::Axis& a : out_.tiles) {
      if (pool_.index(a.name) != parts_.part) digit(pool_.index(a.name), a.extent);
    }
    if (out_.group) digit(pool_.index(out_.group), num(out_.groups));
    if (!index) digit(num(0), num(1));
    const ir::Name done = names_.make("done");
    const ir::TensorType type{DType::I32, {simplifier_.simplify(bin(EK::Max, counters, num(1)))}};
    out_.plan.push_back(ir::make(matile::Tensor{done, type, matile::TensorRole::Scratch}));
    const ir::Name is_last = names_.make("is_last");
    body.push_back(ir::make(matile::Ticket{is_last, done, index, reductions_.parts}));
    body.push_back(ir::make(matile::If{pool_.var(is_last, DType::Bool), std::move(last)}));
  }

  LoweredKernel out_;
  const std::map<std::string, ir::TensorType>& buffers_;
  const target::Target& target_;
  int64_t threads_;  // of the group
  LastTileChoice& choice_;
  FreshNames& names_;
  expr::ExprPool& pool_;
  expr::Simplifier simplifier_;
  std::string* why_;
  Expr is_inside_;  // whether a point is a place of the tile; null: always
  TileOfParts parts_;
  PointReductions reductions_;
  std::vector<Expr> loads_;  // elements of parts
  int64_t points_ = 0;
  Expr axis_;
  ir::Name chunk_;
  Expr chunks_;
  ir::Block tiles_;
  std::set<std::string> made_;  // names of tiles
};

}  // namespace

std::optional<LoweredKernel> combine_in_last_tile(const LoweredKernel& kernel,
                                                  const LoweredKernel& points,
                                                  const LastTileScope& scope,
                                                  LastTileChoice& choice, std::string* why) {
  return LastTile(kernel, scope, choice, why)
      .run(matile::points_of(points.kernel.as<matile::Kernel>()));
}

}  // namespace nautilus::lower
