// SPDX-License-Identifier: Apache-2.0
// Patches: a thread has points along two axes. The turns of its loops that are known are written
// out for all of them, an element that several points or turns read is loaded once, and what a
// padded element asks is asked before the loops. So that all threads have whole patches, those at
// the end of an axis have the last points of it; the ones that a neighbour has as well they leave
// to it when they write.
#include <algorithm>

#include "emit/identifier.h"
#include "emit/points/points_emitter.h"
#include "emit/typed_expression.h"
#include "expr/bounds/affine.h"
#include "expr/walk.h"
#include "ir/target_of.h"
#include "matile/windows.h"

namespace nautilus::emit {

using expr::Expr;
using EK = expr::Op;

// A CTA has one place along the rows of patches, so that its threads read the same of what changes
// along them alone; CTAs beside each other have the others, and read the same of the rest.
void PointsEmitter::decode_patch(const ir::Axes& axes, bool is_behind) {
  const auto blocks = [&](const ir::Axis& a, int64_t points) {
    const std::string all = text(a.extent);
    return points == 1 ? all : fmt::format("(({} + {}) / {})", all, points - 1, points);
  };
  const auto first_of = [](const std::string& name) { return name + "_first"; };
  const auto begin = [&](const ir::Axis& a, int64_t points, const std::string& taken) {
    const std::string name = define(a.name);
    const std::string first = fresh(first_of(name));
    const std::string all = text(a.extent);
    out_.line("const long long {} = {} * {};", first, points, taken);
    out_.line("const long long {0} = {1} + {2} <= {3} ? {1} : {3} < {2} ? 0 : {3} - {2};", name,
              first, points, all);
    const bool is_row = a.name == across_.name();
    out_.line("const int {} = (int)({} - {});", is_row ? "again_across" : "again", first, name);
    out_.line("const int {0} = (int)({1} < {2} ? {1} : {2});", is_row ? "exist_across" : "exist",
              all, points);
  };
  std::string count;
  for (const ir::Axis& a : axes) {
    if (a.name == across_.name()) continue;
    count += fmt::format("{}(u64){}", count.empty() ? "" : " * ",
                         blocks(a, a.name == last_.name() ? points_per_thread_ : 1));
  }
  out_.line("u64 tiles = (u64)block_index();");
  for (const ir::Axis& a : axes) {
    if (a.name != across_.name()) continue;
    begin(a, points_across_, fmt::format("take_axis(tiles, {})", blocks(a, points_across_)));
  }
  out_.line("u64 points = tiles * {} + (u64)thread_index();", threads_);
  if (is_behind)
    out_.line("const bool has_point = points < {};", count);
  else
    out_.line("if (points >= {}) return;", count);
  for (size_t k = axes.size(); k-- > 0;) {
    const ir::Axis& a = axes[k];
    if (a.name == across_.name()) continue;
    const bool is_wide = a.name == last_.name();
    const std::string taken =
        fmt::format("take_axis(points, {})", blocks(a, is_wide ? points_per_thread_ : 1));
    if (is_wide)
      begin(a, points_per_thread_, taken);
    else
      out_.line("const long long {} = {};", define(a.name), taken);
  }
  if (is_behind) {
    out_.line("wait_for_kernels_in_front();");
    out_.line("if (!has_point) return;");
  }
  for (const ir::Axis& a : axes) facts_.add_axis(pool_.index(a.name), a.extent);
}

// Where elements lie that a patch reads or writes.
struct PointsEmitter::Place {
  std::string fixed;             // in the tensor, before the loops
  std::string moving;            // from there, by the loops around; empty if they do not
  std::vector<std::string> far;  // from there, by turns and points
  int64_t near = 0;              // the same along dimensions whose strides are known
};

// Dimensions of known extents at the end of a tensor usually lie without gaps: their strides are
// numbers for threads that have whole patches, which become part of the address of a load.
void PointsEmitter::take_known_strides() {
  for (auto& [name, global] : globals_) {
    int64_t stride = 1;
    for (size_t k = global.strides.size(); k-- > 0;) {
      global.strides[k] = std::to_string(stride);
      const Expr extent = global.type.dims[k];
      if (extent.op() != EK::IntConst) break;
      stride *= extent.integer();
    }
  }
}

// Text of the condition that places in a tensor which loops and points move are 32-bit numbers.
std::string PointsEmitter::are_near() const {
  std::map<std::string, std::string> sums;
  for (const auto& [name, k] : moved_) {
    const GlobalTensor& global = globals_.find(name)->second;
    std::string& sum = sums[name];
    const Expr extent = global.type.dims[k];
    sum += fmt::format("{}(u64){} * {}", sum.empty() ? "" : " + ",
                       const_cast<PointsEmitter*>(this)->text(extent), global.strides[k]);
  }
  std::string all;
  for (const auto& [name, sum] : sums) all += fmt::format(" && {} < 2147483648ull", sum);
  return all;
}

// Once for whole patches of tensors that lie along memory, and point by point for the others.
void PointsEmitter::patch_body(const ir::Block& ops) {
  const GlobalTensors globals = globals_;
  take_known_strides();
  std::string inside =
      fmt::format("exist == {} && exist_across == {}", points_per_thread_, points_across_);
  for (const auto& [name, global] : globals) {
    for (size_t k = 0; k < global.strides.size(); ++k) {
      const std::string& known = globals_.find(name)->second.strides[k];
      if (known != global.strides[k])
        inside += fmt::format(" && {} == {}", global.strides[k], known);
    }
  }
  // What is found out before the loops is what they are found to need.
  PointsEmitter trial = *this;
  trial.is_inside_ = trial.are_whole_ = true;
  trial.block(ops);
  out_.open("if ({}{}) {{", inside, trial.are_near());
  for (const auto& [condition, name] : trial.conditions_) {
    taken_.insert(name);
    out_.line("const bool {} = {};", name, text(condition));
  }
  for (const auto& [place, name] : trial.pointers_) {
    taken_.insert(name);
    out_.line("const auto {} = hidden({});", name, place);
  }
  conditions_ = trial.conditions_;
  pointers_ = trial.pointers_;
  is_inside_ = are_whole_ = true;
  block(ops);
  is_inside_ = are_whole_ = false;
  globals_ = globals;
  out_.close("} else {");
  out_.indent(2);
  single_points(ops);
  out_.close();
}

// Points of a patch one after the other, each as the only one of its thread.
void PointsEmitter::single_points(const ir::Block& ops) {
  PointsEmitter single = *this;
  const std::string row = locals_.at(std::string(across_.name().str()));
  const std::string column = locals_.at(std::string(last_.name().str()));
  single.out_.open("NO_UNROLL for (int over = again_across; over < exist_across; ++over) {{");
  single.out_.open("NO_UNROLL for (int beside = again; beside < exist; ++beside) {{");
  single.locals_[std::string(across_.name().str())] = fmt::format("({} + over)", row);
  single.locals_[std::string(last_.name().str())] = fmt::format("({} + beside)", column);
  single.across_ = {};
  single.points_across_ = single.points_per_thread_ = 1;
  single.spread_ = 0;
  single.is_patch_ = false;
  single.block(ops);
  single.out_.close();
  single.out_.close();
  out_ = std::move(single.out_);
}

// Turns that are known are written out, as far as instructions for them have room; a loop around
// them, or one whose turns are not known, has the points of one turn written out.
bool PointsEmitter::patch_loop(const matile::Loop& l) {
  if (is_window(l) && matile::all_turns(l) <= windows_) {
    window(l);
    return true;
  }
  const bool is_innermost =
      std::ranges::all_of(l.body, [](const ir::Op& op) { return op.is<matile::Assign>(); });
  const std::string from = text(l.from);
  const std::string to = text(l.to);
  const auto locals = locals_;
  const expr::Facts facts = facts_;
  const std::string var = define(l.var);
  const bool is_up = l.direction == matile::Direction::Up;
  if (is_up && l.from.is_int(0)) facts_.add_axis(pool_.index(l.var), l.to);
  loops_.emplace(l.var.str());
  out_.open("{5}for (long long {0} = {1}; {0} {2} {3}; {4}{0}) {{", var, from,
            is_up ? "<" : ">=", to, is_up ? "++" : "--", is_innermost ? "" : "NO_UNROLL ");
  window_places_.clear();
  if (is_innermost) {
    for (const ir::Op& op : l.body) write_turn(op.as<matile::Assign>(), {});
  } else {
    block(l.body);
  }
  window_places_.clear();
  named_.clear();
  out_.close();
  loops_.erase(std::string(l.var.str()));
  locals_ = locals;
  facts_ = facts;
  return true;
}

// Where an element is: what no loop moves, what the loops around move, and numbers. Nothing if its
// place is found in another tensor.
std::optional<PointsEmitter::Place> PointsEmitter::place_of(ir::Name tensor,
                                                            std::span<const Expr> indices) {
  const GlobalTensor& global = globals_.find(tensor.str())->second;
  Place out;
  const auto is_moving = [&](const auto& atoms) {
    return std::ranges::any_of(atoms, [&](Expr atom) {
      return std::ranges::any_of(expr::free_vars(atom),
                                 [&](Expr v) { return loops_.contains(v.name().str()); });
    });
  };
  for (size_t k = 0; k < indices.size(); ++k) {
    const auto p =
        expr::tensors_read(indices[k]).empty() ? expr::Poly::of(indices[k]) : std::nullopt;
    if (!p) return std::nullopt;
    Expr fixed;
    Expr moving;
    for (const auto& [atoms, factor] : p->terms()) {
      if (atoms.empty()) continue;
      Expr term = pool_.integer(factor);
      for (Expr atom : atoms) term = term.is_int(1) ? atom : pool_.binary(EK::Mul, term, atom);
      Expr& sum = is_moving(atoms) ? moving : fixed;
      sum = sum ? pool_.binary(EK::Add, sum, term) : term;
    }
    const std::string& stride = global.strides[k];
    const int64_t number = p->constant_term();
    if (fixed) out.fixed += " + " + global.step(text(fixed), k);
    if (moving) out.moving += fmt::format(" + (int)({}) * (int){}", text(moving), stride);
    if (moving || number != 0) moved_.emplace(tensor.str(), k);
    const bool is_known = std::ranges::all_of(stride, [](char c) { return c >= '0' && c <= '9'; });
    if (is_known)
      out.near += number * std::stoll(stride);
    else if (number != 0)
      out.far.push_back(fmt::format(" + {} * (int){}", number, stride));
  }
  return out;
}

// Names the element; loads it if no point or turn before has.
void PointsEmitter::load_in_patch(Expr element) {
  const bool is_guarded = element.op() == EK::Select;
  const Expr under = is_guarded ? element[1] : element;
  const Expr read = under.op() == EK::Cast ? under[0] : under;
  const std::string tensor(read.name().str());
  if (named_.contains(element) || written_.contains(tensor)) return;
  const auto place = place_of(read.name(), read.args());
  if (!place) return;
  const std::string begin = fmt::format("p.{}{}", identifier(tensor), place->fixed);
  auto pointer = pointers_.find(begin);
  if (pointer == pointers_.end()) pointer = pointers_.emplace(begin, fresh("from")).first;
  const auto known = [&](const std::string& key, std::string_view type, std::string_view stem,
                         const std::string& value) {
    const auto it = window_places_.find(key);
    if (it != window_places_.end()) return it->second;
    const std::string name = fresh(stem);
    out_.line("const {} {} = {};", type, name, value);
    return window_places_.emplace(key, name).first->second;
  };
  std::string at = "0";
  std::string key = tensor + " at";
  if (!place->moving.empty()) {
    key += place->moving;
    at = known(key, "int", "at", fmt::format("hidden({})", place->moving.substr(3)));
  }
  for (const std::string& far : place->far) {
    key += far;
    at = known(key, "int", "at", fmt::format("hidden({}{})", at, far));
  }
  const std::string index = fmt::format("(u64)((long long){} + {})", at, place->near);
  const std::string dtype(expr::name(read.dtype()));
  const std::string load =
      is_guarded ? fmt::format("load_{}_where({}, {}, {}, {})", dtype, known_conditions(element[0]),
                               pointer->second, index, text(element[2]))
                 : fmt::format("load_{}({}, {})", dtype, pointer->second, index);
  named_.emplace(element, known(load, carrier(element.dtype()), "element", load));
}

// Writes a point's element, unless a neighbour has the point as well. Points of a thread move from
// its first one by numbers.
void PointsEmitter::write_patch(const matile::Write& w) {
  const std::string tensor(w.target.str());
  const GlobalTensor& global = globals_.find(tensor)->second;
  std::string moved;
  bool is_known = true;
  for (size_t k = 0; k < w.indices.size(); ++k) {
    const auto p = expr::Poly::of(w.indices[k]);
    for (const auto& [axis, name] : {std::pair(across_, "over"), std::pair(last_, "beside")}) {
      if (!expr::depends_on(w.indices[k], axis)) continue;
      const auto parts = p ? p->split(axis) : std::nullopt;
      const auto step = parts ? parts->first.constant() : std::nullopt;
      is_known &= step.has_value();
      moved += fmt::format(" + {} * ({} * (int){})", name, step.value_or(0), global.strides[k]);
      moved_.emplace(tensor, k);
    }
  }
  const std::string first = fmt::format("p.{} + {}", identifier(tensor), offset(tensor, w.indices));
  open_points();
  out_.open("if (over >= again_across && beside >= again) {{");
  name_shared({w.value});
  if (is_known && !moved.empty()) {
    auto pointer = pointers_.find(first);
    if (pointer == pointers_.end()) pointer = pointers_.emplace(first, fresh("into")).first;
    out_.line("store_{}({}, (u64)(long long)({}), {});", expr::name(w.value.dtype()),
              pointer->second, moved.substr(3), text(w.value));
  } else {
    out_.line("store_{}(p.{}, {}, {});", expr::name(w.value.dtype()), identifier(tensor),
              offset(tensor, w.indices), text(w.value));
  }
  out_.close();
  close_points();
}

// The text of a condition, its parts by the axes of the points that they are about. Parts that no
// loop changes have names.
std::string PointsEmitter::known_conditions(Expr condition) {
  std::vector<Expr> parts = {condition};
  std::map<std::string, Expr> by_axes;  // by names of the variables
  while (!parts.empty()) {
    const Expr part = parts.back();
    parts.pop_back();
    if (part.op() == EK::And) {
      parts.push_back(part[1]);
      parts.push_back(part[0]);
      continue;
    }
    // Points and turns that ask the same of an element ask it in the same words.
    Expr same = part;
    const bool is_compared =
        part.op() == EK::Lt || part.op() == EK::Le || part.op() == EK::Gt || part.op() == EK::Ge;
    const auto apart =
        is_compared && part[0].dtype() == expr::DType::I64 && expr::tensors_read(part).empty()
            ? expr::difference(part[0], part[1])
            : std::nullopt;
    if (apart) same = pool_.binary(part.op(), expr::to_expr(pool_, *apart), pool_.integer(0));
    std::string axes;
    bool is_settled = expr::tensors_read(part).empty();
    for (Expr v : expr::free_vars(same)) {
      const std::string name(v.name().str());
      is_settled &= !loops_.contains(name) && !dtypes_.contains(name);
      if (locals_.contains(name)) axes += name + " ";
    }
    if (!is_settled) axes += "in loops";
    Expr& all = by_axes[axes];
    all = all ? pool_.binary(EK::And, all, same) : same;
  }
  std::string out;
  for (const auto& [axes, all] : by_axes) {
    std::string one = "(" + text(all) + ")";
    if (!axes.ends_with("in loops")) {
      auto it = conditions_.find(all);
      if (it == conditions_.end()) it = conditions_.emplace(all, fresh("is_there")).first;
      one = it->second;
    }
    out += (out.empty() ? "" : " & ") + one;
  }
  return out;
}

}  // namespace nautilus::emit
