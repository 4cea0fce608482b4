// SPDX-License-Identifier: Apache-2.0
// `explain` lists the files of a folder of dumps, for every example; and the table of passes names
// the lines that passes read.
#include "driver/report/explain_passes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/files.h"
#include "compile/dump.h"
#include "compile/passes.h"
#include "driver/kernels/scheduling.h"
#include "ir/print.h"
#include "matile/ops.h"
#include "matile/point_layout.h"

namespace nautilus::driver {
namespace {

std::vector<std::string> example_paths() {
  return base::list_files(NAUTILUS_SOURCE_DIR "/examples", ".naut");
}

// The first words of lines that begin with a number and a dash.
std::set<std::string> files_in(const std::string& text) {
  std::set<std::string> out;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.size() > 6 && line.starts_with("  ") && std::isdigit(line[2]) && line[5] == '-')
      out.insert(line.substr(2, line.find(' ', 2) - 2));
  }
  return out;
}

bool has_word(std::string_view list, std::string_view word) {
  return (", " + std::string(list) + ",").find(", " + std::string(word) + ",") != std::string::npos;
}

class ExplainPasses : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    std::string error;
    const auto text = base::read_file(GetParam(), &error);
    ASSERT_TRUE(text) << error;
    program_ = load_text(GetParam(), *text, {}, unit_);
    ASSERT_TRUE(program_);
    kernels_ = make_kernels(*program_, {.schedule = {}, .trace = &trace_}, unit_, &error);
    ASSERT_TRUE(kernels_) << error;
  }

  std::string text(const PassesRequest& request) {
    std::string error;
    const auto out = passes_text(*program_, trace_, *kernels_, request, &error);
    EXPECT_TRUE(out) << error;
    return out.value_or("");
  }

  Unit unit_;
  ir::PassTrace trace_;
  std::optional<ir::Program> program_;
  std::optional<Kernels> kernels_;
};

TEST_P(ExplainPasses, ListsWhatTheFolderHolds) {
  const std::string folder =
      testing::TempDir() + "/" + std::filesystem::path(GetParam()).stem().string();
  std::filesystem::create_directories(folder);
  std::string error;
  ASSERT_TRUE(compile::write_dumps(folder, *program_, trace_, kernels_->schedule, &error)) << error;
  std::set<std::string> held;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    held.insert(entry.path().filename().string());
  EXPECT_EQ(held.erase("index.txt"), 1u);
  EXPECT_EQ(held.erase("schedule.sched"), 1u);
  std::filesystem::remove_all(folder);
  EXPECT_EQ(files_in(text({})), held);
  EXPECT_EQ(files_in(text({.shows_programs = true, .kernel = {}})), held);
}

// Each kernel has its part, which begins with its form, says which alternative it is, and ends as
// the program has it.
TEST_P(ExplainPasses, EveryKernelHasItsKind) {
  using Alternative = std::pair<size_t, std::string>;  // or a kernel in front of it
  std::map<std::pair<std::string, decision::Form>, std::set<Alternative>> alternatives;
  for (const ir::Op& op : kernels_->program.body) {
    const auto* kernel = op.get<matile::Kernel>();
    if (!kernel) continue;
    const std::string name(kernel->name.str());
    SCOPED_TRACE(name);
    const auto note = std::find_if(kernels_->notes.begin(), kernels_->notes.end(),
                                   [&](const KernelNote& n) { return n.kernel == name; });
    ASSERT_NE(note, kernels_->notes.end());
    const bool is_points =
        note->form == decision::Form::Points || note->form == decision::Form::Parts ||
        note->form == decision::Form::Scatter || note->form == decision::Form::Sort;
    EXPECT_EQ(is_points, matile::find_points(*kernel) != nullptr);
    EXPECT_FALSE(note->statement.empty());
    auto& seen = alternatives[{note->statement, note->form}];
    EXPECT_TRUE(seen.emplace(note->alternative, note->in_front_of.empty() ? "" : name).second);
    EXPECT_LE(note->alternative, note->alternatives);
    const std::string alternative = text({.shows_programs = false, .kernel = name});
    const auto form = decision::words(note->form)[static_cast<size_t>(note->form)];
    EXPECT_EQ(alternative.find("kernel " + name + ": " + std::string(form)), 0u) << alternative;
    EXPECT_EQ(alternative.find("\nkernel "), std::string::npos) << alternative;
    EXPECT_FALSE(files_in(alternative).empty()) << alternative;
    if (!is_points || !note->in_front_of.empty() || note->form == decision::Form::Sort) continue;
    // The notes about a point kernel match the kernel.
    const matile::PointLayout layout = matile::point_layout(*kernel);
    int64_t of_thread = layout.neighbours();
    for (const ir::Op& step : matile::points_of(*kernel).body) {
      if (const auto* walk = step.get<matile::LaneLoop>()) of_thread = *walk->each;
    }
    for (const ir::Op& line : note->lines) {
      if (const auto* lanes = line.get<decision::Lanes>()) {
        EXPECT_EQ(lanes->count, layout.lanes.value_or(1));
      }
      if (const auto* each = line.get<decision::Each>()) {
        EXPECT_EQ(each->points, of_thread);
      }
    }
  }
}

// Every line of every kernel is listed with the pass that reads it.
TEST_P(ExplainPasses, EveryLineHasAReader) {
  for (const KernelNote& note : kernels_->notes) {
    const std::string alternative = text({.shows_programs = false, .kernel = note.kernel});
    for (const ir::Op& line : note.lines) {
      if (line.is<decision::Ahead>() && line.as<decision::Ahead>().rows == 0)
        continue;  // no change
      if (alternative.find(ir::print(line)) != std::string::npos) continue;
      // A pass that reads a line and does not change the kernel has no step.
      const auto& passes = compile::passes();
      EXPECT_TRUE(std::any_of(passes.begin(), passes.end(),
                              [&](const compile::PassInfo& p) {
                                return has_word(p.reads, line.info().mnemonic()) &&
                                       alternative.find(p.name) == std::string::npos;
                              }))
          << ir::print(line) << "\n"
          << alternative;
    }
  }
}

// A pass notes decisions of the kinds that its row names, and of no other.
TEST_P(ExplainPasses, RowsNameWhatPassesRead) {
  std::map<std::string, const ir::Program*> last;
  for (const ir::PassTrace::Step& step : trace_.steps) {
    const compile::PassInfo& pass = compile::the_pass(step.pass);
    const bool is_of_kernel =
        pass.stage == compile::Stage::Tiles || pass.stage == compile::Stage::Kernel;
    if (is_of_kernel) {
      ASSERT_TRUE(last.contains(step.unit));
      ir::Program before = *last[step.unit];
      before.after.clear();
      ir::Block decided;
      diag::Sink sink(unit_.sources);
      ir::PassContext context{unit_.pool, sink, {}};
      context.decided = &decided;
      ASSERT_TRUE(pass.run(before, context)) << pass.name;
      for (const ir::Op& line : decided)
        EXPECT_TRUE(has_word(pass.reads, line.info().mnemonic()))
            << pass.name << " notes `" << ir::print(line) << "`";
    }
    if (is_of_kernel || pass.to == "vrtile" || pass.from == "vrtile")
      last[step.unit] = &step.program;
  }
}

INSTANTIATE_TEST_SUITE_P(Examples, ExplainPasses, testing::ValuesIn(example_paths()),
                         [](const auto& param) {
                           return std::filesystem::path(param.param).stem().string();
                         });

}  // namespace
}  // namespace nautilus::driver
