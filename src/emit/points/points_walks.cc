// SPDX-License-Identifier: Apache-2.0
// Walks of a warp or a CTA with several numbers of a lane: elements come and go as vectors, those
// of the next round are loaded before this one is scanned, and a round is scanned in registers,
// then across lanes, then across warps through shared memory.
//
// A row may begin anywhere. The first round begins up to a vector before it, so that vectors lie at
// multiples of their bytes if those of all tensors can at once; rounds at an edge of the row, and
// rows whose tensors do not lie alike, are read and written element by element.
#include <algorithm>
#include <utility>

#include "emit/identifier.h"
#include "emit/points/points_emitter.h"
#include "emit/typed_expression.h"

namespace nautilus::emit {

using expr::DType;
using expr::Expr;

namespace {

constexpr int64_t kWalkLanes = 32;

bool is_packed(DType dtype) { return dtype != DType::F8E4M3 && dtype != DType::F8E5M2; }

std::string_view stored_type(DType dtype) {
  switch (dtype) {
    case DType::F32:
      return "float";
    case DType::F64:
      return "double";
    case DType::I32:
      return "int";
    case DType::I64:
      return "long long";
    default:
      return expr::is_half(dtype) ? "u16" : "unsigned char";
  }
}

}  // namespace

// Whether the tensor's elements of a walk lie beside each other.
bool PointsEmitter::is_walked(ir::Name tensor, std::span<const Expr> indices,
                              const matile::LaneLoop& w) const {
  const GlobalTensor& global = globals_.find(tensor.str())->second;
  const Expr var = pool_.index(w.var);
  const bool has_words = *w.vector * expr::bytes(global.type.dtype) % 4 == 0;
  return !indices.empty() && indices.back() == var && !global.is_scratch &&
         is_packed(global.type.dtype) && has_words &&
         std::none_of(indices.begin(), indices.end() - 1,
                      [&](Expr index) { return expr::depends_on(index, var); });
}

// What the values of the walk read along it. An element that is read under a condition is loaded
// for all numbers, so it has to lie in its tensor for all of them.
std::vector<Expr> PointsEmitter::walked_reads(const matile::LaneLoop& w) const {
  const auto& points = kernel_.body[0].as<matile::Points>();
  const auto is_there = [&](Expr read) {
    const ir::Exprs& dims = globals_.find(read.name().str())->second.type.dims;
    for (size_t k = 0; k + 1 < dims.size(); ++k) {
      const auto is_it = [&](const ir::Axis& a) {
        return pool_.index(a.name) == read[k] && a.extent == dims[k];
      };
      if (std::none_of(points.axes.begin(), points.axes.end(), is_it)) return false;
    }
    return dims.back() == w.count;
  };
  std::vector<Expr> out;
  const auto add = [&](Expr value) {
    std::set<const expr::Node*> always;
    reach(value, always);
    expr::for_each(value, [&](Expr e) {
      if (e.op() != expr::Op::Read || written_.contains(e.name().str())) return;
      if (!is_walked(e.name(), e.args(), w)) return;
      if (!always.contains(e.node()) && !is_there(e)) return;
      if (std::find(out.begin(), out.end(), e) == out.end()) out.push_back(e);
    });
  };
  for (const ir::Op& op : w.body) {
    if (const auto* v = op.get<matile::Value>()) add(v->init);
    if (const auto* l = op.get<matile::Let>()) add(l->value);
  }
  return out;
}

// Asks where a row begins: `skew` elements behind a multiple of a vector, and whether all tensors
// of the walk do alike.
void PointsEmitter::ask_skew(const matile::LaneLoop& w, const std::vector<Expr>& reads) {
  std::string all;
  const auto both = [&](const std::string& one) { all += (all.empty() ? "" : " && ") + one; };
  std::string skew;
  std::set<std::string> seen;  // where the row begins, or ends if it is walked down
  const bool is_up = w.order == matile::WalkOrder::Up;
  const std::string count = text(w.count);
  const auto add = [&](ir::Name tensor, std::span<const Expr> indices) {
    const GlobalTensor& global = globals_.find(tensor.str())->second;
    std::string& at = locals_.at(std::string(w.var.str()));
    const std::string saved = at;
    at = is_up ? "0" : count;
    const std::string place = fmt::format("(u64)(p.{} + {}) / {}", identifier(tensor.str()),
                                          offset(tensor.str(), indices), bytes(global.type.dtype));
    at = saved;
    if (!seen.insert(place).second) return;
    if (global.strides.back() != "1") both(fmt::format("{} == 1", global.strides.back()));
    if (skew.empty())
      skew = place;
    else
      both(fmt::format("({}) % {} == {}", place, *w.vector, walk_.skew));
  };
  for (const ir::Op& op : w.body) {
    const auto* write = op.get<matile::Write>();
    if (write && is_walked(write->target, write->indices, w)) add(write->target, write->indices);
  }
  for (Expr r : reads) add(r.name(), r.args());
  out_.line("const u64 {} = {} % {};", walk_.skew, skew.empty() ? "0" : skew, *w.vector);
  out_.line("const bool {} = {};", walk_.is_even, all.empty() ? "true" : all);
  const std::string before =
      is_up ? fmt::format("(long long){}", walk_.skew)
            : fmt::format("(long long)(({0} - {1}) % {0})", *w.vector, walk_.skew);
  out_.line("const long long {} = {} ? -{} : 0;", walk_.begin, walk_.is_even, before);
}

// The text of the first number of line `over` of a thread in the round that begins so.
std::string PointsEmitter::line_place(const matile::LaneLoop& w, const std::string& round) {
  const std::string at =
      fmt::format("{} + {} + {} * over", round, walk_.own, kWalkLanes * *w.vector);
  return w.order == matile::WalkOrder::Up
             ? at
             : fmt::format("{} - {} - ({})", walk_.count, *w.vector, at);
}

std::string PointsEmitter::is_whole_round(const matile::LaneLoop& w, const std::string& round) {
  return fmt::format("{0} && {1} >= 0 && {1} + {2} <= {3}", walk_.is_even, round, lanes_ * *w.each,
                     walk_.count);
}

// Loads the vectors of a round, all of them before the first is used.
void PointsEmitter::load_round(const matile::LaneLoop& w, const std::vector<Expr>& reads,
                               const std::string& round) {
  if (reads.empty()) return;
  std::string& at = locals_.at(std::string(w.var.str()));
  const std::string saved = at;
  at = "first";
  const auto each = [&](bool is_whole) {
    for (size_t n = 0; n < reads.size(); ++n) {
      const Expr r = reads[n];
      out_.open("UNROLL for (int over = 0; over < {}; ++over) {{", walk_.lines);
      out_.line("const long long first = {};", line_place(w, round));
      const std::string tensor = identifier(r.name().str());
      if (is_whole)
        out_.line("load_packed({}[over], p.{}, {});", walk_.packed[n], tensor,
                  vector_place(r.name(), r.args()));
      else
        out_.line("load_some({}[over], p.{}, {}, {}, -first, {} - first);", walk_.packed[n], tensor,
                  offset(r.name().str(), r.args()), apart(r.name()), walk_.count);
      out_.close();
    }
  };
  out_.open("if ({}) {{", is_whole_round(w, round));
  each(true);
  out_.close("} else {");
  out_.indent(2);
  each(false);
  out_.close();
  at = saved;
}

// The place of a vector, whose elements are known to lie beside each other.
std::string PointsEmitter::vector_place(ir::Name tensor, std::span<const Expr> indices) {
  std::string& stride = globals_.find(tensor.str())->second.strides.back();
  const std::string saved = std::exchange(stride, "1");
  const std::string out = offset(tensor.str(), indices);
  stride = saved;
  return out;
}

// The values of all numbers of a thread: of those that do not exist, of a scan, the identity.
void PointsEmitter::walk_values(const matile::LaneLoop& w, const std::vector<Expr>& reads) {
  std::set<std::string, std::less<>> totals;
  for (const ir::Op& op : w.body) {
    if (const auto* s = op.get<matile::LaneScan>()) totals.emplace(s->total.str());
  }
  const auto each = [&](bool is_whole) {
    out_.open("UNROLL for (int over = 0; over < {}; ++over) {{", walk_.lines);
    out_.line("const long long first = {};", line_place(w, walk_.round));
    out_.open("UNROLL for (int beside = 0; beside < {}; ++beside) {{", *w.vector);
    if (!is_whole) {
      for (const ir::Op& op : w.body) {
        const auto* s = op.get<matile::LaneScan>();
        if (s) out_.line("{} = {};", locals_.at(std::string(s->name.str())), identity(*s));
      }
      out_.open("if (first + beside >= 0 && first + beside < {}) {{", walk_.count);
    }
    for (const ir::Op& op : w.body) {
      const auto* v = op.get<matile::Value>();
      const auto* l = op.get<matile::Let>();
      if ((!v && !l) || (v && totals.contains(v->name.str()))) continue;
      const Expr value = v ? v->init : l->value;
      named_.clear();
      for (size_t n = 0; n < reads.size(); ++n)
        named_.emplace(reads[n], fmt::format("packed_{}({}[over], beside)",
                                             expr::name(reads[n].dtype()), walk_.packed[n]));
      name_shared({value});
      out_.line("{} = {};", locals_.at(std::string((v ? v->name : l->name).str())), text(value));
    }
    named_.clear();
    if (!is_whole) out_.close();
    out_.close();
    out_.close();
  };
  for (const ir::Op& op : w.body) {
    const auto* v = op.get<matile::Value>();
    const auto* l = op.get<matile::Let>();
    if (!v && !l) continue;
    const ir::Name name = v ? v->name : l->name;
    const DType dtype = v ? v->dtype : l->value.dtype();
    dtypes_[std::string(name.str())] = dtype;
    const std::string own = define(name);
    if (totals.contains(name.str())) {
      out_.line("{} {};", carrier(dtype), own);
      continue;
    }
    out_.line("{} {}[{}][{}];", carrier(dtype), own, walk_.lines, *w.vector);
    locals_[std::string(name.str())] = own + "[over][beside]";
  }
  out_.open("if ({}) {{", is_whole_round(w, walk_.round));
  each(true);
  out_.close("} else {");
  out_.indent(2);
  each(false);
  out_.close();
}

// Stores the vectors of a round.
void PointsEmitter::store_round(const matile::LaneLoop& w, const matile::Write& write) {
  const std::string tensor = identifier(write.target.str());
  const std::string_view dtype = expr::name(write.value.dtype());
  const bool has_vectors = is_walked(write.target, write.indices, w);
  const auto each = [&](bool is_whole) {
    out_.open("UNROLL for (int over = 0; over < {}; ++over) {{", walk_.lines);
    out_.line("const long long first = {};", line_place(w, walk_.round));
    const std::string packed = is_whole ? fresh("packed") : "";
    if (is_whole)
      out_.line("Packed<{}, {}> {};", stored_type(write.value.dtype()), *w.vector, packed);
    out_.open("UNROLL for (int beside = 0; beside < {}; ++beside) {{", *w.vector);
    if (!is_whole) out_.open("if (first + beside >= 0 && first + beside < {}) {{", walk_.count);
    name_shared({write.value});
    if (is_whole)
      out_.line("put_{}({}, beside, {});", dtype, packed, text(write.value));
    else
      out_.line("store_{}(p.{}, {}, {});", dtype, tensor, offset(write.target.str(), write.indices),
                text(write.value));
    named_.clear();
    if (!is_whole) out_.close();
    out_.close();
    if (is_whole) {
      std::string& at = locals_.at(std::string(w.var.str()));
      const std::string saved = at;
      at = "first";
      out_.line("store_packed(p.{}, {}, {});", tensor, vector_place(write.target, write.indices),
                packed);
      at = saved;
    }
    out_.close();
  };
  if (!has_vectors) return each(false);
  out_.open("if ({}) {{", is_whole_round(w, walk_.round));
  each(true);
  out_.close("} else {");
  out_.indent(2);
  each(false);
  out_.close();
}

void PointsEmitter::walk(const matile::LaneLoop& w) {
  const auto locals = locals_;
  const expr::Facts facts = facts_;
  const int64_t warps = lanes_ / kWalkLanes;
  walk_ = {};
  walk_.lines = *w.each / *w.vector;
  walk_.skew = fresh("skew");
  walk_.is_even = fresh("is_even");
  walk_.begin = fresh("begin");
  walk_.count = fresh("count");
  walk_.own = fresh("own");
  walk_.round = fresh("round");
  if (warps > 1) {
    walk_.warp = fresh("warp");
    walk_.turn = fresh("turn");
    walk_.shared = fresh("shared");
    out_.line("SHARED_BASE({});", walk_.shared);
  }
  out_.line("const long long {} = {};", walk_.count, text(w.count));
  if (warps > 1) out_.line("const int {} = thread_index() / {};", walk_.warp, kWalkLanes);
  out_.line("const int {} = {};", walk_.own,
            warps > 1
                ? fmt::format("{} * {} + {} * lane", walk_.warp, kWalkLanes * *w.each, *w.vector)
                : fmt::format("{} * lane", *w.vector));
  locals_[std::string(w.var.str())] = "(first + beside)";
  const std::vector<Expr> reads = walked_reads(w);
  ask_skew(w, reads);
  for (Expr r : reads) {
    walk_.packed.push_back(fresh(identifier(r.name().str())));
    out_.line("Packed<{}, {}> {}[{}];", stored_type(r.dtype()), *w.vector, walk_.packed.back(),
              walk_.lines);
  }
  load_round(w, reads, walk_.begin);
  if (warps > 1) out_.line("int {} = 0;", walk_.turn);
  out_.open("for (long long {0} = {1}; {0} < {2}; {0} += {3}) {{", walk_.round, walk_.begin,
            walk_.count, lanes_ * *w.each);
  facts_.add_axis(pool_.index(w.var), w.count);
  walk_values(w, reads);
  if (!reads.empty()) {
    // The next round is under way while this one is scanned.
    const std::string next = fresh("next");
    out_.line("const long long {} = {} + {};", next, walk_.round, lanes_ * *w.each);
    out_.open("if ({} < {}) {{", next, walk_.count);
    load_round(w, reads, next);
    out_.close();
  }
  for (const ir::Op& op : w.body) {
    named_.clear();
    if (const auto* s = op.get<matile::LaneScan>()) scan_round(w, *s);
    if (const auto* x = op.get<matile::Write>()) store_round(w, *x);
    if (const auto* a = op.get<matile::Assign>())
      out_.line("{} = {};", locals_.at(std::string(a->name.str())), text(a->value));
  }
  if (warps > 1) out_.line("{} ^= 1;", walk_.turn);
  out_.close();
  shared_bytes_ = std::max(shared_bytes_, walk_.shared_bytes);
  locals_ = locals;
  facts_ = facts;
}

}  // namespace nautilus::emit
