// SPDX-License-Identifier: Apache-2.0
#include "runtime/nvrtc_places.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace nautilus::runtime {
namespace {

namespace fs = std::filesystem;

// Entries of a folder with names that begin like this, the newest version first: names with more
// digits are newer, and else the greater ones.
std::vector<std::string> entries(const std::string& folder, std::string_view prefix) {
  std::vector<std::string> names;
  std::error_code status;
  for (fs::directory_iterator it(folder, status), end; !status && it != end; it.increment(status)) {
    std::string name = it->path().filename().string();
    if (name.starts_with(prefix)) names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() > b.size() : a > b;
  });
  for (std::string& name : names) name = folder + "/" + name;
  return names;
}

void add_libraries(const std::string& folder, std::vector<std::string>& out) {
  for (std::string& file : entries(folder, "libnvrtc.so")) {
    if (file.find(".alt.") == std::string::npos) out.push_back(std::move(file));
  }
}

// `cuda_nvrtc` is the wheel of CUDA 12, `cu13` the one of CUDA 13.
void add_wheels(const std::string& packages, std::vector<std::string>& out) {
  for (const std::string& part : entries(packages + "/nvidia", "cu"))
    add_libraries(part + "/lib", out);
}

void add_pythons(const std::string& prefix, std::vector<std::string>& out) {
  for (const std::string& lib : {prefix + "/lib", prefix + "/lib64"}) {
    for (const std::string& python : entries(lib, "python3")) {
      add_wheels(python + "/site-packages", out);
      add_wheels(python + "/dist-packages", out);
    }
  }
}

void add_toolkit(const std::string& toolkit, std::vector<std::string>& out) {
  add_libraries(toolkit + "/lib64", out);
  add_libraries(toolkit + "/lib", out);
  for (const std::string& target : entries(toolkit + "/targets", ""))
    add_libraries(target + "/lib", out);
}

}  // namespace

NvrtcSurroundings NvrtcSurroundings::of_process() {
  const auto variable = [](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value ? value : "";
  };
  NvrtcSurroundings s;
  s.asked_for = variable("NAUTILUS_NVRTC");
  s.cuda_home = variable("CUDA_HOME");
  s.cuda_path = variable("CUDA_PATH");
  s.conda = variable("CONDA_PREFIX");
  s.environment = variable("VIRTUAL_ENV");
  s.home = variable("HOME");
  Dl_info here = {};
  if (dladdr(reinterpret_cast<void*>(&nvrtc_places), &here) && here.dli_fname)
    s.own_folder = fs::path(here.dli_fname).parent_path().string();
  return s;
}

std::vector<std::string> nvrtc_places(const NvrtcSurroundings& s) {
  if (!s.asked_for.empty()) return {s.asked_for};
  // The versioned names come with the run-time packages, the plain one with the toolkit.
  std::vector<std::string> out = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
  for (const std::string& toolkit : {s.cuda_home, s.cuda_path})
    if (!toolkit.empty()) add_toolkit(toolkit, out);
  // Our own wheel is next to those of NVIDIA.
  if (!s.own_folder.empty()) {
    add_wheels(s.own_folder + "/..", out);
    add_wheels(s.own_folder + "/../..", out);
  }
  for (const std::string& prefix : {s.environment, s.conda}) {
    if (prefix.empty()) continue;
    add_pythons(prefix, out);
    add_toolkit(prefix, out);
  }
  if (!s.home.empty()) add_pythons(s.home + "/.local", out);
  for (const std::string& toolkit : entries(s.root + "/usr/local", "cuda"))
    add_toolkit(toolkit, out);
  for (const std::string& prefix : {s.root + "/usr/local", s.root + "/usr", s.root + "/opt/conda"})
    add_pythons(prefix, out);
  add_libraries(s.root + "/opt/conda/lib", out);
  std::vector<std::string> once;
  for (std::string& place : out)
    if (std::find(once.begin(), once.end(), place) == once.end()) once.push_back(std::move(place));
  return once;
}

}  // namespace nautilus::runtime
