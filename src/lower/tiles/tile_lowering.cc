// SPDX-License-Identifier: Apache-2.0
#include "lower/tiles/tile_lowering.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ir/walk.h"
#include "lower/tiles/eager_loops.h"
#include "lower/tiles/grid_facts.h"
#include "lower/tiles/used_names.h"

namespace nautilus::lower {

using expr::DType;
using expr::Expr;
using ir::Op;
using TileKind = TileValue::Kind;

namespace {

bool has_only_product_loops(const ir::Block& block) {
  bool found = false;
  bool ok = true;
  for (const Op& op : block) {
    const auto* loop = op.get<vrtile::For>();
    if (!loop) continue;
    found = true;
    for (const Op& inner : loop->body)
      ok &= inner.is<vrtile::Carry>() || inner.is<vrtile::Load>() || inner.is<vrtile::Dot>() ||
            inner.is<vrtile::Let>();
  }
  return found && ok;
}

// Every tile has as many steps: groups that alternate jump over the others'.
bool has_equal_tiles(const vrtile::Par& grid, const ir::Block& work, expr::ExprPool& pool) {
  std::vector<Expr> of_tile;
  for (const ir::Axis& a : grid.axes) of_tile.push_back(pool.index(a.name));
  const auto is_of_tile = [&](Expr e) {
    return std::any_of(of_tile.begin(), of_tile.end(),
                       [&](Expr v) { return expr::depends_on(e, v); });
  };
  bool ok = true;
  const auto look_at = [&](const ir::Block& block) {
    for (const Op& op : block) {
      if (const auto* let = op.get<vrtile::Let>(); let && is_of_tile(let->value))
        of_tile.push_back(pool.var(let->name, let->value.dtype()));
      const auto* loop = op.get<vrtile::For>();
      ok &= !loop || (!is_of_tile(loop->from) && !is_of_tile(loop->to));
    }
  };
  look_at(grid.body);
  if (&work != &grid.body) look_at(work);
  return ok;
}

}  // namespace

NestLowering::NestLowering(const GridNest& nest, FreshNames& names, ir::PassContext& context,
                           NestAnswers* rules, std::string* why)
    : context_(context),
      scope_(nest.program, nest.op, names, context.pool, why),
      pool_(context.pool),
      choices_(context, rules),
      copies_(scope_, choices_),
      takes_(scope_, choices_, copies_),
      loads_(scope_, choices_, copies_, takes_),
      stores_(scope_, copies_, takes_),
      computed_(scope_, takes_, stores_),
      kernel_name_(nest.name) {}

std::optional<LoweredKernel> NestLowering::run() {
  const auto* grid = scope_.nest.get<vrtile::Par>();
  if (!grid || grid->kind != vrtile::ParKind::Grid) return scope_.fail("the nest has no grid");
  ir::Block own_body = grid->body;
  choices_.begin(own_body);
  lines_ = decision::lines(own_body);
  own_body = decision::with_lines(std::move(own_body), {});
  // Scalars between the grid and the groups belong to every group.
  std::vector<Op> lets;
  const vrtile::Par* groups = nullptr;
  for (const Op& op : own_body) {
    if (op.is<vrtile::Let>()) {
      lets.push_back(op);
    } else if (const auto* p = op.get<vrtile::Par>();
               p && p->kind == vrtile::ParKind::Group && !groups && &op == &own_body.back()) {
      groups = p;
    } else if (op.is<vrtile::Par>()) {
      return scope_.fail("groups stand directly in the grid, alone");
    }
  }
  if (groups && groups->axes.size() != 1) return scope_.fail("one axis numbers the groups");
  const ir::Block& work = groups ? groups->body : own_body;
  if (!read_packing() || !read_groups(*grid, groups, work)) return std::nullopt;
  if (!number_axes(*grid, own_body)) return std::nullopt;
  group_index_ = groups ? scope_.tiles.define_scalar(groups->axes[0].name, DType::I64)
                        : scope_.names.make("w");
  scope_.own_group = groups ? pool_.index(group_index_) : Expr();
  scope_.axis[0] = pool_.index(scope_.names.make("i"));
  scope_.axis[1] = pool_.index(scope_.names.make("j"));
  role_name_ = scope_.names.make("compute");

  ir::Block out = grid_.decode;
  for (const Op& let : lets) scalar_let(let, out);
  if (!groups) {
    ir::Block rest;
    for (const Op& op : work) {
      if (!op.is<vrtile::Let>()) rest.push_back(op);
    }
    if (!block({&rest}, out)) return std::nullopt;
  } else if (!block({&work}, out)) {
    return std::nullopt;
  }
  if (!computed_.has_dot()) return scope_.fail("it has no matrix product");
  return assemble(std::move(out));
}

bool NestLowering::read_packing() {
  const auto count = [](const auto* line) { return line ? line->tiles.value_or(0) : 1; };
  packing_ = {count(choices_.cluster.asked()), count(choices_.resident.asked())};
  // More than a pair has no form.
  constexpr int64_t kPair = 2;
  const int64_t most_ctas = std::min<int64_t>(kPair, scope_.target.limits.cluster_ctas);
  if (packing_.cluster < 1 || packing_.cluster > most_ctas) {
    choices_.cluster.refuse(fmt::format("a cluster has 1 to {} tiles", most_ctas));
    return scope_.refuse("it has another number of tiles in a cluster");
  }
  if (packing_.resident < 1 || packing_.resident > kPair) {
    choices_.resident.refuse(fmt::format("1 to {} tiles share a multiprocessor", kPair));
    return scope_.refuse("another number of tiles share a multiprocessor");
  }
  if (choices_.cluster.asked()) choices_.cluster.took({packing_.cluster, {}});
  if (choices_.resident.asked()) choices_.resident.took({packing_.resident, {}});
  return true;
}

bool NestLowering::read_groups(const vrtile::Par& grid, const vrtile::Par* groups,
                               const ir::Block& work) {
  using decision::GroupKind;
  constexpr int64_t kAlternating = 2;
  scope_.groups = groups ? groups->axes[0].extent.integer() : 1;
  const bool can_alternate =
      scope_.groups == 1 && has_only_product_loops(work) && has_equal_tiles(grid, work, pool_);
  const auto line = choices_.answer(choices_.groups.asked(), [&](NestAnswers& rules) {
    return rules.groups(scope_.groups, can_alternate);
  });
  if (!line) return scope_.refuse(choices_.missing());
  alternates_ = line->kind == GroupKind::Alternating;
  if (alternates_ && !can_alternate) {
    choices_.groups.refuse(
        "groups alternate where loops have nothing but products and tiles have equal steps");
    return scope_.refuse("groups cannot alternate");
  }
  if (alternates_) scope_.groups = kAlternating;
  if (line->count != scope_.groups) {
    choices_.groups.refuse(fmt::format("the tile is for {} groups", scope_.groups));
    return scope_.refuse("the tile is for another number of groups");
  }
  choices_.groups.took(*line);
  return true;
}

bool NestLowering::read_grid(const ir::Axes& axes, GridFacts facts) {
  facts.packing = packing_;
  const auto order = choices_.answer(choices_.order.asked(),
                                     [&](NestAnswers& rules) { return rules.order(facts); });
  if (!order) return scope_.refuse(choices_.missing());
  facts.order = *order;
  if (const std::string why = refuse_order(facts.order, facts, scope_.target);
      choices_.order.asked() && !why.empty()) {
    choices_.order.refuse(why);
    return scope_.refuse(why);
  }
  const auto source = choices_.answer(
      choices_.source.asked(), [&](NestAnswers& rules) { return rules.source(facts.order); });
  if (!source) return scope_.refuse(choices_.missing());
  facts.source = *source;
  if (const std::string why = refuse_source(facts.source, facts);
      choices_.source.asked() && !why.empty()) {
    choices_.source.refuse(why);
    return scope_.refuse(why);
  }
  grid_ = number_tiles(axes, facts, scope_.names, pool_);
  scope_.has_cluster = static_cast<bool>(grid_.rank);
  if (packing_.cluster > 1 && !grid_.rank)
    return scope_.refuse("no two tiles beside each other share an operand");
  choices_.order.took(facts.order);
  choices_.source.took(facts.source);
  return true;
}

bool NestLowering::number_axes(const vrtile::Par& grid, const ir::Block& body) {
  ir::Axes axes;
  for (const ir::Axis& a : grid.axes) {
    if (expr::depends_on(a.extent, pool_.index(a.name)))
      return scope_.refuse("a grid axis bounds itself");
    axes.push_back({scope_.tiles.define_scalar(a.name, DType::I64), scope_.tiles.scalar(a.extent)});
  }
  tile_axes_ = axes;
  ir::Axes used;
  for (size_t k = 0; k < axes.size(); ++k) {
    const Expr axis = pool_.index(grid.axes[k].name);
    bool is_used = false;
    for (const Op& op : body)
      ir::for_each_expr(op, [&](Expr e) { is_used |= expr::depends_on(e, axis); });
    if (is_used) used.push_back(axes[k]);
  }
  loads_.set_used_axes(std::move(used));
  return read_grid(axes, grid_facts(grid.axes, body, scope_));
}

bool NestLowering::block(NestFrame frame, ir::Block& out) {
  const ir::Block& ops = *frame.block;
  scope_.frames.push_back(frame);
  bool ok = true;
  for (size_t k = 0; ok && k < ops.size(); ++k) {
    scope_.frames.back().at = k;
    ok = visit(ops, k, out);
  }
  scope_.frames.pop_back();
  return ok;
}

bool NestLowering::visit(const ir::Block& ops, size_t k, ir::Block& out) {
  const Op& op = ops[k];
  switch (vrtile::kind(op)) {
    case vrtile::Kind::Let:
      scalar_let(op, out);
      return true;
    case vrtile::Kind::Load:
      return loads_.load(ops, k, out);
    case vrtile::Kind::Set:
      return computed_.set(op.as<vrtile::Set>(), ops, k, out);
    case vrtile::Kind::Reduce:
      return computed_.reduce(op.as<vrtile::Reduce>(), used_by(op), out);
    case vrtile::Kind::Dot:
      return computed_.dot(op.as<vrtile::Dot>(), out);
    case vrtile::Kind::For:
      return loop(op.as<vrtile::For>(), out);
    case vrtile::Kind::Carry:
      return true;
    case vrtile::Kind::Store:
      return stores_.store(op.as<vrtile::Store>(), used_by(op), out);
    default:
      return scope_.refuse(
          fmt::format("`{}` has no counterpart in a kernel", op.info().mnemonic()));
  }
}

void NestLowering::scalar_let(const Op& op, ir::Block& out) {
  const auto& let = op.as<vrtile::Let>();
  const Expr value = scope_.tiles.scalar(let.value);
  const ir::Name name = scope_.tiles.define_scalar(let.name, let.value.dtype());
  out.push_back(ir::make(matile::Let{name, value}));
}

bool NestLowering::loop(const vrtile::For& op, ir::Block& out) {
  if (stores_.has_deferred()) return scope_.refuse("a tile for a store stands before a loop");
  const auto carried = carry(op.body, out);
  if (!carried) return false;
  matile::Loop result;
  result.from = scope_.tiles.scalar(op.from);
  result.to = scope_.tiles.scalar(op.to);
  result.direction =
      op.direction == vrtile::Direction::Up ? matile::Direction::Up : matile::Direction::Down;
  result.var = scope_.tiles.define_scalar(op.var, DType::I64);
  loads_.add_loop(pool_.index(result.var), result.from, result.to);
  NestFrame frame{.block = &op.body, .is_loop = true};
  frame.may_be_eager = has_one_computed_product(op.body);
  const bool is_eager = frame.may_be_eager && choices_.is_fetched_early();
  if (frame.may_be_eager && has_late_operand(op.body)) choices_.took_fetch();
  if (is_eager) {
    frame.block = &reordered_.emplace_back(loads_first(op.body));
    frame.is_eager = true;
  }
  if (!block(frame, result.body) || !carry_on(*carried, result.body)) return false;
  out.push_back(ir::make(std::move(result)));
  return true;
}

std::optional<std::vector<NestLowering::Carried>> NestLowering::carry(const ir::Block& body,
                                                                      ir::Block& out) {
  std::vector<Carried> carried;
  for (const Op& inner : body) {
    const auto* c = inner.get<vrtile::Carry>();
    if (!c) continue;
    if (!scope_.is_carried_type(c->type))
      return scope_.fail(
          fmt::format("`{}` is carried, but is no f32, i32 or 16-bit tile", c->name.str()));
    const TileValue* init = scope_.tiles.find(c->init);
    const bool is_element =
        init && (init->kind == TileKind::Load || init->kind == TileKind::Inline);
    if (is_element && init->axes.size() == c->type.dims.size()) {
      // Elements that are read where they are used are read here.
      const std::span<const Expr> own(scope_.axis, c->type.dims.size());
      const Expr value = scope_.written(pool_.read(c->init, c->type.dtype, own), {});
      if (!value) return std::nullopt;
      const TileValue& tile = scope_.new_tile(c->name, c->type);
      out.push_back(ir::make(matile::Set{tile.name, scope_.own_axes(c->type), value}));
      carried.push_back({tile.name, c->type, c->next, c->name});
      continue;
    }
    if (!init || init->kind != TileKind::Register)
      return scope_.fail(fmt::format("`{}` is no register tile", c->init.str()));
    const ir::Name from = init->name;
    const TileValue& tile = scope_.new_tile(c->name, c->type);
    scope_.copy(tile.name, c->type, from, out);
    carried.push_back({tile.name, c->type, c->next, c->name});
  }
  return carried;
}

bool NestLowering::carry_on(const std::vector<Carried>& carried, ir::Block& out) {
  // All carried values change at once: one that is the next of another is kept first.
  std::vector<ir::Name> next;
  for (const Carried& c : carried) {
    const TileValue* value = scope_.tiles.find(c.next);
    if (!value || value->kind != TileKind::Register)
      return scope_.refuse(fmt::format("`{}` is no register tile", c.next.str()));
    ir::Name name = value->name;
    const bool is_carried = std::any_of(carried.begin(), carried.end(),
                                        [&](const Carried& other) { return other.name == c.next; });
    if (is_carried && name != c.tile) {
      const ir::Name kept = scope_.new_register(std::string(c.next.str()) + "_kept", c.type);
      scope_.copy(kept, c.type, name, out);
      name = kept;
    }
    next.push_back(name);
  }
  for (size_t k = 0; k < carried.size(); ++k) {
    if (carried[k].tile != next[k]) scope_.copy(carried[k].tile, carried[k].type, next[k], out);
  }
  return true;
}

std::optional<LoweredKernel> NestLowering::assemble(ir::Block body) {
  if (!stores_.is_complete())
    return scope_.fail("a tile is computed for a store that does not come");
  copies_.write_promotions();
  choices_.refuse_copies(lines_, copies_.copied(), context_);
  if (const std::string missing = choices_.missing(); !missing.empty()) return scope_.fail(missing);
  if (!choices_.end()) return scope_.fail("a line of its schedule is refused");
  const ir::Name name = scope_.names.make(kernel_name_);
  matile::Kernel kernel{.name = name, .form = matile::KernelForm::Nest};
  if (grid_.rank) {
    kernel.cluster = packing_.cluster;
    kernel.rank = grid_.rank;
  }
  if (packing_.resident > 1) kernel.resident = packing_.resident;
  kernel.body.push_back(ir::make(grid_.op));
  for (Op& p : copies_.take_slot_tiles()) kernel.body.push_back(std::move(p));
  matile::Role role{role_name_, matile::RoleUnit::Groups, scope_.groups, group_index_, {}, {}};
  role.body = scope_.declared;
  matile::Each each{grid_.tile, grid_.op.name, {}, std::move(body)};
  if (alternates_) each.alternate = scope_.groups;
  role.body.push_back(ir::make(std::move(each)));
  kernel.body.push_back(ir::make(std::move(role)));
  kernel.body = decision::with_lines(std::move(kernel.body), lines_);
  LoweredKernel out{grid_.plan,
                    ir::make(std::move(kernel)),
                    ir::make(matile::Launch{name, grid_.launch}),
                    tile_axes_,
                    scope_.own_group ? group_index_ : ir::Name(),
                    scope_.own_group ? scope_.groups : 1};
  for (Op& m : copies_.take_maps()) out.plan.push_back(std::move(m));
  return out;
}

}  // namespace nautilus::lower
