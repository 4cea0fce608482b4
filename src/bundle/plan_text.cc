// SPDX-License-Identifier: Apache-2.0
#include "bundle/plan_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "bundle/c_code.h"
#include "expr/print.h"
#include "expr/walk.h"
#include "runtime/map_codes.h"

namespace nautilus::bundle {
namespace {

using matile::TensorRole;
using plan::Prepared;

size_t at(int index) { return static_cast<size_t>(index); }

int padded(int bytes) {
  constexpr int kUnit = sizeof(runtime::EncodedMap);
  return (bytes + kUnit - 1) / kUnit * kUnit;
}

std::string_view role_text(TensorRole role) {
  switch (role) {
    case TensorRole::Input:
      return "kInput";
    case TensorRole::Output:
      return "kOutput";
    case TensorRole::Scratch:
      return "kScratch";
    case TensorRole::Temp:
      return "kTemp";
  }
  return "";
}

class PlanPrinter {
 public:
  PlanPrinter(const Program& program, size_t number)
      : program_(program),
        plan_(program.plans[number]),
        prepared_(*plan_.prepared),
        name_(plan_name(program, number)) {
    name_slots();
  }

  std::string run() {
    line("/* ---- {} ({}){} */", program_.name, program_.file,
         plan_.copied.empty() ? ""
                              : fmt::format(", with copies of {}", fmt::join(plan_.copied, ", ")));
    values_struct();
    tables();
    // Compilers warn about unused functions.
    for (size_t m = 0; m < prepared_.maps.size(); ++m) {
      if (is_used(m)) map(m);
    }
    values();
    places();
    launches();
    entry();
    return std::move(out_);
  }

 private:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    out_ += fmt::format(format, std::forward<Args>(args)...) + "\n";
  }

  // Names of the plan may differ in characters that C does not have.
  void name_slots() {
    slots_.resize(at(prepared_.slots));
    std::set<std::string> taken;
    const auto add = [&](int slot, std::string_view name, bool is_float) {
      std::string own = c_name(name);
      while (!taken.insert(own).second) own += '_';
      slots_[at(slot)] = {"v->" + own, is_float};
      members_.push_back(std::move(own));
      is_member_float_.push_back(is_float);
    };
    for (const Prepared::Value& v : prepared_.values) add(v.slot, v.name, expr::is_float(v.dtype));
    size_t machine = 0;
    size_t let = 0;
    for (const ir::Op& op : plan_.program->body) {
      if (const auto* m = op.get<matile::Machine>())
        add(prepared_.machine[machine++], m->name.str(), false);
      if (const auto* l = op.get<matile::Let>()) {
        const Prepared::Let& own = prepared_.lets[let++];
        add(own.slot, l->name.str(), expr::is_float(own.dtype));
      }
    }
  }

  std::string text(const plan::Code& code) const { return c_expression(code, slots_); }
  const std::string& slot(int number) const { return slots_[at(number)].text; }

  void values_struct() {
    line("typedef struct {}_values {{", name_);
    for (size_t i = 0; i < members_.size(); ++i)
      line("  {} {};", is_member_float_[i] ? "double" : "int64_t", members_[i]);
    if (members_.empty()) line("  int64_t none;");
    line("}} {}_values;", name_);
  }

  int argument_of(const Prepared::Tensor& t) const {
    const Prepared& first = *program_.plans[0].prepared;
    const auto arguments = arguments_of(program_);
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (t.role < TensorRole::Scratch && first.tensors[arguments[i]].name == t.name)
        return static_cast<int>(i);
    }
    return -1;
  }

  void tables() {
    line("static const TensorInfo {}_tensors[] = {{", name_);
    for (const Prepared::Tensor& t : prepared_.tensors)
      line("    {{{}, {}, {}, {}, {}, {}}},", c_string(t.name), role_text(t.role), argument_of(t),
           t.rank(), t.first, expr::bytes(t.dtype));
    line("}};");
    line("static const MapInfo {}_maps[] = {{", name_);
    for (const Prepared::Map& m : prepared_.maps) {
      std::vector<int> box(m.view.box, m.view.box + runtime::kMaxMapRank);
      line("    {{{}, {}, {}, {}, {}, {}, {}, {}, {}, {{{}}}}},", c_string(m.name), m.tensor,
           m.bytes, m.is_stored ? 1 : 0, m.view.rank, runtime::element_code(m.view.element),
           runtime::swizzle_code(m.view.swizzle), runtime::promotion_code(m.view.l2_promotion),
           m.view.step, fmt::join(box, ", "));
    }
    if (prepared_.maps.empty()) line("    {{NULL, 0, 0, 0, 0, 0, 0, 0, 1, {{0}}}},");
    line("}};");
  }

  bool is_used(size_t map) const {
    return std::any_of(
        prepared_.launches.begin(), prepared_.launches.end(), [&](const Prepared::Launch& l) {
          return std::any_of(l.params.begin(), l.params.end(), [&](const Prepared::Param& p) {
            return p.kind == emit::KernelParam::Kind::Map && at(p.source) == map;
          });
        });
  }

  void map(size_t number) {
    const Prepared::Map& m = prepared_.maps[number];
    line("static void {}_map_{}(Frame* f, const {}_values* v, unsigned char* to) {{", name_, number,
         name_);
    line("  (void)v;");
    line("  MapView view = map_view(f, {});", number);
    for (size_t a = 0; a < m.extents.size(); ++a)
      line("  view.dims[{}] = {};", a, text(m.extents[a]));
    for (const Prepared::Term& t : m.terms)
      line("  view.strides[{}] += map_step(f, {}, {}, {});", t.axis, number, t.dimension,
           text(t.coefficient));
    for (const Prepared::Term& t : m.origin)
      line("  view.address += (uint64_t)map_step(f, {}, {}, {});", number, t.dimension,
           text(t.coefficient));
    line("  put_map(f, {}, &view, to);", number);
    line("}}");
  }

  // Values are numbered as in the first plan, whose order the caller knows.
  int given(const Prepared::Value& v) const { return program_.plans[0].prepared->value(v.name); }

  void values() {
    line("static int {}_evaluate(Frame* f, const void* const* given, {}_values* v) {{", name_,
         name_);
    line("  (void)f;");
    line("  (void)given;");
    line("  (void)v;");
    for (const Prepared::Value& v : prepared_.values) {
      if (v.is_size) {
        line("  int known_{} = 0;", v.slot);
        line("  if (given_size(f, given[{}], {}, &{}, &known_{})) return 1;", given(v),
             c_string(v.name), slot(v.slot), v.slot);
      } else if (expr::is_float(v.dtype)) {
        line("  if (given[{}]) {} = {};", given(v), slot(v.slot),
             c_rounded(v.dtype, fmt::format("given_float(given[{}])", given(v))));
      } else {
        line("  if (given[{}]) {} = given_int(given[{}]);", given(v), slot(v.slot), given(v));
      }
    }
    solves();
    for (const Prepared::Value& v : prepared_.values) missing(v);
    for (const Prepared::Value& v : prepared_.values) {
      if (v.is_size || !v.has_default) continue;
      const std::string value = text(v.default_value);
      line("  if (!given[{}]) {} = {};", given(v), slot(v.slot),
           expr::is_float(v.dtype) ? c_rounded(v.dtype, value) : value);
    }
    for (int tensor : prepared_.by_name) {
      const Prepared::Tensor& t = prepared_.tensors[at(tensor)];
      for (int k = 0; k < t.rank(); ++k)
        line("  if (check_extent(f, {}, {}, {}, {})) return 1;", tensor, k,
             c_string(expr::to_string(t.dims[at(k)])), text(t.extents[at(k)]));
    }
    for (const Prepared::Check& fact : prepared_.facts) check(fact);
    for (int machine : prepared_.machine) line("  {} = f->bundle->multiprocessors;", slot(machine));
    for (const Prepared::Let& let : prepared_.lets) {
      const std::string value = text(let.value);
      line("  {} = {};", slot(let.slot),
           expr::is_float(let.dtype) ? c_rounded(let.dtype, value) : value);
    }
    line("  return 0;");
    line("}}");
  }

  // One tensor's sizes may be what another's need, so it is tried until nothing new is found.
  void solves() {
    if (prepared_.solves.empty()) return;
    line("  for (int is_progress = 1; is_progress;) {{");
    line("    is_progress = 0;");
    for (const Prepared::Solve& s : prepared_.solves) {
      const int shape = prepared_.tensors[at(s.tensor)].first + s.dimension;
      for (const Prepared::SizeEquation& e : s.equations) {
        std::string condition = fmt::format("!known_{}", e.slot);
        for (int other : s.sizes) {
          if (other != e.slot) condition += fmt::format(" && known_{}", other);
        }
        line("    if ({})", condition);
        line("      is_progress |= solve(f->shapes[{}], {}, {}, &{}, &known_{});", shape,
             text(e.coefficient), text(e.rest), slot(e.slot), e.slot);
      }
    }
    line("  }}");
  }

  void missing(const Prepared::Value& v) {
    const std::string is_missing =
        v.is_size ? fmt::format("!known_{}", v.slot) : fmt::format("!given[{}]", given(v));
    if (v.is_size && v.hint)
      line("  if ({}) {} = {};", is_missing, slot(v.slot), *v.hint);
    else if (v.is_size || !v.has_default)
      line("  if ({}) return fail(f->error, 0, {});", is_missing,
           c_string(fmt::format("{} `{}` has no value", v.is_size ? "size" : "scalar", v.name)));
  }

  void check(const Prepared::Check& fact) {
    std::string format = "the fact `%s` does not hold";
    std::string arguments = c_string(expr::to_string(fact.text));
    std::string_view join = " (";
    for (ir::Expr var : expr::free_vars(fact.text)) {
      const int number = prepared_.value(var.name().str());
      if (number < 0) continue;
      const std::string& value = slot(prepared_.values[at(number)].slot);
      format += fmt::format("{}%s = {}", join, expr::is_float(var.dtype()) ? "%g" : "%lld");
      arguments += fmt::format(", {}, {}{}", c_string(var.name().str()),
                               expr::is_float(var.dtype()) ? "" : "(long long)", value);
      join = ", ";
    }
    if (join == ", ") format += ")";
    line("  if (!{})", text(fact.condition));
    line("    return fail(f->error, 0, {}, {});", c_string(format), arguments);
  }

  void places() {
    line("static int {}_place(Frame* f, const {}_values* v) {{", name_, name_);
    line("  (void)f;");
    line("  (void)v;");
    for (const TensorRole role : {TensorRole::Scratch, TensorRole::Temp}) {
      for (size_t i = 0; i < prepared_.tensors.size(); ++i) {
        const Prepared::Tensor& t = prepared_.tensors[i];
        if (t.role != role) continue;
        for (int k = 0; k < t.rank(); ++k)
          line("  f->shapes[{}] = {};", t.first + k, text(t.extents[at(k)]));
        line("  if (place(f, {})) return 1;", i);
      }
    }
    line("  return 0;");
    line("}}");
  }

  void launches() {
    line("static int {}_pack(Frame* f, const {}_values* v) {{", name_, name_);
    line("  int grid = 0;");
    line("  unsigned char* p = NULL;");
    line("  (void)v;");
    for (const Prepared::Launch& l : prepared_.launches) {
      if (l.is_other) continue;
      line("  grid = grid_of(f, {}, {});", text(l.grid), l.cluster);
      line("  if (grid < 0) return 1;");
      std::string condition = "grid > 0";
      if (l.other >= 0) {
        for (int tensor : l.vectors) condition += fmt::format(" && is_aligned(f, {})", tensor);
      }
      line("  if ({}) {{", condition);
      if (l.other < 0) {
        for (int tensor : l.vectors) line("    want_aligned(f, {});", tensor);
      }
      launch(l);
      line("  }}{}", l.other >= 0 ? " else if (grid > 0) {" : "");
      if (l.other < 0) continue;
      launch(prepared_.launches[at(l.other)]);
      line("  }}");
    }
    line("  (void)grid;");
    line("  (void)p;");
    line("  return 0;");
    line("}}");
  }

  void launch(const Prepared::Launch& l) {
    line("    p = add_launch(f, {}, grid, {});", plan_.kernels[l.kernel], l.param_bytes);
    for (const Prepared::Param& p : l.params) {
      using Kind = emit::KernelParam::Kind;
      switch (p.kind) {
        case Kind::Map:
          line("    {}_map_{}(f, v, p + {});", name_, p.source, p.offset);
          break;
        case Kind::Pointer:
          line("    put_address(f, p + {}, {});", p.offset, p.source);
          break;
        case Kind::Stride:
          line("    put_stride(f, p + {}, {}, {});", p.offset, p.source, p.dimension);
          break;
        case Kind::Int:
          line("    if (put_int(f, p + {}, {}, {})) return 1;", p.offset, c_string(p.name),
               slot(p.source));
          break;
        case Kind::Float:
          line("    put_float(p + {}, {});", p.offset, slot(p.source));
          break;
        case Kind::Long:
          line("    put_long(p + {}, {});", p.offset, slot(p.source));
          break;
        case Kind::Double:
          line("    put_double(p + {}, {});", p.offset, slot(p.source));
          break;
      }
    }
  }

  int param_bytes() const {
    int sum = 0;
    for (const Prepared::Launch& l : prepared_.launches) {
      if (l.is_other) continue;
      const int other = l.other < 0 ? 0 : prepared_.launches[at(l.other)].param_bytes;
      sum += padded(std::max(l.param_bytes, other));
    }
    return std::max(sum, 1);
  }

  void entry() {
    const size_t tensors = prepared_.tensors.size();
    line("static int {}(const Bundle* bundle, const Tensor* tensors, const void* const* given,",
         name_);
    line(
        "    const Call* call, size_t* workspace_bytes, unsigned char* misaligned, Error* error) "
        "{{");
    line("  {}_values v;", name_);
    line("  uint64_t addresses[{}] = {{0}};", tensors);
    line("  int64_t shapes[{}] = {{0}};", std::max(prepared_.dimensions, 1));
    line("  int64_t strides[{}] = {{0}};", std::max(prepared_.dimensions, 1));
    line("  Launch launches[{}];", std::max<size_t>(prepared_.launches.size(), 1));
    line("  _Alignas(64) unsigned char params[{}] = {{0}};", param_bytes());
    line(
        "  Frame f = {{bundle, {0}_tensors, {1}, {0}_maps, addresses, shapes, strides, misaligned, "
        "0,",
        name_, tensors);
    line("             launches, 0, params, workspace_bytes != NULL, 0, 0, 0, error}};");
    line("  memset(&v, 0, sizeof v);");
    line("  f.workspace = workspace_of(call, workspace_bytes);");
    line("  if (bind(&f, tensors) || {0}_evaluate(&f, given, &v) || {0}_place(&f, &v) ||", name_);
    line("      {}_pack(&f, &v))", name_);
    line("    return kFailed;");
    line("  return finish(&f, call, workspace_bytes, kKernels);");
    line("}}");
  }

  const Program& program_;
  const Plan& plan_;
  const Prepared& prepared_;
  std::string name_;
  std::vector<SlotText> slots_;
  std::vector<std::string> members_;
  std::vector<bool> is_member_float_;
  std::string out_;
};

}  // namespace

std::string plan_name(const Program& program, size_t number) {
  return fmt::format("{}_plan_{}", program.name, number);
}

std::string plan_text(const Program& program, size_t number) {
  return PlanPrinter(program, number).run();
}

std::vector<size_t> arguments_of(const Program& program) {
  std::vector<size_t> out;
  const auto& tensors = program.plans[0].prepared->tensors;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].role < TensorRole::Scratch) out.push_back(i);
  }
  return out;
}

}  // namespace nautilus::bundle
