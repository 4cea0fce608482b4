// SPDX-License-Identifier: Apache-2.0
// The contract of schedules where examples do not reach: programs of others (bench/foreign), a part
// of the programs of test/kernels, and small ones with kernels whose lines depend on each other.
// The printed first schedule gives the same kernels, and a line that says nothing is refused.
#include <gtest/gtest.h>

#include "driver/kernels/decisions_test_util.h"

namespace nautilus::driver {
namespace {

struct NamedProgram {
  std::string name;
  std::string text;
};

void PrintTo(const NamedProgram& program, std::ostream* out) { *out << program.name; }

std::string name_of(const ::testing::TestParamInfo<NamedProgram>& info) { return info.param.name; }

std::vector<std::filesystem::path> files_of(const std::string& folder) {
  std::vector<std::filesystem::path> out;
  const std::string path = NAUTILUS_SOURCE_DIR "/" + folder;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    if (entry.path().extension() == ".naut") out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<NamedProgram> foreign_programs() {
  std::vector<NamedProgram> out;
  std::string error;
  for (const auto& path : files_of("bench/foreign"))
    out.push_back({path.stem().string(), base::read_file(path.string(), &error).value_or("")});
  return out;
}

// One of so many cases of test/kernels: all of them take minutes.
constexpr size_t kCaseOf = 24;

std::vector<NamedProgram> programs_of_tests() {
  std::vector<NamedProgram> out;
  std::string error;
  size_t count = 0;
  for (const auto& path : files_of("test/kernels")) {
    std::istringstream lines(base::read_file(path.string(), &error).value_or(""));
    std::string program;
    bool is_program = true;
    const auto end = [&] {
      if (program.find("->") != std::string::npos && count++ % kCaseOf == 0)
        out.push_back({fmt::format("{}_{}", path.stem().string(), count), program});
      program.clear();
      is_program = true;
    };
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("====")) {
        end();
      } else if (is_program &= !line.starts_with("----"); is_program && !line.starts_with("# ")) {
        program += line + "\n";
      }
    }
    end();
  }
  return out;
}

// What was said about a schedule that was not followed.
std::string refusal_of(const ir::Program& program, const std::string& text, Unit& unit) {
  std::string error;
  if (lower_with_schedule(program, text, unit, &error)) return "";
  if (!error.empty()) return error;
  if (unit.sink.all().empty()) return "no reason";
  EXPECT_EQ(unit.sink.all().back().code, diag::Code::DecisionRefused);
  return unit.sink.all().back().message;
}

class CompleteScheduleTest : public ::testing::TestWithParam<NamedProgram> {};

TEST_P(CompleteScheduleTest, ItsReplayGivesTheSameKernels) {
  Unit unit;
  const auto program = load_text("a.naut", GetParam().text, {}, unit);
  if (!program) GTEST_SKIP() << "it is about a refused program";
  const auto first = first_schedule(*program, unit);
  ir::PassContext context{unit.pool, unit.sink, {}};
  const auto kernels = first ? compile::to_kernels(first->program, context) : std::nullopt;
  if (!kernels) GTEST_SKIP() << "it is about a program without kernels";
  const std::string text = schedule::print(first->decisions);
  std::string error;
  const auto replayed = lower_with_schedule(*program, text, unit, &error);
  ASSERT_TRUE(replayed) << error << (unit.sink.all().empty() ? "" : unit.sink.all().back().message)
                        << "\n"
                        << text;
  EXPECT_TRUE(emitted(*replayed, unit.pool) == emitted(*kernels, unit.pool)) << text;
}

// Each of them has kernels that a replay once refused, or made otherwise.
const NamedProgram kSmall[] = {
    {"steps_of_two_reductions_share_a_kernel",
     "dims B, H, M\nstatic D = 64\nQ, K, V: bf16[B,H,M,D]  keep: bool[M,M]\n"
     "S[b,h,i,j] = sum[d] Q[b,h,i,d] * K[b,h,j,d] * 0.125\n"
     "P[b,h,i,j] = softmax[j](where(keep[i,j], S[b,h,i,j], -inf))\n"
     "O[b,h,i,e] = sum[j] P[b,h,i,j] * V[b,h,j,e] -> bf16\n"},
    {"a_ring_that_registers_take_has_one_slot",
     "dims M, N, K\nA: bf16[M,K]  B: bf16[N,K]  R: f32[M,N]\n"
     "C[m,n] = (sum[k] A[m,k] * B[n,k]) + R[m,n] -> bf16\n"},
    {"steps_of_steps",
     "dims N, H, W\nx: f32[N,H,W,32]\nm[f] = mean[n,h,v] x[n,h,v,f]\n"
     "s[f] = mean[n,h,v] square(x[n,h,v,f] - m[f]) -> f32\n"},
    {"steps_against_one_of_two_numbers",
     "dims B, C, H, W\nx, y: f32[B,C,H,W]\na[c] = mean[n,h,v] x[n,c,h,v] -> f32\n"
     "b[c] = mean[n,h,v] y[n,c,h,v] -> f32\n"
     "cov[c] = mean[n,h,v] (x[n,c,h,v] - a[c]) * (y[n,c,h,v] - b[c]) -> f32\n"},
    {"steps_stand_in_the_order_of_kernels",
     "dims N, T\nX, Y, Z: f32[N,T]\nB[] = all[i,t] (Y[i,t] < X[i,t]) -> bool\n"
     "C[] = all[i,t] (Z[i,t] < X[i,t]) -> bool\n"},
    {"a_reference_of_tiles_beside_one_of_rows",
     "dims B, Hk, N  static G = 4, D = 64\nQ: bf16[B,Hk*G,D]\nK, V: bf16[B,Hk,N,D]\n"
     "sink: f32[Hk*G]\nS[b,h,j] = sum[d] Q[b,h,d] * K[b,h/G,j,d] * 0.125\n"
     "O[b,h,e] = sum[j] softmax_sink[j](S[b,h,j], sink[h]) * V[b,h/G,j,e] -> bf16\n"
     "LSE[b,h] = logsumexp[j](S[b,h,j]) -> f32\n"}};

INSTANTIATE_TEST_SUITE_P(Small, CompleteScheduleTest, ::testing::ValuesIn(kSmall), name_of);
INSTANTIATE_TEST_SUITE_P(Foreign, CompleteScheduleTest, ::testing::ValuesIn(foreign_programs()),
                         name_of);
INSTANTIATE_TEST_SUITE_P(OfTests, CompleteScheduleTest, ::testing::ValuesIn(programs_of_tests()),
                         name_of);

// The first schedule of a program with one place changed.
struct Change {
  std::string_view program;
  std::string_view from;
  std::string_view to;
  std::string_view refusal;
};

constexpr std::string_view kProduct =
    "dims M, N, K\nA: bf16[M,K]  B: bf16[N,K]\nc[i,j] = sum[k] A[i,k] * B[j,k]\n"
    "s[i] = sum[j] c[i,j] -> f32\nmost[j] = max[i] c[i,j] -> f32\n";
constexpr std::string_view kProbabilities =
    "dims T, X\nx: bf16[T,64]  w: bf16[X,64]\nl[t,q] = sum[c] x[t,c] * w[q,c]\n"
    "p[t,q] = softmax[q](l[t,q])\nh[t] = -sum[q] (p[t,q] * log(p[t,q] + 1e-9)) -> f32\n";
constexpr std::string_view kTurned =
    "dims M, N\nA: f32[M,N]  B: f32[N,M]\nC[i,j] = A[i,j] + 2.0 * B[j,i] -> f32\n";

const Change kChanges[] = {
    {kProbabilities, "  promote x 256", "  fetch late user; promote x 256",
     "this nest does not become a kernel: `fetch late`: no loop has exactly one product, of a "
     "computed operand, and copies that arrive at another time then"},
    {kProduct, "  rows i;", "  rows i; inner k of nonsense user;",
     "`inner k of nonsense`: steps of a reduction are for kernels without tiles"},
    {kProduct, "kernel most_parts points\n", "kernel most_parts points\n  fuse nonsense user\n",
     "`fuse nonsense`: the kernel computes parts of one reduction"},
    {kProduct, "kernel most_parts points\n",
     "kernel most_parts points\n  split z into 4 combine last user\n",
     "`split z into 4 combine last`: the kernel computes parts of one reduction"},
    {kProduct, "kernel most_parts points\n", "kernel most_parts points\n  inner i of most user\n",
     "`inner i of most`: the kernel computes no such statement"},
    {kProduct, "kernel most points\n", "kernel most points\n  fuse most user\n",
     "`fuse most`: the kernel names a statement twice"},
    {kTurned, "across i 4", "across i 1",
     "`across i 1 lines 8`: a thread has a power of two of points from 2 to 8 along this axis, "
     "not 1"}};

TEST(CompleteSchedule, ALineThatSaysNothingIsRefused) {
  for (const Change& c : kChanges) {
    Unit unit;
    const auto program = load_text("a.naut", std::string(c.program), {}, unit);
    ASSERT_TRUE(program);
    const auto first = first_schedule(*program, unit);
    ASSERT_TRUE(first);
    std::string text = schedule::print(first->decisions);
    const size_t at = text.find(c.from);
    ASSERT_NE(at, std::string::npos) << c.from << "\n" << text;
    text.replace(at, c.from.size(), c.to);
    EXPECT_EQ(refusal_of(*program, text, unit), c.refusal) << text;
  }
}

// Hints choose other shapes for the alternatives that a schedule gives columns.
TEST(CompleteSchedule, OfManyRowsServesHintsOfFew) {
  const std::string equations = "x: bf16[M, N]\ny[i] = logsumexp[j](x[i,j]) -> f32\n";
  Unit unit;
  const auto many =
      load_text("a.naut", "dims M, N\nhint M = 8192, N = 32000\n" + equations, {}, unit);
  const auto few = load_text("b.naut", "dims M, N\nhint M = 9, N = 70\n" + equations, {}, unit);
  ASSERT_TRUE(many && few);
  auto first = first_schedule(*many, unit);
  ASSERT_TRUE(first);
  complete(*first, unit);
  EXPECT_EQ(refusal_of(*few, schedule::print(first->decisions), unit), "");
}

// A program that is called otherwise keeps its schedules; one with other equations does not.
TEST(CompleteSchedule, TheNameOfAProgramDoesNotCount) {
  Unit unit;
  const auto program = load_text("a.naut", std::string(kTurned), {}, unit);
  auto other = load_text("b.naut", std::string(kTurned), {}, unit);
  ASSERT_TRUE(program && other);
  ASSERT_NE(program->name, other->name);
  const auto first = first_schedule(*program, unit);
  ASSERT_TRUE(first);
  std::string text = schedule::print(first->decisions);
  std::string error;
  const auto kernels = replay_schedule(*other, text, unit, &error);
  ASSERT_TRUE(kernels) << error;
  EXPECT_EQ(kernels->decisions.program, other->name);
  text.replace(text.find(first->decisions.equations), 4, "0000");
  EXPECT_EQ(refusal_of(*other, text, unit), "the schedule is for @a, the program is @b");
}

}  // namespace
}  // namespace nautilus::driver
