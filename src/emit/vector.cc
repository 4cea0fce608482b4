// SPDX-License-Identifier: Apache-2.0
#include "emit/vector.h"

#include <algorithm>

#include "emit/expression.h"
#include "emit/limits.h"
#include "emit/walked_place.h"
#include "expr/conjuncts.h"
#include "expr/walk.h"
#include "layout/line.h"

namespace nautilus::emit {
namespace {

using expr::DType;
using expr::Expr;
using expr::Poly;
using matile::Domain;

constexpr int kVectorBytes = 16;
constexpr int kWords = 4;
// Limits of a put's condition come before those of its value.
constexpr size_t kValueLimits = 100;

// True if a comparison gives the same for all of a piece, which starts at a multiple of `width`.
bool is_whole(Expr condition, Expr axis, int64_t width, const RegisterScope& scope) {
  if (!expr::depends_on(condition, axis)) return true;
  const auto difference = difference_of(condition);
  const auto parts = difference ? difference->split(axis) : std::nullopt;
  const auto slope = parts ? parts->first.constant() : std::nullopt;
  if (slope == 1) return expr::is_multiple(parts->second, width, scope.divisors);
  if (slope != -1) return false;
  // limit - 1 - axis >= 0
  const auto limit = expr::plus(parts->second, 1);
  return limit && expr::is_multiple(*limit, width, scope.divisors);
}

// A tensor along a domain, in pieces of 16 bytes.
struct VectorAccess {
  int width = 0;  // elements
  Domain pieces;  // its axis counts pieces
  expr::Substitution in_pieces;
  std::string thread;          // text of the offset of the thread's first piece
  matile::DigitSum register_;  // and what a piece adds
  std::string folded;          // instead of both: text of the offset of piece `vec`
};

// A quotient or remainder of a count along the axis that turns at multiples of `width` only.
bool turns_between_pieces(Expr e, Expr axis, int64_t width, const RegisterScope& scope) {
  if (e.op() != expr::Op::FloorDiv && e.op() != expr::Op::Mod) return false;
  if (expr::depends_on(e[1], axis)) return false;
  const auto count = Poly::of(e[0]);
  const auto parts = count ? count->split(axis) : std::nullopt;
  const auto by = Poly::of(e[1]);
  return parts && by && parts->first.constant() == 1 &&
         expr::is_multiple(parts->second, width, scope.divisors) &&
         expr::is_multiple(*by, width, scope.divisors);
}

bool is_same_in_piece(Expr e, Expr axis, int64_t width, const RegisterScope& scope) {
  if (!expr::depends_on(e, axis)) return true;
  if (e.op() == expr::Op::FloorDiv && turns_between_pieces(e, axis, width, scope)) return true;
  if (e.op() == expr::Op::Read || e.args().empty()) return false;
  return std::all_of(e.args().begin(), e.args().end(),
                     [&](Expr a) { return is_same_in_piece(a, axis, width, scope); });
}

// Elements that are counted through several dimensions: x[k / W, k % W], where no piece crosses a
// row.
bool is_folded(std::span<const Expr> indices, Expr axis, int64_t width,
               const RegisterScope& scope) {
  return indices.back().op() == expr::Op::Mod &&
         turns_between_pieces(indices.back(), axis, width, scope) &&
         std::all_of(indices.begin(), indices.end() - 1,
                     [&](Expr i) { return is_same_in_piece(i, axis, width, scope); });
}

// The place of a piece whose elements lie in such rows. `at_piece`: the text of an index there.
template <class AtPiece>
std::string folded_place(const GlobalTensor& global, std::span<const Expr> indices,
                         const AtPiece& at_piece) {
  const auto place = walked_place(indices);
  const size_t rows = indices.size() - (place ? 2 : 0);
  std::string out;
  for (size_t k = 0; k < rows; ++k) out += (k ? " + " : "") + global.step(at_piece(indices[k]), k);
  if (!place) return out;
  if (place->first) out += (rows ? " + " : "") + global.step(at_piece(place->first), rows);
  out += fmt::format("{}walked_place({}, {}, {}, {})", out.empty() ? "" : " + ",
                     at_piece(place->count), at_piece(place->columns), global.strides[rows],
                     global.strides[rows + 1]);
  return out;
}

std::optional<VectorAccess> vector_access(const Domain& domain, std::string_view tensor,
                                          std::span<const Expr> indices, Expr condition,
                                          const RegisterScope& scope) {
  const GlobalTensor& global = scope.globals->find(tensor)->second;
  const ir::TensorType& type = global.type;
  VectorAccess access;
  access.width = kVectorBytes / expr::bytes(type.dtype);
  const auto pieces = layout::pieces(domain.layout, access.width);
  if (!pieces || indices.empty()) return std::nullopt;
  const Expr axis = scope.pool->index(domain.axes[static_cast<size_t>(pieces->axis)]);
  access.pieces = {pieces->layout, domain.axes};
  access.in_pieces = {
      {axis, scope.pool->binary(expr::Op::Mul, scope.pool->integer(access.width), axis)}};
  for (Expr part : expr::conjuncts(condition)) {
    if (!is_whole(part, axis, access.width, scope)) return std::nullopt;
  }
  // The last index counts elements, the others rows: only the last may go along the pieces.
  Writer nowhere;
  const ElementPrinter text = element_printer(access.pieces, scope, nowhere);
  if (domain.axes.size() == 1 && is_folded(indices, axis, access.width, scope)) {
    access.folded = folded_place(global, indices, [&](Expr e) {
      return text.at(expr::substitute(*scope.pool, e, access.in_pieces), "vec");
    });
    access.thread = "0";
    return access;
  }
  for (size_t k = 0; k + 1 < indices.size(); ++k) {
    for (expr::Name name : domain.axes) {
      if (expr::depends_on(indices[k], scope.pool->index(name))) return std::nullopt;
    }
    access.thread += (k ? " + " : "") + global.step(text.at(indices[k], "0"), k);
  }
  auto rest = Poly::of(expr::substitute(*scope.pool, indices.back(), access.in_pieces));
  if (!rest || !expr::is_multiple(*rest, access.width, scope.divisors)) return std::nullopt;
  std::vector<int64_t> steps;
  std::string along;
  for (size_t a = 0; a < domain.axes.size(); ++a) {
    const auto parts = rest->split(scope.pool->index(domain.axes[a]));
    const auto step = parts ? parts->first.constant() : std::nullopt;
    if (!step && !(parts && parts->first.is_zero())) return std::nullopt;
    steps.push_back(step.value_or(0));
    rest = parts->second;
    const std::string thread = matile::thread_coordinate(pieces->layout, static_cast<int>(a));
    if (steps.back() != 0 && thread != "0")
      along += fmt::format("{}{} * ({})", along.empty() ? "" : " + ", steps.back(), thread);
  }
  if (steps[static_cast<size_t>(pieces->axis)] != access.width) return std::nullopt;
  access.register_ = matile::fit(pieces->layout, [&](int e) {
    const auto point = pieces->layout.coordinates_of({0, 0, 0, e});
    int64_t sum = 0;
    for (size_t a = 0; a < point.size(); ++a) sum += steps[a] * point[a];
    return static_cast<int>(sum);
  });
  // Values that unrolling makes constant go into the instructions: one address for all pieces.
  std::string numbers;
  for (const auto& [name, extent] : scope.unrolled) {
    const auto parts = rest->split(scope.pool->index(name));
    const auto step = parts ? parts->first.constant() : std::nullopt;
    if (!step || *step < 0) continue;
    numbers += fmt::format(" + {} * {}", *step, identifier(name));
    rest = parts->second;
  }
  if (!rest->is_zero())
    along += fmt::format("{}{}", along.empty() ? "" : " + ",
                         text.at(expr::to_expr(*scope.pool, *rest), "0"));
  if (!along.empty())
    access.thread += fmt::format("{}(u64)({})", access.thread.empty() ? "" : " + ", along);
  if (access.thread.empty()) access.thread = "0";
  access.thread += numbers;
  return access;
}

std::string piece_offset(const VectorAccess& access) {
  if (!access.folded.empty()) return access.folded;
  const std::string step = access.register_.text("vec");
  return step == "0" ? "at" : "at + " + step;
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
  scope.vectors->emplace(op.target.str());
  out.open("{{  // {}", op.target.str());
  if (access->folded.empty()) out.line("const u64 at = {};", access->thread);
  const ElementPrinter pieces = element_printer(access->pieces, scope, out);
  std::string condition = one_of_copies(domain.layout);
  if (op.condition) {
    const Expr whole = expr::substitute(*scope.pool, op.condition, access->in_pieces);
    pieces.prepare(whole);
    condition += (condition.empty() ? "" : " && ") + pieces.at(whole, "vec");
  }
  // Rounding is part of packing.
  const Expr value =
      op.value.op() == expr::Op::Cast && op.value.dtype() == dtype ? op.value[0] : op.value;
  const ElementPrinter text = element_printer(domain, scope, out, kValueLimits);
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
  } else if (expr::bytes(dtype) == 2) {
    word = fmt::format("{}({}, {})", pack_name(dtype),
                       text.at(value, fmt::format("({} * vec + 2 * word)", access->width)),
                       text.at(value, fmt::format("({} * vec + 2 * word + 1)", access->width)));
  } else {
    word =
        fmt::format("as_bits({})", text.at(value, fmt::format("({} * vec + word)", access->width)));
  }
  out.line("UNROLL for (int word = 0; word < {}; ++word) words[word] = {};", kWords, word);
  out.line("{}store_vector(p.{}, {}, words[0], words[1], words[2], words[3]);",
           condition.empty() ? "" : fmt::format("if ({}) ", condition), identifier(op.target.str()),
           piece_offset(*access));
  out.close();
  out.close();
  return true;
}

void emit_warps(const matile::Warps& op, const RegisterScope& scope, const Meeting& meeting,
                Writer& out) {
  const TileText& tile = scope.tiles.find(op.tile.str())->second;
  const layout::Layout& layout = tile.layout;
  const std::string name = identifier(op.tile.str());
  // Elements of a warp are counted over registers and over the lanes that hold different ones; of
  // the lanes that hold the same, one writes.
  std::string element;
  std::string writer;
  int stride = 1;
  bool is_shared = false;
  for (const layout::Digit& d : layout.digits()) {
    if (d.owner == layout::Owner::Warp) is_shared = d.axis == layout::kCopies && d.extent == 4;
    if (d.owner != layout::Owner::Lane) continue;
    const std::string digit =
        d.extent == 32 ? "lane" : fmt::format("lane / {} % {}", d.owner_stride, d.extent);
    if (d.axis == layout::kCopies) {
      writer += fmt::format("{}{} == 0", writer.empty() ? "" : " && ", digit);
    } else {
      element += fmt::format("{} * ({}) + ", stride, digit);
      stride *= d.extent;
    }
  }
  NAUT_CHECK(is_shared && !is_packed(tile), "the warps do not share the elements of `{}`",
             op.tile.str());
  const std::string from = fmt::format("to + 16 * ({}{} * reg)", element, stride);
  out.open("{{  // {}: the warps' parts", op.tile.str());
  out.line("const u32 to = {} + {} * {};", meeting.address, meeting.cursor, meeting.buffer_bytes);
  out.line("UNROLL for (int reg = 0; reg < {}; ++reg)", layout.registers());
  out.line("  {}shared_store_f32({} + 4 * warp, {}[reg]);",
           writer.empty() ? "" : fmt::format("if ({}) ", writer), from, name);
  out.line("bar_sync({}, 128);", meeting.barrier);
  out.open("UNROLL for (int reg = 0; reg < {}; ++reg) {{", layout.registers());
  out.line("float parts[4];");
  out.line("shared_load_f32x4({}, parts);", from);
  out.line("{}[reg] = {};", name,
           combined(op.reducer, combined(op.reducer, "parts[0]", "parts[1]"),
                    combined(op.reducer, "parts[2]", "parts[3]")));
  out.close();
  out.line("{0} = 1 - {0};", meeting.cursor);
  out.close();
}

void emit_groups(const matile::Groups& op, const RegisterScope& scope, const GroupMeeting& meeting,
                 Writer& out) {
  const std::string name = identifier(op.tile.str());
  const layout::Layout& layout = scope.tiles.find(op.tile.str())->second.layout;
  NAUT_CHECK(layout.registers() == 1, "`{}` is more than one value", op.tile.str());
  const Meeting& place = meeting.place;
  const int warps = meeting.are_warps_apart ? 4 : 1;
  const int words = warps * meeting.groups;
  out.open("{{  // {}: the groups' parts", op.tile.str());
  out.line("const u32 to = {} + {} * {};", place.address, place.cursor, place.buffer_bytes);
  out.line("if ({}) shared_store_f32(to + 4 * {}, {}[0]);",
           meeting.are_warps_apart ? "lane == 0" : one_of_copies(layout),
           meeting.are_warps_apart ? fmt::format("(4 * {} + warp)", meeting.group) : meeting.group,
           name);
  out.line("bar_sync({}, {});", place.barrier, 128 * meeting.groups);
  out.line("float parts[{}];", words);
  out.line("UNROLL for (int digit = 0; digit < {}; ++digit) {};", meeting.groups,
           meeting.are_warps_apart ? "shared_load_f32x4(to + 16 * digit, parts + 4 * digit)"
                                   : "parts[digit] = shared_load_f32(to + 4 * digit)");
  // Neighbours first: a chain as short as can be, and the same order in every group.
  std::vector<std::string> parts;
  for (int k = 0; k < words; ++k) parts.push_back(fmt::format("parts[{}]", k));
  while (parts.size() > 1) {
    std::vector<std::string> halves;
    for (size_t k = 0; k + 1 < parts.size(); k += 2)
      halves.push_back(combined(op.reducer, parts[k], parts[k + 1]));
    if (parts.size() % 2) halves.push_back(parts.back());
    parts = std::move(halves);
  }
  out.line("{}[0] = {};", name, parts[0]);
  out.line("{0} = 1 - {0};", place.cursor);
  out.close();
}

}  // namespace nautilus::emit
