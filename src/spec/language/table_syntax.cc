// SPDX-License-Identifier: Apache-2.0
#include "spec/language/table_syntax.h"

#include <fmt/format.h>

namespace nautilus::spec {
namespace {

using diag::Code;
using expr::Syntax;
using Form = Syntax::Kind;

constexpr size_t kMaxElements = 256;
constexpr size_t kMaxRank = 4;

class TableParser {
 public:
  TableParser(text::Cursor& cursor, const NameSyntax& name, MathSyntax& out)
      : c_(cursor), name_(name), out_(out) {}

  bool run() {
    const text::Lexeme first = c_.peek();
    if (!list(0)) return false;
    const diag::Span whole = diag::join(first.span, c_.previous_span());
    if (elements_.size() > kMaxElements) {
      c_.sink()
          .report(Code::TooLong, whole,
                  fmt::format("a table of {} elements; the limit is {}", elements_.size(),
                              kMaxElements))
          .with_help("hand it over as an input");
      return false;
    }
    EquationSyntax eq;
    eq.name = name_;
    eq.left = name_.span;
    for (size_t k = 0; k < extents_.size(); ++k) {
      const std::string_view axis =
          out_.names.emplace_back(extents_.size() == 1 ? fmt::format("{}_at", name_.text)
                                                       : fmt::format("{}_at{}", name_.text, k));
      axes_.push_back(axis);
      eq.axes.push_back({axis, name_.span, number(static_cast<int64_t>(extents_[k]))});
    }
    eq.body = chosen(0, 0, elements_.size());
    out_.equations.push_back(std::move(eq));
    return true;
  }

 private:
  // `[` elements, or lists of the next dimension `]`
  bool list(size_t depth) {
    const text::Lexeme open = c_.peek();
    if (!c_.expect("[", "before the elements of a table")) return false;
    if (depth == kMaxRank || c_.at("]")) {
      c_.sink().report(Code::BadStatement, open.span,
                       depth == kMaxRank
                           ? fmt::format("a table has at most {} dimensions", kMaxRank)
                           : "a table has at least one element");
      return false;
    }
    size_t count = 0;
    do {
      if (!(c_.at("[") ? list(depth + 1) : element(depth + 1))) return false;
      ++count;
    } while (c_.accept(","));
    if (!c_.expect("]", "after the elements of a table")) return false;
    // The first list of a dimension is the last to be finished before its extent is known.
    if (extents_.size() <= depth) extents_.resize(depth + 1, 0);
    if (extents_[depth] == 0) extents_[depth] = count;
    if (extents_[depth] == count) return true;
    c_.sink()
        .report(Code::ShapeMismatch, diag::join(open.span, c_.previous_span()),
                fmt::format("this list has {}, the one before it {}",
                            diag::counted(count, "element", "elements"), extents_[depth]))
        .with_help("the lists of a table are of one length");
    return false;
  }

  bool element(size_t depth) {
    const Syntax* e = expr::parse_expr(c_, out_.pool);
    if (!e) return false;
    if (rank_ == 0) rank_ = depth;
    if (rank_ != depth) {
      c_.sink()
          .report(Code::ShapeMismatch, e->span, "an element next to a list")
          .with_help("the lists of a table are of one length");
      return false;
    }
    elements_.push_back(e);
    return true;
  }

  const Syntax* add(Form form, std::string_view text, std::vector<const Syntax*> args = {},
                    int64_t integer = 0) {
    out_.pool.push_back({.kind = form,
                         .span = name_.span,
                         .name_span = name_.span,
                         .text = text,
                         .integer = integer,
                         .args = std::move(args),
                         .axes = {},
                         .acc = {}});
    return &out_.pool.back();
  }
  const Syntax* number(int64_t value) { return add(Form::Integer, "", {}, value); }

  // The element among `count` from `first`, by the indices from `dimension` on. Halves of what is
  // left: as many choices as the number of elements has digits.
  const Syntax* chosen(size_t dimension, size_t first, size_t count) {
    if (dimension == extents_.size()) return elements_[first];
    const size_t step = count / extents_[dimension];
    return halves(dimension, first, step, 0, extents_[dimension]);
  }

  const Syntax* halves(size_t dimension, size_t first, size_t step, size_t low, size_t high) {
    if (high - low == 1) return chosen(dimension + 1, first + low * step, step);
    const size_t middle = (low + high) / 2;
    const Syntax* axis = add(Form::Name, axes_[dimension]);
    const Syntax* bound = number(static_cast<int64_t>(middle));
    return add(Form::Call, "where",
               {add(Form::Infix, "<", {axis, bound}), halves(dimension, first, step, low, middle),
                halves(dimension, first, step, middle, high)});
  }

  text::Cursor& c_;
  const NameSyntax& name_;
  MathSyntax& out_;
  std::vector<size_t> extents_;
  size_t rank_ = 0;
  std::vector<const Syntax*> elements_;
  std::vector<std::string_view> axes_;
};

}  // namespace

bool parse_table(text::Cursor& cursor, const NameSyntax& name, MathSyntax& out) {
  return TableParser(cursor, name, out).run();
}

}  // namespace nautilus::spec
