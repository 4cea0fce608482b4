// SPDX-License-Identifier: Apache-2.0
#include "emit/points/points_sort.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "emit/identifier.h"
#include "emit/points/points_statements.h"
#include "emit/typed_expression.h"

namespace nautilus::emit {
namespace {

using expr::DType;
using expr::Expr;

constexpr int64_t kIndexBytes = 4;

// The first bits of numbers in order that tell numbers of this dtype apart, as prelude/sort.h
// makes them: a sign, the eight bits of an exponent of f32, and the stored digits.
int bits_in_order(Expr key) {
  const bool is_stored = key.op() == expr::Op::Read || key.op() == expr::Op::Cast;
  const bool is_wider = key.op() == expr::Op::Cast && key.dtype() == DType::F32;
  if (is_wider && expr::is_float(key[0].dtype())) return bits_in_order(key[0]);
  if (key.op() == expr::Op::Select) return std::max(bits_in_order(key[1]), bits_in_order(key[2]));
  if (key.op() == expr::Op::FloatConst && (key.number() == 0 || !std::isfinite(key.number())))
    return 9;
  switch (is_stored ? key.dtype() : DType::F32) {
    case DType::BF16:
      return 9 + 7;
    case DType::F16:
      return 9 + 10;
    case DType::F8E4M3:
      return 9 + 3;
    case DType::F8E5M2:
      return 9 + 2;
    default:
      return 32;
  }
}

class SortWriter {
 public:
  SortWriter(PointsScope& scope, const matile::Sort& order)
      : scope_(scope),
        out_(scope.out),
        order_(order),
        axis_(order.axes[0]),
        each_(*order.each),
        lanes_(scope.grid.lanes),
        warp_(scope.grid.warp),
        is_warp_(lanes_ <= warp_),
        key_bits_(bits_in_order(order.key)),
        index_bits_(static_cast<int>(std::bit_width(static_cast<uint64_t>(each_ * lanes_ - 1)))),
        key_type_(is_long(order)                      ? "LongKey"
                  : 1 + key_bits_ + index_bits_ <= 32 ? "u32"
                                                      : "u64"),
        keys_(scope.fresh("keys")),
        own_(scope.fresh("own")),
        shared_(scope.fresh("shared")) {}

  void run() {
    out_.line("SHARED_BASE({});", shared_);
    make_keys();
    out_.line("sort_keys<{}, {}, {}>({}, lane, {}, {});", each_, lanes_, kept_lanes(), keys_,
              is_warp_ ? warp_ / lanes_ : 1, shared_);
    store_indices();
    write_places();
    const int64_t key_bytes = key_type_ == "u32" ? 4 : key_type_ == "u64" ? 8 : 16;
    scope_.shared_bytes += each_ * (is_warp_ ? scope_.grid.threads * kIndexBytes
                                             : lanes_ * std::max(key_bytes, kIndexBytes));
  }

 private:
  void make_keys() {
    const OwnNames own(scope_);
    out_.line("{} {}[{}];", key_type_, keys_, each_);
    const std::string count = scope_.text(axis_.extent);
    out_.open("UNROLL for (int {0} = 0; {0} < {1}; ++{0}) {{", own_, each_);
    const std::string var = scope_.define(axis_.name);
    out_.line("const long long {} = {} * {} + lane;", var, own_, lanes_);
    out_.line("leave_out({}[{}]);", keys_, own_);
    out_.open("if ({} < {}) {{", var, count);
    scope_.facts.add_axis(scope_.pool.index(axis_.name), axis_.extent);
    const Expr zero = scope_.pool.constant(0, order_.key.dtype());
    scope_.name_shared(order_.condition ? scope_.pool.select(order_.condition, order_.key, zero)
                                        : order_.key);
    const std::string has_place = order_.condition ? scope_.fresh("has_place") : "true";
    if (order_.condition)
      out_.line("const bool {} = {};", has_place, scope_.text(order_.condition));
    const bool is_down = order_.first == matile::SortFirst::Largest;
    const std::string number = fmt::format("{}in_order(({})({}))", is_down ? "~" : "",
                                           number_type(), scope_.text(order_.key));
    // An element that has no place may not be there to be read.
    const std::string make =
        is_long(order_) ? "long_key"
                        : fmt::format("sort_key<{}, {}, {}>", key_type_, key_bits_, index_bits_);
    out_.line("{}[{}] = {}({}, {}, (u32){});", keys_, own_, make,
              order_.condition ? fmt::format("{} ? {} : 0u", has_place, number) : number, has_place,
              var);
    out_.close();
    out_.close();
    scope_.named.clear();
  }

  static bool is_long(const matile::Sort& order) {
    return expr::bytes(expr::compute_dtype(order.key.dtype())) == 8;
  }

  std::string_view number_type() const {
    if (is_long(order_)) return expr::is_float(order_.key.dtype()) ? "double" : "long long";
    return expr::is_float(order_.key.dtype()) ? "float" : "int";
  }

  // Of a warp each point has its own; the keys of a CTA are not needed any more.
  void store_indices() {
    if (is_warp_) {
      places_ = scope_.fresh("places");
      out_.line("const u32 {} = {} + {} * (u32)(thread_index() / {} * {} + thread_index() % {});",
                places_, shared_, kIndexBytes * each_ * lanes_, warp_, warp_ / lanes_,
                warp_ / lanes_);
    } else {
      places_ = shared_;
      out_.line("sync_cta();");
    }
    out_.line("UNROLL for (int {0} = 0; {0} < {1}; ++{0})", own_, each_);
    const std::string where =
        kept_lanes() < lanes_ ? fmt::format("if (lane < {}) ", kept_lanes()) : "";
    out_.line(
        "  {0}shared_put({1} + {2} * (u32)(lane * {3} + {4}), (int)(index_of({5}[{4}]) & {6}u));",
        where, places_, kIndexBytes, each_, own_, keys_, (uint64_t{1} << index_bits_) - 1);
    out_.line("sync_{}();", is_warp_ ? "warp" : "cta");
  }

  // Those that have all places which are asked for.
  int64_t kept_lanes() const {
    const Expr n = order_.places;
    if (n.op() != expr::Op::IntConst) return lanes_;
    const int64_t lanes = (std::max<int64_t>(n.integer(), 1) + each_ - 1) / each_;
    return std::min(lanes_, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(lanes))));
  }

  void write_places() {
    const OwnNames own(scope_);
    const bool is_mixed = lanes_ < warp_;
    const std::string places = scope_.text(order_.places);
    const std::string all = scope_.fresh("all");
    out_.line("const long long {} = {}{};", all, is_mixed ? "!has_point ? 0 : " : "", places);
    const std::string place = scope_.define(order_.place);
    out_.open("for (long long {0} = lane; {0} < {1}; {0} += {2}) {{", place, all, lanes_);
    const std::string index = scope_.fresh("index");
    out_.line("int {} = 0;", index);
    out_.line("{}shared_take({} + {} * (u32){}, {});",
              are_all_there() ? "" : fmt::format("if ({} < {}) ", place, each_ * lanes_), places_,
              kIndexBytes, place, index);
    const std::string var = scope_.define(axis_.name);
    out_.line("const long long {} = {};", var, index);
    scope_.facts.add_axis(scope_.pool.index(order_.place), order_.places);
    scope_.mode.are_lanes_apart = true;
    write_block(scope_, order_.body);
    scope_.mode.are_lanes_apart = false;
    out_.close();
  }

  // Whether there are at most as many places as lanes have elements.
  bool are_all_there() const {
    const Expr n = order_.places;
    return n == axis_.extent || (n.op() == expr::Op::IntConst && n.integer() <= each_ * lanes_);
  }

  PointsScope& scope_;
  Writer& out_;
  const matile::Sort& order_;
  const ir::Axis& axis_;
  int64_t each_;
  int64_t lanes_;
  int64_t warp_;
  bool is_warp_;
  int key_bits_;
  int index_bits_;
  std::string_view key_type_;
  std::string keys_;
  std::string own_;  // which of a lane's keys, in its loops
  std::string shared_;
  std::string places_;
};

}  // namespace

void write_sort(PointsScope& scope, const matile::Sort& order) { SortWriter(scope, order).run(); }

}  // namespace nautilus::emit
