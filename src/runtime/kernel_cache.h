// SPDX-License-Identifier: Apache-2.0
// Compiled kernels on disk: a folder of files named by the hash of everything that decides their
// content.
//
// Entries are written to a temporary file and renamed, so that many processes (and network disks)
// can share a folder: a reader sees a whole entry or none. A file that does not hold what its
// header says is a miss, never an error. Nothing is ever updated in place, and deleting the folder
// is always safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nautilus::runtime {

class KernelCache {
 public:
  // Empty folder: $XDG_CACHE_HOME/nautilus/kernels, or ~/.cache/nautilus/kernels.
  explicit KernelCache(std::string folder = "");

  // 32 hexadecimal digits over all parts and their lengths.
  static std::string key(const std::vector<std::string_view>& parts);

  std::optional<std::string> get(const std::string& key) const;
  // False (and why) if the entry could not be written; callers go on without the cache.
  bool put(const std::string& key, std::string_view content, std::string* error) const;
  const std::string& folder() const { return folder_; }

 private:
  std::string path(const std::string& key) const;
  std::string folder_;
};

}  // namespace nautilus::runtime
