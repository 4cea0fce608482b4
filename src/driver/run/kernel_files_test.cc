// SPDX-License-Identifier: Apache-2.0
// Work with kernels by hand: one file of all of them, inputs of a program without an oracle, which
// kernel was launched.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "driver/kernels/lower_to_kernels.h"
#include "driver/load/draw_inputs.h"
#include "driver/run/launch_report.h"
#include "driver/run/run.h"
#include "ir/print.h"
#include "matile/ops.h"

namespace nautilus::driver {
namespace {

std::optional<ir::Program> kernels_of(const std::string& example, Unit& unit) {
  const std::string path = std::string(NAUTILUS_SOURCE_DIR) + "/examples/" + example;
  std::string error;
  const auto text = base::read_file(path, &error);
  const auto program = text ? load_text(path, *text, {}, unit) : std::nullopt;
  return program ? lower_to_kernels(*program, unit) : std::nullopt;
}

// Whether the text has a word, not only as a part of another.
bool has_word(const std::string& text, const std::string& word) {
  const auto is_letter = [](char c) { return std::isalnum(c) != 0 || c == '_'; };
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    if (!is_letter(text[at - 1]) && !is_letter(text[at + word.size()])) return true;
  }
  return false;
}

std::vector<std::string> example_files() {
  std::vector<std::string> out;
  const std::string folder = std::string(NAUTILUS_SOURCE_DIR) + "/examples";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".naut") out.push_back(entry.path().filename().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

// Each example is a test of its own, so that processes can share the work of the device compiler.
class KernelFile : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, KernelFile, testing::ValuesIn(example_files()),
                         [](const auto& example) {
                           return example.param.substr(0, example.param.find('.'));
                         });

// Tile kernels that are chosen by cost, and row kernels that are chosen by size, one after the
// other.
TEST_P(KernelFile, OfAllKernelsCompiles) {
  std::string error;
  if (!runtime::nvrtc_info(&error)) GTEST_SKIP() << error;
  Unit unit;
  const auto program = kernels_of(GetParam(), unit);
  ASSERT_TRUE(program);
  const auto texts = emit::emit_kernels(*program, unit.pool);
  const std::string source = emit::device_source(texts);
  EXPECT_EQ(source.find(emit::device_prelude()), source.rfind(emit::device_prelude()));
  // What is asked is whether the text compiles, not how fast its kernels are.
  const auto compiled =
      runtime::compile_cuda(source, "all.cu", "sm_90a", {"--Ofast-compile=max"}, &error);
  ASSERT_TRUE(compiled) << error;
  for (const emit::KernelText& k : texts) {
    const auto& uses = compiled->report.kernels;
    EXPECT_TRUE(std::any_of(uses.begin(), uses.end(), [&](const runtime::KernelUse& u) {
      return u.name == k.name;
    })) << k.name;
  }
}

TEST(KernelFiles, AssemblerTextHasAllKernels) {
  std::string error;
  if (!runtime::nvrtc_info(&error)) GTEST_SKIP() << error;
  Unit unit;
  const auto program = kernels_of("rmsnorm.naut", unit);
  ASSERT_TRUE(program);
  const auto texts = emit::emit_kernels(*program, unit.pool);
  ASSERT_GT(texts.size(), 3u);
  const auto ptx = runtime::compile_ptx(emit::device_source(texts), "all.cu", "sm_90a", &error);
  ASSERT_TRUE(ptx) << error;
  for (const emit::KernelText& k : texts) EXPECT_TRUE(has_word(*ptx, k.name)) << k.name;
}

TEST(KernelFiles, EditedSourcesGoByName) {
  Unit unit;
  const auto program = kernels_of("rmsnorm.naut", unit);
  ASSERT_TRUE(program);
  const auto texts = emit::emit_kernels(*program, unit.pool);
  std::string error;
  const auto error_of = [&](const plan::EditedSources& sources) {
    error.clear();
    EXPECT_FALSE(plan::compile_edited(*program, unit.pool, sources, "sm_90a", false, &error));
    return error;
  };
  const std::string first = texts[0].name;
  const std::string text = emit::device_source(texts[0]);
  EXPECT_EQ(error_of({{first + "x", "a.cu", text}})
                .find("there is no kernel `" + first + "x`; did you mean `" + first +
                      "`? There are " + first + ", "),
            0u)
      << error;
  EXPECT_EQ(error_of({{texts[1].name, "a.cu", text}}),
            "a.cu does not define the kernel `" + texts[1].name + "`");
  EXPECT_EQ(error_of({{"", "a.cu", "int x;"}}).find("a.cu defines none of the kernels " + first),
            0u)
      << error;
  EXPECT_EQ(error_of({{"", "a.cu", emit::device_source(texts)}, {first, "b.cu", text}}),
            "kernel `" + first + "` has two sources, a.cu and b.cu");
  if (!runtime::nvrtc_info(&error)) GTEST_SKIP() << error;
  // One kernel of the file is edited, the others are as they were emitted.
  const auto kernels =
      plan::compile_edited(*program, unit.pool,
                           {{texts[1].name, "a.cu", "// edited\n" + emit::device_source(texts[1])},
                            {"", "b.cu", "// other\n" + emit::device_source(texts[2])}},
                           "sm_90a", false, &error);
  ASSERT_TRUE(kernels) << error;
  EXPECT_EQ((*kernels)[0].source, emit::device_source(texts[0]));
  EXPECT_EQ((*kernels)[1].source.find("// edited\n"), 0u);
  EXPECT_EQ((*kernels)[2].source.find("// other\n"), 0u);
  EXPECT_EQ((*kernels)[3].source, emit::device_source(texts[3]));
}

// Of kernels with a cost exactly the cheapest is launched, and the report says what was compared.
TEST(KernelFiles, LaunchesAndReasons) {
  Unit unit;
  const auto program = kernels_of("attention_causal.naut", unit);
  ASSERT_TRUE(program);
  ir::Environment env;
  ASSERT_TRUE(ir::complete(*program, {}, env, unit.sink));
  const auto launches = planned_launches(*program, env, 132);
  ASSERT_GT(launches.size(), 1u);
  int64_t least = INT64_MAX;
  std::string cheapest;
  for (const auto& [name, cost] : launches[0].reasons) {
    if (cost < least) cheapest = name;
    least = std::min(least, cost);
  }
  size_t launched = 0;
  for (const PlannedLaunch& l : launches) {
    EXPECT_EQ(l.grid > 0, l.kernel + "_cost" == cheapest) << l.kernel;
    EXPECT_GT(l.threads, 0);
    launched += l.grid > 0 ? 1 : 0;
  }
  EXPECT_EQ(launched, 1u);
  const std::string report = launch_report(launches);
  EXPECT_NE(report.find(cheapest + " = " + std::to_string(least)), std::string::npos) << report;
  EXPECT_NE(report.find("not launched: "), std::string::npos) << report;
}

#ifdef NAUTILUS_EMULATOR
// Programs that name no oracle, one with positions as input, run on drawn inputs.
TEST(KernelFiles, DrawnInputs) {
  for (const char* example : {"attention_causal.naut", "attention_paged.naut", "rmsnorm.naut"}) {
    SCOPED_TRACE(example);
    Unit unit;
    const auto program = kernels_of(example, unit);
    ASSERT_TRUE(program);
    std::string error;
    const auto env = draw_inputs(*program, {}, 1, 2, unit, &error);
    ASSERT_TRUE(env) << error;
    const auto outputs = run_emulated(*program, *env, {}, unit.pool, &error);
    ASSERT_TRUE(outputs) << error;
    EXPECT_EQ(outputs->size(), matile::tensors(*program, matile::TensorRole::Output).size());
  }
}
#endif

}  // namespace
}  // namespace nautilus::driver
