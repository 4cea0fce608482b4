// SPDX-License-Identifier: Apache-2.0
// Scheduled nests on their way to tiles (scalar_to_vrtile.h). scalar_to_vrtile.cc has the structure
// around statements, tile_statements.cc the statements.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "expr/walk.h"
#include "ir/decl.h"
#include "ir/pass.h"
#include "lower/to_vrtile/tile_reads.h"
#include "lower/to_vrtile/tile_versions.h"
#include "scalar/ops.h"
#include "vrtile/ops.h"

namespace nautilus::lower {

class NestsToTiles {
 public:
  NestsToTiles(const ir::Program& program, ir::PassContext& context)
      : context_(context),
        pool_(context.pool),
        sink_(context.sink),
        names_(program.body, context.pool),
        facts_(ir::facts_of(program, context.pool)) {}

  std::optional<ir::Program> run(const ir::Program& program, const ir::Op* only);

 private:
  struct Place {
    ir::Axes axes;                   // of the map loops around
    ir::Axes reduced;                // of the reduce loops around
    std::vector<expr::Expr> guards;  // conditions around
  };

  // --- nests, groups and loops (scalar_to_vrtile.cc)
  void fail(const ir::Op& op, std::string message);
  void buffer(const scalar::Buffer& b, const ir::Op& op, ir::Block& out);
  void kernel(const ir::Op& op, ir::Block& out);
  // Numbers that are positions.
  void know(const ir::Block& lets);
  ir::Block block(const ir::Block& ops);
  void structure(const ir::Op& op);
  void loop(const ir::Op& op);

  // --- statements (tile_statements.cc)
  void visit(const ir::Op& op, Place place);
  // The axes of a statement in the order of its target's dimensions; every element is written once.
  std::optional<ir::Axes> target_axes(const ir::Op& op, ir::Name target, const ir::Exprs& indices,
                                      const Place& place);
  void store(const ir::Op& op, const scalar::Store& s, const Place& place);
  std::vector<expr::Expr> points(const ir::Axes& axes);
  expr::Expr old_value(ir::Name target, const ir::Axes& axes, const ir::Op& op);
  void init(const ir::Op& op, const scalar::Init& s, const Place& place);
  // The target's value is a new tile; a plain copy is another name for the old one.
  void assign(const ir::Op& op, ir::Name target, const ir::Axes& axes, expr::Expr value,
              bool is_init = false);
  void update(const ir::Op& op, const scalar::Update& u, const Place& place);
  // A reduction of a statement.
  struct Rolled {
    const ir::Op& op;
    ir::Name target;
    const ir::Axes& axes;
    ir::Name old;  // what was there; empty at first
  };
  // new = old (+) outer * part
  void combine(const Rolled& sum, expr::Op combiner, ir::Name part, expr::Expr outer);
  // True if the sum is a sum of products of matrices, or has failed. Several are added up from 0
  // in the order of the terms, and then to what was there: the matrix unit cuts off what is small
  // next to the sum that it adds to.
  bool dots(const Rolled& sum, expr::Expr value, const ir::Axis& depth);
  // The same of one product.
  bool dot(const Rolled& sum, expr::Expr value, const ir::Axis& depth);
  struct Operands {
    ir::Name a, b;
    vrtile::Trans trans = vrtile::Trans::No;
    expr::Expr outer;  // null if there is none
  };
  // Nothing if the value is anything but a product of matrices.
  std::optional<Operands> operands_of(const Rolled& sum, expr::Expr value, const ir::Axis& depth);
  // The element of a load under a guard; null if the value is anything else.
  expr::Expr loaded(expr::Expr value) const;
  // The tile whose elements are `value` at the axes: an existing one, or a new one.
  ir::Name operand(const ir::Op& op, expr::Expr value, const ir::Axes& axes, ir::Name target,
                   std::string_view side);
  expr::Expr identity_of(expr::Reducer reducer, ir::DType dtype);
  expr::Expr converted(expr::Expr e, const ir::Axes& axes, const ir::Op& op,
                       const std::vector<expr::Expr>& order = {});
  ir::Name version(ir::Name target, bool is_init = false);

  ir::PassContext& context_;
  expr::ExprPool& pool_;
  diag::Sink& sink_;
  vrtile::Names names_;
  expr::Facts facts_;
  TileReads::Types types_;
  TileVersions versions_{names_, types_};
  TileReads::Tiles tiles_;  // a local buffer's current tile; none before it is written
  std::unordered_map<ir::Name, expr::Expr> starts_;  // constant that an init wrote, by tile
  std::unordered_set<ir::Name> loads_;
  ir::Block* out_ = nullptr;
  int loop_depth_ = 0;
  ir::Block group_lets_;  // numbers that every warp group reads
  ir::Block step_lets_;   // and those of every step
  bool has_failed_ = false;
};

}  // namespace nautilus::lower
