// SPDX-License-Identifier: Apache-2.0
// Compiled kernels on disk: a folder of files named by the hash of everything that decides their
// content.
//
// Entries are written to a temporary file and renamed, so that many processes (and network disks)
// can share a folder: a reader sees a whole entry or none. A file with content that contradicts its
// header is a miss, never an error. Nothing is ever updated in place, and deleting the folder is
// always safe.
//
// Entries are code that will run, so the folder is the user's alone: it is made with mode 0700, and
// one that belongs to somebody else, or that others may write to, is not used. Its size is limited:
// beyond the limit the entries that were unused for the longest time are deleted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nautilus::runtime {

class KernelCache {
 public:
  // Empty folder: $XDG_CACHE_HOME/nautilus/kernels, or ~/.cache/nautilus/kernels; a user without a
  // home has no cache. `most_bytes` 0: $NAUTILUS_CACHE_MB, or 2 GiB.
  explicit KernelCache(std::string folder = "", uint64_t most_bytes = 0);

  // 32 hexadecimal digits over all parts and their lengths.
  static std::string key(const std::vector<std::string_view>& parts);

  std::optional<std::string> get(const std::string& key) const;
  // False (and why) if the entry could not be written; callers continue without the cache.
  bool put(const std::string& key, std::string_view content, std::string* error) const;
  const std::string& folder() const { return folder_; }

  // Removes entries, the longest unused ones first, until nine tenths of the limit are left.
  // Nothing to do below the limit. `put` does it now and then.
  void evict() const;

 private:
  std::string path(const std::string& key) const;
  // Whether the folder, if it is there, is the user's alone.
  bool is_private() const;
  std::string folder_;
  uint64_t most_bytes_;
};

}  // namespace nautilus::runtime
