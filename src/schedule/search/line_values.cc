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
ir::Op turned(Line line) {
  line.use = line.use == dc::Switch::On ? dc::Switch::Off : dc::Switch::On;
  line.by = By::Tuned;
  return ir::make(line);
}

// Of lines that have a range of their own.
ir::Block values_in_range(const ir::Op& line, const Target& target) {
  ir::Block out;
  const auto add = [&](auto decision, ir::OptionalInt& value, std::set<int64_t> values) {
    for (const int64_t n : without(value, std::move(values))) {
      value = n;
      decision->by = By::Tuned;
      out.push_back(ir::make(*decision));
    }
  };
  const auto around = [](ir::OptionalInt n, int64_t by) {
    return std::set<int64_t>{n.value_or(0) / by, n.value_or(0) * by};
  };
  if (line.is<dc::Columns>()) {
    auto d = line.as<dc::Columns>();
    add(&d, d.count, around(d.count, 2));
  } else if (line.is<dc::Vector>()) {
    auto d = line.as<dc::Vector>();
    add(&d, d.elements, powers(2, target.memory.vector_bytes / kUsualBytes));
  } else if (line.is<dc::Groups>()) {
    auto d = line.as<dc::Groups>();
    add(&d, d.count, powers(1, target.rows.groups));
  } else if (line.is<dc::Registers>()) {
    auto d = line.as<dc::Registers>();
    const int64_t now = d.compute.value_or(0);
    const int64_t step = 2 * target.limits.register_step;
    add(&d, d.compute, {now - step, now + step, now + 2 * step});
  } else if (line.is<dc::Ahead>()) {
    auto d = line.as<dc::Ahead>();
    std::set<int64_t> values = around(d.rows, 2);
    values.insert({0, target.rows.ahead_bytes / target.rows.ahead_row});
    add(&d, d.rows, values);
  } else if (line.is<dc::Split>()) {
    auto d = line.as<dc::Split>();
    std::set<int64_t> values = around(d.parts, 4);
    values.insert({1, target.points.parts_of_many});
    values.erase(0);
    add(&d, d.parts, values);
  } else if (line.is<dc::Lanes>()) {
    auto d = line.as<dc::Lanes>();
    const int64_t warp = target.limits.warp_threads;
    // Beyond a warp: the threads of a CTA that walk along one row.
    std::set<int64_t> values = powers(warp / 8, target.points.walk_threads);
    values.insert(1);
    add(&d, d.count, values);
  } else if (line.is<dc::Each>()) {
    auto d = line.as<dc::Each>();
    add(&d, d.points, powers(1, target.points.each));
  } else if (line.is<dc::Spread>()) {
    const auto first = line.as<dc::Spread>();
    auto d = first;
    add(&d, d.threads, powers(target.limits.warp_threads, target.points.threads));
    d = first;
    add(&d, d.apart, powers(1, target.points.line));
    d = first;
    add(&d, d.down, powers(1, target.points.line));
  } else if (line.is<dc::Patch>()) {
    const auto first = line.as<dc::Patch>();
    auto d = first;
    add(&d, d.high,
        powers(1, std::min(target.points.patch_side,
                           target.points.patch_points / first.wide.value_or(1))));
    d = first;
    add(&d, d.wide,
        powers(1, std::min(target.points.patch_side,
                           target.points.patch_points / first.high.value_or(1))));
  } else if (line.is<dc::Windows>()) {
    auto d = line.as<dc::Windows>();
    add(&d, d.turns, {0});
  } else if (line.is<dc::Unroll>()) {
    auto d = line.as<dc::Unroll>();
    add(&d, d.turns, powers(1, 2 * target.points.loads));
  } else if (line.is<dc::Keep>()) {
    out.push_back(turned(line.as<dc::Keep>()));
  } else if (line.is<dc::Unpacked>()) {
    out.push_back(turned(line.as<dc::Unpacked>()));
  } else if (line.is<dc::Moving>()) {
    out.push_back(turned(line.as<dc::Moving>()));
  } else if (line.is<dc::Shared>()) {
    auto d = line.as<dc::Shared>();
    d.moment = d.moment == dc::Moment::Late ? dc::Moment::Early : dc::Moment::Late;
    d.by = By::Tuned;
    out.push_back(ir::make(d));
  } else if (line.is<dc::LastTile>()) {
    // Parts and loads belong together: a line with more loads than any loop has is refused.
    const auto first = line.as<dc::LastTile>();
    for (const int64_t n : {1, 4}) {
      auto d = first;
      d.parts = *first.parts * n / 2;
      d.by = By::Tuned;
      add(&d, d.loads, {*first.loads * n / 2});
    }
  } else if (line.is<dc::Threads>()) {
    auto d = line.as<dc::Threads>();
    add(&d, d.count, around(d.count, 2));
  }
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
