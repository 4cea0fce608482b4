// SPDX-License-Identifier: Apache-2.0
//
// File helpers against a scratch folder, including the error texts users see.
#include "base/files.h"

#include <sys/stat.h>

#include <filesystem>

#include <gtest/gtest.h>

namespace nautilus::base {
namespace {

class Files : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = testing::TempDir() + "nautilus_files_test";
    std::filesystem::remove_all(dir_);
    std::filesystem::create_directories(dir_ + "/sub");
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  std::string dir_;
  std::string error_;
};

TEST_F(Files, RoundTripsBytes) {
  const std::string content("a\0b\r\n\xff", 6);
  ASSERT_TRUE(write_file_atomic(dir_ + "/f", content, &error_)) << error_;
  EXPECT_EQ(read_file(dir_ + "/f", &error_), content);
  ASSERT_TRUE(write_file_atomic(dir_ + "/f", "", &error_)) << error_;
  EXPECT_EQ(read_file(dir_ + "/f", &error_), "");
  EXPECT_EQ(list_files(dir_, "").size(), 1u) << "a temporary file was left behind";
}

TEST_F(Files, KeepsTheModeOfAnExistingFile) {
  const std::string path = dir_ + "/script";
  ASSERT_TRUE(write_file_atomic(path, "1", &error_));
  ASSERT_EQ(::chmod(path.c_str(), 0750), 0);
  ASSERT_TRUE(write_file_atomic(path, "2", &error_));
  struct stat status = {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0750u);
}

TEST_F(Files, WritesDevicesInPlace) {
  EXPECT_TRUE(write_file_atomic("/dev/null", "x", &error_)) << error_;
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST_F(Files, ErrorsSayWhatToDo) {
  EXPECT_FALSE(read_file(dir_ + "/none", &error_).has_value());
  EXPECT_NE(error_.find("check the spelling"), std::string::npos) << error_;
  EXPECT_FALSE(read_file(dir_, &error_).has_value());
  EXPECT_NE(error_.find("name a file inside it"), std::string::npos) << error_;
  EXPECT_FALSE(write_file_atomic(dir_ + "/no/f", "x", &error_));
  EXPECT_NE(error_.find("create it first"), std::string::npos) << error_;
  EXPECT_FALSE(write_file_atomic(dir_, "x", &error_));
  EXPECT_FALSE(read_file(dir_ + "/none", nullptr).has_value());
}

TEST_F(Files, ListsRecursivelyAndSorted) {
  for (const char* file : {"/b.naut", "/sub/a.naut", "/a.naut", "/c.txt"}) {
    ASSERT_TRUE(write_file_atomic(dir_ + file, "", &error_));
  }
  EXPECT_EQ(list_files(dir_, ".naut"),
            (std::vector<std::string>{dir_ + "/a.naut", dir_ + "/b.naut", dir_ + "/sub/a.naut"}));
  EXPECT_TRUE(list_files(dir_ + "/none", "").empty());
}

}  // namespace
}  // namespace nautilus::base
