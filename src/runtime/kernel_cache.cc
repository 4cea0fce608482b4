// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernel_cache.h"

#include <fmt/format.h>

#include <cstdlib>
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
  return "/tmp/nautilus-kernels";
}

uint64_t mixed(uint64_t h) {
  h ^= h >> 33;
  h *= 0xFF51AFD7ED558CCDULL;
  h ^= h >> 33;
  h *= 0xC4CEB9FE1A85EC53ULL;
  return h ^ h >> 33;
}

}  // namespace

KernelCache::KernelCache(std::string folder)
    : folder_(folder.empty() ? default_folder() : std::move(folder)) {}

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
  std::string error;
  const auto content = base::read_file(path(key), &error);
  if (!content) return std::nullopt;
  // Header: magic, then the key of the content itself. A cut or foreign file fails here.
  const size_t header = kMagic.size() + 33;
  if (content->size() < header || content->compare(0, kMagic.size(), kMagic) != 0)
    return std::nullopt;
  std::string payload = content->substr(header);
  if (content->substr(kMagic.size(), 32) != KernelCache::key({payload})) return std::nullopt;
  return payload;
}

bool KernelCache::put(const std::string& key, std::string_view content, std::string* error) const {
  const std::string file = path(key);
  std::error_code status;
  std::filesystem::create_directories(std::filesystem::path(file).parent_path(), status);
  if (status) {
    *error = fmt::format("cannot create {}: {}", folder_, status.message());
    return false;
  }
  return base::write_file_atomic(
      file, fmt::format("{}{}\n{}", kMagic, KernelCache::key({content}), content), error);
}

}  // namespace nautilus::runtime
