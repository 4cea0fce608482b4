// SPDX-License-Identifier: Apache-2.0
#include "lower/rows/row_walks.h"

#include <algorithm>

#include "expr/walk.h"
#include "lower/rows/row_moving.h"

namespace nautilus::lower {
namespace {

using expr::Expr;
using EK = expr::Op;
using Kind = RowStatement::Kind;

class Walks {
 public:
  Walks(const RowGroup& group, const std::set<std::string>& kept, expr::ExprPool& pool)
      : group_(group), kept_(kept), pool_(pool) {}

  RowWalks run() {
    const RowSegmentRules rules{[](const RowStatement&) { return true; },
                                [&](const RowStatement& s) { return is_kept(s); }};
    for (size_t k = 0; k < group_.statements.size();) {
      const bool is_number = group_.statements[k].kind == Kind::Number;
      const size_t end = is_number ? k + 1 : row_segment(group_, k, rules, pool_).end;
      read_.clear();
      bool has_work = false;
      for (; k < end; ++k) has_work |= add(group_.statements[k]);
      for (const std::string& tensor : read_) ++out_.tensors[tensor].times;
      out_.walks += has_work && !is_number ? 1 : 0;
    }
    return out_;
  }

 private:
  bool is_kept(const RowStatement& s) const { return kept_.contains(std::string(s.target.str())); }

  // Whether a walk does something for the statement: elements that are not written are computed
  // where they are read.
  bool add(const RowStatement& s) {
    const std::string target(s.target.str());
    out_.tensors[target].is_computed = true;
    if (s.kind == Kind::Element && !is_kept(s)) {
      elements_.emplace(target, s.value);
      return false;
    }
    if (s.kind == Kind::Element) out_.written += expr::bytes(s.dtype);
    add_reads(s.value);
    return true;
  }

  void add_reads(Expr value) {
    expr::for_each(value, [&](Expr e) {
      if (e.op() != EK::Read) return;
      const std::string name(e.name().str());
      if (const auto inner = elements_.find(name); inner != elements_.end())
        return add_reads(inner->second);
      RowWalks::Reading& reading = out_.tensors[name];
      read_.insert(name);
      const bool is_along = !e.args().empty() && e.args().back() == group_.place;
      if (is_along && is_of_row(e)) reading.bytes = expr::bytes(e.dtype());
    });
  }

  bool is_of_row(Expr read) const {
    return std::any_of(group_.rows.begin(), group_.rows.end(), [&](const ir::Axis& a) {
      return expr::depends_on(read, pool_.index(a.name));
    });
  }

  const RowGroup& group_;
  const std::set<std::string>& kept_;
  expr::ExprPool& pool_;
  std::map<std::string, Expr> elements_;
  std::set<std::string> read_;  // by the walk
  RowWalks out_;
};

}  // namespace

int64_t RowWalks::held_bytes() const {
  int64_t sum = written;
  for (const auto& [name, reading] : tensors) sum += reading.is_computed ? 0 : reading.bytes;
  return sum;
}

int64_t RowWalks::walked_bytes() const {
  int64_t sum = written;
  for (const auto& [name, reading] : tensors)
    sum += reading.is_computed ? 0 : reading.times * reading.bytes;
  return sum;
}

RowWalks row_walks(const RowGroup& group, const std::set<std::string>& kept, expr::ExprPool& pool) {
  return Walks(group, kept, pool).run();
}

}  // namespace nautilus::lower
