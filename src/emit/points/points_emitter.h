// SPDX-License-Identifier: Apache-2.0
// Text of a kernel of scalar code while it is written. The parts are in points.cc (points and
// statements), points_lines.cc (vectors), points_inside.cc (conditions that are asked once),
// points_windows.cc (turns that are written out), points_patches.cc (patches), points_held.cc (what
// loops share), points_walks.cc and points_scans.cc (scans along memory) and points_parts.cc (loops
// over the parts of an axis).
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>

#include "emit/params.h"
#include "emit/writer.h"
#include "expr/walk.h"
#include "ir/target_of.h"
#include "matile/ops.h"

namespace nautilus::emit {

class PointsEmitter {
 public:
  PointsEmitter(const ir::Program& program, const matile::Kernel& kernel, expr::ExprPool& pool)
      : program_(program),
        kernel_(kernel),
        threads_(kernel.body[0].as<matile::Points>().threads.value_or(
            ir::target_of(program).points.threads)),
        pool_(pool) {}

  KernelText run();

 private:
  // points.cc
  void decode(const ir::Axes& axes, bool is_behind);
  void decode_tile(const ir::Axes& axes, bool is_behind);
  std::string extent(const ir::Axes& axes, size_t k);
  bool has_several() const { return points_per_thread_ > 1 || across_; }
  void open_points();
  void close_points();
  void open_across();
  void close_across();
  std::string declare(ir::Name name, expr::DType dtype);
  static bool is_reserved(std::string_view name);
  std::string fresh(std::string_view stem);
  std::string define(ir::Name name);
  std::string variable(expr::Expr v) const;
  std::string offset(std::string_view tensor, std::span<const expr::Expr> indices);
  std::string text(expr::Expr e);
  void name_shared(std::initializer_list<expr::Expr> roots);
  static void reach(expr::Expr e, std::set<const expr::Node*>& always);
  void block(const ir::Block& ops);
  void statement(const ir::Op& op);
  void define_number(ir::Name name, expr::DType dtype, expr::Expr value, std::string_view constant);
  void share(const matile::SharedLoop& s);
  void join(const matile::Join& j);
  void loop(const matile::Loop& l);

  // points_inside.cc
  using Ranges = std::vector<std::pair<expr::Expr, int64_t>>;  // loops around, with their turns
  void ask_where(expr::Expr guarded, const Ranges& ranges);
  expr::Expr inside(expr::Expr guarded);
  void collect_names(const ir::Block& body);
  void collect_conditions(const ir::Block& body, Ranges ranges);
  std::string are_inside();
  std::string are_aligned(const ir::Block& ops) const;
  void fast(const ir::Block& ops, const std::string& inside);
  void body(const ir::Block& ops);

  std::string load_where(expr::Expr e, const std::string& at = "");
  static bool is_guarded_always(expr::Expr e);

  // points_windows.cc
  static bool is_window(const matile::Loop& l);
  void window(const matile::Loop& l);
  void write_turns(const matile::Loop& l, expr::Substitution& turns);
  void write_turn(const matile::Assign& a, const expr::Substitution& turns);
  void load_once(expr::Expr element);
  std::vector<expr::Expr> elements_of(expr::Expr value) const;
  void define_each(const std::string& own, expr::Expr value,
                   const std::vector<expr::Expr>& elements);
  expr::Expr with_quotients(expr::Expr e);

  // points_patches.cc
  void decode_patch(const ir::Axes& axes, bool is_behind);
  void patch_body(const ir::Block& ops);
  void take_known_strides();
  std::string are_near() const;
  void single_points(const ir::Block& ops);
  bool patch_loop(const matile::Loop& l);
  std::string known_conditions(expr::Expr condition);
  struct Place;
  std::optional<Place> place_of(ir::Name tensor, std::span<const expr::Expr> indices);
  void load_in_patch(expr::Expr element);
  void write_patch(const matile::Write& w);

  // points_held.cc
  static expr::Expr held_turns(const ir::Block& ops);
  std::map<expr::Expr, expr::Expr, expr::ByContent> reads_of_turn(const matile::Loop& l);
  void load_held(const ir::Block& ops);
  void hold(const ir::Block& ops);
  bool held_loop(const matile::Loop& l);
  void loop_behind_loads(const matile::Loop& l, const std::string& to, const std::string& var);

  // points_lines.cc
  bool has_line(ir::Name tensor, std::span<const expr::Expr> indices) const;
  bool has_line_along(expr::Expr axis, ir::Name tensor, std::span<const expr::Expr> indices) const;
  void load_line(expr::Expr read, const std::string& name);
  void put_line(const matile::Write& w, const std::string& name);
  void load_turned(expr::Expr read);
  bool is_guarded(expr::Expr e) const;
  void load_guarded(expr::Expr e);
  void load_lines(expr::Expr value);
  void store_line(const matile::Write& w);
  std::string apart(ir::Name tensor) const;

  // points_walks.cc
  bool is_walked(ir::Name tensor, std::span<const expr::Expr> indices,
                 const matile::LaneLoop& w) const;
  std::vector<expr::Expr> walked_reads(const matile::LaneLoop& w) const;
  void ask_skew(const matile::LaneLoop& w, const std::vector<expr::Expr>& reads);
  std::string line_place(const matile::LaneLoop& w, const std::string& round);
  std::string is_whole_round(const matile::LaneLoop& w, const std::string& round);
  std::string vector_place(ir::Name tensor, std::span<const expr::Expr> indices);
  void load_round(const matile::LaneLoop& w, const std::vector<expr::Expr>& reads,
                  const std::string& round);
  void walk_values(const matile::LaneLoop& w, const std::vector<expr::Expr>& reads);
  void store_round(const matile::LaneLoop& w, const matile::Write& write);
  void walk(const matile::LaneLoop& w);

  // points_scans.cc
  std::string identity(const matile::LaneScan& s);
  std::string combined(const matile::LaneScan& s, const std::string& before,
                       const std::string& after);
  void scan_round(const matile::LaneLoop& w, const matile::LaneScan& s);

  // points_parts.cc
  bool is_over_parts(expr::Expr to) const;
  void over_parts(ir::Name name, std::string_view from, const std::string& to,
                  const ir::Block& body);
  void walk_reads(ir::Name var, const ir::Block& body);
  std::string step_of(expr::Expr read, expr::Expr var,
                      const std::set<std::string, std::less<>>& defined) const;
  std::string next_of(expr::Expr read) const;
  bool is_settled(expr::Expr index, const std::set<std::string, std::less<>>& defined) const;

  const ir::Program& program_;
  const matile::Kernel& kernel_;
  int64_t threads_;  // of a CTA
  expr::ExprPool& pool_;
  Writer out_;
  GlobalTensors globals_;
  std::set<std::string, std::less<>> plan_sizes_;
  std::set<std::string, std::less<>> written_;  // tensors: reads must not go past what is written
  expr::Facts facts_;
  std::map<std::string, std::string, std::less<>> locals_;
  std::map<std::string, expr::DType, std::less<>> dtypes_;  // of values
  int64_t lanes_ = 1;                                       // of each point
  int64_t points_per_thread_ = 1;  // points of a thread, along the last axis
  bool is_line_ = false;           // whose number `exist` says: whole vectors where they can be
  expr::Expr last_;                // that axis
  expr::Expr across_;              // another one along which a thread has points; null if none
  int64_t points_across_ = 1;
  int64_t lines_across_ = 1;  // threads along the last axis, where points lie across another
  int64_t windows_ = 0;       // most turns of a window that is written out
  bool is_patch_ = false;     // points along `across_` for each of those along `last_`
  std::set<std::string, std::less<>> loops_;  // variables of loops around, of a patch
  // Of a patch: what is asked, and where elements lie that no loop moves, once for all turns of its
  // loops; their names by what they are.
  std::map<expr::Expr, std::string, expr::ByContent> conditions_;
  std::map<std::string, std::string, std::less<>> pointers_;
  // Dimensions along which loops and points move.
  std::set<std::pair<std::string, size_t>> moved_;
  int64_t spread_ = 0;        // threads along the last axis, if points lie so far apart; else 0
  std::string saved_across_;  // its text while points are told apart
  std::string turn_;          // the condition of a turn, asked for each point
  std::string saved_last_;    // its text while points are told apart
  std::set<std::string> taken_;
  std::map<expr::Expr, std::string, expr::ByContent> named_;  // of the statement being printed
  // Lines of a thread with points across its last axis: loaded once for all its statements.
  std::map<expr::Expr, std::string, expr::ByContent> kept_lines_;
  // Places of elements in a loop over parts.
  std::map<expr::Expr, std::string, expr::ByContent> walked_;
  std::set<std::string, std::less<>> own_;        // names of the body whose values differ by turns
  std::set<expr::Expr, expr::ByContent> inside_;  // conditions that hold inside
  // What loads ask of them besides.
  std::map<expr::Expr, expr::Expr, expr::ByContent> left_;
  std::map<std::string, std::string>
      window_places_;   // names of places and elements, by what they are
  int64_t held_ = 0;    // turns of loops, at most
  int64_t unroll_ = 1;  // turns of a loop written one after the other
  std::map<expr::Expr, std::string, expr::ByContent> held_arrays_;  // by elements of a turn
  std::map<expr::Expr, std::string, expr::ByContent> held_names_;   // in the loop being written
  bool is_holding_ = false;                                         // while loops have few turns
  std::vector<expr::Expr> asked_;                                   // once, for all of them
  // Names in the text of a walk with vectors, and what it takes.
  struct WalkText {
    int64_t lines = 1;                // vectors of a thread in a round
    std::string skew;                 // elements from a multiple of a vector to where a row begins
    std::string is_even;              // all tensors lie alike
    std::string begin;                // of the first round
    std::string count;                // of all numbers
    std::string own;                  // the thread's first number of a round
    std::string round;                // the first number of this one
    std::string warp;                 // of the thread
    std::string turn;                 // of rounds that take turns at shared memory
    std::string shared;               // where it begins
    std::vector<std::string> packed;  // vectors, by reads
    int64_t shared_bytes = 0;
  } walk_;
  int64_t shared_bytes_ = 0;      // of the kernel
  bool is_inside_ = false;        // while the text for threads inside is written
  bool are_whole_ = false;        // all points of the thread are computed
  bool are_lines_whole_ = false;  // whole vectors, at places that take them
  bool are_written_out_ = false;  // turns of windows, where all points are known
  bool is_ahead_ = false;         // while turns are written out whose loads are under way together
  bool is_near_ = false;          // for those at an edge, whose turns are written out
  int numbers_ = 0;               // of fresh names
};

}  // namespace nautilus::emit
