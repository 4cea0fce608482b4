// SPDX-License-Identifier: Apache-2.0
#include "choose/choose_row_shapes.h"

#include <algorithm>

#include "choose/row_shapes.h"
#include "decision/decisions.h"
#include "ir/decl.h"
#include "ir/target_of.h"
#include "lower/asked_kernels.h"
#include "lower/points/split_reduction.h"
#include "lower/program_nests.h"
#include "lower/rows/row_group.h"

namespace nautilus::choose {
namespace {

using decision::Form;
using decision::HoldKind;
using ir::Op;
using lower::MapNest;
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
      : program_(program),
        context_(context),
        target_(ir::target_of(program)),
        facts_(ir::facts_of(program, context.pool)),
        nests_(lower::program_nests(program, context.pool)),
        asked_(program) {}

  ir::Program run() {
    ir::Program out = program_;
    out.body.clear();
    const lower::AskedKernel* last = nullptr;
    size_t alternative = 0;
    std::vector<RowShape> shapes;
    bool is_open = false;
    for (const Op& op : program_.body) {
      const auto* kernel = op.get<decision::Kernel>();
      if (!kernel || kernel->form != Form::Rows) {
        out.body.push_back(op);
        last = nullptr;
        continue;
      }
      const lower::AskedKernel* asked = asked_.find({std::string(kernel->name.str())}, false);
      if (asked != last) {
        last = asked;
        alternative = 0;
        shapes = shapes_of(*asked);
        is_open = asked->alternatives.size() == 1 && asked->alternatives[0].empty();
      }
      if (shapes.empty()) {
        out.body.push_back(op);
        continue;
      }
      const RowShape& usual = shapes[std::min(alternative, shapes.size() - 1)];
      out.body.push_back(with_lines(*kernel, usual));
      ++alternative;
      for (; is_open && alternative < shapes.size(); ++alternative)
        out.body.push_back(
            with_lines(decision::Kernel{kernel->name, Form::Rows, {}}, shapes[alternative]));
    }
    return out;
  }

 private:
  // By rule; none if the kernel is no work along rows.
  std::vector<RowShape> shapes_of(const lower::AskedKernel& asked) {
    size_t begin = 0;
    while (begin < nests_.nests.size() && !is_of(nests_.nests[begin], asked)) ++begin;
    size_t end = begin;
    while (end < nests_.nests.size() && is_of(nests_.nests[end], asked)) ++end;
    if (begin == end) return {};
    std::vector<MapNest> nests(nests_.nests.begin() + static_cast<std::ptrdiff_t>(begin),
                               nests_.nests.begin() + static_cast<std::ptrdiff_t>(end));
    auto buffers = nests_.buffers;
    lower::FreshNames names = nests_.names;
    if (!asked.split.empty() && asked.parts() > 1) {
      // Its parts have a kernel of their own: this one puts them together.
      const auto split = lower::split_reduction(nests[0], buffers, target_.points, asked.parts(),
                                                names, context_.pool);
      if (!split) return {};
      nests[0] = split->final;
      buffers.emplace(split->buffer.str(), split->type);
    }
    auto group = lower::row_group(nests, target_, context_.pool);
    if (!group) group = lower::element_group(nests, target_, context_.pool);
    if (!group || group->nests != nests.size()) return {};
    const bool has_elements_only = lower::has_elements_only(*group);
    has_hold_ = !has_elements_only;
    has_each_ = !group->outer.empty();
    return row_shapes({*group, nests_.kept_after(end), buffers, facts_, names, context_.pool});
  }

  static bool is_of(const MapNest& nest, const lower::AskedKernel& asked) {
    if (lower::is_grid(nest)) return false;
    const std::set<std::string> written = lower::written_by(nest);
    return std::includes(asked.statements.begin(), asked.statements.end(), written.begin(),
                         written.end());
  }

  // The kernel with the lines of the shape that it does not have.
  Op with_lines(decision::Kernel kernel, const RowShape& shape) const {
    ir::Block& lines = kernel.body;
    const auto add = [&](auto line) {
      if (!find<decltype(line)>(lines)) lines.push_back(ir::make(std::move(line)));
    };
    add(decision::Columns{shape.capacity(), {}});
    add(decision::Vector{shape.by, {}});
    if (has_hold_) add(decision::Hold{shape.hold, {}});
    const auto* hold = find<decision::Hold>(lines);
    if (hold && hold->kind != HoldKind::Steps)
      add(decision::Groups{shape.groups, decision::GroupKind::Sharing, {}});
    if (has_each_) add(decision::Each{shape.each, {}});
    return ir::make(std::move(kernel));
  }

  const ir::Program& program_;
  ir::PassContext& context_;
  const target::Target& target_;
  expr::Facts facts_;
  lower::ProgramNests nests_;
  lower::AskedKernels asked_;
  bool has_hold_ = false;  // of the kernel: reductions
  bool has_each_ = false;  // of the kernel: reductions over several axes
};

}  // namespace

std::optional<ir::Program> choose_row_shapes(const ir::Program& program, ir::PassContext& context) {
  return RowShaper(program, context).run();
}

}  // namespace nautilus::choose
