// SPDX-License-Identifier: Apache-2.0
// The C interface without a GPU: what a program says of itself, and errors of opening one.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test/capi/opened.h"
#include "tune/records/shipped.h"

namespace nautilus::capi {
namespace {

const std::string kExamples = std::string(NAUTILUS_SOURCE_DIR) + "/examples/";

TEST(Library, Version) {
  EXPECT_EQ(nautilus_version(), NAUTILUS_VERSION_NUMBER);
  EXPECT_EQ(nautilus_version_text(), fmt::format("{}.{}.{}", NAUTILUS_VERSION_MAJOR,
                                                 NAUTILUS_VERSION_MINOR, NAUTILUS_VERSION_PATCH));
  EXPECT_STREQ(nautilus_status_name(NAUTILUS_ERROR_WORKSPACE), "NAUTILUS_ERROR_WORKSPACE");
  EXPECT_STREQ(nautilus_status_name(77), "unknown");
}

TEST(Library, Dtypes) {
  EXPECT_STREQ(nautilus_dtype_name(NAUTILUS_BF16), "bf16");
  EXPECT_EQ(nautilus_dtype_bytes(NAUTILUS_BF16), 2);
  EXPECT_EQ(nautilus_dtype_of_name("f64"), NAUTILUS_F64);
  EXPECT_EQ(nautilus_dtype_of_name("float"), -1);
  EXPECT_STREQ(nautilus_dtype_name(NAUTILUS_TF32), "tf32");
  EXPECT_EQ(nautilus_dtype_name(12), nullptr);
  EXPECT_EQ(nautilus_dtype_bytes(-1), 0);
}

TEST(Library, TensorsAndValuesOfAProgram) {
  const Opened p = Opened::file(kExamples + "attention.naut", "D=128,M=256");
  ASSERT_EQ(p.status, NAUTILUS_OK) << nautilus_last_error();
  EXPECT_STREQ(nautilus_program_name(p.program), "attention");
  ASSERT_EQ(nautilus_tensor_count(p.program), 4);
  nautilus_tensor_info t = NAUTILUS_TENSOR_INFO_INIT;
  ASSERT_EQ(nautilus_tensor_at(p.program, 1, &t), NAUTILUS_OK);
  EXPECT_STREQ(t.name, "K");
  EXPECT_EQ(t.dtype, NAUTILUS_BF16);
  EXPECT_EQ(t.rank, 4);
  EXPECT_EQ(t.is_output, 0);
  EXPECT_STREQ(t.dims[2], "N");
  EXPECT_STREQ(t.dims[3], "128");
  ASSERT_EQ(nautilus_tensor_at(p.program, 3, &t), NAUTILUS_OK);
  EXPECT_STREQ(t.name, "O");
  EXPECT_EQ(t.is_output, 1);
  EXPECT_EQ(nautilus_tensor_index(p.program, "V"), 2);
  EXPECT_EQ(nautilus_tensor_index(p.program, "S"), -1);  // neither given nor handed over
  EXPECT_EQ(nautilus_tensor_at(p.program, 4, &t), NAUTILUS_ERROR_USAGE);

  nautilus_value_info v = NAUTILUS_VALUE_INFO_INIT;
  ASSERT_EQ(nautilus_value_at(p.program, nautilus_value_index(p.program, "N"), &v), NAUTILUS_OK);
  EXPECT_EQ(v.kind, NAUTILUS_SIZE);
  EXPECT_EQ(v.bound_tensor, 1);
  EXPECT_EQ(v.bound_dimension, 2);
  EXPECT_EQ(v.hint, 80);
  ASSERT_EQ(nautilus_value_at(p.program, nautilus_value_index(p.program, "M"), &v), NAUTILUS_OK);
  EXPECT_EQ(v.hint, 256);
  ASSERT_EQ(nautilus_value_at(p.program, nautilus_value_index(p.program, "D"), &v), NAUTILUS_OK);
  EXPECT_EQ(v.kind, NAUTILUS_STATIC_SIZE);
  EXPECT_EQ(v.hint, 128);
  ASSERT_EQ(nautilus_value_at(p.program, nautilus_value_index(p.program, "scale"), &v),
            NAUTILUS_OK);
  EXPECT_EQ(v.kind, NAUTILUS_SCALAR);
  EXPECT_NE(v.default_text, nullptr);
  EXPECT_EQ(v.bound_tensor, -1);
}

// G and Hk stand in one product: the heads of keys determine Hk, and then those of queries G.
TEST(Library, SizesThatOtherSizesDetermine) {
  const Opened p = Opened::file(std::string(NAUTILUS_SOURCE_DIR) + "/golden/attention_causal.naut");
  ASSERT_EQ(p.status, NAUTILUS_OK) << nautilus_last_error();
  nautilus_value_info v = NAUTILUS_VALUE_INFO_INIT;
  ASSERT_EQ(nautilus_value_at(p.program, nautilus_value_index(p.program, "G"), &v), NAUTILUS_OK);
  EXPECT_EQ(v.bound_tensor, nautilus_tensor_index(p.program, "Q"));
  EXPECT_EQ(v.bound_dimension, 1);
  const int64_t q[] = {2, 24, 100, 64};
  const int64_t k[] = {2, 8, 333, 64};
  const std::vector<nautilus_tensor> tensors = {{nullptr, q, nullptr, 4, NAUTILUS_BF16},
                                                {nullptr, k, nullptr, 4, NAUTILUS_BF16},
                                                {nullptr, k, nullptr, 4, NAUTILUS_BF16}};
  const auto a = arguments(tensors);
  std::vector<int64_t> sizes(static_cast<size_t>(nautilus_value_count(p.program)));
  ASSERT_EQ(nautilus_solve_sizes(p.program, &a, sizes.data()), NAUTILUS_OK)
      << nautilus_last_error();
  EXPECT_EQ(sizes[static_cast<size_t>(nautilus_value_index(p.program, "G"))], 3);
  EXPECT_EQ(sizes[static_cast<size_t>(nautilus_value_index(p.program, "N"))], 333);
  int64_t shape[4] = {};
  ASSERT_EQ(nautilus_shape(p.program, &a, 3, shape), NAUTILUS_OK) << nautilus_last_error();
  EXPECT_EQ(std::vector<int64_t>(shape, shape + 4), (std::vector<int64_t>{2, 24, 100, 64}));
}

TEST(Library, LaunchesSourceAndTexts) {
  const Opened p(kGemm);
  ASSERT_EQ(p.status, NAUTILUS_OK) << nautilus_last_error();
  int32_t kernels = 0;
  ASSERT_EQ(nautilus_kernel_count(p.program, &kernels), NAUTILUS_OK);
  ASSERT_GE(kernels, 1);
  nautilus_kernel_info k = NAUTILUS_KERNEL_INFO_INIT;
  ASSERT_EQ(nautilus_kernel_at(p.program, 0, &k), NAUTILUS_OK);
  EXPECT_NE(std::string(k.source).find("__global__"), std::string::npos);
  EXPECT_STRNE(k.form, "");
  EXPECT_EQ(nautilus_kernel_at(p.program, kernels, &k), NAUTILUS_ERROR_USAGE);

  const int64_t a_shape[] = {512, 256};
  const int64_t b_shape[] = {256, 128};
  const std::vector<nautilus_tensor> tensors = {{nullptr, a_shape, nullptr, 2, NAUTILUS_BF16},
                                                {nullptr, b_shape, nullptr, 2, NAUTILUS_BF16}};
  const auto a = arguments(tensors);
  int32_t count = 0;
  ASSERT_EQ(nautilus_launches(p.program, &a, 0, nullptr, 0, &count), NAUTILUS_OK)
      << nautilus_last_error();
  ASSERT_GE(count, 1);
  std::vector<nautilus_launch_info> launches(static_cast<size_t>(count));
  ASSERT_EQ(nautilus_launches(p.program, &a, 0, launches.data(), count, &count), NAUTILUS_OK);
  int64_t ctas = 0;
  for (const nautilus_launch_info& l : launches) ctas += l.grid;
  EXPECT_GT(ctas, 0);
  uint64_t bytes = 1;
  ASSERT_EQ(nautilus_workspace(p.program, &a, 0, &bytes), NAUTILUS_OK) << nautilus_last_error();
  EXPECT_EQ(bytes % 256, 0u);

  EXPECT_NE(text(p, NAUTILUS_TEXT_PROGRAM).find("spec.program"), std::string::npos);
  EXPECT_NE(text(p, NAUTILUS_TEXT_SCHEDULE).find("schedule @"), std::string::npos);
  EXPECT_NE(text(p, NAUTILUS_TEXT_NOTE).find("trials were not asked"), std::string::npos);
  EXPECT_NE(text(p, NAUTILUS_TEXT_CUDA).find("__global__"), std::string::npos);
  EXPECT_NE(text(p, NAUTILUS_TEXT_KERNELS).find("matile.program"), std::string::npos);
  EXPECT_FALSE(text(p, NAUTILUS_TEXT_EXPLAIN).empty());
  EXPECT_EQ(text(p, NAUTILUS_TEXT_WARNINGS), "");
}

TEST(Library, ASchedulesTextIsTakenAndRefused) {
  const Opened first(kGemm);
  ASSERT_EQ(first.status, NAUTILUS_OK) << nautilus_last_error();
  const std::string schedule = text(first, NAUTILUS_TEXT_SCHEDULE);
  nautilus_open_options options = Opened::usual();
  options.schedule = schedule.c_str();
  const Opened same(kGemm, options);
  ASSERT_EQ(same.status, NAUTILUS_OK) << nautilus_last_error();
  EXPECT_EQ(text(same, NAUTILUS_TEXT_SCHEDULE), schedule);
  EXPECT_NE(text(same, NAUTILUS_TEXT_NOTE).find("given"), std::string::npos);
  options.schedule = "no schedule\n";
  const Opened refused(kGemm, options);
  EXPECT_EQ(refused.status, NAUTILUS_ERROR_PROGRAM);
  EXPECT_TRUE(says("the schedule:")) << nautilus_last_error();
  // A program that is only evaluated does not make kernels, so it does not look at the schedule.
  options.flags |= NAUTILUS_OPEN_DEFERRED;
  const Opened deferred(kGemm, options);
  EXPECT_EQ(deferred.status, NAUTILUS_OK);
  int32_t count = 0;
  EXPECT_EQ(nautilus_kernel_count(deferred.program, &count), NAUTILUS_ERROR_PROGRAM);
}

// At sizes that were not tuned: those of the nearest, or why they are not taken.
TEST(Library, SizesNearTunedOnesUseTheirSchedule) {
  const std::string path = std::string(NAUTILUS_SOURCE_DIR) + "/golden/gemm_nt.naut";
  const auto note_at = [&](const char* sizes, uint32_t flags) {
    nautilus_open_options options = NAUTILUS_OPEN_OPTIONS_INIT;
    options.sizes = sizes;
    options.flags = flags;
    options.database = "/nowhere/trials.db";
    nautilus_program* program = nullptr;
    EXPECT_EQ(nautilus_open_file(path.c_str(), &options, &program), NAUTILUS_OK)
        << nautilus_last_error();
    const char* note = "";
    EXPECT_EQ(nautilus_text(program, NAUTILUS_TEXT_NOTE, &note), NAUTILUS_OK);
    const std::string out = note;
    nautilus_close(program);
    return out;
  };
  const std::string near = note_at("M=32,N=8192,K=8192", 0);
  EXPECT_NE(near.find("for K=8192,M=16,N=8192, the nearest sizes that were tuned; at these it is "
                      "expected to take "),
            std::string::npos)
      << near;
  EXPECT_EQ(note_at("M=7,N=9,K=11", 0),
            "the first schedule: there are no trials of this program at these sizes or near them");
  EXPECT_EQ(note_at("M=32,N=8192,K=8192", NAUTILUS_OPEN_UNTUNED),
            "the first schedule: trials were not asked");
}

// Trials that come with the library are taken where the user has none.
TEST(Library, ShippedTrialsAreConsulted) {
  const std::string path = std::string(NAUTILUS_SOURCE_DIR) + "/golden/attention_causal.naut";
  for (const tune::Trial& t : tune::shipped_trials({})) {
    if (t.program != "attention_causal") continue;
    const std::string sizes = tune::sizes_text(t.problem.sizes) + ",D=128";
    nautilus_open_options options = NAUTILUS_OPEN_OPTIONS_INIT;
    options.sizes = sizes.c_str();
    options.database = "/nowhere/trials.db";  // not that of whoever runs the test
    nautilus_program* program = nullptr;
    ASSERT_EQ(nautilus_open_file(path.c_str(), &options, &program), NAUTILUS_OK)
        << nautilus_last_error();
    const char* note = "";
    EXPECT_EQ(nautilus_text(program, NAUTILUS_TEXT_NOTE, &note), NAUTILUS_OK);
    EXPECT_NE(std::string(note).find("trials that come with the compiler"), std::string::npos)
        << note << " for " << sizes;
    nautilus_close(program);
    return;
  }
  FAIL() << "no such trial is shipped";
}

TEST(Library, ErrorsOfAProgramHavePlacesAndCarets) {
  const Opened p("dims M\nX: f32[M]\nY[i] = X[j]  -> f32\n");
  EXPECT_EQ(p.status, NAUTILUS_ERROR_PROGRAM);
  EXPECT_EQ(p.program, nullptr);
  EXPECT_TRUE(says("program:3:")) << nautilus_last_error();
  EXPECT_TRUE(says("^")) << nautilus_last_error();

  nautilus_open_options options = Opened::usual();
  options.name = "mine.naut";
  const Opened named("dims M\nX: f32[M\n", options);
  EXPECT_TRUE(says("mine.naut:2:")) << nautilus_last_error();
}

TEST(Library, ErrorsOfOptions) {
  nautilus_open_options options = Opened::usual();
  options.sizes = "P=3";
  EXPECT_EQ(Opened(kGemm, options).status, NAUTILUS_ERROR_PROGRAM);
  EXPECT_TRUE(says("the program has no size `P`")) << nautilus_last_error();
  options.flags |= NAUTILUS_OPEN_MORE_SIZES;
  EXPECT_EQ(Opened(kGemm, options).status, NAUTILUS_OK) << nautilus_last_error();
  options.sizes = "M=three";
  EXPECT_EQ(Opened(kGemm, options).status, NAUTILUS_ERROR_PROGRAM);
  options.sizes = nullptr;
  options.target = "sm_1";
  EXPECT_EQ(Opened(kGemm, options).status, NAUTILUS_ERROR_PROGRAM);
  EXPECT_TRUE(says("there is no target `sm_1`"));
  nautilus_program* program = nullptr;
  EXPECT_EQ(nautilus_open_file("/nowhere/x.naut", nullptr, &program), NAUTILUS_ERROR_SYSTEM);
  EXPECT_TRUE(says("/nowhere/x.naut"));
  options = {};
  EXPECT_EQ(nautilus_open_text(kGemm, &options, &program), NAUTILUS_ERROR_USAGE);
  EXPECT_EQ(nautilus_open_text(nullptr, nullptr, &program), NAUTILUS_ERROR_USAGE);
  nautilus_close(nullptr);
}

// A caller that was compiled with a header that ended after the flags.
TEST(Library, OlderStructsAreShorter) {
  nautilus_open_options options = NAUTILUS_OPEN_OPTIONS_INIT;
  options.struct_size = offsetof(nautilus_open_options, sizes);
  options.flags = NAUTILUS_OPEN_UNTUNED | NAUTILUS_OPEN_DEFERRED;
  options.sizes = reinterpret_cast<const char*>(1);
  nautilus_program* program = nullptr;
  ASSERT_EQ(nautilus_open_text(kGemm, &options, &program), NAUTILUS_OK) << nautilus_last_error();
  nautilus_tensor_info t = NAUTILUS_TENSOR_INFO_INIT;
  const char* const canary[] = {"canary"};
  t.struct_size = offsetof(nautilus_tensor_info, dims);
  t.dims = canary;
  EXPECT_EQ(nautilus_tensor_at(program, 0, &t), NAUTILUS_OK);
  EXPECT_STREQ(t.name, "A");
  EXPECT_EQ(t.dims, canary);
  nautilus_close(program);
}

}  // namespace
}  // namespace nautilus::capi
