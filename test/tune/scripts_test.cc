// SPDX-License-Identifier: Apache-2.0
// Scripts that talk to the tuner, in the emulator: the example of a proposer.
#ifdef NAUTILUS_EMULATOR
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <string>

namespace nautilus {
namespace {

// The exit status of a command line in the source folder; what it printed goes to `said`.
int status_of(const std::string& line, std::string& said) {
  const std::string shell = "cd " NAUTILUS_SOURCE_DIR " && { " + line + "; } 2>&1";
  FILE* pipe = popen(shell.c_str(), "r");
  said.clear();
  char buffer[4096];
  while (const size_t n = fread(buffer, 1, sizeof buffer, pipe)) said.append(buffer, n);
  const int status = pclose(pipe);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(TuneScripts, TheRandomWalkBeginsWithTheCompilersChoice) {
  std::string said;
  if (status_of("python3 --version", said) != 0) GTEST_SKIP() << "no Python";
  const std::string walk =
      "python3 bench/propose_random.py --nautilus " NAUTILUS_TOOL_DIR "/nautilus --trials 4 ";
  ASSERT_EQ(status_of(walk + "-- examples/rmsnorm.naut --emulate", said), 0) << said;
  EXPECT_EQ(said.find("trial 1: "), 0u) << said;
  EXPECT_NE(said.find(" steps, the compiler's choice\n"), std::string::npos) << said;
  EXPECT_NE(said.find("\ntrial 4: "), std::string::npos) << said;
  EXPECT_NE(said.find("\nschedule @rmsnorm "), std::string::npos) << said;  // the best of them
  std::string again;
  status_of(walk + "-- examples/rmsnorm.naut --emulate", again);
  EXPECT_EQ(said, again);  // the same seed is the same walk
  EXPECT_NE(status_of(walk + "-- examples/none.naut --emulate", said), 0);
}

}  // namespace
}  // namespace nautilus
#endif
