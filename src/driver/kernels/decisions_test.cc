// SPDX-License-Identifier: Apache-2.0
// The contract of schedules, over all examples: a printed schedule is complete (its replay gives
// the same kernels), and every changed line changes the kernels or is refused.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>

#include "base/files.h"
#include "base/random.h"
#include "compile/kernels.h"
#include "decision/lines.h"
#include "driver/kernels/lower_to_kernels.h"
#include "driver/kernels/scheduling.h"
#include "driver/load/load.h"
#include "emit/emit.h"
#include "ir/print.h"
#include "matile/ops.h"
#include "schedule/text/schedule.h"

namespace nautilus::driver {
namespace {

std::vector<std::string> example_files() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(NAUTILUS_SOURCE_DIR "/examples")) {
    if (entry.path().extension() == ".naut") out.push_back(entry.path().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

// Programs with operands that are stored in ways that no example has: tensors of 16-bit numbers,
// limbs of images with zeros around them.
std::vector<std::string> programs_with_operands() {
  std::vector<std::string> out = example_files();
  for (const char* name :
       {"attention_rope", "chain_conv_bias_relu", "chain_conv_mean", "gemm_f32", "state_space"})
    out.push_back(fmt::format("{}/bench/foreign/{}.naut", NAUTILUS_SOURCE_DIR, name));
  return out;
}

// Other values of one field of a decision: all of an enum, numbers near and far, other orders.
std::vector<ir::Op> with_other_values(const ir::Op& line) {
  std::vector<ir::Op> out;
  for (const ir::Field& f : line.info().fields) {
    const auto add = [&](auto value) {
      auto data = ir::copy_data(line);
      ir::field_value<decltype(value)>(data.get(), f) = value;
      out.push_back(decision::with_by({line.info(), {}, std::move(data)}, decision::By::User));
    };
    // Not what the line is about.
    if (f.kind == ir::FieldKind::Enum && f.name != "by" && f.name != "rewrite") {
      const auto now = ir::field_value<uint8_t>(line.data(), f);
      // Some have a first word that is the rule's choice, as if nothing was said.
      const uint8_t first = f.name == "zeros" ? 1 : 0;
      for (uint8_t k = first; k < f.words->size(); ++k)
        if (k != now) add(k);
    }
    if (f.name == "axes" && line.is<decision::Store>()) {
      ir::Names order = line.as<decision::Store>().axes;
      if (order.size() < 2) continue;
      std::swap(order.back(), order[order.size() - 2]);
      add(order);
      if (order.size() > 2) std::swap(order[0], order.back());
      if (order.size() > 2) add(order);
      order.pop_back();
      add(order);
    }
    if (line.is<decision::Depth>() && f.name == "axes" &&
        !line.as<decision::Depth>().axes.empty()) {
      ir::Names order = line.as<decision::Depth>().axes;
      std::swap(order.front(), order.back());
      add(order);
      add(ir::Names());
    }
    if (f.kind == ir::FieldKind::Int) {
      const auto now = ir::field_value<ir::OptionalInt>(line.data(), f);
      if (!now) continue;
      for (const int64_t n : {int64_t{0}, *now - 1, *now + 1, *now / 2, 2 * *now, *now + 16})
        if (n != *now) add(ir::OptionalInt(n));
    }
  }
  return out;
}

// What the device gets: the text of the kernels without comments, how they are launched, and the
// plan that says when. A number that only an IR has is not here.
std::string emitted(ir::Program kernels, expr::ExprPool& pool) {
  std::string out;
  for (const emit::KernelText& k : emit::emit_kernels(kernels, pool)) {
    out += fmt::format("{}: {} threads, {} bytes, cluster {}, early {}, ordered {}\n{}", k.name,
                       k.threads, k.shared_bytes, k.cluster, k.may_begin_early, k.has_ordered_reads,
                       k.instructions);
    std::istringstream body(k.body);
    for (std::string line; std::getline(body, line);) {
      const size_t first = line.find_first_not_of(' ');
      if (first != std::string::npos && line.compare(first, 2, "//") != 0) out += line + "\n";
    }
  }
  std::erase_if(kernels.body, [](const ir::Op& op) { return op.is<matile::Kernel>(); });
  return out + ir::print(kernels);
}

// The kernels of a schedule as text, or why there are none.
std::string kernels_of(const ir::Program& program, const schedule::Schedule& decisions, Unit& unit,
                       std::string* why) {
  const auto built = replay(program, decisions, unit, why);
  if (!built) return "";
  diag::Sink sink(unit.sources);
  ir::PassContext context{unit.pool, sink, {}};
  const auto kernels = compile::to_kernels(built->program, context);
  if (!kernels) *why = sink.all().empty() ? "no reason" : sink.all()[0].message;
  if (!kernels && !sink.all().empty()) {
    EXPECT_EQ(sink.all()[0].code, diag::Code::DecisionRefused) << *why;
  }
  return kernels ? emitted(*kernels, unit.pool) : "";
}

class DecisionsTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    std::string error;
    const auto text = base::read_file(GetParam(), &error);
    ASSERT_TRUE(text) << error;
    program_ = load_text(GetParam(), *text, {}, unit_);
    ASSERT_TRUE(program_);
    first_ = first_schedule(*program_, unit_);
    ASSERT_TRUE(first_);
  }

  std::string kernels_of(const schedule::Schedule& decisions, std::string* why) {
    return driver::kernels_of(*program_, decisions, unit_, why);
  }

  Unit unit_;
  std::optional<ir::Program> program_;
  std::optional<FirstSchedule> first_;
};

TEST_P(DecisionsTest, APrintedScheduleIsComplete) {
  ir::PassContext context{unit_.pool, unit_.sink, {}};
  const auto kernels = compile::to_kernels(first_->program, context);
  ASSERT_TRUE(kernels);
  const std::string text = schedule::print(first_->decisions);
  const auto parsed = schedule::parse_schedule(text, unit_.pool);
  ASSERT_TRUE(parsed) << parsed.rejection().message << "\n" << text;
  EXPECT_EQ(schedule::print(*parsed), text);
  std::string why;
  EXPECT_TRUE(kernels_of(*parsed, &why) == emitted(*kernels, unit_.pool)) << why << "\n" << text;
}

// Tile kernels, rows, points and parts: each compiled kernel is an alternative of the schedule.
TEST_P(DecisionsTest, EveryKernelHasItsLines) {
  ir::PassContext context{unit_.pool, unit_.sink, {}};
  const auto kernels = compile::nests_to_kernels(first_->program, context);
  ASSERT_TRUE(kernels);
  size_t made = 0;
  for (const ir::Op& op : kernels->body) made += op.is<matile::Kernel>() ? 1 : 0;
  size_t alternatives = 0;
  for (const schedule::KernelSchedule& k : first_->decisions.kernels) {
    alternatives += k.alternatives.size();
    for (const ir::Block& alternative : k.alternatives) EXPECT_FALSE(alternative.empty()) << k.name;
  }
  EXPECT_EQ(alternatives, made) << schedule::print(first_->decisions);
}

TEST_P(DecisionsTest, AChangedLineChangesTheKernelsOrIsRefused) {
  std::string why;
  const std::string usual = kernels_of(first_->decisions, &why);
  ASSERT_FALSE(usual.empty()) << why;
  // By its name: the same in every folder.
  const std::string name = std::filesystem::path(GetParam()).filename().string();
  base::Random random(std::hash<std::string>()(name));
  for (size_t k = 0; k < first_->decisions.kernels.size(); ++k) {
    const auto& alternatives = first_->decisions.kernels[k].alternatives;
    for (size_t w = 0; w < alternatives.size(); ++w) {
      for (size_t n = 0; n < alternatives[w].size(); ++n) {
        const std::vector<ir::Op> others = with_other_values(alternatives[w][n]);
        // A third of the lines, one value each: all of them take many minutes.
        if (others.empty() || !random.chance(w == 0 ? 0.33 : 0.1)) continue;
        schedule::Schedule changed = first_->decisions;
        const auto pick = random.integer(0, static_cast<int64_t>(others.size()) - 1);
        const ir::Op& other = others[static_cast<size_t>(pick)];
        changed.kernels[k].alternatives[w][n] = other;
        why.clear();
        const std::string kernels = kernels_of(changed, &why);
        if (kernels.empty()) {
          EXPECT_FALSE(why.empty()) << ir::print(other);
        } else {
          EXPECT_TRUE(kernels != usual) << "`" << ir::print(other) << "` has no effect";
        }
      }
    }
  }
}

// Lines about the program: with all kernels as they were, and with kernels by rule.
class ProgramDecisionsTest : public DecisionsTest {};

TEST_P(ProgramDecisionsTest, AChangedLineChangesTheKernelsOrIsRefused) {
  for (const bool has_kernels : {true, false}) {
    schedule::Schedule first = first_->decisions;
    if (!has_kernels) first.kernels.clear();
    std::string why;
    const std::string usual = kernels_of(first, &why);
    ASSERT_FALSE(usual.empty()) << why;
    for (size_t n = 0; n < first.lines.size(); ++n) {
      for (const ir::Op& other : with_other_values(first.lines[n])) {
        schedule::Schedule changed = first;
        changed.lines[n] = other;
        why.clear();
        const std::string kernels = kernels_of(changed, &why);
        if (kernels.empty()) {
          EXPECT_FALSE(why.empty()) << ir::print(other);
        } else {
          EXPECT_TRUE(kernels != usual) << "`" << ir::print(other) << "` has no effect";
        }
      }
    }
  }
}

// As texts had it before there were such lines.
TEST_P(ProgramDecisionsTest, WithoutLinesAboutOperandsTheRulesDecide) {
  std::string why;
  const std::string usual = kernels_of(first_->decisions, &why);
  ASSERT_FALSE(usual.empty()) << why;
  schedule::Schedule old = first_->decisions;
  std::erase_if(old.lines, [](const ir::Op& line) { return decision::is_about_equations(line); });
  EXPECT_TRUE(kernels_of(old, &why) == usual) << why;
  const auto again = replay(*program_, old, unit_, &why);
  ASSERT_TRUE(again) << why;
  EXPECT_EQ(schedule::print(again->decisions), schedule::print(first_->decisions));
}

// Every verb of decisions.def is changed at least once, somewhere: a new one that no program of the
// list has, or whose values nobody can say, is a failure here.
class EveryVerb {
 public:
  // Lines of the program's first schedule with verbs that were not tried yet.
  void try_lines_of(const std::string& name, const std::string& text) {
    Unit unit;
    const auto program = load_text(name, text, {}, unit);
    ASSERT_TRUE(program) << name;
    const auto first = first_schedule(*program, unit);
    ASSERT_TRUE(first) << name;
    std::string usual;  // of this program, once somebody asks
    const auto changed = [&](const ir::Op& line, const schedule::Schedule& other) {
      std::string why;
      if (usual.empty()) usual = kernels_of(*program, first->decisions, unit, &why);
      ASSERT_FALSE(usual.empty()) << name << ": " << why;
      const std::string kernels = kernels_of(*program, other, unit, &why);
      tried_.emplace(line.info().mnemonic());
      if (kernels.empty()) {
        EXPECT_FALSE(why.empty()) << name << ": " << ir::print(line);
      } else {
        EXPECT_TRUE(kernels != usual)
            << name << ": another `" << ir::print(line) << "` has no effect";
      }
    };
    const schedule::Schedule& given = first->decisions;
    for (size_t n = 0; n < given.lines.size(); ++n) {
      if (is_tried(given.lines[n])) continue;
      for (const ir::Block& other : others_of(given.lines[n], given.lines)) {
        schedule::Schedule next = given;
        replace(next.lines, n, other);
        changed(given.lines[n], next);
      }
    }
    for (size_t k = 0; k < given.kernels.size(); ++k) {
      for (size_t w = 0; w < given.kernels[k].alternatives.size(); ++w) {
        const ir::Block& lines = given.kernels[k].alternatives[w];
        for (size_t n = 0; n < lines.size(); ++n) {
          if (is_tried(lines[n])) continue;
          for (const ir::Block& other : others_of(lines[n], lines)) {
            schedule::Schedule next = given;
            replace(next.kernels[k].alternatives[w], n, other);
            changed(lines[n], next);
          }
        }
      }
    }
  }

  void mark(std::string_view verb) { tried_.emplace(verb); }
  bool is_tried(const ir::Op& line) const { return tried_.contains(line.info().mnemonic()); }
  bool is_tried(std::string_view verb) const { return tried_.contains(verb); }

 private:
  static void replace(ir::Block& lines, size_t n, const ir::Block& other) {
    lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(n));
    lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(n), other.begin(), other.end());
  }

  // What may stand in place of a line: two other values, other axes, fewer statements; nothing, of
  // lines that only are there or not.
  static std::vector<ir::Block> others_of(const ir::Op& line, const ir::Block& beside) {
    std::vector<ir::Block> out;
    for (const ir::Op& other : with_other_values(line)) out.push_back({other});
    const auto with_axis = [&](auto decision) {
      const ir::Name own = decision.axis;
      for (const ir::Op& other : beside) {
        const auto* tile = other.get<decision::Tile>();
        if (!tile || tile->axis == own) continue;
        decision.axis = tile->axis;
        decision.by = decision::By::User;
        out.push_back({ir::make(decision)});
      }
    };
    if (const auto* rows = line.get<decision::Rows>()) with_axis(*rows);
    if (const auto* stream = line.get<decision::Stream>()) with_axis(*stream);
    const auto with_fewer = [&](auto decision) {
      decision.statements.pop_back();
      out.push_back(decision.statements.empty() ? ir::Block() : ir::Block{ir::make(decision)});
    };
    if (const auto* fuse = line.get<decision::Fuse>()) with_fewer(*fuse);
    if (const auto* roll = line.get<decision::Roll>()) with_fewer(*roll);
    const bool is_there_or_not =
        line.is<decision::Locate>() || line.is<decision::Round>() || line.is<decision::Inner>();
    if (is_there_or_not && out.empty()) out.emplace_back();
    if (out.size() > 2) out.erase(out.begin() + 1, out.end() - 1);
    return out;
  }

  std::set<std::string, std::less<>> tried_;
};

// Lines that no example and no program of bench/foreign has.
constexpr std::pair<const char*, const char*> kRareLines[] = {
    {"locate.naut",
     "dims M, N                  static D = 64\n"
     "hint M = 70, N = 130\n"
     "X: bf16[M, D]    Z: bf16[N, D]\n"
     "d2[i,j] = (sum[d] square(f32(Z[j,d]))) - 2 * (sum[d] X[i,d] * Z[j,d])\n"
     "c[i] = argmin[j] d2[i,j]  -> i32\n"},
    {"round.naut",
     "dims M, K, N               static J = 320\n"
     "hint M = 200, K = 300, N = 400\n"
     "X: bf16[M, K]    A: bf16[K, J]    B: bf16[J, N]\n"
     "H[i,j] = sin(sum[k] X[i,k] * A[k,j])\n"
     "Y[i,n] = sum[j] H[i,j] * B[j,n]  -> f32\n"},
    {"patch.naut",
     "dims M, N, K\n"
     "hint M = 4096, N = 4096, K = 64\n"
     "A: f32[M, K]    B: f32[K, N]\n"
     "D[i,j] = sum[k] abs(A[i,k] - B[k,j])  -> f32\n"}};

// Lines `at` stand in texts of several schedules: other sizes are another choice of the plan.
void try_sizes(EveryVerb& verbs) {
  Unit unit;
  const std::string file = NAUTILUS_SOURCE_DIR "/examples/gemm.naut";
  std::string error;
  const auto text = base::read_file(file, &error);
  ASSERT_TRUE(text) << error;
  const auto program = load_text(file, *text, {}, unit);
  ASSERT_TRUE(program);
  const auto first = first_schedule(*program, unit);
  ASSERT_TRUE(first);
  const auto with_sizes = [&](const std::string& sizes) {
    std::string own = schedule::print(first->decisions);
    const std::string lines = own.substr(own.find('\n') + 1);
    return own + "or schedule\nat M, N, K = " + sizes + "\n" + lines;
  };
  std::set<std::string> made;
  for (const char* sizes : {"16, 8192, 8192 within 4", "32, 8192, 8192 within 4", "16, 64, 64"}) {
    const auto kernels = make_kernels(*program, {.schedule = with_sizes(sizes)}, unit, &error);
    ASSERT_TRUE(kernels) << error;
    EXPECT_TRUE(made.insert(emitted(kernels->program, unit.pool)).second)
        << sizes << " has no effect";
  }
  verbs.mark(decision::At::info().mnemonic());
}

TEST(Decisions, EveryVerbIsTried) {
  EveryVerb verbs;
  std::vector<std::string> files = programs_with_operands();
  for (const char* name : {"batchnorm_statistics", "softmax_channels", "groupnorm_silu", "conv1d",
                           "linear_attention_causal", "attention_two_biases", "gemm_row_max"}) {
    const std::string file = fmt::format("{}/bench/foreign/{}.naut", NAUTILUS_SOURCE_DIR, name);
    if (std::filesystem::exists(file)) files.push_back(file);
  }
  for (const std::string& file : files) {
    std::string error;
    const auto text = base::read_file(file, &error);
    ASSERT_TRUE(text) << error;
    verbs.try_lines_of(file, *text);
  }
  for (const auto& [name, text] : kRareLines) verbs.try_lines_of(name, text);
  try_sizes(verbs);
  for (const ir::OpInfo* verb : decision::vocabulary())
    EXPECT_TRUE(verbs.is_tried(verb->mnemonic()))
        << "no program of this test has a line `" << verb->mnemonic() << "` that can be changed";
}

INSTANTIATE_TEST_SUITE_P(Programs, ProgramDecisionsTest,
                         ::testing::ValuesIn(programs_with_operands()), [](const auto& example) {
                           return std::filesystem::path(example.param).stem().string();
                         });

INSTANTIATE_TEST_SUITE_P(Examples, DecisionsTest, ::testing::ValuesIn(example_files()),
                         [](const auto& example) {
                           return std::filesystem::path(example.param).stem().string();
                         });

}  // namespace
}  // namespace nautilus::driver
