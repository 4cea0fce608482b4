// SPDX-License-Identifier: Apache-2.0
#include "emit/points/points_walks.h"

#include <algorithm>
#include <utility>

#include "emit/identifier.h"
#include "emit/points/points_lines.h"
#include "emit/points/points_scans.h"
#include "emit/typed_expression.h"

namespace nautilus::emit {
namespace {

using expr::DType;
using expr::Expr;

bool is_packed(DType dtype) { return dtype != DType::F8E4M3 && dtype != DType::F8E5M2; }

std::string_view stored_type(DType dtype) {
  switch (dtype) {
    case DType::F32:
    case DType::TF32:
      return "float";
    case DType::F64:
      return "double";
    case DType::I32:
      return "int";
    case DType::I64:
      return "long long";
    default:
      return expr::is_half(dtype) ? "u16" : "unsigned char";
  }
}

// A name that the walk gives in each round, and its value.
struct WalkedValue {
  ir::Name name;
  DType dtype;
  Expr value;
  bool is_total;  // of a scan: one for all numbers
};

class WalkWriter {
 public:
  WalkWriter(PointsScope& scope, const matile::LaneLoop& w)
      : scope_(scope),
        out_(scope.out),
        walk_(w),
        is_up_(w.order == matile::WalkOrder::Up),
        vector_(*w.vector),
        numbers_(scope.grid.lanes * *w.each),
        names_(scope, w),
        values_(values_of(w)) {}

  void run();

 private:
  static std::vector<WalkedValue> values_of(const matile::LaneLoop& w);
  void begin();
  // Whether the tensor's elements of a walk are neighbours.
  bool is_walked(ir::Name tensor, std::span<const Expr> indices) const;
  // Whether an element lies in its tensor for all numbers.
  bool is_there(Expr read) const;
  void collect_reads();
  void ask_skew();
  std::string line_place(const std::string& round) const;
  std::string vector_place(ir::Name tensor, std::span<const Expr> indices);
  // What is done in a whole round, and in one at an edge.
  template <class Write>
  void write_round(const std::string& round, const Write& write);
  template <class Write>
  void each_line(const std::string& round, const Write& write);
  template <class Before, class Write>
  void each_number(bool is_whole, const Before& before, const Write& write);
  void load_round(const std::string& round);
  void load_next_round();
  void declare_values();
  void write_values();
  void store_round(const matile::Write& write);

  PointsScope& scope_;
  Writer& out_;
  const matile::LaneLoop& walk_;
  bool is_up_;
  int64_t vector_;
  int64_t numbers_;  // of a round
  WalkText names_;
  std::vector<WalkedValue> values_;
  std::vector<Expr> reads_;  // what the values read along the walk
};

std::vector<WalkedValue> WalkWriter::values_of(const matile::LaneLoop& w) {
  NameSet totals;
  for (const ir::Op& op : w.body) {
    if (const auto* s = op.get<matile::LaneScan>()) totals.emplace(s->total.str());
  }
  std::vector<WalkedValue> out;
  for (const ir::Op& op : w.body) {
    if (const auto* v = op.get<matile::Value>())
      out.push_back({v->name, v->dtype, v->init, totals.contains(v->name.str())});
    if (const auto* l = op.get<matile::Let>())
      out.push_back({l->name, l->value.dtype(), l->value, totals.contains(l->name.str())});
  }
  return out;
}

// The number of the thread, and the count of all.
void WalkWriter::begin() {
  const bool has_warps = names_.warps > 1;
  if (has_warps) out_.line("SHARED_BASE({});", names_.shared);
  out_.line("const long long {} = {};", names_.count, scope_.text(walk_.count));
  if (has_warps) out_.line("const int {} = thread_index() / {};", names_.warp, scope_.grid.warp);
  out_.line("const int {} = {};", names_.own,
            has_warps ? fmt::format("{} * {} + {} * lane", names_.warp,
                                    scope_.grid.warp * *walk_.each, vector_)
                      : fmt::format("{} * lane", vector_));
}

bool WalkWriter::is_walked(ir::Name tensor, std::span<const Expr> indices) const {
  const GlobalTensor& global = scope_.global(tensor);
  const Expr var = scope_.pool.index(walk_.var);
  const bool has_words = vector_ * expr::bytes(global.type.dtype) % 4 == 0;
  return !indices.empty() && indices.back() == var && !global.is_scratch &&
         is_packed(global.type.dtype) && has_words &&
         std::none_of(indices.begin(), indices.end() - 1,
                      [&](Expr index) { return expr::depends_on(index, var); });
}

bool WalkWriter::is_there(Expr read) const {
  const ir::Axes& axes = scope_.points().axes;
  const ir::Exprs& dims = scope_.global(read.name()).type.dims;
  for (size_t k = 0; k + 1 < dims.size(); ++k) {
    const auto is_it = [&](const ir::Axis& a) {
      return scope_.pool.index(a.name) == read[k] && a.extent == dims[k];
    };
    if (std::none_of(axes.begin(), axes.end(), is_it)) return false;
  }
  return dims.back() == walk_.count;
}

// An element that is read under a condition is loaded for all numbers, so it has to lie in its
// tensor for all of them.
void WalkWriter::collect_reads() {
  for (const WalkedValue& v : values_) {
    const auto always = evaluated_always(v.value);
    expr::for_each(v.value, [&](Expr e) {
      if (e.op() != expr::Op::Read || scope_.written.contains(e.name().str())) return;
      if (!is_walked(e.name(), e.args())) return;
      if (!always.contains(e.node()) && !is_there(e)) return;
      if (std::find(reads_.begin(), reads_.end(), e) == reads_.end()) reads_.push_back(e);
    });
  }
}

// Asks where a row begins: `skew` elements behind a multiple of a vector, and whether all tensors
// of the walk do alike.
void WalkWriter::ask_skew() {
  std::string all;
  const auto both = [&](const std::string& one) { all += (all.empty() ? "" : " && ") + one; };
  std::string skew;
  std::set<std::string> seen;  // where the row begins, or ends if it is walked down
  const std::string count = scope_.text(walk_.count);
  const auto add = [&](ir::Name tensor, std::span<const Expr> indices) {
    const GlobalTensor& global = scope_.global(tensor);
    const OtherText at(scope_, walk_.var, is_up_ ? "0" : count);
    const std::string place = fmt::format("(u64)(p.{} + {}) / {}", identifier(tensor.str()),
                                          scope_.offset(tensor, indices), bytes(global.type.dtype));
    if (!seen.insert(place).second) return;
    if (global.strides.back() != "1") both(fmt::format("{} == 1", global.strides.back()));
    if (skew.empty())
      skew = place;
    else
      both(fmt::format("({}) % {} == {}", place, vector_, names_.skew));
  };
  for (const ir::Op& op : walk_.body) {
    const auto* write = op.get<matile::Write>();
    if (write && is_walked(write->target, write->indices)) add(write->target, write->indices);
  }
  for (Expr r : reads_) add(r.name(), r.args());
  out_.line("const u64 {} = {} % {};", names_.skew, skew.empty() ? "0" : skew, vector_);
  out_.line("const bool {} = {};", names_.is_even, all.empty() ? "true" : all);
  const std::string before =
      is_up_ ? fmt::format("(long long){}", names_.skew)
             : fmt::format("(long long)(({0} - {1}) % {0})", vector_, names_.skew);
  out_.line("const long long {} = {} ? -{} : 0;", names_.begin, names_.is_even, before);
}

// The text of the first number of line `over` of a thread in the round that begins so.
std::string WalkWriter::line_place(const std::string& round) const {
  const std::string at =
      fmt::format("{} + {} + {} * over", round, names_.own, scope_.grid.warp * vector_);
  return is_up_ ? at : fmt::format("{} - {} - ({})", names_.count, vector_, at);
}

// The place of a vector, with elements that are known to be neighbours.
std::string WalkWriter::vector_place(ir::Name tensor, std::span<const Expr> indices) {
  std::string& stride = scope_.globals.find(tensor.str())->second.strides.back();
  const std::string saved = std::exchange(stride, "1");
  const std::string out = scope_.offset(tensor, indices);
  stride = saved;
  return out;
}

template <class Write>
void WalkWriter::write_round(const std::string& round, const Write& write) {
  out_.open("if ({0} && {1} >= 0 && {1} + {2} <= {3}) {{", names_.is_even, round, numbers_,
            names_.count);
  write(true);
  out_.open_else();
  write(false);
  out_.close();
}

template <class Write>
void WalkWriter::each_line(const std::string& round, const Write& write) {
  out_.open("UNROLL for (int over = 0; over < {}; ++over) {{", names_.lines);
  out_.line("const long long first = {};", line_place(round));
  write();
  out_.close();
}

// Of a line; in a round at an edge those that exist, after what is done for all.
template <class Before, class Write>
void WalkWriter::each_number(bool is_whole, const Before& before, const Write& write) {
  out_.open("UNROLL for (int beside = 0; beside < {}; ++beside) {{", vector_);
  if (!is_whole) {
    before();
    out_.open("if (first + beside >= 0 && first + beside < {}) {{", names_.count);
  }
  write();
  if (!is_whole) out_.close();
  out_.close();
}

// Loads the vectors of a round, all of them before the first is used.
void WalkWriter::load_round(const std::string& round) {
  if (reads_.empty()) return;
  const OtherText at(scope_, walk_.var, "first");
  write_round(round, [&](bool is_whole) {
    for (size_t n = 0; n < reads_.size(); ++n) {
      const Expr r = reads_[n];
      each_line(round, [&] {
        const std::string tensor = identifier(r.name().str());
        if (is_whole)
          out_.line("load_packed({}[over], p.{}, {});", names_.packed[n], tensor,
                    vector_place(r.name(), r.args()));
        else
          out_.line("load_some({}[over], p.{}, {}, {}, -first, {} - first);", names_.packed[n],
                    tensor, scope_.offset(r.name(), r.args()), apart(scope_, r.name()),
                    names_.count);
      });
    }
  });
}

// The next round is under way while this one is scanned.
void WalkWriter::load_next_round() {
  if (reads_.empty()) return;
  const std::string next = scope_.fresh("next");
  out_.line("const long long {} = {} + {};", next, names_.round, numbers_);
  out_.open("if ({} < {}) {{", next, names_.count);
  load_round(next);
  out_.close();
}

void WalkWriter::declare_values() {
  for (const WalkedValue& v : values_) {
    scope_.dtypes[std::string(v.name.str())] = v.dtype;
    const std::string own = scope_.define(v.name);
    if (v.is_total) {
      out_.line("{} {};", carrier(v.dtype), own);
      continue;
    }
    out_.line("{} {}[{}][{}];", carrier(v.dtype), own, names_.lines, vector_);
    scope_.local(v.name) = own + "[over][beside]";
  }
}

// The values of all numbers of a thread: of those that do not exist, of a scan, the identity.
void WalkWriter::write_values() {
  declare_values();
  const auto write_identities = [&] {
    for (const ir::Op& op : walk_.body) {
      const auto* s = op.get<matile::LaneScan>();
      if (s) out_.line("{} = {};", scope_.local(s->name), scan_identity(scope_, *s));
    }
  };
  const auto write_number = [&] {
    for (const WalkedValue& v : values_) {
      if (v.is_total) continue;
      scope_.named.clear();
      for (size_t n = 0; n < reads_.size(); ++n)
        scope_.named.emplace(
            reads_[n], fmt::format("packed_{}({}[over], beside)", expr::name(reads_[n].dtype()),
                                   names_.packed[n]));
      scope_.name_shared(v.value);
      out_.line("{} = {};", scope_.local(v.name), scope_.text(v.value));
    }
    scope_.named.clear();
  };
  write_round(names_.round, [&](bool is_whole) {
    each_line(names_.round, [&] { each_number(is_whole, write_identities, write_number); });
  });
}

// Stores the vectors of a round.
void WalkWriter::store_round(const matile::Write& write) {
  const std::string tensor = identifier(write.target.str());
  const std::string_view dtype = expr::name(write.value.dtype());
  const auto each = [&](bool is_whole) {
    each_line(names_.round, [&] {
      const std::string packed = is_whole ? scope_.fresh("packed") : "";
      if (is_whole)
        out_.line("Packed<{}, {}> {};", stored_type(write.value.dtype()), vector_, packed);
      each_number(
          is_whole, [] {},
          [&] {
            scope_.name_shared(write.value);
            const std::string value = scope_.text(write.value);
            if (is_whole)
              out_.line("put_{}({}, beside, {});", dtype, packed, value);
            else
              out_.line("store_{}(p.{}, {}, {});", dtype, tensor,
                        scope_.offset(write.target, write.indices), value);
            scope_.named.clear();
          });
      if (!is_whole) return;
      const OtherText at(scope_, walk_.var, "first");
      out_.line("store_packed(p.{}, {}, {});", tensor, vector_place(write.target, write.indices),
                packed);
    });
  };
  is_walked(write.target, write.indices) ? write_round(names_.round, each) : each(false);
}

void WalkWriter::run() {
  const OwnNames own(scope_);
  begin();
  scope_.locals[std::string(walk_.var.str())] = "(first + beside)";
  collect_reads();
  ask_skew();
  for (Expr r : reads_) {
    names_.packed.push_back(scope_.fresh(identifier(r.name().str())));
    out_.line("Packed<{}, {}> {}[{}];", stored_type(r.dtype()), vector_, names_.packed.back(),
              names_.lines);
  }
  load_round(names_.begin);
  if (names_.warps > 1) out_.line("int {} = 0;", names_.turn);
  out_.open("for (long long {0} = {1}; {0} < {2}; {0} += {3}) {{", names_.round, names_.begin,
            names_.count, numbers_);
  scope_.facts.add_axis(scope_.pool.index(walk_.var), walk_.count);
  write_values();
  load_next_round();
  for (const ir::Op& op : walk_.body) {
    scope_.named.clear();
    if (const auto* s = op.get<matile::LaneScan>()) scan_round(scope_, names_, walk_, *s);
    if (const auto* x = op.get<matile::Write>()) store_round(*x);
    if (const auto* a = op.get<matile::Assign>())
      out_.line("{} = {};", scope_.local(a->name), scope_.text(a->value));
  }
  if (names_.warps > 1) out_.line("{} ^= 1;", names_.turn);
  out_.close();
  scope_.shared_bytes = std::max(scope_.shared_bytes, names_.shared_bytes);
}

}  // namespace

WalkText::WalkText(PointsScope& scope, const matile::LaneLoop& w)
    : warps(scope.grid.lanes / scope.grid.warp),
      lines(*w.each / *w.vector),
      skew(scope.fresh("skew")),
      is_even(scope.fresh("is_even")),
      begin(scope.fresh("begin")),
      count(scope.fresh("count")),
      own(scope.fresh("own")),
      round(scope.fresh("round")) {
  if (warps == 1) return;
  warp = scope.fresh("warp");
  turn = scope.fresh("turn");
  shared = scope.fresh("shared");
}

void write_walk(PointsScope& scope, const matile::LaneLoop& w) { WalkWriter(scope, w).run(); }

}  // namespace nautilus::emit
