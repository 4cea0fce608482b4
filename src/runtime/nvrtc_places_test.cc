// SPDX-License-Identifier: Apache-2.0
#include "runtime/nvrtc_places.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace nautilus::runtime {
namespace {

class NvrtcPlacesTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fmt::format("{}/nvrtc_places_{}", testing::TempDir(), getpid());
    std::filesystem::remove_all(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::string file(const std::string& name) {
    const std::string path = root_ + "/" + name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << "x";
    return path;
  }
  // -1 if it is not among them.
  static int place(const std::vector<std::string>& all, const std::string& path) {
    const auto it = std::find(all.begin(), all.end(), path);
    return it == all.end() ? -1 : static_cast<int>(it - all.begin());
  }
  std::string root_;
};

TEST_F(NvrtcPlacesTest, TheLoaderComesFirst) {
  const auto all = nvrtc_places({.root = root_});
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0], "libnvrtc.so.13");
}

TEST_F(NvrtcPlacesTest, WheelsCondaAndToolkitsAreFound) {
  const std::string venv =
      file("venv/lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
  const std::string newer =
      file("venv/lib/python3.11/site-packages/nvidia/cu13/lib/libnvrtc.so.13");
  const std::string user =
      file("home/.local/lib/python3.9/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
  file("packages/nautilus/libnautilus.so");
  const std::string own = file("packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
  const std::string conda = file("conda/lib/libnvrtc.so.12.8.93");
  const std::string target = file("conda/targets/x86_64-linux/lib/libnvrtc.so.12");
  const std::string toolkit = file("usr/local/cuda-12.4/lib64/libnvrtc.so.12");
  const std::string home = file("cuda/lib64/libnvrtc.so");
  const auto all = nvrtc_places({.cuda_home = root_ + "/cuda",
                                 .conda = root_ + "/conda",
                                 .environment = root_ + "/venv",
                                 .home = root_ + "/home",
                                 .own_folder = root_ + "/packages/nautilus",
                                 .root = root_});
  for (const std::string& path : {venv, newer, user, conda, target, toolkit, home})
    EXPECT_GE(place(all, path), 0) << path;
  EXPECT_GE(place(all, root_ + "/packages/nautilus/../nvidia/cuda_nvrtc/lib/libnvrtc.so.12"), 0)
      << own;
  // A file that the user names comes before files that happen to exist.
  EXPECT_LT(place(all, home), place(all, venv));
  EXPECT_LT(place(all, venv), place(all, toolkit));
}

TEST_F(NvrtcPlacesTest, TheFileThatWasAskedForIsTheOnlyOne) {
  EXPECT_EQ(nvrtc_places({.asked_for = "/a/libnvrtc.so"}),
            std::vector<std::string>{"/a/libnvrtc.so"});
}

}  // namespace
}  // namespace nautilus::runtime
