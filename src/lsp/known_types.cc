// SPDX-License-Identifier: Apache-2.0
#include "lsp/known_types.h"

#include <fmt/format.h>

#include <unordered_map>

#include "expr/print.h"
#include "expr/walk.h"
#include "ir/print.h"
#include "spec/ops.h"

namespace nautilus::lsp {
namespace {

// The value of an extent with every size at its hint; nothing if a size has no hint, or if it is
// not a sum, difference or product.
std::optional<int64_t> at_hint(ir::Expr e, const std::unordered_map<ir::Name, int64_t>& hints) {
  if (e.op() == expr::Op::IntConst) return e.integer();
  if (e.op() == expr::Op::Var) {
    const auto hint = hints.find(e.name());
    return hint == hints.end() ? std::nullopt : std::optional(hint->second);
  }
  const bool is_known = e.op() == expr::Op::Add || e.op() == expr::Op::Sub ||
                        e.op() == expr::Op::Mul || e.op() == expr::Op::FloorDiv;
  if (!is_known) return std::nullopt;
  const auto x = at_hint(e[0], hints);
  const auto y = at_hint(e[1], hints);
  int64_t out = 0;
  if (!x || !y) return std::nullopt;
  if (e.op() == expr::Op::FloorDiv)
    return *x >= 0 && *y > 0 ? std::optional(*x / *y) : std::nullopt;
  const bool overflows = e.op() == expr::Op::Add   ? __builtin_add_overflow(*x, *y, &out)
                         : e.op() == expr::Op::Sub ? __builtin_sub_overflow(*x, *y, &out)
                                                   : __builtin_mul_overflow(*x, *y, &out);
  return overflows ? std::nullopt : std::optional(out);
}

std::optional<std::string> hint_text(const ir::TensorType& type,
                                     const std::unordered_map<ir::Name, int64_t>& hints) {
  std::vector<int64_t> shape;
  int64_t bytes = expr::bytes(type.dtype);
  for (const ir::Expr dim : type.dims) {
    const auto value = at_hint(dim, hints);
    if (!value || __builtin_mul_overflow(bytes, *value, &bytes)) return std::nullopt;
    shape.push_back(*value);
  }
  return fmt::format("[{}], {} bytes", fmt::join(shape, ", "), bytes);
}

}  // namespace

KnownTypes::KnownTypes(const std::optional<ir::Program>& program) {
  if (!program || program->level != &spec::level()) return;
  std::unordered_map<ir::Name, int64_t> hints;
  for (const ir::Op& op : program->body) {
    if (const auto* d = op.get<ir::Dim>()) {
      if (d->hint) hints.emplace(d->name, *d->hint);
    } else if (const auto* s = op.get<ir::Static>()) {
      if (s->value) values_.emplace(s->name.str(), fmt::format("{}", *s->value));
    } else if (const auto* p = op.get<ir::Param>()) {
      if (p->init) values_.emplace(p->name.str(), expr::to_string(p->init));
    } else if (const auto* let = op.get<spec::Let>()) {
      // Equations that were taken out of an equation `P` have names such as `P.e`.
      const std::string_view equation = let->name.str().substr(0, let->name.str().find('.'));
      for (const ir::Axis& axis : let->axes) add_extent(equation, axis.name.str(), axis.extent);
      expr::for_each(let->body, [&](ir::Expr e) {
        if (e.op() != expr::Op::Reduce) return;
        for (size_t k = 0; k < e.axis_count(); ++k)
          add_extent(equation, e.axis(k).name().str(), e.extent(k));
      });
    } else if (const auto* o = op.get<spec::Output>()) {
      outputs_.emplace(o->name.str(), "");
    }
  }
  for (const auto& [name, type] : spec::tensor_types(*program)) {
    tensors_.emplace(name, ir::print(type));
    if (auto text = hint_text(type, hints)) hints_.emplace(name, std::move(*text));
  }
}

void KnownTypes::add_extent(std::string_view equation, std::string_view axis, ir::Expr extent) {
  std::string text = expr::to_string(extent);
  const auto [it, is_new] = extents_.emplace(fmt::format("{} {}", equation, axis), text);
  if (!is_new && it->second != text) it->second.clear();
}

std::optional<std::string> KnownTypes::find(const Table& table, std::string_view name) {
  const auto it = table.find(name);
  return it == table.end() || it->second.empty() ? std::nullopt : std::optional(it->second);
}

std::optional<std::string> KnownTypes::extent(std::string_view equation,
                                              std::string_view axis) const {
  return find(extents_, fmt::format("{} {}", equation, axis));
}

bool KnownTypes::is_output(std::string_view tensor) const { return outputs_.contains(tensor); }

}  // namespace nautilus::lsp
