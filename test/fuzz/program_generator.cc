// SPDX-License-Identifier: Apache-2.0
#include "program_generator.h"

#include <fmt/format.h>

#include <algorithm>

#include "driver/load/load.h"
#include "expression_generator.h"
#include "work.h"

namespace nautilus::fuzz {
namespace {

using expr::DType;

class ProgramGenerator {
 public:
  ProgramGenerator(uint64_t seed, int64_t largest) : random_(seed), largest_(largest) {}

  std::string run() {
    sizes();
    inputs();
    scalars();
    functions();
    equations();
    std::string text;
    for (const std::string& line : lines_) text += line + "\n";
    return text;
  }

 private:
  int64_t draw(int64_t low, int64_t high) { return random_.integer(low, high); }
  template <class T>
  const T& any_of(const std::vector<T>& items) {
    return items[random_.next() % items.size()];
  }

  void sizes() {
    static constexpr std::string_view kDims[] = {"M", "N", "K", "L"};
    const int64_t dims = draw(1, 3);
    std::string hints;
    for (int64_t k = 0; k < dims; ++k) {
      const std::string name(kDims[k]);
      const int64_t value = random_.chance(0.08) ? 0 : draw(1, largest_);
      lines_.push_back(fmt::format("dims {}", name));
      hints += fmt::format("{}{} = {}", k ? ", " : "", name, value);
      world_.extents.push_back({name, value, Extent::Form::Dim, -1, 1, ""});
    }
    lines_.push_back("hint " + hints);
    if (random_.chance(0.6)) {
      const int64_t value = draw(1, 5);
      lines_.push_back(fmt::format("static R = {}", value));
      world_.extents.push_back({"R", value, Extent::Form::Constant, -1, 1, ""});
      if (random_.chance(0.3)) {
        const auto base = static_cast<int>(draw(0, dims - 1));
        world_.extents.push_back({fmt::format("{} * R", world_.extents[base_index(base)].text),
                                  world_.extents[base_index(base)].value * value,
                                  Extent::Form::Scaled, base, value, "R"});
      }
    }
    if (random_.chance(0.3)) {
      const int64_t value = draw(1, 4);
      world_.extents.push_back(
          {fmt::format("{}", value), value, Extent::Form::Constant, -1, 1, ""});
    }
    if (random_.chance(0.3)) {
      const auto base = static_cast<int>(draw(0, dims - 1));
      const int64_t factor = draw(2, 3);
      world_.extents.push_back(
          {fmt::format("{} * {}", factor, world_.extents[base_index(base)].text),
           world_.extents[base_index(base)].value * factor, Extent::Form::Scaled, base, factor,
           fmt::format("{}", factor)});
    }
    if (random_.chance(0.2)) {
      const auto base = static_cast<int>(draw(0, dims - 1));
      const int64_t more = draw(1, 2);
      world_.extents.push_back({fmt::format("{} + {}", world_.extents[base_index(base)].text, more),
                                world_.extents[base_index(base)].value + more,
                                Extent::Form::Shifted, base, more, ""});
    }
    quotients(dims);
    for (size_t k = 0; k < world_.extents.size(); ++k) {
      Extent& e = world_.extents[k];
      const bool is_derived = e.form != Extent::Form::Dim && e.form != Extent::Form::Constant;
      if (!is_derived || !random_.chance(0.4)) continue;
      const std::string name = fmt::format("E{}", k);
      lines_.push_back(fmt::format("size {} = {}", name, e.text));
      e.text = name;
    }
  }

  // A dim by a number or by another dim that divides it, with the fact that says so.
  void quotients(int64_t dims) {
    if (!random_.chance(0.3)) return;
    const auto base = static_cast<int>(draw(0, dims - 1));
    const auto divisor = random_.chance(0.5) ? static_cast<int>(draw(0, dims - 1)) : -1;
    const int64_t factor = divisor < 0 ? draw(1, 3) : world_.extents[base_index(divisor)].value;
    const Extent from = world_.extents[base_index(base)];
    if (divisor == base || factor < 1 || from.value % factor != 0) return;
    const std::string by =
        divisor < 0 ? fmt::format("{}", factor) : world_.extents[base_index(divisor)].text;
    lines_.push_back(fmt::format("fact {} % {} == 0", from.text, by));
    world_.extents.push_back({fmt::format("{} / {}", from.text, by), from.value / factor,
                              Extent::Form::Quotient, base, factor, by, divisor});
  }

  static size_t base_index(int base) { return static_cast<size_t>(base); }

  std::vector<int> dims(int64_t max_rank) {
    std::vector<int> out;
    int64_t elements = 1;
    for (int64_t rank = draw(0, max_rank); rank > 0; --rank) {
      const auto k = static_cast<int>(random_.next() % world_.extents.size());
      elements *= std::max<int64_t>(1, world_.extents[base_index(k)].value);
      if (elements > 500) break;
      out.push_back(k);
    }
    return out;
  }

  std::string type_text(const Tensor& t) {
    std::string text;
    for (const int d : t.dims)
      text += (text.empty() ? "" : ", ") + world_.extents[base_index(d)].text;
    return fmt::format("{}[{}]", expr::name(t.dtype), text);
  }

  void inputs() {
    static const std::vector<DType> kDTypes = {
        DType::F32, DType::F32, DType::F32,  DType::BF16,   DType::BF16,
        DType::F16, DType::F64, DType::I32,  DType::I32,    DType::I64,
        DType::I8,  DType::U8,  DType::Bool, DType::F8E4M3, DType::F8E5M2};
    const int64_t count = draw(1, 4);
    for (int64_t k = 0; k < count; ++k) {
      Tensor t{fmt::format("A{}", k), k == 0 ? DType::F32 : any_of(kDTypes), dims(3), true};
      if (k == 0 && t.dims.empty()) t.dims.push_back(0);
      lines_.push_back(fmt::format("{}: {}", t.name, type_text(t)));
      world_.tensors.push_back(t);
    }
  }

  void scalars() {
    if (random_.chance(0.35)) {
      lines_.push_back(fmt::format("s0 = {}", random_.chance(0.5) ? "0.75" : "1/sqrt(M)"));
      world_.scalars.push_back({"s0", DType::F32});
      if (random_.chance(0.5)) lines_.push_back("fact s0 > 0");
    }
    if (random_.chance(0.2)) {
      static const std::vector<DType> kDTypes = {DType::F64, DType::BF16, DType::F16};
      const DType dtype = any_of(kDTypes);
      lines_.push_back(fmt::format("s1: {} = {}", expr::name(dtype), "0.3"));
      world_.scalars.push_back({"s1", dtype});
    }
    if (random_.chance(0.25)) {
      static const std::vector<DType> kDTypes = {DType::I32, DType::I64, DType::I8};
      const DType dtype = any_of(kDTypes);
      lines_.push_back(fmt::format("w: {} = {}", expr::name(dtype), draw(0, 3)));
      if (random_.chance(0.5)) lines_.push_back("fact w >= 0");
      world_.scalars.push_back({"w", dtype});
    }
    if (random_.chance(0.1)) lines_.push_back("fact M + 1 > 0");
    static const std::vector<std::string> kNumerics = {"exact", "exact", "bf16", "tf32"};
    if (random_.chance(0.3)) lines_.push_back(fmt::format("numerics {}", any_of(kNumerics)));
  }

  void functions() {
    const int64_t count = random_.chance(0.4) ? draw(1, 2) : 0;
    World inside;  // a function sees constants only: its caller may have any axes
    inside.extents.push_back({"2", 2, Extent::Form::Constant, -1, 1, ""});
    std::vector<Function> made;
    for (int64_t k = 0; k < count; ++k) {
      Function f{fmt::format("f{}", k), random_.chance(0.5), false, static_cast<int>(draw(1, 2))};
      ExpressionGenerator body(inside, random_);
      body.add_value("u", DType::F32);
      if (f.params == 2) body.add_value("v", DType::F32);
      std::string text;
      if (f.has_axis) {
        static const std::vector<std::string> kReducers = {"sum", "max", "min", "mean"};
        const std::string inner = body.value(DType::F32, 1);
        body.add_value("r", DType::F32);
        text = fmt::format("let r = {}[q] (u * {}) in {}", any_of(kReducers), inner,
                           body.value(DType::F32, 2));
      } else {
        text = body.value(DType::F32, 3);
      }
      lines_.push_back(fmt::format("fn {}{}(u{}) = {}", f.name, f.has_axis ? "[q]" : "",
                                   f.params == 2 ? ", v" : "", text));
      made.push_back(f);
      inside.functions.clear();
      if (!f.has_axis) inside.functions.push_back(f);  // the next one may call it
    }
    world_.functions = made;
  }

  void equations() {
    std::vector<std::string> texts;
    const int64_t count = draw(1, 4);
    for (int64_t k = 0; k < count; ++k) texts.push_back(equation(k, k + 1 == count));
    // The order of equations has no meaning.
    if (random_.chance(0.15)) std::reverse(texts.begin(), texts.end());
    for (std::string& t : texts) lines_.push_back(std::move(t));
  }

  std::string equation(int64_t number, bool is_last) {
    static const std::vector<DType> kComputed = {DType::F32, DType::F32, DType::F32, DType::F64,
                                                 DType::I32, DType::I64, DType::Bool};
    const DType computed = any_of(kComputed);
    Tensor t{fmt::format("Y{}", number), computed, dims(3), false};
    ExpressionGenerator generator(world_, random_);
    for (const int d : t.dims) generator.push_axis(d);
    const std::string body = generator.value(computed, static_cast<int>(draw(1, 4)));
    const bool is_output = is_last || random_.chance(0.4);
    if (is_output) t.dtype = stored(computed);
    const bool is_declared = is_output && random_.chance(0.15);
    std::string axes;
    std::vector<std::string> names;
    for (size_t k = 0; k < t.dims.size(); ++k) {
      const Axis axis = generator.pop_axis();
      axes = generator.written(axis) + (k ? ", " : "") + axes;
      names.insert(names.begin(), axis.name);
    }
    const bool is_scan = is_float(computed) && !names.empty() && random_.chance(0.15);
    if (is_declared) lines_.push_back(fmt::format("{}: {}", t.name, type_text(t)));
    const std::string arrow =
        is_output && !is_declared ? fmt::format(" -> {}", expr::name(t.dtype)) : "";
    world_.tensors.push_back(t);
    return fmt::format("{}[{}] = {}{}", t.name, axes,
                       is_scan ? recurrence(t.name, computed, names, body) : body, arrow);
  }

  // The equation as a step from its element before, or behind.
  std::string recurrence(const std::string& name, DType dtype, std::vector<std::string> axes,
                         const std::string& body) {
    std::string& along = axes[random_.next() % axes.size()];
    along += random_.chance(0.7) ? " - 1" : " + 1";
    std::string before;
    for (const std::string& a : axes) before += (before.empty() ? "" : ", ") + a;
    before = fmt::format("{}[{}]", name, before);
    static const std::vector<std::string> kSteps = {"{0} + ({1})", "0.5 * {0} + ({1})",
                                                    "max({0}, {1})", "({1}) - tanh({0})",
                                                    "where({0} > 4, 0, {0}) + ({1})"};
    return fmt::format("{} from {}({})", fmt::format(fmt::runtime(any_of(kSteps)), before, body),
                       expr::name(dtype), random_.chance(0.5) ? "0" : "0.75");
  }

  DType stored(DType computed) {
    if (computed == DType::Bool) return computed;
    static const std::vector<DType> kFloats = {DType::F32, DType::F32,    DType::F64,   DType::BF16,
                                               DType::F16, DType::F8E4M3, DType::F8E5M2};
    static const std::vector<DType> kInts = {DType::I32, DType::I64, DType::I8, DType::U8};
    return any_of(is_float(computed) ? kFloats : kInts);
  }

  base::Random random_;
  int64_t largest_;  // size
  World world_;
  std::vector<std::string> lines_;
};

}  // namespace

std::string generate_program(uint64_t seed) {
  std::string text;
  for (const int64_t largest : {7, 4, 2, 1}) {
    text = ProgramGenerator(seed, largest).run();
    // What a text takes depends on what its functions are written as, so it is read.
    driver::Unit unit;
    const auto program = driver::load_text("program.naut", text, {}, unit);
    if (!program || work_at(*program, {}) <= kMaxDefinitionWork) break;
  }
  return text;
}

}  // namespace nautilus::fuzz
