// SPDX-License-Identifier: Apache-2.0
// An element's new place is a set of digits: of the register, the lane and the warp. Its old place
// is a sum over the same digits (layout::common_digits), which is what the text below says:
//
//   new digit   old digit    in the text
//   register    register     a number, once the loop is unrolled
//   any         lane         part of the lane that is asked
//   warp        register     the same register for all lanes of a warp: chosen before it is sent
//   lane        register     lanes want different registers of the lane they ask: each is sent, and
//                            the lane keeps its own
#include "emit/convert.h"

#include "emit/expression.h"
#include "emit/vector.h"
#include "layout/convert.h"
#include "matile/registers.h"

namespace nautilus::emit {
namespace {

using layout::CommonDigit;
using layout::Layout;
using layout::Owner;

constexpr int kLanes = 32;
constexpr int kWarps = 4;

// A sum of multiples of digits, as text.
class Sum {
 public:
  // factor * (variable / stride % extent), where the variable is less than `end`.
  void add(const std::string& variable, int stride, int extent, int end, int factor) {
    std::string digit = variable;
    if (stride != 1) digit += fmt::format(" / {}", stride);
    if (stride * extent < end) digit += fmt::format(" % {}", extent);
    if (factor != 1) digit += fmt::format(" * {}", factor);
    text_ += (text_.empty() ? "" : " + ") + digit;
  }
  void add(const std::string& term) { text_ += (text_.empty() ? "" : " + ") + term; }
  std::string text() const { return text_.empty() ? "0" : text_; }

 private:
  std::string text_;
};

// Registers of which the thread knows at run time only which is meant: digits of its lane or of its
// warp, counted as one number.
struct Choice {
  int count = 1;
  Sum mine;  // the number, from the lane or warp
  Sum step;  // what the number `variable` adds to the register

  void add(const CommonDigit& d, const std::string& owner, int end, const std::string& variable) {
    mine.add(owner, d.to_stride, d.extent, end, count);
    steps_.push_back({count, d.extent, d.from_stride});
    count *= d.extent;
    step = {};
    for (const auto& s : steps_) step.add(variable, s.stride, s.extent, count, s.factor);
  }

 private:
  struct Step {
    int stride;
    int extent;
    int factor;
  };
  std::vector<Step> steps_;
};

class Conversion {
 public:
  Conversion(const matile::Convert& op, const RegisterScope& scope, Writer& out)
      : from_(scope.tiles.find(op.source.str())->second),
        to_(scope.tiles.find(op.target.str())->second),
        from_name_(identifier(op.source.str())),
        to_name_(identifier(op.target.str())),
        out_(out) {}

  // No element leaves its thread.
  void by_names() {
    const layout::Conversion conversion = layout::convert_kind(from_.layout, to_.layout);
    NAUT_CHECK(conversion.kind == layout::ConvertKind::Free, "`{}` is not free", to_name_);
    begin("");
    if (layout::common_digits(from_.layout, to_.layout)) {
      const matile::DigitSum source = matile::fit(
          to_.layout, [&](int reg) { return conversion.source[static_cast<size_t>(reg)]; });
      out_.line("{} {} = {};", each_register(), target("reg"), element(source.text("reg")));
    } else {
      for (size_t reg = 0; reg < conversion.source.size(); ++reg)
        out_.line("{} = {};", target(fmt::format("{}", reg)),
                  element(fmt::format("{}", conversion.source[reg])));
    }
    end();
  }

  void by_lanes() {
    const auto digits = layout::common_digits(from_.layout, to_.layout);
    NAUT_CHECK(digits, "`{}` and `{}` have no common digits", from_name_, to_name_);
    const int registers = to_.layout.registers();
    Sum asked;     // lane
    Sum constant;  // register
    Choice by_lane;
    Choice by_warp;
    for (const CommonDigit& d : *digits) {
      const std::string owner = d.to == Owner::Register ? "reg"
                                : d.to == Owner::Lane   ? "lane"
                                                        : "warp";
      const int end = d.to == Owner::Register ? registers : d.to == Owner::Lane ? kLanes : kWarps;
      if (d.from == Owner::Lane)
        asked.add(owner, d.to_stride, d.extent, end, d.from_stride);
      else if (d.from == Owner::Register && d.to == Owner::Register)
        constant.add(owner, d.to_stride, d.extent, end, d.from_stride);
      else if (d.from == Owner::Register && d.to == Owner::Lane)
        by_lane.add(d, owner, end, "wanted");
      else if (d.from == Owner::Register)
        by_warp.add(d, owner, end, "of");
    }
    // Of lanes with copies a lane asks the one most like itself.
    for (const layout::Digit& d : from_.layout.digits()) {
      if (d.axis == layout::kCopies && d.owner == Owner::Lane)
        asked.add("lane", d.owner_stride, d.extent, kLanes, d.owner_stride);
    }
    begin(", by lanes");
    out_.open("{} {{", each_register());
    Sum index = constant;
    if (by_lane.count > 1) {
      index.add(by_lane.step.text());
      out_.line("float mine = 0.f;");
      out_.open("UNROLL for (int wanted = 0; wanted < {}; ++wanted) {{", by_lane.count);
    }
    std::string sent = element(index.text());
    if (by_warp.count > 1) {
      Sum chosen = index;
      chosen.add(by_warp.step.text());
      out_.line("float sent = {};", sent);
      out_.line("UNROLL for (int of = 1; of < {}; ++of) if ({} == of) sent = {};", by_warp.count,
                by_warp.mine.text(), element(chosen.text()));
      sent = "sent";
    }
    const std::string received = fmt::format("lane_from({}, {})", sent, asked.text());
    if (by_lane.count > 1) {
      out_.line("const float received = {};", received);
      out_.line("if ({} == wanted) mine = received;", by_lane.mine.text());
      out_.close();
      out_.line("{} = mine;", target("reg"));
    } else {
      out_.line("{} = {};", target("reg"), received);
    }
    out_.close();
    end();
  }

  // Every element has a word of its own. Two buffers are used alternately, so that one barrier is
  // enough: before a thread writes to a buffer again, it has met all others since they read it.
  void through_memory(const Meeting& meeting) {
    begin(", through shared memory");
    out_.line("const u32 at = {} + {} * {};", meeting.address, meeting.cursor,
              meeting.buffer_bytes);
    const std::string writer = one_of_copies(from_.layout);
    out_.line("UNROLL for (int reg = 0; reg < {}; ++reg)", from_.layout.registers());
    out_.line("  {}shared_store_f32(at + 4 * ({}), {});",
              writer.empty() ? "" : fmt::format("if ({}) ", writer), number(from_.layout),
              element("reg"));
    out_.line("bar_sync({}, 128);", meeting.barrier);
    out_.line("{}", each_register());
    out_.line("  {} = shared_load_f32(at + 4 * ({}));", target("reg"), number(to_.layout));
    out_.line("{0} = 1 - {0};", meeting.cursor);
    end();
  }

 private:
  void begin(std::string_view how) {
    out_.open("{{  // {} from {}{}", to_.op->name.str(), from_.op->name.str(), how);
    if (is_packed(to_)) out_.line("float moved[{}];", to_.layout.registers());
  }
  void end() {
    if (is_packed(to_))
      out_.line(
          "UNROLL for (int reg = 0; reg < {}; ++reg) {}[reg] = {}(moved[2 * reg], moved[2 * reg + "
          "1]);",
          array_length(to_), to_name_, pack_name(to_.op->type.dtype));
    out_.close();
  }

  std::string each_register() const {
    return fmt::format("UNROLL for (int reg = 0; reg < {}; ++reg)", to_.layout.registers());
  }
  std::string target(const std::string& reg) const {
    return fmt::format("{}[{}]", is_packed(to_) ? "moved" : to_name_, reg);
  }
  std::string element(const std::string& reg) const {
    if (!is_packed(from_)) return fmt::format("{}[{}]", from_name_, reg);
    return fmt::format("unpack_{}({}[({}) / 2], ({}) % 2)", expr::name(from_.op->type.dtype),
                       from_name_, reg, reg);
  }

  // The number of the element in register `reg`, rows one after the other.
  static std::string number(const Layout& layout) {
    const auto strides = [&] {
      std::vector<int> s(layout.shape().size(), 1);
      for (size_t k = s.size(); k > 1; --k) s[k - 2] = s[k - 1] * layout.shape()[k - 1];
      return s;
    }();
    Sum sum;
    for (size_t k = 0; k < strides.size(); ++k) {
      const std::string thread = matile::thread_coordinate(layout, static_cast<int>(k));
      if (thread == "0") continue;
      sum.add(strides[k] == 1 ? thread : fmt::format("{} * ({})", strides[k], thread));
    }
    const std::string step = matile::fit(layout, [&](int reg) {
                               const auto point = layout.coordinates_of({0, 0, 0, reg});
                               int at = 0;
                               for (size_t k = 0; k < strides.size(); ++k)
                                 at += strides[k] * point[k];
                               return at;
                             }).text("reg");
    if (step != "0") sum.add(step);
    return sum.text();
  }

  const TileText& from_;
  const TileText& to_;
  std::string from_name_;
  std::string to_name_;
  Writer& out_;
};

}  // namespace

void emit_convert(const matile::Convert& op, const RegisterScope& scope, const Meeting& meeting,
                  Writer& out) {
  Conversion conversion(op, scope, out);
  switch (op.kind) {
    case matile::ConvertKind::Free:
      return conversion.by_names();
    case matile::ConvertKind::Lanes:
      return conversion.by_lanes();
    case matile::ConvertKind::Shared:
      return conversion.through_memory(meeting);
  }
}

}  // namespace nautilus::emit
