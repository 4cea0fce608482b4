// SPDX-License-Identifier: Apache-2.0
// Schedules of some kernels, by name and in several files.
#include "driver/kernels/given_schedule.h"
#include "schedule/text/schedule.h"

#include <gtest/gtest.h>

#include "driver/kernels/lower_to_kernels.h"
#include "ir/print.h"

namespace nautilus::driver {
namespace {

// Two tile kernels that pass a tensor on, and one row kernel.
constexpr std::string_view kTwo = R"(
dims M, N, K, L
hint M = 512, N = 512, K = 512, L = 512
A: bf16[M, K]  B: bf16[K, N]  C: bf16[N, L]
X[i, j] = sum[k] A[i, k] * B[k, j] -> bf16
Y[i, l] = sum[j] X[i, j] * C[j, l] -> bf16
m[i] = max[l] Y[i, l]
)";

class GivenSchedules : public testing::Test {
 protected:
  void SetUp() override {
    program_ = load_text("two.naut", std::string(kTwo), {}, unit_);
    ASSERT_TRUE(program_);
    const auto first = first_schedule(*program_, unit_);
    ASSERT_TRUE(first);
    first_ = first->decisions;
    for (const schedule::KernelSchedule& k : first_.kernels) {
      if (k.form == decision::Form::Tile) tiles_.push_back(k.name);
    }
    ASSERT_EQ(tiles_.size(), 2u) << schedule::print(first_);
  }

  // The first schedule with this kernel alone.
  schedule::Schedule only(const std::string& kernel) const {
    schedule::Schedule out = first_;
    std::erase_if(out.kernels, [&](const auto& k) { return k.name != kernel; });
    return out;
  }

  std::string error_of(const std::vector<GivenSchedule>& files) {
    std::string error;
    EXPECT_FALSE(join_schedules(files, *program_, unit_, &error));
    return error;
  }

  // The kernels that a schedule gives, as text; or why there are none.
  std::string kernels_with(const std::string& text) {
    std::string error;
    const auto kernels = lower_with_schedule(*program_, text, unit_, &error);
    return kernels ? ir::print(*kernels) : error;
  }

  Unit unit_;
  std::optional<ir::Program> program_;
  schedule::Schedule first_;
  std::vector<std::string> tiles_;
};

// Anything that a file leaves out (kernels, lines about the program, or everything) is as without a
// file.
TEST_F(GivenSchedules, TheRestIsChosenByRule) {
  const auto all = lower_to_kernels(*program_, unit_);
  ASSERT_TRUE(all);
  const std::string want = ir::print(*all);
  for (const schedule::KernelSchedule& k : first_.kernels) {
    SCOPED_TRACE(k.name);
    schedule::Schedule part = only(k.name);
    EXPECT_EQ(kernels_with(schedule::print(part)), want);
    part.lines.clear();
    EXPECT_EQ(kernels_with(schedule::print(part)), want);
  }
  schedule::Schedule nothing = first_;
  nothing.kernels.clear();
  EXPECT_EQ(kernels_with(schedule::print(nothing)), want);
}

// A changed kernel of one file together with an unchanged one of another.
TEST_F(GivenSchedules, FilesOfSomeKernelsAreJoined) {
  schedule::Schedule changed = first_;
  for (schedule::KernelSchedule& k : changed.kernels) {
    for (ir::Block& alternative : k.alternatives)
      std::erase_if(alternative, [](const ir::Op& line) {
        return !line.is<decision::Rows>() && !line.is<decision::Stream>() &&
               !line.is<decision::Fuse>() && !line.is<decision::Roll>();
      });
    k.alternatives.resize(1);
  }
  std::string error;
  // Of the changed file one kernel alone; the other kernels are by rule, and by the first file.
  const auto one =
      join_schedules({{"a.sched", tiles_[0], schedule::print(changed)}}, *program_, unit_, &error);
  ASSERT_TRUE(one) << error;
  const auto both = join_schedules({{"a.sched", tiles_[0], schedule::print(changed)},
                                    {"b.sched", "", schedule::print(only(tiles_[1]))}},
                                   *program_, unit_, &error);
  ASSERT_TRUE(both) << error;
  EXPECT_EQ(kernels_with(*one), kernels_with(*both));
  EXPECT_NE(kernels_with(*one), kernels_with(schedule::print(first_)));
}

// A given kernel takes its statement from one of the others, which stays a tile kernel.
TEST_F(GivenSchedules, AKernelOfTheRestLosesStatements) {
  constexpr std::string_view kEpilogue = R"(
dims M, N, K
hint M = 64, N = 64, K = 64
A: bf16[M, K]  B: bf16[K, N]
Y[i, j] = sum[k] A[i, k] * B[k, j]
Z[i, j] = Y[i, j] + 1.0 -> bf16
)";
  program_ = load_text("epilogue.naut", std::string(kEpilogue), {}, unit_);
  ASSERT_TRUE(program_);
  const auto first = first_schedule(*program_, unit_);
  ASSERT_TRUE(first);
  ASSERT_EQ(first->decisions.kernels.size(), 1u) << schedule::print(first->decisions);
  schedule::Schedule apart = first->decisions;
  apart.kernels = {{"Z", {{}}, decision::Form::Points}};
  std::string error;
  auto scheduled = replay_schedule(*program_, schedule::print(apart), unit_, &error);
  ASSERT_TRUE(scheduled) << error;
  EXPECT_EQ(scheduled->nests.size(), 1u);
  EXPECT_EQ(check_scheduled(*program_, scheduled->program, {}, unit_), "");
  complete(*scheduled, unit_);
  const std::string text = schedule::print(scheduled->decisions);
  EXPECT_NE(text.find("kernel Y tile"), std::string::npos) << text;
  EXPECT_NE(text.find("kernel Z points"), std::string::npos) << text;
  EXPECT_EQ(text.find("fuse"), std::string::npos) << text;
}

TEST_F(GivenSchedules, WhatDoesNotFitIsRefused) {
  const std::string text = schedule::print(first_);
  EXPECT_EQ(
      error_of({{"a.sched", tiles_[0] + "_", text}})
          .find("a.sched: there is no kernel `" + tiles_[0] + "_`; did you mean `" + tiles_[0]),
      0u);
  EXPECT_EQ(error_of({{"a.sched", "", text}, {"b.sched", tiles_[0], text}}),
            "kernel `" + tiles_[0] + "` has two schedules, a.sched and b.sched");
  EXPECT_EQ(error_of({{"a.sched", tiles_[0], text}, {"b.sched", "", "schedule"}})
                .find("b.sched: line 1: a schedule starts with"),
            0u);
  schedule::Schedule other = only(tiles_[1]);
  other.program = "other";
  other.equations = "0123";
  EXPECT_EQ(error_of({{"a.sched", tiles_[0], text}, {"b.sched", "", schedule::print(other)}}),
            "a.sched is for @" + first_.program + ", b.sched for @other");
  other = only(tiles_[1]);
  other.equations = "0123";
  EXPECT_EQ(error_of({{"a.sched", tiles_[0], text}, {"b.sched", "", schedule::print(other)}}),
            "b.sched is for other equations than a.sched");
  const auto with_gather = [&](const std::string& kernel, decision::Switch use) {
    schedule::Schedule out = only(kernel);
    out.lines = {ir::make(decision::Algebra{decision::Rewrite::Gather, use, decision::By::Auto})};
    return schedule::print(out);
  };
  EXPECT_EQ(error_of({{"a.sched", tiles_[0], with_gather(tiles_[0], decision::Switch::Off)},
                      {"b.sched", "", with_gather(tiles_[1], decision::Switch::On)}}),
            "`algebra gather on` of b.sched contradicts `algebra gather off` of a.sched");
}

// Who edits a printed schedule marks nothing: what the first schedule has otherwise is named.
TEST_F(GivenSchedules, AChangedLineWithoutAMarkIsNamed) {
  schedule::Schedule changed = first_;
  std::string line;
  for (schedule::KernelSchedule& k : changed.kernels) {
    for (ir::Op& op : k.alternatives[0]) {
      const auto* ring = op.get<decision::Ring>();
      if (!ring || !line.empty()) continue;
      decision::Ring longer = *ring;
      longer.slots = 12;
      op = ir::make(longer);
      line = ir::print(op);
    }
  }
  ASSERT_FALSE(line.empty());
  std::string error;
  EXPECT_FALSE(lower_with_schedule(*program_, schedule::print(changed), unit_, &error));
  ASSERT_FALSE(unit_.sink.all().empty());
  const diag::Diagnostic& said = unit_.sink.all().back();
  EXPECT_EQ(said.code, diag::Code::DecisionRefused);
  EXPECT_NE(said.message.find("`" + line + "`: kernel `"), std::string::npos) << said.message;
  EXPECT_NE(said.message.find("bytes of shared memory"), std::string::npos) << said.message;
}

// A kernel that the program does not have is reported with the existing ones, whatever their form.
TEST_F(GivenSchedules, UnknownKernelsAreNamed) {
  for (const decision::Form form : {decision::Form::Tile, decision::Form::Rows,
                                    decision::Form::Points, decision::Form::Parts}) {
    schedule::Schedule wrong = first_;
    wrong.kernels = {{tiles_[0] + "_", {{}}, form}};
    EXPECT_EQ(kernels_with(schedule::print(wrong))
                  .find("there is no kernel `" + tiles_[0] + "_`; did you mean `" + tiles_[0] +
                        "`? There are "),
              0u)
        << kernels_with(schedule::print(wrong));
  }
}

// The same equations with other names: a schedule is about what stands at the same places.
TEST(GivenSchedule, OfAProgramWithOtherNames) {
  constexpr std::string_view kOne = R"(
dims M, N            static D = 64
hint M = 128, N = 256
Q: bf16[M, D]        K, V: bf16[N, D]
S[i,j] = sum[d] Q[i,d] * K[j,d]
P[i,j] = softmax[j](S[i,j])
O[i,e] = sum[j] P[i,j] * V[j,e]  -> bf16
L[i] = sum[j] S[i,j] * S[i,j]  -> f32
)";
  constexpr std::string_view kOther = R"(
dims T, U            static W = 64
hint T = 128, U = 256
query: bf16[T, W]    key, value: bf16[U, W]
scores[a,b] = sum[c] query[a,c] * key[b,c]
weights[x,y] = softmax[y](scores[x,y])
out[a,w] = sum[b] weights[a,b] * value[b,w]  -> bf16
squares[a] = sum[b] scores[a,b] * scores[a,b]  -> f32
)";
  Unit unit;
  const auto one = load_text("one.naut", std::string(kOne), {}, unit);
  const auto other = load_text("other.naut", std::string(kOther), {}, unit);
  ASSERT_TRUE(one && other);
  const auto first = first_schedule(*one, unit);
  ASSERT_TRUE(first);
  std::string error;
  const auto replayed = replay_schedule(*other, schedule::print(first->decisions), unit, &error);
  ASSERT_TRUE(replayed) << error;
  const auto own = first_schedule(*other, unit);
  EXPECT_EQ(schedule::print(replayed->decisions), schedule::print(own->decisions));
}

// Places that the equations do not have are refused.
TEST(GivenSchedule, PlacesAreThoseOfTheEquations) {
  Unit unit;
  const auto program = load_text("a.naut", "dims M\nX: f32[M]\nY[i] = X[i] * 2 -> f32\n", {}, unit);
  ASSERT_TRUE(program);
  const auto first = first_schedule(*program, unit);
  ASSERT_TRUE(first);
  std::string text = schedule::print(first->decisions);
  const size_t at = text.find("names ");
  ASSERT_NE(at, std::string::npos) << text;
  text.replace(at, text.find('\n', at) - at, "names Y 700");
  std::string error;
  EXPECT_FALSE(replay_schedule(*program, text, unit, &error));
  EXPECT_EQ(error.find("`names Y 700`: names of these equations have places up to "), 0u) << error;
}

}  // namespace
}  // namespace nautilus::driver
