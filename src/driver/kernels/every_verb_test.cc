// SPDX-License-Identifier: Apache-2.0
// The contract of schedules, over all verbs: each is changed at least once, somewhere.
#include <gtest/gtest.h>

#include <set>

#include "driver/kernels/decisions_test_util.h"

namespace nautilus::driver {
namespace {

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
    if (const auto* axes = line.get<decision::PointAxes>()) {
      decision::PointAxes other = *axes;
      std::reverse(other.axes.begin(), other.axes.end());
      other.by = decision::By::User;
      out.push_back({ir::make(other)});
    }
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
    {"serves.naut",
     "dims M, N, K\n"
     "hint M = 16, N = 512, K = 4096\n"
     "A: bf16[M, K]    B: bf16[N, K]\n"
     "C[i,j] = sum[k] A[i,k] * B[j,k]  -> bf16\n"},
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
  for (const char* name :
       {"batchnorm_statistics", "softmax_channels", "groupnorm_silu", "conv1d",
        "linear_attention_causal", "attention_two_biases", "gemm_row_max", "graph_messages"}) {
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

}  // namespace
}  // namespace nautilus::driver
