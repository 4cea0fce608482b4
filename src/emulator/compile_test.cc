// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>

#include "base/files.h"
#include "emulator/emulator.h"

namespace nautilus::emulator {
namespace {

constexpr const char* kEmpty = "struct Params { int x; };\nKERNEL(empty, 32) {}\n";

TEST(CompiledBody, ReportsNameTheLineOfTheBody) {
  std::string error;
  EXPECT_EQ(CompiledBody::compile("struct Params { int x; };\n\nKERNEL(bad, 32) { wrong(); }\n",
                                  {.cache_folder = "", .use_cache = false}, &error),
            nullptr);
  EXPECT_NE(error.find("cannot compile the kernel"), std::string::npos) << error;
  EXPECT_NE(error.find("kernel:3:"), std::string::npos) << error;
}

TEST(CompiledBody, LinesOfText) {
  std::string error;
  const auto body = CompiledBody::compile(kEmpty, {.cache_folder = "", .use_cache = false}, &error);
  ASSERT_NE(body, nullptr) << error;
  EXPECT_EQ(body->line_text(1), "struct Params { int x; };");
  EXPECT_EQ(body->line_text(2), "KERNEL(empty, 32) {}");
  EXPECT_EQ(body->line_text(3), "");
  EXPECT_EQ(body->line_text(99), "");
  const int params = 0;
  EXPECT_EQ(run(*body, {"empty", 3, 32, 0, &params, sizeof params}, {}), "");
}

TEST(CompiledBody, IsKeptAndFoundAgain) {
  const std::string folder = testing::TempDir() + "/emulator_cache";
  std::filesystem::remove_all(folder);
  std::string error;
  for (int i = 0; i < 2; ++i) {
    ASSERT_NE(CompiledBody::compile(kEmpty, {.cache_folder = folder}, &error), nullptr) << error;
    EXPECT_EQ(base::list_files(folder, "").size(), 1u);
  }
  std::filesystem::remove_all(folder);
}

// Words of `text` that are followed by `(`, on lines with `marker`.
std::vector<std::string> declared(const std::string& text, const std::string& marker) {
  std::vector<std::string> out;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    const size_t at = line.find(marker);
    if (at == std::string::npos || line[0] == '#') continue;
    const size_t open = line.find('(', at + marker.size());
    if (open == std::string::npos) continue;
    size_t first = open;
    while (first > 0 && (std::isalnum(static_cast<unsigned char>(line[first - 1])) != 0 ||
                         line[first - 1] == '_')) {
      --first;
    }
    out.push_back(line.substr(first, open - first));
  }
  return out;
}

TEST(HostPrelude, OffersEveryNameOfTheDevicePrelude) {
  const std::string folder = std::string(NAUTILUS_SOURCE_DIR) + "/prelude/";
  std::string error;
  const std::string device = base::read_file(folder + "sm_90a.cuh", &error).value_or("") +
                             base::read_file(folder + "reads.cuh", &error).value_or("");
  const std::string host = base::read_file(folder + "host.h", &error).value_or("");
  std::vector<std::string> names = declared(device, "DEVICE ");
  EXPECT_GT(names.size(), 60u);
  for (const std::string& name : declared(device, "__forceinline__ ")) names.push_back(name);
  for (const std::string& name : declared(device, "#define ")) names.push_back(name);
  // The host has families of functions, `scatter_sum_f32`, as rows of a macro.
  const auto has_row = [&](const std::string& name) {
    const size_t at = name.find("scatter_");
    return at != std::string::npos &&
           host.find("SCATTER(" + name.substr(at + 8) + ",") != host.npos;
  };
  for (const std::string& name : names)
    EXPECT_TRUE(host.find(" " + name + "(") != host.npos || has_row(name)) << name;
}

}  // namespace
}  // namespace nautilus::emulator
