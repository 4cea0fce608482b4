// SPDX-License-Identifier: Apache-2.0
#include "schedule/search/line_values.h"

#include <algorithm>
#include <set>

#include "ir/flat_name.h"

namespace nautilus::schedule {
namespace {

namespace dc = decision;
using decision::By;
using target::Target;

constexpr int64_t kUsualBytes = 2;  // of an element of most rows

// Values near the present one of a line.
std::set<int64_t> without(ir::OptionalInt now, std::set<int64_t> values) {
  if (now) values.erase(*now);
  return values;
}

// Powers of two from the first number to the last.
std::set<int64_t> powers(int64_t first, int64_t last) {
  std::set<int64_t> out;
  for (int64_t n = first; n <= last; n *= 2) out.insert(n);
  return out;
}

template <class Line>
ir::Op toggled(Line line) {
  line.use = line.use == dc::Switch::On ? dc::Switch::Off : dc::Switch::On;
  line.by = By::Tuned;
  return ir::make(line);
}

// Lines with other numbers in their place.
class OtherValues {
 public:
  template <class Line>
  void add(Line line, ir::OptionalInt Line::*value, std::set<int64_t> values) {
    line.by = By::Tuned;
    for (const int64_t n : without(line.*value, std::move(values))) {
      line.*value = n;
      out.push_back(ir::make(line));
    }
  }
  template <class Line>
  void add_around(const Line& line, ir::OptionalInt Line::*value, int64_t by,
                  std::set<int64_t> more = {}) {
    const int64_t now = (line.*value).value_or(0);
    more.insert({now / by, now * by});
    add(line, value, std::move(more));
  }

  ir::Block out;
};

// Of lines about kernels of rows and tiles that have a range of their own.
ir::Block values_of_rows(const ir::Op& line, const Target& target) {
  OtherValues values;
  if (const auto* columns = line.get<dc::Columns>()) {
    values.add_around(*columns, &dc::Columns::count, 2);
  } else if (const auto* vector = line.get<dc::Vector>()) {
    const bool is_shifted = vector->start == dc::VectorStart::Boundary;
    values.add(
        dc::Vector{.elements = vector->elements}, &dc::Vector::elements,
        is_shifted ? std::set<int64_t>{1} : powers(2, target.memory.vector_bytes / kUsualBytes));
  } else if (const auto* cluster = line.get<dc::Cluster>()) {
    values.add_around(*cluster, &dc::Cluster::tiles, 2);
  } else if (const auto* groups = line.get<dc::Groups>()) {
    values.add(*groups, &dc::Groups::count, powers(1, target.rows.groups));
  } else if (const auto* registers = line.get<dc::Registers>()) {
    const int64_t now = registers->compute.value_or(0);
    const int64_t step = 2 * target.limits.register_step;
    values.add(*registers, &dc::Registers::compute, {now - step, now + step, now + 2 * step});
  } else if (const auto* chains = line.get<dc::Chains>()) {
    values.add(*chains, &dc::Chains::count, powers(1, target.tiles.most_chains));
  } else if (const auto* ahead = line.get<dc::Ahead>()) {
    values.add_around(*ahead, &dc::Ahead::rows, 2,
                      {0, target.rows.ahead_bytes / target.rows.ahead_row});
  } else if (const auto* last = line.get<dc::LastTile>()) {
    // Parts and loads belong together: a line whose loads no loop reaches is refused.
    for (const int64_t n : {1, 4}) {
      dc::LastTile other = *last;
      other.parts = *last->parts * n / 2;
      values.add(other, &dc::LastTile::loads, {*last->loads * n / 2});
    }
  }
  return values.out;
}

// The same of kernels of points.
ir::Block values_of_points(const ir::Op& line, const Target& target) {
  const target::Points& points = target.points;
  OtherValues values;
  if (const auto* split = line.get<dc::Split>()) {
    const int64_t now = split->parts.value_or(0);
    std::set<int64_t> parts = {now / 4, now * 4, 1, points.parts_of_many};
    parts.erase(0);
    values.add(*split, &dc::Split::parts, parts);
  } else if (const auto* lanes = line.get<dc::Lanes>()) {
    // Beyond a warp: the threads of a CTA that walk along one row.
    std::set<int64_t> counts = powers(target.limits.warp_threads / 8, points.walk_threads);
    counts.insert(1);
    values.add(*lanes, &dc::Lanes::count, counts);
  } else if (const auto* each = line.get<dc::Each>()) {
    values.add(*each, &dc::Each::points, powers(1, points.each));
  } else if (const auto* first = line.get<dc::First>()) {
    values.add(*first, &dc::First::each, powers(1, points.line));
    values.add_around(*first, &dc::First::threads, 2);
  } else if (const auto* axes = line.get<dc::PointAxes>()) {
    dc::PointAxes other = *axes;
    other.by = By::Tuned;
    for (size_t k = 1; k < other.axes.size(); ++k) {
      std::rotate(other.axes.begin(), other.axes.begin() + 1, other.axes.end());
      values.out.push_back(ir::make(other));
    }
  } else if (const auto* own = line.get<dc::Private>(); own && own->ctas) {
    values.add_around(*own, &dc::Private::ctas, 2);
  } else if (const auto* merge = line.get<dc::Merge>()) {
    values.add(*merge, &dc::Merge::each, powers(1, points.sort_each));
    values.add_around(*merge, &dc::Merge::threads, 2);
    const int64_t pairs = merge->pairs.value_or(0);
    values.add(*merge, &dc::Merge::pairs, {std::max<int64_t>(pairs - 1, 0), pairs + 1});
  } else if (const auto* spread = line.get<dc::Spread>()) {
    values.add(*spread, &dc::Spread::threads, powers(target.limits.warp_threads, points.threads));
    values.add(*spread, &dc::Spread::apart, powers(1, points.line));
    values.add(*spread, &dc::Spread::down, powers(1, points.line));
  } else if (const auto* patch = line.get<dc::Patch>()) {
    const auto beside = [&](ir::OptionalInt other) {
      return powers(1, std::min(points.patch_side, points.patch_points / other.value_or(1)));
    };
    values.add(*patch, &dc::Patch::high, beside(patch->wide));
    values.add(*patch, &dc::Patch::wide, beside(patch->high));
  } else if (const auto* windows = line.get<dc::Windows>()) {
    values.add(*windows, &dc::Windows::turns, {0});
  } else if (const auto* unroll = line.get<dc::Unroll>()) {
    values.add(*unroll, &dc::Unroll::turns, powers(1, 2 * points.loads));
  } else if (const auto* threads = line.get<dc::Threads>()) {
    values.add_around(*threads, &dc::Threads::count, 2);
  } else if (const auto* serves = line.get<dc::Serves>()) {
    // Thresholds far from these change what few sizes run.
    for (const auto bound : {&dc::Serves::least, &dc::Serves::most, &dc::Serves::parts})
      if (serves->*bound) values.add_around(*serves, bound, 4);
  }
  return values.out;
}

template <class Line>
ir::Op other_moment(Line line) {
  line.moment = line.moment == dc::Moment::Late ? dc::Moment::Early : dc::Moment::Late;
  line.by = By::Tuned;
  return ir::make(line);
}

// The same of lines that say one of two things.
ir::Block other_side(const ir::Op& line) {
  if (const auto* keep = line.get<dc::Keep>()) return {toggled(*keep)};
  if (const auto* unpacked = line.get<dc::Unpacked>()) return {toggled(*unpacked)};
  if (const auto* moving = line.get<dc::Moving>()) return {toggled(*moving)};
  if (const auto* shared = line.get<dc::Shared>()) return {other_moment(*shared)};
  if (const auto* begin = line.get<dc::Begin>()) return {other_moment(*begin)};
  if (const auto* reads = line.get<dc::Reads>()) {
    const bool is_free = reads->order == dc::ReadOrder::Free;
    return {ir::make(dc::Reads{is_free ? dc::ReadOrder::Ordered : dc::ReadOrder::Free, By::Tuned})};
  }
  return {};
}

ir::Block values_in_range(const ir::Op& line, const Target& target) {
  ir::Block out = values_of_rows(line, target);
  for (ir::Block more : {values_of_points(line, target), other_side(line)})
    out.insert(out.end(), more.begin(), more.end());
  return out;
}

// A line of a tile: other multiples of the sizes of matrix instructions.
ir::Block tile_sizes(const dc::Tile& line, const Target& target) {
  ir::Block out;
  const int64_t now = line.size.value_or(0);
  const int64_t depth = target.matrix.depth;
  const int64_t rows = target.matrix.rows;
  for (const int64_t n :
       without(now, {now / 2, now - rows, now - depth, now + depth, now + rows, 2 * now})) {
    if (n < depth || n > target.tiles.whole_extent) continue;
    out.push_back(ir::make(dc::Tile{line.axis, n, By::Tuned}));
  }
  return out;
}

// Of pieces of a row.
ir::Block piece_lengths(const dc::Inner& line, const Target& target) {
  ir::Block out;
  if (!line.length) return out;
  dc::Inner other = line;
  other.by = By::Tuned;
  for (const int64_t n : target.rows.pieces) {
    if (n == *line.length) continue;
    other.length = n;
    out.push_back(ir::make(other));
  }
  return out;
}

bool fuses(const ir::Op& line, std::string_view statement) {
  const auto* fuse = line.get<dc::Fuse>();
  return fuse && std::any_of(fuse->statements.begin(), fuse->statements.end(),
                             [&](ir::Name s) { return s.str() == statement; });
}

// Of a field of a line: every other word, numbers near and far.
ir::Block values_of_fields(const ir::Op& line) {
  ir::Block out;
  for (const ir::Field& f : line.info().fields) {
    const auto add = [&](auto value) {
      auto data = ir::copy_data(line);
      ir::field_value<decltype(value)>(data.get(), f) = value;
      out.push_back(dc::with_by({line.info(), {}, std::move(data)}, By::Tuned));
    };
    if (f.kind == ir::FieldKind::Enum && f.name != "by") {
      const auto now = ir::field_value<uint8_t>(line.data(), f);
      for (uint8_t k = 0; k < f.words->size(); ++k) {
        if (k != now) add(k);
      }
    }
    if (f.kind != ir::FieldKind::Int) continue;
    const auto now = ir::field_value<ir::OptionalInt>(line.data(), f);
    if (!now) continue;
    for (const int64_t n : without(now, {*now / 2, *now - 1, *now + 1, 2 * *now})) {
      if (n >= 0) add(ir::OptionalInt(n));
    }
  }
  return out;
}

}  // namespace

ir::Block missing_values(const KernelSchedule& kernel, size_t alternative, const Target& target) {
  ir::Block out;
  const ir::Block& lines = kernel.alternatives[alternative];
  const bool has_one =
      std::any_of(lines.begin(), lines.end(), [](const ir::Op& l) { return l.is<dc::Resident>(); });
  if (kernel.form != dc::Form::Points || has_one) return out;
  for (const ir::Op& line : lines) {
    const auto* threads = line.get<dc::Threads>();
    if (!threads || !threads->count) continue;
    const int64_t most = target.limits.sm_threads / *threads->count;
    for (const int64_t n : {most / 2, most}) {
      if (n > 1) out.push_back(ir::make(dc::Resident{n, By::Tuned}));
    }
  }
  return out;
}

Schedule with_value(const Schedule& schedule, size_t kernel, size_t alternative, size_t line,
                    const ir::Op& value) {
  Schedule out = schedule;
  auto& alternatives = out.kernels[kernel].alternatives;
  alternatives[alternative][line] = value;
  const auto* inner = value.get<dc::Inner>();
  if (!inner || !inner->length) return out;
  std::erase_if(alternatives[alternative],
                [](const ir::Op& other) { return dc::topic(other.info()) != dc::Topic::Members; });
  alternatives = {alternatives[alternative]};
  const std::string parts = ir::flat_name(std::string(inner->statement.str()) + "_parts");
  std::erase_if(out.kernels, [&](const KernelSchedule& k) {
    return k.name == parts || std::any_of(k.alternatives[0].begin(), k.alternatives[0].end(),
                                          [&](const ir::Op& l) { return fuses(l, parts); });
  });
  return out;
}

ir::Block other_values(const ir::Op& line, const Target& target) {
  const dc::Topic topic = dc::topic(line.info());
  if (const auto* inner = line.get<dc::Inner>()) return piece_lengths(*inner, target);
  if (topic == dc::Topic::Program || topic == dc::Topic::Members) return {};
  if (const auto* tile = line.get<dc::Tile>()) return tile_sizes(*tile, target);
  ir::Block out = values_in_range(line, target);
  return out.empty() ? values_of_fields(line) : out;
}

}  // namespace nautilus::schedule
