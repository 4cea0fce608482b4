// SPDX-License-Identifier: Apache-2.0
// Every golden kernel: verified, emulated on ragged shapes with several tiles per CTA against its
// oracle, and compiled for sm_90a where NVRTC is found.
#include <gtest/gtest.h>

#include "base/files.h"
#include "driver/run/run.h"
#include "plan/compile.h"
#include "runtime/nvrtc.h"

namespace nautilus {
namespace {

std::vector<std::string> golden_files() {
  return base::list_files(NAUTILUS_SOURCE_DIR "/golden", ".matile");
}

std::string case_name(const testing::TestParamInfo<std::string>& info) {
  const size_t slash = info.param.rfind('/') + 1;
  return info.param.substr(slash, info.param.rfind('.') - slash);
}

class Golden : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    std::string error;
    const auto text = base::read_file(GetParam(), &error);
    ASSERT_TRUE(text) << error;
    program_ = driver::load_text(GetParam(), *text, {}, unit_);
    ASSERT_TRUE(program_) << unit_.sink.all()[0].message;
  }

  // Runs the program with the given sizes, hints for the others; empty if the result is right.
  std::string emulate(uint64_t seed, const std::map<std::string, int64_t>& sizes = {}) {
    const auto oracle = driver::load_oracle(*program_, GetParam(), unit_);
    if (!oracle) return unit_.sink.all()[0].message;
    driver::RunRequest request;
    request.seed = seed;
    for (const auto& [name, size] : sizes) request.given.sizes.emplace(name, size);
    for (const ir::Op& op : program_->body) {
      const auto* d = op.get<ir::Dim>();
      if (d && d->hint) request.given.sizes.emplace(d->name.str(), *d->hint);
    }
    const auto env = driver::prepare(*oracle, request, unit_);
    if (!env) return unit_.sink.all()[0].message;
    driver::EmulateOptions options;
    options.seed = seed;
    std::string error;
    const auto got = driver::run_emulated(*program_, driver::environment_of(*program_, *env),
                                          options, unit_.pool, &error);
    if (!got) return error;
    const auto want = spec::evaluate_to_judge(*oracle, *env, {}, unit_.pool, unit_.sink);
    if (!want) return unit_.sink.all()[0].message;
    for (const auto& line : driver::compare_outputs(*got, *want, ir::numerics_of(*oracle))) {
      const auto why =
          spec::objection(line.comparison, got->at(line.tensor), want->at(line.tensor));
      if (!why.empty()) return line.tensor + ": " + why;
    }
    return "";
  }

  driver::Unit unit_;
  std::optional<ir::Program> program_;
};

TEST_P(Golden, IsRightInTheEmulator) {
#ifndef NAUTILUS_EMULATOR
  GTEST_SKIP() << "built without the emulator";
#else
  EXPECT_EQ(emulate(1), "");
#endif
}

// No row of these is a multiple of 16 bytes, so aligned copies take their place.
using GoldenGemm = Golden;
TEST_P(GoldenGemm, TakesTensorsOfAnyRowLength) {
#ifndef NAUTILUS_EMULATOR
  GTEST_SKIP() << "built without the emulator";
#else
  EXPECT_EQ(emulate(1, {{"M", 77}, {"N", 203}, {"K", 45}}), "");
  EXPECT_EQ(emulate(2, {{"M", 1}, {"N", 1}, {"K", 1}}), "");
#endif
}
INSTANTIATE_TEST_SUITE_P(Some, GoldenGemm,
                         testing::Values(NAUTILUS_SOURCE_DIR "/golden/gemm_pp_128x128.matile",
                                         NAUTILUS_SOURCE_DIR
                                         "/golden/gemm_bias_gelu_coop_128x256.matile"),
                         case_name);

TEST_P(Golden, CompilesForHopper) {
  std::string error;
  if (!runtime::nvrtc_info(&error)) GTEST_SKIP() << error;
  const auto kernels = plan::compile_device(*program_, unit_.pool, "sm_90a", true, &error);
  ASSERT_TRUE(kernels) << error;
  for (const plan::DeviceKernel& k : *kernels) {
    ASSERT_EQ(k.report.kernels.size(), 1u);
    // What is spilled outside the loops costs nothing; a spilled tile would be thousands.
    EXPECT_LT(k.report.kernels[0].spill_store_bytes, 128) << k.text.name;
    EXPECT_EQ(plan::spill_warning(k), "");
  }
}

INSTANTIATE_TEST_SUITE_P(All, Golden, testing::ValuesIn(golden_files()), case_name);

}  // namespace
}  // namespace nautilus
