// SPDX-License-Identifier: Apache-2.0
#include "emit/vector.h"

#include <algorithm>

#include "emit/expression.h"
#include "emit/vector_access.h"
#include "expr/conjuncts.h"
#include "expr/walk.h"

namespace nautilus::emit {
namespace {

using expr::DType;
using expr::Expr;
using matile::Domain;

constexpr int kWords = 4;
// Limits of a put's condition come before those of its value.
constexpr size_t kValueLimits = 100;

// Text: true if the condition holds for all of piece `vec`. What does not depend on the piece is
// written in front.
std::string is_inside(const VectorAccess& access, Expr condition, const Domain& domain,
                      const RegisterScope& scope, Writer& out) {
  expr::ExprPool& pool = *scope.pool;
  const Expr axis = pool.index(domain.axes[0]);
  Expr whole;
  for (Expr part : expr::conjuncts(condition)) {
    const int element = *deciding_end(part, axis) * (access.width - 1);
    const Expr at = pool.binary(expr::Op::Add, access.in_pieces.at(axis), pool.integer(element));
    const Expr here = expr::substitute(pool, part, {{axis, at}});
    whole = whole ? pool.binary(expr::Op::And, whole, here) : here;
  }
  if (!whole) return "true";
  const ElementPrinter pieces = element_printer(access.pieces, scope, out);
  pieces.prepare(whole);
  return pieces.at(whole, "vec");
}

// Text: true if neighbours along the last axis are neighbours in memory.
std::string is_dense(std::string_view tensor, const RegisterScope& scope) {
  return fmt::format("{} == 1", scope.globals->find(tensor)->second.strides.back());
}

// The word of the pair, or the element, of that number in a piece.
template <class Element>
std::string packed_word(DType dtype, int width, const Element& element) {
  if (expr::bytes(dtype) != 2)
    return fmt::format("as_bits({})", element(fmt::format("({} * vec + word)", width)));
  return fmt::format("{}({}, {})", pack_name(dtype),
                     element(fmt::format("({} * vec + 2 * word)", width)),
                     element(fmt::format("({} * vec + 2 * word + 1)", width)));
}

// The four words of a constant, as text of one.
std::string word_of(const std::string& value, DType dtype) {
  if (expr::bytes(dtype) == 2) return fmt::format("{}({}, {})", pack_name(dtype), value, value);
  return fmt::format("as_bits({})", value);
}

}  // namespace

std::string one_of_copies(const layout::Layout& layout) {
  std::string condition;
  for (const layout::Digit& d : layout.digits()) {
    if (d.axis != layout::kCopies || d.owner == layout::Owner::Register) continue;
    condition +=
        fmt::format("{}{} / {} % {} == 0", condition.empty() ? "" : " && ",
                    d.owner == layout::Owner::Warp ? "warp" : "lane", d.owner_stride, d.extent);
  }
  return condition;
}

namespace {

// All pieces that are whole first, as many bytes under way as can be; the others, at the ends of a
// row, afterwards.
void emit_asking_load(const matile::Load& op, const VectorAccess& access, const Domain& domain,
                      const RegisterScope& scope, Writer& out) {
  const TileText& target = scope.tiles.find(op.target.str())->second;
  const DType dtype = target.op->type.dtype;
  const std::string name = identifier(op.target.str());
  const Expr other = op.other ? op.other : scope.pool->floating(0.0);
  const int pieces = access.pieces.layout.registers();
  out.open("{{  // {} from {}", op.target.str(), op.value.name().str());
  out.line("const u64 at = {};", access.thread);
  out.line("const bool is_dense = {};", is_dense(op.value.name().str(), scope));
  out.line("const bool is_aligned = is_dense && is_aligned_16(p.{}, at);",
           identifier(op.value.name().str()));
  out.line("bool is_whole = true;");
  const ElementPrinter text = element_printer(domain, scope, out, kValueLimits);
  const std::string inside = is_inside(access, op.condition, domain, scope, out);
  out.line("const u32 other = {};", word_of(text.at(other, "0"), dtype));
  out.open("UNROLL for (int vec = 0; vec < {}; ++vec) {{", pieces);
  out.line("const bool is_here = is_aligned && {};", inside);
  out.line("const Vector16 vector = load_vector_{}(is_here, p.{}, {}, other);",
           op.reuse == matile::Reuse::Often ? "often" : "when", identifier(op.value.name().str()),
           piece_offset(access));
  out.line("UNROLL for (int word = 0; word < {0}; ++word) {1}[{0} * vec + word] = {2};", kWords,
           name, is_packed(target) ? "vector.x[word]" : "as_float(vector.x[word])");
  out.line("is_whole = is_whole && is_here;");
  out.close();
  out.open("if (!is_whole) {{");
  const Expr value =
      op.condition ? scope.pool->select(op.condition, op.value, scope.pool->cast(dtype, other))
                   : op.value;
  text.prepare(value);
  out.open("UNROLL for (int vec = 0; vec < {}; ++vec) {{", pieces);
  const std::string word =
      packed_word(dtype, access.width, [&](const std::string& reg) { return text.at(value, reg); });
  const auto set_words = [&](const std::string& each) {
    out.line("UNROLL for (int word = 0; word < {0}; ++word) {1}[{0} * vec + word] = {2};", kWords,
             name, is_packed(target) ? each : fmt::format("as_float({})", each));
  };
  out.open("if (is_dense && {}) {{", inside);
  const std::string inner = packed_word(dtype, access.width, [&](const std::string& reg) {
    return fmt::format("load_{}(p.{}, {} + {} - {} * vec)", expr::name(dtype),
                       identifier(op.value.name().str()), piece_offset(access), reg, access.width);
  });
  out.open("if (!is_aligned) {{");
  set_words(inner);
  out.close();
  out.close();
  out.open("else {{");
  set_words(word);
  for (int k = 0; k < 4; ++k) out.close();
}

// Of a put that asks: the elements of a piece that is not whole, from its packed words.
void emit_single_elements(const matile::Put& op, const VectorAccess& access, const Domain& domain,
                          const ElementPrinter& text, const RegisterScope& scope, Writer& out) {
  const DType dtype = scope.globals->find(op.target.str())->second.type.dtype;
  const std::string reg = fmt::format("({} * vec + element)", access.width);
  std::string when = one_of_copies(domain.layout);
  if (op.condition) when += (when.empty() ? "" : " && ") + text.at(op.condition, reg);
  const std::string element =
      expr::bytes(dtype) == 2
          ? fmt::format("unpack_{}(words[element / 2], element % 2)", expr::name(dtype))
          : "as_float(words[element])";
  out.open("if (!is_here) {{");
  out.line("UNROLL for (int element = 0; element < {}; ++element)", access.width);
  out.line("  {}store_{}(p.{}, {}, {});", when.empty() ? "" : fmt::format("if ({}) ", when),
           expr::name(dtype), identifier(op.target.str()),
           text.offset(op.target.str(), op.indices, reg), element);
  out.close();
}

}  // namespace

void emit_load(const matile::Load& op, const RegisterScope& scope, Writer& out) {
  const TileText& target = scope.tiles.find(op.target.str())->second;
  const DType dtype = target.op->type.dtype;
  NAUT_CHECK(op.value.op() == expr::Op::Read && op.value.dtype() == dtype,
             "`{}` is loaded from something else than a tensor of its dtype", op.target.str());
  Domain domain{target.layout, {}};
  for (const ir::Axis& a : op.axes) domain.axes.push_back(a.name);
  const Expr other = op.other ? op.other : scope.pool->floating(0.0);
  const std::string_view tensor = op.value.name().str();
  const auto access = vector_access(domain, tensor, op.value.args(), op.condition, scope);
  if (!access) {
    const Expr value =
        op.condition ? scope.pool->select(op.condition, op.value, scope.pool->cast(dtype, other))
                     : op.value;
    return emit_set({op.target, op.axes, value}, scope, out);
  }
  if (access->is_asked) return emit_asking_load(op, *access, domain, scope, out);
  scope.vectors->emplace(tensor);
  out.open("{{  // {} from {}", op.target.str(), tensor);
  if (access->folded.empty()) out.line("const u64 at = {};", access->thread);
  const ElementPrinter text = element_printer(access->pieces, scope, out);
  std::string condition = "true";
  if (op.condition) {
    const Expr whole = expr::substitute(*scope.pool, op.condition, access->in_pieces);
    text.prepare(whole);
    condition = text.at(whole, "vec");
  }
  out.line("const u32 other = {};", word_of(text.at(other, "0"), dtype));
  out.open("UNROLL for (int vec = 0; vec < {}; ++vec) {{", access->pieces.layout.registers());
  out.line("const Vector16 vector = load_vector_{}({}, p.{}, {}, other);",
           op.reuse == matile::Reuse::Often ? "often" : "when", condition, identifier(tensor),
           piece_offset(*access));
  out.line("UNROLL for (int word = 0; word < {0}; ++word) {1}[{0} * vec + word] = {2};", kWords,
           identifier(op.target.str()),
           is_packed(target) ? "vector.x[word]" : "as_float(vector.x[word])");
  out.close();
  out.close();
}

bool emit_put_vectors(const matile::Put& op, const Domain& domain, const RegisterScope& scope,
                      Writer& out) {
  const DType dtype = scope.globals->find(op.target.str())->second.type.dtype;
  const auto access = vector_access(domain, op.target.str(), op.indices, op.condition, scope);
  if (!access) return false;
  if (!access->is_asked) scope.vectors->emplace(op.target.str());
  out.open("{{  // {}", op.target.str());
  if (access->folded.empty()) out.line("const u64 at = {};", access->thread);
  if (access->is_asked)
    out.line("const bool is_aligned = {} && is_aligned_16(p.{}, at);",
             is_dense(op.target.str(), scope), identifier(op.target.str()));
  const ElementPrinter pieces = element_printer(access->pieces, scope, out);
  std::string condition = one_of_copies(domain.layout);
  if (op.condition && !access->is_asked) {
    const Expr whole = expr::substitute(*scope.pool, op.condition, access->in_pieces);
    pieces.prepare(whole);
    condition += (condition.empty() ? "" : " && ") + pieces.at(whole, "vec");
  }
  // Rounding is part of packing; making a float of an integer is not.
  const bool is_rounded = op.value.op() == expr::Op::Cast && op.value.dtype() == dtype &&
                          expr::is_float(op.value[0].dtype());
  const Expr value = is_rounded ? op.value[0] : op.value;
  const ElementPrinter text = element_printer(domain, scope, out, kValueLimits);
  const std::string inside =
      access->is_asked ? is_inside(*access, op.condition, domain, scope, out) : "";
  if (access->is_asked && op.condition) text.prepare(op.condition);
  text.prepare(value);
  out.open("UNROLL for (int vec = 0; vec < {}; ++vec) {{", access->pieces.layout.registers());
  out.line("u32 words[{}];", kWords);
  std::string word;
  const auto tile =
      value.op() == expr::Op::Read ? scope.tiles.find(value.name().str()) : scope.tiles.end();
  const bool is_itself = tile != scope.tiles.end() && value.dtype() == dtype &&
                         is_packed(tile->second) &&
                         matile::domain_of(value, domain.axes, scope.layouts());
  if (is_itself && tile->second.layout == domain.layout) {
    // Packed already: the words are the registers.
    word = fmt::format("{}[{} * vec + word]", identifier(value.name().str()), kWords);
  } else {
    word = packed_word(dtype, access->width,
                       [&](const std::string& reg) { return text.at(value, reg); });
  }
  out.line("UNROLL for (int word = 0; word < {}; ++word) words[word] = {};", kWords, word);
  if (access->is_asked) {
    out.line("const bool is_here = is_aligned && {};", inside);
    condition += condition.empty() ? "is_here" : " && is_here";
  }
  out.line("{}store_vector(p.{}, {}, words[0], words[1], words[2], words[3]);",
           condition.empty() ? "" : fmt::format("if ({}) ", condition), identifier(op.target.str()),
           piece_offset(*access));
  if (access->is_asked) emit_single_elements(op, *access, domain, text, scope, out);
  out.close();
  out.close();
  return true;
}

}  // namespace nautilus::emit
