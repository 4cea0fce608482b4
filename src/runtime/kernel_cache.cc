// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernel_cache.h"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/files.h"

namespace nautilus::runtime {
namespace {

constexpr std::string_view kMagic = "nautilus kernel 1\n";

std::string default_folder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache) {
    return fmt::format("{}/nautilus/kernels", cache);
  }
  if (const char* home = std::getenv("HOME"); home && *home)
    return fmt::format("{}/.cache/nautilus/kernels", home);
  // A folder that everybody can guess and write to is not safe for code.
  passwd entry = {};
  passwd* found = nullptr;
  char text[4096];
  if (getpwuid_r(geteuid(), &entry, text, sizeof text, &found) == 0 && found && found->pw_dir &&
      std::strlen(found->pw_dir) > 1 && access(found->pw_dir, W_OK) == 0)
    return fmt::format("{}/.cache/nautilus/kernels", found->pw_dir);
  return "";
}

constexpr uint64_t kMiB = uint64_t{1} << 20;

uint64_t default_most_bytes() {
  uint64_t mib = 2048;
  if (const char* text = std::getenv("NAUTILUS_CACHE_MB")) {
    uint64_t value = 0;
    const char* end = text + std::strlen(text);
    const auto r = std::from_chars(text, end, value);
    if (r.ec == std::errc() && r.ptr == end) mib = value;
  }
  return std::max(mib * kMiB, kMiB);
}

uint64_t mixed(uint64_t h) {
  h ^= h >> 33;
  h *= 0xFF51AFD7ED558CCDULL;
  h ^= h >> 33;
  h *= 0xC4CEB9FE1A85EC53ULL;
  return h ^ h >> 33;
}

}  // namespace

KernelCache::KernelCache(std::string folder, uint64_t most_bytes)
    : folder_(folder.empty() ? default_folder() : std::move(folder)),
      most_bytes_(most_bytes ? most_bytes : default_most_bytes()) {}

bool KernelCache::is_private() const {
  struct stat status = {};
  if (stat(folder_.c_str(), &status) != 0) return true;
  return status.st_uid == geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

std::string KernelCache::key(const std::vector<std::string_view>& parts) {
  // Two independent 64-bit streams: an accidental collision among a billion kernels is out of
  // reach.
  uint64_t a = 0x9E3779B97F4A7C15ULL;
  uint64_t b = 0xD1B54A32D192ED03ULL;
  auto add = [&](uint64_t v) {
    a = mixed(a ^ v);
    b = mixed(b + v * 0x2545F4914F6CDD1DULL);
  };
  for (std::string_view part : parts) {
    add(part.size());
    for (char c : part) add(static_cast<unsigned char>(c) + 1U);
  }
  return fmt::format("{:016x}{:016x}", a, b);
}

std::string KernelCache::path(const std::string& key) const {
  return fmt::format("{}/{}/{}", folder_, key.substr(0, 2), key);
}

std::optional<std::string> KernelCache::get(const std::string& key) const {
  if (folder_.empty() || !is_private()) return std::nullopt;
  std::string error;
  const std::string file = path(key);
  const auto content = base::read_file(file, &error);
  if (!content) return std::nullopt;
  // Header: magic, then the key of the content itself. A cut or foreign file fails here.
  const size_t header = kMagic.size() + 33;
  if (content->size() < header || content->compare(0, kMagic.size(), kMagic) != 0)
    return std::nullopt;
  std::string payload = content->substr(header);
  if (content->substr(kMagic.size(), 32) != KernelCache::key({payload})) return std::nullopt;
  // Its time says when it was last of use. A folder that cannot be written to is read all the same.
  std::error_code ignored;
  std::filesystem::last_write_time(file, std::filesystem::file_time_type::clock::now(), ignored);
  return payload;
}

void KernelCache::evict() const {
  namespace fs = std::filesystem;
  struct Entry {
    fs::path path;
    fs::file_time_type used;
    uint64_t bytes;
  };
  std::vector<Entry> entries;
  uint64_t total = 0;
  std::error_code status;
  for (fs::recursive_directory_iterator it(folder_, status), end; !status && it != end;
       it.increment(status)) {
    std::error_code gone;  // another process may be at work
    if (!it->is_regular_file(gone) || gone) continue;
    const Entry e{it->path(), it->last_write_time(gone), it->file_size(gone)};
    if (gone) continue;
    total += e.bytes;
    entries.push_back(e);
  }
  if (total <= most_bytes_) return;
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& e : entries) {
    if (total <= most_bytes_ / 10 * 9) return;
    if (fs::remove(e.path, status)) total -= e.bytes;
  }
}

bool KernelCache::put(const std::string& key, std::string_view content, std::string* error) const {
  if (folder_.empty()) {
    *error = "there is no folder for a cache: set HOME or XDG_CACHE_HOME";
    return false;
  }
  if (!is_private()) {
    *error = fmt::format("{} is not used: it belongs to another user, or others may write to it",
                         folder_);
    return false;
  }
  namespace fs = std::filesystem;
  const std::string file = path(key);
  std::error_code status;
  fs::create_directories(fs::path(file).parent_path(), status);
  if (status) {
    *error = fmt::format("cannot create {}: {}", folder_, status.message());
    return false;
  }
  fs::permissions(folder_, fs::perms::owner_all, status);
  if (!base::write_file_atomic(
          file, fmt::format("{}{}\n{}", kMagic, KernelCache::key({content}), content), error))
    return false;
  // Checking all entries takes a while: done once in a process, and then after every fraction of
  // the limit that was written.
  static std::atomic<uint64_t> written = UINT64_MAX;
  const uint64_t before = written.load();
  const uint64_t part = most_bytes_ / 16;
  if (before == UINT64_MAX || before + content.size() > part) {
    written = 0;
    evict();
  } else {
    written += content.size();
  }
  return true;
}

}  // namespace nautilus::runtime
