// SPDX-License-Identifier: Apache-2.0
// Every message code has a text test that shows it, or a unit test of what reports it.
#include <gtest/gtest.h>

#include "base/files.h"
#include "diag/diagnostic.h"

namespace nautilus::diag {
namespace {

TEST(Codes, EveryCodeHasATextTest) {
  std::string all;
  for (const char* suffix : {".naut", ".spec", ".scalar", ".vrtile", ".matile"}) {
    for (const std::string& file :
         base::list_files(std::string(NAUTILUS_SOURCE_DIR) + "/test", suffix)) {
      std::string error;
      all += base::read_file(file, &error).value_or("");
    }
  }
  for (const std::string& file :
       base::list_files(std::string(NAUTILUS_SOURCE_DIR) + "/src/driver/report", "_test.cc")) {
    std::string error;
    all += base::read_file(file, &error).value_or("");
  }
  for (const CodeInfo& code : all_codes()) {
    const std::string number(code.number);
    const bool is_shown = all.find("[" + number + "]") != std::string::npos ||
                          all.find("#~ " + number) != std::string::npos;
    EXPECT_TRUE(is_shown) << number << " " << code.name;
  }
}

}  // namespace
}  // namespace nautilus::diag
