// SPDX-License-Identifier: Apache-2.0
#include "ir/parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/nearest.h"
#include "expr/syntax.h"
#include "ir/format.h"

namespace nautilus::ir {
namespace {

using diag::Code;
using text::Lexeme;
using text::Token;

constexpr int kMaxBlockDepth = 64;

class Parser {
 public:
  Parser(const std::vector<Lexeme>& tokens, const std::vector<const Level*>& levels,
         expr::ExprPool& pool, diag::Sink& sink)
      : c_(tokens, sink), levels_(levels), pool_(pool), sink_(sink) {}

  // One op of a vocabulary, alone in the text.
  std::optional<Op> alone(const std::vector<const OpInfo*>& vocabulary) {
    static const Level kNone{"", "", {}, [](const Op&, expr::Scope&) {}};
    level_ = &kNone;
    known_ = &vocabulary;
    Block out;
    if (!op(out, static_cast<int>(c_.peek().column))) return std::nullopt;
    if (c_.peek().kind == Token::End) return out[0];
    c_.unexpected("the end of the line");
    return std::nullopt;
  }

  std::optional<Program> program() {
    const Lexeme head = c_.peek();
    Program p;
    constexpr std::string_view kSuffix = ".program";
    if (head.kind == Token::Name && head.text.ends_with(kSuffix)) {
      const std::string_view level = head.text.substr(0, head.text.size() - kSuffix.size());
      for (const Level* l : levels_) {
        if (l->name == level) p.level = l;
      }
    }
    if (!p.level) {
      auto& d = sink_.report(Code::BadOp, head.span,
                             "expected a program header such as `spec.program @name`");
      std::string known;
      for (const Level* l : levels_)
        known += fmt::format("{}`{}`", known.empty() ? "" : ", ", l->name);
      d.with_help("known levels: " + known);
      return std::nullopt;
    }
    level_ = p.level;
    known_ = &level_->ops;
    c_.next();
    if (!c_.expect("@", "before the program's name")) return std::nullopt;
    if (c_.peek().kind != Token::Name) {
      c_.unexpected("the program's name");
      return std::nullopt;
    }
    p.name = c_.next().text;
    if (!after(p.after)) return std::nullopt;
    if (!block(p.body, -1)) return std::nullopt;
    if (c_.peek().kind != Token::End) {
      sink_.report(Code::BadOp, c_.peek().span, "expected an op on a line of its own");
      return std::nullopt;
    }
    return p;
  }

 private:
  // `after lazy_reference`, `after merge_equal 2`: which passes there are is not known here.
  bool after(std::string& out) {
    if (c_.peek().is_line_start || !c_.accept("after")) return true;
    if (c_.peek().kind != Token::Name || c_.peek().is_line_start) {
      c_.unexpected("the name of a pass");
      return false;
    }
    out = c_.next().text;
    if (c_.peek().kind == Token::Integer && !c_.peek().is_line_start)
      out += fmt::format(" {}", c_.next().text);
    return true;
  }

  // Ops on lines indented deeper than `outer`, all by the same amount.
  bool block(Block& out, int outer) {
    if (++depth_ > kMaxBlockDepth) {
      sink_.report(Code::TooDeep, c_.peek().span,
                   fmt::format("blocks nest deeper than {} levels", kMaxBlockDepth));
      return false;
    }
    const Lexeme first = c_.peek();
    const auto column = static_cast<int>(first.column);
    if (first.kind == Token::End || !first.is_line_start || column <= outer) {
      --depth_;
      return true;
    }
    while (c_.peek().kind != Token::End && c_.peek().is_line_start) {
      const auto here = static_cast<int>(c_.peek().column);
      if (here <= outer) break;
      if (here != column) {
        sink_.report(Code::BadOp, c_.peek().span,
                     fmt::format("indented by {}, the ops of this block by {}", here, column));
        return false;
      }
      if (!op(out, column)) return false;
    }
    --depth_;
    return true;
  }

  bool op(Block& out, int column) {
    const Lexeme head = c_.peek();
    const OpInfo* info = nullptr;
    for (const OpInfo* i : *known_) {
      if (i->mnemonic() == head.text) info = i;
    }
    if (!info) {
      const std::string what = known_ == &level_->ops
                                   ? fmt::format("an op of level {}", level_->name)
                               : owner_ ? fmt::format("a line of `{}`", owner_->mnemonic())
                                        : "a decision";
      auto& d =
          sink_.report(Code::BadOp, head.span, fmt::format("`{}` is not {}", head.text, what));
      std::vector<std::string> names;
      for (const OpInfo* i : *known_) names.emplace_back(i->mnemonic());
      const auto near = base::nearest_name(head.text, names);
      if (!near.empty()) d.with_help(fmt::format("did you mean `{}`?", near));
      return false;
    }
    const size_t mark = scope_.mark();
    auto data = info->create();
    if (!items(*info, data.get(), column)) return false;
    scope_.release(mark);
    const Lexeme after = c_.peek();
    if (after.kind != Token::End && !after.is_line_start) {
      sink_.report(Code::BadOp, after.span,
                   fmt::format("expected the end of the line after `{}`", info->format));
      return false;
    }
    out.emplace_back(*info, diag::join(head.span, line_end_), std::move(data));
    if (known_ == &level_->ops) level_->declare(out.back(), scope_);
    return true;
  }

  bool items(const OpInfo& info, void* data, int column) {
    const auto& format = format_of(info);
    line_end_ = c_.peek().span;
    open_op_ = &info;
    for (size_t i = 0; i < format.size(); ++i) {
      const FormatItem& item = format[i];
      if (item.kind == FormatItem::Kind::GroupBegin) {
        // A group is there if its first token is; a group that starts with an enum field, if the
        // next word spells it.
        const FormatItem& first = format[i + 1];
        const bool is_there = first.kind == FormatItem::Kind::Literal && !first.tokens.empty()
                                  ? at_inline(first.tokens[0])
                                  : starts_field(format, i + 1);
        if (!is_there) {
          while (format[i].kind != FormatItem::Kind::GroupEnd) ++i;
        }
      } else if (item.kind == FormatItem::Kind::Literal) {
        for (const std::string& token : item.tokens) {
          if (!c_.expect(token, fmt::format("in `{}`", info.format))) return false;
        }
      } else if (item.kind == FormatItem::Kind::Field) {
        const diag::Span before = c_.previous_span();
        if (!field(*item.field, data, column)) return false;
        // The place of an op is its own line, without the block below it.
        line_end_ = item.field->kind == FieldKind::Body ? before : c_.previous_span();
        continue;
      }
      line_end_ = c_.previous_span();
    }
    return true;
  }

  bool at_inline(std::string_view token) const { return c_.at(token) && !c_.peek().is_line_start; }

  // For groups such as `{ $kind}`: blanks come first, then the field.
  bool starts_field(const std::vector<FormatItem>& format, size_t i) const {
    while (format[i].kind == FormatItem::Kind::Literal && format[i].tokens.empty()) ++i;
    const Field* f = format[i].field;
    if (!f || c_.peek().is_line_start || c_.peek().kind == Token::End) return false;
    if (f->kind != FieldKind::Enum) return true;
    return std::find(f->words->begin(), f->words->end(), c_.peek().text) != f->words->end();
  }

  bool field(const Field& f, void* data, int column) {
    switch (f.kind) {
      case FieldKind::Name:
        return name(f, field_value<Name>(data, f));
      case FieldKind::NameList:
        return names(f, field_value<Names>(data, f));
      case FieldKind::Int:
        return integer(f, field_value<OptionalInt>(data, f));
      case FieldKind::Number:
        return number(f, field_value<OptionalNumber>(data, f));
      case FieldKind::Expr:
        return static_cast<bool>(field_value<Expr>(data, f) = expression());
      case FieldKind::ExprList:
        return list(field_value<Exprs>(data, f));
      case FieldKind::DType:
        return dtype(field_value<DType>(data, f));
      case FieldKind::Type: {
        auto& type = field_value<TensorType>(data, f);
        return dtype(type.dtype) && c_.expect("[", "after the dtype") && list(type.dims) &&
               c_.expect("]", "after the dimensions");
      }
      case FieldKind::AxisList:
        return axes(field_value<Axes>(data, f));
      case FieldKind::Enum:
        return word(f, field_value<uint8_t>(data, f));
      case FieldKind::Text:
        if (c_.peek().kind != Token::Text) {
          c_.unexpected(fmt::format("a text in quotes ({})", f.name));
          return false;
        }
        field_value<std::string>(data, f) = c_.next().text;
        return true;
      case FieldKind::Body:
        return body(*open_op_, field_value<Block>(data, f), data, column);
    }
    return false;
  }

  bool name(const Field& f, Name& out) {
    if (c_.peek().kind != Token::Name) {
      c_.unexpected(fmt::format("a name ({})", f.name));
      return false;
    }
    out = pool_.name(c_.next().text);
    return true;
  }

  bool names(const Field& f, Names& out) {
    do {
      Name n;
      if (!name(f, n)) return false;
      out.push_back(n);
    } while (c_.accept(","));
    return true;
  }

  bool integer(const Field& f, OptionalInt& out) {
    const bool is_negative = c_.accept("-");
    if (c_.peek().kind != Token::Integer) {
      c_.unexpected(fmt::format("an integer ({})", f.name));
      return false;
    }
    const int64_t value = c_.next().integer;
    out = is_negative ? -value : value;
    return true;
  }

  bool number(const Field& f, OptionalNumber& out) {
    const bool is_negative = c_.accept("-");
    const bool is_infinite = c_.at("inf");
    if (!is_infinite && c_.peek().kind != Token::Integer && c_.peek().kind != Token::Float) {
      c_.unexpected(fmt::format("a number ({})", f.name));
      return false;
    }
    const double value = is_infinite ? std::numeric_limits<double>::infinity() : c_.peek().number;
    c_.next();
    out = is_negative ? -value : value;
    return true;
  }

  // A value of an enum, as its place among the words.
  bool word(const Field& f, uint8_t& out) {
    const auto it = std::find(f.words->begin(), f.words->end(), c_.peek().text);
    if (it == f.words->end()) {
      c_.unexpected(fmt::format("one of {}", fmt::join(*f.words, ", ")));
      return false;
    }
    c_.next();
    out = static_cast<uint8_t>(it - f.words->begin());
    return true;
  }

  bool body(const OpInfo& info, Block& out, const void* data, int column) {
    const auto* outer = known_;
    const auto* outer_owner = owner_;
    if (info.vocabulary) {
      known_ = info.vocabulary;
      owner_ = &info;
    }
    if (known_ == &level_->ops && level_->open) level_->open(info, data, scope_);
    const bool ok = block(out, column);
    known_ = outer;
    owner_ = outer_owner;
    return ok;
  }

  Expr expression() {
    const expr::Syntax* s = expr::parse_expr(c_, syntax_);
    return s ? expr::build(*s, scope_, pool_, sink_) : Expr();
  }

  bool list(Exprs& out) {
    if (c_.at("]")) return true;
    do {
      const Expr e = expression();
      if (!e) return false;
      out.push_back(e);
    } while (c_.accept(","));
    return true;
  }

  bool dtype(DType& out) {
    const auto d = expr::parse_dtype(c_.peek().text);
    if (!d) {
      c_.unexpected("a dtype");
      return false;
    }
    c_.next();
    out = *d;
    return true;
  }

  // Axes are in scope for the rest of the op, its block included.
  bool axes(Axes& out) {
    if (c_.at("]") || c_.at(":")) return true;
    do {
      const auto axis = expr::parse_axis(c_, syntax_);
      if (!axis) return false;
      if (!axis->extent) {
        sink_.report(Code::NotInferable, axis->span,
                     fmt::format("the axis `{}` needs an extent here", axis->name));
        return false;
      }
      const Expr extent = expr::build(*axis->extent, scope_, pool_, sink_);
      if (!extent) return false;
      out.push_back({pool_.name(axis->name), extent});
    } while (c_.accept(","));
    for (const Axis& a : out) scope_.add_var(a.name.str(), DType::I64);
    return true;
  }

  text::Cursor c_;
  const std::vector<const Level*>& levels_;
  const Level* level_ = nullptr;
  const std::vector<const OpInfo*>* known_ = nullptr;  // ops that are allowed here
  const OpInfo* owner_ = nullptr;    // in whose block they are, where it has ops of its own
  const OpInfo* open_op_ = nullptr;  // the op being read
  expr::ExprPool& pool_;
  diag::Sink& sink_;
  expr::SyntaxPool syntax_;
  expr::Scope scope_;
  diag::Span line_end_;
  int depth_ = 0;
};

}  // namespace

std::optional<Op> parse_op(uint32_t file, const std::vector<const OpInfo*>& vocabulary,
                           expr::ExprPool& pool, diag::Sink& sink) {
  const auto tokens = text::lex(file, sink);
  if (!tokens) return std::nullopt;
  return Parser(*tokens, {}, pool, sink).alone(vocabulary);
}

std::optional<Program> parse(uint32_t file, const std::vector<const Level*>& levels,
                             expr::ExprPool& pool, diag::Sink& sink) {
  const auto tokens = text::lex(file, sink);
  if (!tokens) return std::nullopt;
  return Parser(*tokens, levels, pool, sink).program();
}

}  // namespace nautilus::ir
