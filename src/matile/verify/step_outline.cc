// SPDX-License-Identifier: Apache-2.0
#include "matile/verify/step_outline.h"

#include <algorithm>

#include "expr/walk.h"
#include "matile/rewrite.h"

namespace nautilus::matile {

using ir::Op;

StepOutline::StepOutline(const ir::Block& ops) : body_(reduced(ops)) {
  // A number is needed where one that is needed names it.
  for (bool is_changed = true; is_changed;) {
    is_changed = std::erase_if(lets_, [&](const auto& let) {
                   const bool is_needed = names_.contains(let.first);
                   if (is_needed) add(let.second);
                   return is_needed;
                 }) > 0;
  }
  body_ = without_idle(body_);
}

void StepOutline::add(ir::Expr e) {
  expr::for_each(e, [&](ir::Expr x) {
    if (x.op() == expr::Op::Var) names_.insert(x.name());
  });
}

ir::Block StepOutline::reduced(const ir::Block& ops) {
  ir::Block out;
  for (const Op& op : ops) {
    switch (kind(op)) {
      case Kind::Let:
        lets_.emplace_back(op.as<Let>().name, op.as<Let>().value);
        out.push_back(op);
        break;
      case Kind::Jump:
        add(op.as<Jump>().slots);
        out.push_back(op);
        break;
      case Kind::Fill:
      case Kind::Get:
      case Kind::Skip:
      case Kind::Enter:
        out.push_back(op);
        break;
      case Kind::Loop:
      case Kind::Unroll:
      case Kind::If: {
        ir::Block inner = reduced(*block_of(op));
        if (std::all_of(inner.begin(), inner.end(), [](const Op& o) { return o.is<Let>(); })) break;
        if (const auto* loop = op.get<Loop>()) {
          add(loop->from);
          add(loop->to);
        }
        if (const auto* branch = op.get<If>()) add(branch->condition);
        out.push_back(with_block(op, std::move(inner)));
        break;
      }
      default:
        break;
    }
  }
  return out;
}

ir::Block StepOutline::without_idle(const ir::Block& ops) const {
  ir::Block out;
  for (const Op& op : ops) {
    if (const auto* let = op.get<Let>(); let && !names_.contains(let->name)) continue;
    const ir::Block* inner = block_of(op);
    out.push_back(inner ? with_block(op, without_idle(*inner)) : op);
  }
  return out;
}

}  // namespace nautilus::matile
