// SPDX-License-Identifier: Apache-2.0
#include "emit/points/points_scans.h"

#include <algorithm>

#include "emit/typed_expression.h"
#include "expr/scalar_ops.h"

namespace nautilus::emit {
namespace {

using expr::DType;

class ScanWriter {
 public:
  ScanWriter(PointsScope& scope, WalkText& walk, const matile::LaneLoop& w,
             const matile::LaneScan& s)
      : scope_(scope),
        out_(scope.out),
        walk_(walk),
        scan_(s),
        is_up_(w.order == matile::WalkOrder::Up),
        vector_(*w.vector),
        dtype_(scope.dtypes.find(s.name.str())->second),
        type_(carrier(dtype_)),
        all_(scope.local(s.total)),
        none_(scan_identity(scope, s)),
        before_(scope.fresh("before")),
        line_all_(scope.fresh("line_all")) {
    const std::string& own = scope.local(s.name);
    array_ = own.substr(0, own.find('['));
  }

  void run() {
    out_.line("{0} {1}[{3}], {2}[{3}];", type_, before_, line_all_, walk_.lines);
    scan_lines();
    join_lines();
    if (walk_.warps > 1) join_warps();
    add_before();
  }

 private:
  std::string at(std::string_view place) const {
    return fmt::format("{}[over][{}]", array_, place);
  }
  // Elements lie in the order of memory, whichever way the walk goes.
  std::string neighbour() const { return at(is_up_ ? "beside - 1" : "beside + 1"); }
  std::string in_order(bool is_forth) const;
  std::string combined(const std::string& before, const std::string& after);
  void open_lines(int first);
  void scan_lines();
  void join_lines();
  void join_warps();
  void add_before();

  PointsScope& scope_;
  Writer& out_;
  WalkText& walk_;
  const matile::LaneScan& scan_;
  bool is_up_;
  int64_t vector_;
  DType dtype_;
  std::string_view type_;
  std::string all_;       // of the round
  std::string none_;      // the identity
  std::string before_;    // of each vector: what stands before it
  std::string line_all_;  // of each vector: what all lanes have
  std::string array_;     // the numbers
};

// A loop over the numbers of a vector that have one before them, along the walk or against it.
std::string ScanWriter::in_order(bool is_forth) const {
  return is_forth == is_up_ ? fmt::format("UNROLL for (int beside = {}; beside < {}; ++beside)",
                                          is_up_ ? 1 : 0, is_up_ ? vector_ : vector_ - 1)
                            : fmt::format("UNROLL for (int beside = {}; beside >= {}; --beside)",
                                          is_up_ ? vector_ - 1 : vector_ - 2, is_up_ ? 1 : 0);
}

std::string ScanWriter::combined(const std::string& before, const std::string& after) {
  expr::ExprPool& pool = scope_.pool;
  const auto locals = scope_.locals;
  scope_.locals["combined.before"] = before;
  scope_.locals["combined.after"] = after;
  const std::string out = scope_.text(pool.binary(expr::combiner(scan_.reducer),
                                                  pool.var(pool.name("combined.before"), dtype_),
                                                  pool.var(pool.name("combined.after"), dtype_)));
  scope_.locals = locals;
  return out;
}

void ScanWriter::open_lines(int first) {
  out_.open("UNROLL for (int over = {}; over < {}; ++over) {{", first, walk_.lines);
}

// Each vector of a thread, then of all lanes.
void ScanWriter::scan_lines() {
  open_lines(0);
  if (vector_ > 1)
    out_.line("{} {} = {};", in_order(true), at("beside"), combined(neighbour(), at("beside")));
  out_.line("{}[over] = {};", line_all_, at(is_up_ ? std::to_string(vector_ - 1) : "0"));
  out_.line("{}[over] = {};", before_, none_);
  out_.open("UNROLL for (int mask = 1; mask < {}; mask *= 2) {{", scope_.grid.warp);
  out_.line("const {} other = lane_xor({}[over], mask);", type_, line_all_);
  out_.line("if (lane & mask) {}[over] = {};", before_, combined("other", before_ + "[over]"));
  out_.line("{}[over] = {};", line_all_, combined(line_all_ + "[over]", "other"));
  out_.close();
  out_.close();
}

void ScanWriter::join_lines() {
  out_.line("{} = {}[0];", all_, line_all_);
  if (walk_.lines == 1) return;
  open_lines(1);
  out_.line("{}[over] = {};", before_, combined(all_, before_ + "[over]"));
  out_.line("{} = {};", all_, combined(all_, line_all_ + "[over]"));
  out_.close();
}

void ScanWriter::join_warps() {
  const auto bytes = static_cast<int64_t>(expr::bytes(dtype_));
  const int64_t width = std::max<int64_t>(bytes, 4);
  const std::string base = fmt::format("{} + {}", walk_.shared, walk_.shared_bytes);
  walk_.shared_bytes += 2 * walk_.warps * width;
  const std::string front = scope_.fresh("front");
  const std::string part = scope_.fresh("part");
  out_.line("if (lane == 0) shared_put({} + {} * (u32)({} * {} + {}), {});", base, width,
            walk_.turn, walk_.warps, walk_.warp, all_);
  out_.line("sync_cta();");
  out_.line("{} {} = {};", type_, front, none_);
  out_.line("{} = {};", all_, none_);
  out_.open("UNROLL for (int more = 0; more < {}; ++more) {{", walk_.warps);
  out_.line("{} {};", type_, part);
  out_.line("shared_take({} + {} * (u32)({} * {} + more), {});", base, width, walk_.turn,
            walk_.warps, part);
  out_.line("if (more < {}) {} = {};", walk_.warp, front, combined(front, part));
  out_.line("{} = {};", all_, combined(all_, part));
  out_.close();
  out_.line("UNROLL for (int over = 0; over < {}; ++over) {}[over] = {};", walk_.lines, before_,
            combined(front, before_ + "[over]"));
}

// What stands before each vector is added to its numbers.
void ScanWriter::add_before() {
  open_lines(0);
  const std::string in_front = before_ + "[over]";
  if (scan_.reach == matile::ScanReach::Upto) {
    out_.line("UNROLL for (int beside = 0; beside < {}; ++beside) {} = {};", vector_, at("beside"),
              combined(in_front, at("beside")));
  } else {
    if (vector_ > 1)
      out_.line("{} {} = {};", in_order(false), at("beside"), combined(in_front, neighbour()));
    out_.line("{} = {};", at(is_up_ ? "0" : std::to_string(vector_ - 1)), in_front);
  }
  out_.close();
}

}  // namespace

std::string scan_identity(PointsScope& scope, const matile::LaneScan& s) {
  const DType dtype = scope.dtypes.find(s.name.str())->second;
  const expr::Value v = expr::identity(s.reducer, dtype);
  return scope.text(is_float(dtype) ? scope.pool.floating(v.f, dtype)
                                    : scope.pool.integer(v.i, dtype));
}

void scan_round(PointsScope& scope, WalkText& walk, const matile::LaneLoop& w,
                const matile::LaneScan& s) {
  ScanWriter(scope, walk, w, s).run();
}

}  // namespace nautilus::emit
