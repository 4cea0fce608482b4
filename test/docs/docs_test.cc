// SPDX-License-Identifier: Apache-2.0
// The documents cannot go stale: every ```naut block is a program that checks, and every ```console
// block shows what its commands print today. A line `...` in a block stands for any number of
// lines.
#include <gtest/gtest.h>

#include <cstdio>

#include "base/diff.h"
#include "base/files.h"
#include "diag/render.h"
#include "driver/load/load.h"

namespace nautilus {
namespace {

struct Block {
  std::string file;
  int line;
  std::string kind;
  std::string text;
};

std::vector<Block> blocks() {
  const std::string root = NAUTILUS_SOURCE_DIR;
  std::vector<std::string> files = base::list_files(root + "/docs", ".md");
  files.push_back(root + "/README.md");
  std::vector<Block> out;
  for (const std::string& file : files) {
    std::string error;
    std::string text = base::read_file(file, &error).value_or("");
    int line = 0;
    Block* open = nullptr;
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      const std::string row = text.substr(begin, end - begin);
      ++line;
      begin = end + 1;
      if (row.rfind("```", 0) == 0) {
        if (open) {
          open = nullptr;
        } else {
          out.push_back({file, line, row.substr(3), ""});
          open = &out.back();
        }
      } else if (open) {
        open->text += row + "\n";
      }
    }
  }
  return out;
}

std::string output_of(const std::string& command) {
  const std::string shell =
      "cd " NAUTILUS_SOURCE_DIR " && PATH=" NAUTILUS_TOOL_DIR ":$PATH sh -c '" + command + "' 2>&1";
  FILE* pipe = popen(shell.c_str(), "r");
  std::string out;
  char buffer[4096];
  while (const size_t n = fread(buffer, 1, sizeof buffer, pipe)) out.append(buffer, n);
  pclose(pipe);
  return out;
}

// `...` matches any run of lines.
bool matches(const std::string& wanted, const std::string& got) {
  const size_t dots = wanted.find("...\n");
  const bool is_line = dots != std::string::npos && (dots == 0 || wanted[dots - 1] == '\n');
  if (!is_line) return wanted == got;
  const std::string head = wanted.substr(0, dots);
  if (got.rfind(head, 0) != 0) return false;
  const std::string tail = wanted.substr(dots + 4);
  if (tail.empty()) return true;
  for (size_t at = head.size(); at <= got.size(); ++at) {
    if ((at == 0 || got[at - 1] == '\n') && matches(tail, got.substr(at))) return true;
  }
  return false;
}

TEST(Docs, ProgramsCheck) {
  int count = 0;
  for (const Block& b : blocks()) {
    if (b.kind != "naut") continue;
    driver::Unit unit;
    EXPECT_TRUE(driver::load_text(b.file, b.text, {}, unit)) << b.file << ":" << b.line << "\n"
                                                             << diag::render_all(unit.sink);
    ++count;
  }
  EXPECT_GT(count, 0);
}

TEST(Docs, ConsoleBlocksShowWhatIsPrinted) {
  int count = 0;
  for (const Block& b : blocks()) {
    if (b.kind != "console") continue;
    size_t at = b.text.find("$ ");
    ASSERT_EQ(at, 0U) << b.file << ":" << b.line << " starts with a command";
    while (at != std::string::npos) {
      const size_t end = b.text.find('\n', at);
      const std::string command = b.text.substr(at + 2, end - at - 2);
      const size_t next = b.text.find("\n$ ", end);
      const std::string wanted =
          b.text.substr(end + 1, next == std::string::npos ? next : next - end);
      const std::string got = output_of(command);
      EXPECT_TRUE(matches(wanted, got)) << b.file << ":" << b.line << ": " << command << "\n"
                                        << base::unified_diff(wanted, got, "document", "output");
      ++count;
      at = next == std::string::npos ? next : next + 1;
    }
  }
  EXPECT_GT(count, 0);
}

}  // namespace
}  // namespace nautilus
