// SPDX-License-Identifier: Apache-2.0
// A round of a walk is scanned: in the registers of a thread, across the lanes of a warp by
// exchanges, across the vectors of a warp, and across the warps of a CTA through shared memory.
#include <algorithm>

#include "emit/points/points_emitter.h"
#include "emit/typed_expression.h"
#include "expr/scalar_ops.h"

namespace nautilus::emit {

using expr::DType;

namespace {

constexpr int64_t kScanLanes = 32;

}  // namespace

std::string PointsEmitter::identity(const matile::LaneScan& s) {
  const DType dtype = dtypes_.at(std::string(s.name.str()));
  const expr::Value v = expr::identity(s.reducer, dtype);
  return text(is_float(dtype) ? pool_.floating(v.f, dtype) : pool_.integer(v.i, dtype));
}

std::string PointsEmitter::combined(const matile::LaneScan& s, const std::string& before,
                                    const std::string& after) {
  const DType dtype = dtypes_.at(std::string(s.name.str()));
  const auto locals = locals_;
  locals_["combined.before"] = before;
  locals_["combined.after"] = after;
  const std::string out =
      text(pool_.binary(expr::combiner(s.reducer), pool_.var(pool_.name("combined.before"), dtype),
                        pool_.var(pool_.name("combined.after"), dtype)));
  locals_ = locals;
  return out;
}

void PointsEmitter::scan_round(const matile::LaneLoop& w, const matile::LaneScan& s) {
  const bool is_up = w.order == matile::WalkOrder::Up;
  const DType dtype = dtypes_.at(std::string(s.name.str()));
  const std::string_view type = carrier(dtype);
  const int64_t vector = *w.vector;
  const std::string own = locals_.at(std::string(s.name.str()));
  const std::string array = own.substr(0, own.find('['));
  const auto at = [&](std::string_view place) { return fmt::format("{}[over][{}]", array, place); };
  const std::string all = locals_.at(std::string(s.total.str()));
  const std::string none = identity(s);
  const std::string before = fresh("before");
  const std::string line_all = fresh("line_all");
  out_.line("{0} {1}[{3}], {2}[{3}];", type, before, line_all, walk_.lines);
  out_.open("UNROLL for (int over = 0; over < {}; ++over) {{", walk_.lines);
  // Elements lie in the order of memory, whichever way the walk goes.
  const std::string from = is_up ? "beside - 1" : "beside + 1";
  const auto in_order = [&](bool is_forth) {
    return is_forth == is_up ? fmt::format("UNROLL for (int beside = {}; beside < {}; ++beside)",
                                           is_up ? 1 : 0, is_up ? vector : vector - 1)
                             : fmt::format("UNROLL for (int beside = {}; beside >= {}; --beside)",
                                           is_up ? vector - 1 : vector - 2, is_up ? 1 : 0);
  };
  if (vector > 1)
    out_.line("{} {} = {};", in_order(true), at("beside"), combined(s, at(from), at("beside")));
  out_.line("{}[over] = {};", line_all, at(is_up ? std::to_string(vector - 1) : "0"));
  out_.line("{}[over] = {};", before, none);
  out_.open("UNROLL for (int mask = 1; mask < {}; mask *= 2) {{", kScanLanes);
  out_.line("const {} other = lane_xor({}[over], mask);", type, line_all);
  out_.line("if (lane & mask) {}[over] = {};", before, combined(s, "other", before + "[over]"));
  out_.line("{}[over] = {};", line_all, combined(s, line_all + "[over]", "other"));
  out_.close();
  out_.close();
  out_.line("{} = {}[0];", all, line_all);
  if (walk_.lines > 1) {
    out_.open("UNROLL for (int over = 1; over < {}; ++over) {{", walk_.lines);
    out_.line("{}[over] = {};", before, combined(s, all, before + "[over]"));
    out_.line("{} = {};", all, combined(s, all, line_all + "[over]"));
    out_.close();
  }
  const int64_t warps = lanes_ / kScanLanes;
  if (warps > 1) {
    const auto bytes = static_cast<int64_t>(expr::bytes(dtype));
    const int64_t width = std::max<int64_t>(bytes, 4);
    const std::string base = fmt::format("{} + {}", walk_.shared, walk_.shared_bytes);
    walk_.shared_bytes += 2 * warps * width;
    const std::string front = fresh("front");
    const std::string part = fresh("part");
    out_.line("if (lane == 0) shared_put({} + {} * (u32)({} * {} + {}), {});", base, width,
              walk_.turn, warps, walk_.warp, all);
    out_.line("sync_cta();");
    out_.line("{} {} = {};", type, front, none);
    out_.line("{} = {};", all, none);
    out_.open("UNROLL for (int more = 0; more < {}; ++more) {{", warps);
    out_.line("{} {};", type, part);
    out_.line("shared_take({} + {} * (u32)({} * {} + more), {});", base, width, walk_.turn, warps,
              part);
    out_.line("if (more < {}) {} = {};", walk_.warp, front, combined(s, front, part));
    out_.line("{} = {};", all, combined(s, all, part));
    out_.close();
    out_.line("UNROLL for (int over = 0; over < {}; ++over) {}[over] = {};", walk_.lines, before,
              combined(s, front, before + "[over]"));
  }
  out_.open("UNROLL for (int over = 0; over < {}; ++over) {{", walk_.lines);
  const std::string in_front = before + "[over]";
  if (s.reach == matile::ScanReach::Upto) {
    out_.line("UNROLL for (int beside = 0; beside < {}; ++beside) {} = {};", vector, at("beside"),
              combined(s, in_front, at("beside")));
  } else {
    if (vector > 1)
      out_.line("{} {} = {};", in_order(false), at("beside"), combined(s, in_front, at(from)));
    out_.line("{} = {};", at(is_up ? "0" : std::to_string(vector - 1)), in_front);
  }
  out_.close();
}

}  // namespace nautilus::emit
