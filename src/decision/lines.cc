// SPDX-License-Identifier: Apache-2.0
#include "decision/lines.h"

#include <fmt/format.h>

#include "ir/print.h"

namespace nautilus::decision {

const ir::Block& lines(const ir::Block& body) {
  static const ir::Block kNone;
  for (const ir::Op& op : body) {
    if (const auto* d = op.get<Decisions>()) return d->body;
  }
  return kNone;
}

ir::Expr cost_of(const ir::Block& body) {
  const ir::Op* line = find<Cost>(body);
  return line ? line->as<Cost>().cycles : ir::Expr();
}

ir::Block with_lines(ir::Block body, const ir::Block& lines) {
  std::erase_if(body, [](const ir::Op& op) { return op.is<Decisions>(); });
  if (!lines.empty()) body.insert(body.begin(), ir::make(Decisions{lines}));
  return body;
}

bool is_about_equations(const ir::Op& line) {
  return line.is<Store>() || line.is<Depth>() || line.is<Chunk>() || line.is<Piece>();
}

bool is_about_nest(const ir::Op& line) {
  const Topic about = topic(line.info());
  return about == Topic::Program || about == Topic::Members || line.is<Tile>() ||
         line.is<Split>() || line.is<Live>();
}

bool is_kept_for_messages(const ir::Op& line) {
  return !line.is<Cost>() && by_of(line) == By::User && is_about_nest(line);
}

void take_followed(ir::Block& body) {
  ir::Block rest = lines(body);
  const auto count = std::erase_if(rest, is_kept_for_messages);
  if (count > 0) body = with_lines(std::move(body), rest);
}

ir::Block written(const ir::Block& lines) {
  ir::Block out;
  for (const By who : {By::User, By::Tuned}) {
    for (const ir::Op& line : lines) {
      if (!line.is<Cost>() && by_of(line) == who) out.push_back(line);
    }
    if (!out.empty()) break;
  }
  return out;
}

// Decisions of one kind that are about different things differ in the first field.
bool is_about_the_same(const ir::Op& a, const ir::Op& b) {
  if (&a.info() != &b.info()) return false;
  const ir::Field& f = a.info().fields[0];
  if (f.kind == ir::FieldKind::Name)
    return ir::field_value<ir::Name>(a.data(), f) == ir::field_value<ir::Name>(b.data(), f);
  if (a.is<PointAxes>()) return true;
  if (f.kind == ir::FieldKind::NameList)
    return ir::field_value<ir::Names>(a.data(), f) == ir::field_value<ir::Names>(b.data(), f);
  if (a.is<Algebra>()) return a.as<Algebra>().rewrite == b.as<Algebra>().rewrite;
  return true;
}

void note(const ir::Op& decision, ir::PassContext& context) {
  if (!context.decided) return;
  std::erase_if(*context.decided, [&](const ir::Op& d) { return is_about_the_same(d, decision); });
  context.decided->push_back(decision);
}

void note_kernel(ir::Name name, Form form, const ir::Block& decided, ir::Name made,
                 ir::PassContext& context) {
  if (context.decided) context.decided->push_back(ir::make(Kernel{name, form, decided, made, {}}));
}

void note_front(ir::Name made, ir::Name front, ir::PassContext& context) {
  if (!context.decided) return;
  for (ir::Op& op : *context.decided) {
    const auto* noted = op.get<Kernel>();
    if (!noted || noted->made != made) continue;
    Kernel more = *noted;
    more.front.push_back(front);
    op = ir::make(std::move(more));
  }
}

void note_of(ir::Name made, const ir::Op& decision, ir::PassContext& context) {
  if (!context.decided) return;
  for (ir::Op& op : *context.decided) {
    const auto* noted = op.get<Kernel>();
    if (!noted || noted->made != made) continue;
    Kernel more = *noted;
    more.body.push_back(decision);
    op = ir::make(std::move(more));
  }
}

bool is_read_last(const ir::Op& line) {
  return line.is<Begin>() || line.is<Reads>() || line.is<Chains>();
}

ir::Block take_read_last(ir::Block& body) {
  ir::Block taken;
  ir::Block rest;
  for (const ir::Op& op : lines(body)) (is_read_last(op) ? taken : rest).push_back(op);
  if (!taken.empty()) body = with_lines(std::move(body), rest);
  return taken;
}

std::string refusal(const ir::Op& line, std::string_view why) {
  return fmt::format("`{}`: {}", ir::print(with_by(line, By::Auto)), why);
}

std::string refusal(const ir::Block& lines, std::string_view why) {
  std::string text;
  for (const ir::Op& line : lines)
    text += fmt::format("{}`{}`", text.empty() ? "" : ", ", ir::print(with_by(line, By::Auto)));
  return fmt::format("{}: {}", text, why);
}

void refuse(const ir::Op& line, std::string_view why, ir::PassContext& context) {
  context.sink.report(diag::Code::DecisionRefused, line.span(), refusal(line, why));
}

bool refuse_all(const ir::Block& lines, std::string_view why, ir::PassContext& context) {
  for (const ir::Op& line : lines) refuse(line, why, context);
  return lines.empty();
}

bool refuse_unread(const ir::Block& body, ir::PassContext& context) {
  ir::Block rest = body;
  take_read_last(rest);
  return refuse_all(lines(rest), "nothing of this kernel is decided by it", context);
}

}  // namespace nautilus::decision
