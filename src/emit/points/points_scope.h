// SPDX-License-Identifier: Apache-2.0
// What all parts of the printer of a kernel of scalar code share: the kernel, the points of a
// thread, the text so far, names and facts where it is being written, and for which threads. Each
// part is a set of functions that take it (points_*.h); a copy of it tries a text out.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "emit/params.h"
#include "emit/points/points_grid.h"
#include "emit/shared_parts.h"
#include "emit/writer.h"
#include "expr/walk.h"

namespace nautilus::emit {

using NameSet = std::set<std::string, std::less<>>;
using ExprNames = std::map<expr::Expr, std::string, expr::ByContent>;

// Which threads the text is for, and what holds for them.
struct PointsMode {
  bool is_inside = false;        // conditions hold that are asked once (points_inside.h)
  bool is_near = false;          // at an edge; turns are written out as for those inside
  bool are_whole = false;        // all points of the thread are computed
  bool are_lines_whole = false;  // whole vectors, at places that take them
  bool are_written_out = false;  // turns of windows, where all points are known
  bool are_lanes_apart = false;  // each lane of a point writes what is its own
  bool is_ahead = false;         // turns whose loads are under way together
  std::string turn;              // the condition of a turn, asked for each point
};

// What is asked once for all points and turns (points_inside.h).
struct InsideConditions {
  std::set<expr::Expr, expr::ByContent> holds;             // conditions that hold inside
  std::map<expr::Expr, expr::Expr, expr::ByContent> left;  // what loads ask of them besides
  std::vector<expr::Expr> asked;
};

// Elements that loops find in registers (points_held.h).
struct HeldReads {
  ExprNames arrays;  // by elements of a turn
  ExprNames names;   // in the loop being written
  bool is_holding = false;
};

// Of a patch: what is asked, and where elements lie that no loop moves, once for all turns of its
// loops; their names by what they are (points_patches.h).
struct PatchNames {
  NameSet loops;  // variables of loops around
  ExprNames conditions;
  std::map<std::string, std::string, std::less<>> pointers;
  std::set<std::pair<std::string, size_t>> moved;  // dimensions along which loops and points move
};

struct PointsScope {
  PointsScope(const ir::Program& of, const matile::Kernel& printed, expr::ExprPool& given_pool);

  const matile::Points& points() const { return matile::points_of(kernel); }
  // A name that nothing has yet.
  std::string fresh(std::string_view stem);
  void take(const std::string& name) { taken_.insert(name); }
  // A name of the program as one of the text; `a.b` and `a_b` stay apart.
  std::string define(ir::Name name);
  // Declares a number of each point, and gives its text there.
  std::string declare(ir::Name name, expr::DType dtype);
  // What a name of the program is in the text.
  const std::string& local(ir::Name name) const { return locals.find(name.str())->second; }
  std::string& local(ir::Name name) { return locals.find(name.str())->second; }
  const GlobalTensor& global(ir::Name tensor) const { return globals.find(tensor.str())->second; }
  std::string offset(ir::Name tensor, std::span<const expr::Expr> indices);
  std::string text(expr::Expr e);
  // Whether e has numbers that each point of a thread has for itself.
  bool has_numbers_of_points(expr::Expr e) const;
  // Subexpressions that occur more than once get a name. What may be evaluated only under a
  // condition (a read in a branch of `where`) stays where it is: it may be outside its tensor.
  void name_shared(expr::Expr root);

  const ir::Program& program;
  const matile::Kernel& kernel;
  expr::ExprPool& pool;
  PointsGrid grid;
  GlobalTensors globals;
  NameSet plan_sizes;
  NameSet written;  // tensors: reads must not go past what is written
  Writer out;
  int64_t shared_bytes = 0;
  std::string own_copy;  // where the CTA's copy of the result begins in shared memory
  // Where it is being written:
  PointsMode mode;
  expr::Facts facts;
  std::map<std::string, std::string, std::less<>> locals;
  std::map<std::string, expr::DType, std::less<>> dtypes;  // of values
  ExprNames named;                                         // of the statement
  // Lines of a thread with points across its last axis: loaded once for all its statements.
  ExprNames kept_lines;
  ExprNames part_places;                             // of elements in a loop over parts
  std::map<std::string, std::string> window_places;  // names of places and elements, by their texts
  InsideConditions inside;
  HeldReads held;
  PatchNames patch;

 private:
  std::string variable(expr::Expr v) const;

  std::set<std::string> taken_;
  int numbers_ = 0;  // of fresh names
};

// Names and facts of a piece of text end with it.
class OwnNames {
 public:
  explicit OwnNames(PointsScope& scope)
      : scope_(scope), locals_(scope.locals), facts_(scope.facts) {}
  ~OwnNames() {
    scope_.locals = std::move(locals_);
    scope_.facts = std::move(facts_);
  }
  OwnNames(const OwnNames&) = delete;
  OwnNames& operator=(const OwnNames&) = delete;

 private:
  PointsScope& scope_;
  std::map<std::string, std::string, std::less<>> locals_;
  expr::Facts facts_;
};

// A name stands for another text for a while.
class OtherText {
 public:
  OtherText(PointsScope& scope, ir::Name name, std::string text)
      : scope_(scope), name_(name), saved_(std::exchange(scope.local(name), std::move(text))) {}
  ~OtherText() { scope_.local(name_) = std::move(saved_); }
  OtherText(const OtherText&) = delete;
  OtherText& operator=(const OtherText&) = delete;

 private:
  PointsScope& scope_;
  ir::Name name_;
  std::string saved_;
};

}  // namespace nautilus::emit
