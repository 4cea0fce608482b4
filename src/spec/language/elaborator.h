// SPDX-License-Identifier: Apache-2.0
// The state of elaborating one program; an implementation detail of elaborate.h.
//
// Declarations first (elaborate_decls.cc): they give every name its meaning. Then the equations,
// each after those it reads (elaborate.cc).
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>

#include "expr/rules/simplify.h"
#include "spec/language/elaborate.h"
#include "spec/language/elaborate_expr.h"
#include "spec/language/scan_steps.h"

namespace nautilus::spec {

class Elaborator {
 public:
  Elaborator(const ElaborateOptions& options, expr::ExprPool& pool, diag::SourceMap& sources,
             diag::Sink& sink)
      : options_(options), pool_(pool), sources_(sources), sink_(sink), simplifier_(pool) {}

  std::optional<ir::Program> run(uint32_t file);

 private:
  using Expr = ir::Expr;
  using Syntax = expr::Syntax;
  using Members = std::vector<const EquationSyntax*>;

  static std::string program_name(std::string_view path);
  void load_library();
  void add_function(const FunctionSyntax& f, Symbols& table);
  // An expression outside any equation: no axes.
  Expr closed_size(const Syntax& s);
  void sizes();
  // Values that choices may assume, by the names of their dims.
  std::map<std::string_view, int64_t> hints();
  void define_static(const StaticSyntax& s);
  // Defines the named sizes for which everything they are made of is defined. `is_last`: the
  // remaining ones need each other, which is reported.
  void define_sizes(bool is_last);
  void report_size_cycle(const std::vector<const StaticSyntax*>& left);
  // A size is never negative: refused if it always is, a fact of the program if it may be.
  void check_sizes();
  void scalars();
  void tensors();
  void facts_and_numerics();
  // Each after those that it reads, so that types are known; the text may have any order. Those
  // that need each other are a scan (elaborate_scan.cc), or an error.
  void equations();
  // Equations that need each other, or one alone.
  void together(Members members, bool reads_itself);
  void report_cycle(const std::vector<const EquationSyntax*>& path, const EquationSyntax& again);
  bool is_scan(const Members& members, ScanSteps& steps);
  // The reads of members by members; false if some are in no place of a scan, which is reported.
  bool find_reads(const Members& members, std::vector<ScanRead>& reads);
  // Which members are states; false, and reported, if initial elements do not fit that.
  bool find_states(const Members& members, const std::vector<ScanRead>& reads, ScanSteps& steps);
  // The order in a step; what reads each other in one step is a cycle, which is reported.
  bool order_steps(const Members& members, const std::vector<ScanRead>& reads, ScanSteps& steps);
  void report_cycle_in(const Members& members);
  void scan(const ScanSteps& steps);
  bool open_state(const EquationSyntax& eq, const ScanSteps& steps);
  void find_types(const ScanSteps& steps);
  bool find_type(const EquationSyntax& eq);
  // Tensor names an expression mentions, function bodies included (a function may read tensors of
  // the program).
  std::vector<std::string_view> names_in(const Syntax& s);
  // The same for the body and the initial element.
  std::vector<std::string_view> names_in(const EquationSyntax& eq);
  // An equation, after those that were taken out of it.
  struct Elaborated {
    const EquationSyntax* eq;
    std::vector<Let> lets;
    std::unordered_map<Expr, diag::Span> spans;
  };
  std::optional<Elaborated> equation(const EquationSyntax& eq);
  void add(std::vector<Elaborated> all);
  bool left_side(const EquationSyntax& eq, const Symbol& symbol, bool is_declared,
                 EquationScope& scope, ExprElaborator& elaborator, Let& let);
  bool stored_dtype(const EquationSyntax& eq, const Symbol& symbol, bool is_declared,
                    const Typed& body, Let& let);
  void outputs();

  const ElaborateOptions& options_;
  expr::ExprPool& pool_;
  diag::SourceMap& sources_;
  diag::Sink& sink_;
  expr::Simplifier simplifier_;
  MathSyntax math_;
  std::deque<MathSyntax> libraries_;
  Symbols symbols_;
  Symbols library_;
  std::vector<const StaticSyntax*> open_sizes_;
  std::set<std::string_view> declared_outputs_;
  std::map<std::string, ir::TensorType> types_;
  std::vector<ir::Name> outputs_;
  expr::Facts facts_;
  ir::Program program_;
};

}  // namespace nautilus::spec
