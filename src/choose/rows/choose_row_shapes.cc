// SPDX-License-Identifier: Apache-2.0
#include "choose/rows/choose_row_shapes.h"

#include <algorithm>

#include "choose/rows/named_rows.h"
#include "choose/rows/row_shapes.h"
#include "choose/rows/short_rows.h"
#include "decision/decisions.h"
#include "ir/target_of.h"
#include "ir/usual_sizes.h"

namespace nautilus::choose {
namespace {

using decision::Form;
using decision::HoldKind;
using ir::Op;
using lower::RowShape;

template <typename Line>
const Line* find(const ir::Block& lines) {
  const auto it =
      std::find_if(lines.begin(), lines.end(), [](const Op& op) { return op.is<Line>(); });
  return it == lines.end() ? nullptr : &it->template as<Line>();
}

class RowShaper {
 public:
  RowShaper(const ir::Program& program, ir::PassContext& context)
      : program_(program), sizes_(program), named_(program, context.pool) {}

  ir::Program run() {
    ir::Program out = program_;
    out.body.clear();
    const lower::AskedKernel* last = nullptr;
    size_t alternative = 0;
    size_t lanes = 0;  // alternatives before it whose rows lanes share
    std::vector<RowShape> shapes;
    bool is_open = false;
    for (const Op& op : program_.body) {
      const auto* kernel = op.get<decision::Kernel>();
      if (!kernel || kernel->form != Form::Rows) {
        out.body.push_back(op);
        last = nullptr;
        continue;
      }
      const lower::AskedKernel* asked = &named_.find(kernel->name);
      if (asked != last) {
        last = asked;
        alternative = 0;
        lanes = 0;
        shapes = shapes_of(*asked);
        is_open = asked->alternatives.size() == 1 && asked->alternatives[0].empty();
      }
      if (shapes.empty()) {
        out.body.push_back(op);
        continue;
      }
      const RowShape usual = is_open ? shapes[0] : usual_of(*kernel, shapes, {alternative, lanes});
      lanes += find<decision::Lanes>(kernel->body) ? 1 : 0;
      out.body.push_back(with_lines(*kernel, usual));
      ++alternative;
      for (; is_open && alternative < shapes.size(); ++alternative)
        out.body.push_back(
            with_lines(decision::Kernel{kernel->name, Form::Rows, {}}, shapes[alternative]));
    }
    return out;
  }

 private:
  // Of an alternative in the list of its kernel.
  struct Place {
    size_t alternative;
    size_t lanes;  // how many before it have a line `lanes`
  };

  // By rule; empty if the kernel has no row form.
  std::vector<RowShape> shapes_of(const lower::AskedKernel& asked) {
    auto rows = named_.rows(asked);
    if (!rows) return {};
    has_hold_ = !lower::has_elements_only(rows->group);
    has_each_ = !rows->group.outer.empty();
    ir::Axes walked = rows->group.outer;
    walked.push_back(rows->group.column);
    return row_shapes(named_.context(*rows),
                      {sizes_.count(rows->group.rows), sizes_.count(walked),
                       may_be_short(rows->group, sizes_.least(rows->group.column.extent))});
  }

  // The shape that lines are from which an alternative that somebody wrote does not have. Lanes
  // share its rows if a line says so, or if they are short whatever their length, and no line says
  // otherwise.
  RowShape usual_of(const decision::Kernel& kernel, std::vector<RowShape> shapes, Place at) const {
    const RowShape first = shapes[std::min(at.alternative, shapes.size() - 1)];
    if (find<decision::Lanes>(kernel.body)) return first;
    std::erase_if(shapes, [](const RowShape& s) { return s.lanes > 0; });
    if (!shapes.empty()) return shapes[std::min(at.alternative - at.lanes, shapes.size() - 1)];
    const auto* hold = find<decision::Hold>(kernel.body);
    const auto* vector = find<decision::Vector>(kernel.body);
    const auto* columns = find<decision::Columns>(kernel.body);
    const bool is_other =
        (hold && hold->kind != HoldKind::Row) ||
        (vector && (vector->start != first.start || vector->elements != first.by)) ||
        (columns && columns->count != first.capacity()) || find<decision::Groups>(kernel.body) ||
        find<decision::Cluster>(kernel.body);
    if (!is_other) return first;
    const target::Rows& rows = ir::target_of(program_).rows;
    return {rows.threads * rows.turn_elements, first.by, first.hold};
  }

  // The kernel with the lines of the shape that it does not have.
  Op with_lines(decision::Kernel kernel, const RowShape& shape) const {
    ir::Block& lines = kernel.body;
    const auto add = [&](auto line) {
      if (!find<decltype(line)>(lines)) lines.push_back(ir::make(std::move(line)));
    };
    const bool has_columns = find<decision::Columns>(lines) != nullptr;
    add(decision::Columns{shape.capacity(), {}});
    add(decision::Vector{.elements = shape.by, .start = shape.start});
    if (has_hold_) add(decision::Hold{shape.hold, {}});
    const auto* hold = find<decision::Hold>(lines);
    if (hold && hold->kind != HoldKind::Steps) add_held(lines, shape, has_columns);
    if (has_each_) add(decision::Each{shape.each, {}});
    return ir::make(std::move(kernel));
  }

  // The lines of rows that are held. Columns that a line asks for are those of one CTA if no line
  // says otherwise: the shape in the alternative's place may be another one, of other hints.
  static void add_held(ir::Block& lines, const RowShape& shape, bool has_columns) {
    if (shape.lanes > 0 && !find<decision::Lanes>(lines))
      lines.push_back(ir::make(decision::Lanes{shape.lanes, {}}));
    if (find<decision::Lanes>(lines)) return;
    if (!find<decision::Groups>(lines))
      lines.push_back(ir::make(decision::Groups{shape.groups, decision::GroupKind::Sharing, {}}));
    const auto* cluster = find<decision::Cluster>(lines);
    if (!cluster && shape.ctas > 1 && !has_columns)
      lines.push_back(ir::make(decision::Cluster{shape.ctas, {}}));
    // It says what the rule says anyway.
    if (cluster && shape.ctas == 1 && cluster->tiles == 1)
      std::erase_if(lines, [](const Op& op) { return op.is<decision::Cluster>(); });
  }

  const ir::Program& program_;
  ir::UsualSizes sizes_;
  NamedRows named_;
  bool has_hold_ = false;  // of the kernel: reductions
  bool has_each_ = false;  // of the kernel: reductions over several axes
};

}  // namespace

std::optional<ir::Program> choose_row_shapes(const ir::Program& program, ir::PassContext& context) {
  return RowShaper(program, context).run();
}

}  // namespace nautilus::choose
