// SPDX-License-Identifier: Apache-2.0
#include "matile/point_layout.h"

#include <algorithm>

namespace nautilus::matile {
namespace {

void add_line(const ir::Op& line, PointLayout& out) {
  if (const auto* l = line.get<decision::Resident>()) out.resident = l->tiles;
  if (const auto* l = line.get<decision::Lanes>()) out.lanes = l->count;
  if (const auto* l = line.get<EachPoints>()) out.each = *l;
  if (const auto* l = line.get<decision::Across>()) out.across = *l;
  if (const auto* l = line.get<decision::Spread>()) out.spread = *l;
  if (const auto* l = line.get<decision::Patch>()) out.patch = *l;
  if (const auto* l = line.get<decision::Held>()) out.held = l->turns;
  if (const auto* l = line.get<decision::Private>())
    out.is_private = l->use == decision::Switch::On;
  if (const auto* l = line.get<decision::Unroll>()) out.unroll = l->turns;
  if (const auto* l = line.get<decision::Windows>()) out.windows = l->turns;
  if (const auto* l = line.get<decision::Threads>()) out.threads = l->count;
}

// As layout_vocabulary has them.
ir::Block lines_of(const PointLayout& layout) {
  ir::Block out;
  const auto add = [&](auto line) {
    if constexpr (requires { line.by; }) line.by = decision::By::Auto;
    out.push_back(ir::make(std::move(line)));
  };
  if (layout.resident) add(decision::Resident{layout.resident});
  if (layout.lanes) add(decision::Lanes{layout.lanes});
  if (layout.each) add(*layout.each);
  if (layout.across) add(*layout.across);
  if (layout.spread) add(*layout.spread);
  if (layout.patch) add(*layout.patch);
  if (layout.held) add(decision::Held{layout.held});
  if (layout.is_private) add(decision::Private{decision::Switch::On, {}, {}});
  if (layout.unroll) add(decision::Unroll{layout.unroll});
  if (layout.windows) add(decision::Windows{layout.windows});
  if (layout.threads) add(decision::Threads{layout.threads});
  return out;
}

template <class Body>
auto place_of_points(Body& body) {
  return std::find_if(body.begin(), body.end(), [](const ir::Op& op) { return op.is<Points>(); });
}

}  // namespace

int64_t PointLayout::points_of_thread() const {
  if (patch) return patch->high.value_or(1) * patch->wide.value_or(1);
  const int64_t apart = spread && !is_ragged() ? spread->apart.value_or(1) : neighbours();
  return apart * (across ? across->points.value_or(1) : 1) *
         (spread ? spread->down.value_or(1) : 1);
}

const Points* find_points(const Kernel& kernel) {
  const auto it = place_of_points(kernel.body);
  return it == kernel.body.end() ? nullptr : it->get<Points>();
}

const Points& points_of(const Kernel& kernel) {
  const Points* points = find_points(kernel);
  NAUT_CHECK(points, "kernel {} has no points", kernel.name.str());
  return *points;
}

void set_points(Kernel& kernel, Points points) {
  *place_of_points(kernel.body) = ir::make(std::move(points));
}

PointLayout point_layout(const Kernel& kernel) {
  PointLayout out;
  for (const ir::Op& op : kernel.body) {
    const auto* layout = op.get<LayoutLines>();
    if (!layout) continue;
    for (const ir::Op& line : layout->body) add_line(line, out);
  }
  return out;
}

void set_point_layout(Kernel& kernel, const PointLayout& layout) {
  std::erase_if(kernel.body, [](const ir::Op& op) { return op.is<LayoutLines>(); });
  ir::Block lines = lines_of(layout);
  if (lines.empty()) return;
  kernel.body.insert(place_of_points(kernel.body), ir::make(LayoutLines{std::move(lines)}));
}

ir::Name scattered_result(const Points& points) {
  for (const ir::Op& op : points.body) {
    if (const auto* s = op.get<Scatter>()) return s->target;
  }
  return {};
}

}  // namespace nautilus::matile
