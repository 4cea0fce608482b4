// SPDX-License-Identifier: Apache-2.0
// What the parts of elaborating one equation share: what names stand for at a place of the text,
// where reads stand in it, and what is around the place.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "spec/language/equation_scope.h"
#include "spec/language/promote.h"
#include "spec/language/symbols.h"

namespace nautilus::spec {

// Axes, parameters and lets of the equation, or of the function that is written out; behind them
// what the program and the library define.
class NameScope {
 public:
  using Axis = std::pair<std::string_view, ir::Expr>;
  using Values = std::map<std::string_view, Typed>;
  struct Frame {
    std::vector<Axis> axes;
    Values values;                             // parameters and lets
    const FunctionSyntax* function = nullptr;  // null: the equation itself
  };

  // A program's own functions hide those of the library; the library sees only itself.
  NameScope(const Symbols& symbols, const Symbols& library)
      : symbols_(symbols), library_(library), frames_(1) {}

  // Makes an axis visible by the name it has in the text.
  void bind_axis(std::string_view name, ir::Expr var) {
    frames_.back().axes.emplace_back(name, var);
  }
  size_t axis_count() const { return frames_.back().axes.size(); }
  // Only the first `count` axes stay visible; the others.
  std::vector<Axis> unbind_axes(size_t count);
  ir::Expr find_axis(std::string_view name) const;
  // The axes that a name in brackets stands for: several for the last axis of a function that was
  // called with more axes than it declares, else one or none.
  std::vector<ir::Expr> find_axes(std::string_view name) const;
  bool is_function_axis(std::string_view name) const;

  Values& values() { return frames_.back().values; }
  const Values& values() const { return frames_.back().values; }
  // Whether a let may have this name; reported if it may not.
  bool can_bind(std::string_view name, diag::Span span, diag::Sink& sink) const;

  const Symbol* find_function(std::string_view name) const;
  bool is_library(std::string_view name) const { return library_.find(name) != nullptr; }

  // The calls around the place, outermost first, behind the equation.
  const std::vector<Frame>& frames() const { return frames_; }
  void enter(Frame frame) { frames_.push_back(std::move(frame)); }
  void leave() { frames_.pop_back(); }

  void report_undefined(const expr::Syntax& s, bool is_equation, diag::Sink& sink) const;

 private:
  std::vector<std::string> visible_names() const;

  const Symbols& symbols_;
  const Symbols& library_;
  std::vector<Frame> frames_;
};

// Where each tensor read stands in the text.
class ReadSpans {
 public:
  void add(ir::Expr read, diag::Span span) { spans_.emplace(read, span); }
  const std::unordered_map<ir::Expr, diag::Span>& all() const { return spans_; }
  // Substitutes a variable; reads that change stand where they stood.
  ir::Expr rename(ir::Expr e, ir::Expr from, ir::Expr to, expr::ExprPool& pool);

 private:
  std::unordered_map<ir::Expr, diag::Span> spans_;
};

struct ElaborationScope {
  Symbols& symbols;
  EquationScope& axes;
  expr::ExprPool& pool;
  diag::Sink& sink;
  NameScope names;
  ReadSpans reads = {};
  int guards = 0;           // conditions around the place
  int integer_context = 0;  // inside an index or a size, where `/` means floor division
};

}  // namespace nautilus::spec
