// SPDX-License-Identifier: Apache-2.0
//
// POSIX calls rather than iostreams: they report why they failed, and rename() is the only
// portable way to replace a file in one step.
#include "base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <fmt/core.h>

namespace nautilus::base {

namespace {

std::string_view advice(int code) {
  switch (code) {
    case ENOENT:
      return "; check the spelling and the current directory";
    case ENOTDIR:
      return "; a part of the path before the last is not a directory";
    case EACCES:
    case EPERM:
    case EROFS:
      return "; check the permissions or choose another place";
    case ENOSPC:
    case EDQUOT:
      return "; free some space and try again";
    case EISDIR:
      return "; name a file inside it";
    default:
      return "";
  }
}

void set_error(std::string* error, std::string_view action, const std::string& path, int code) {
  if (error == nullptr) return;
  *error = fmt::format("cannot {} '{}': {}{}", action, path, std::generic_category().message(code),
                       advice(code));
}

// Zero, or the errno of the write that failed.
int write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    content.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

int write_directly(const std::string& path, std::string_view content) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  const int code = write_all(fd, content);
  ::close(fd);
  return code;
}

}  // namespace

std::optional<std::string> read_file(const std::string& path, std::string* error) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    set_error(error, "read", path, errno);
    return std::nullopt;
  }
  std::string content;
  struct stat status = {};
  // Only a hint: the size of a pipe or of a file in /proc is 0.
  if (::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
    content.reserve(static_cast<size_t>(status.st_size));
  }
  char buffer[1 << 16];
  for (;;) {
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got == 0) break;
    if (got < 0) {
      if (errno == EINTR) continue;
      set_error(error, "read", path, errno);
      ::close(fd);
      return std::nullopt;
    }
    content.append(buffer, static_cast<size_t>(got));
  }
  ::close(fd);
  return content;
}

bool write_new_file(const std::string& path, std::string_view content, std::string* error) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) {
    set_error(error, "create", path, errno);
    return false;
  }
  int code = write_all(fd, content);
  if (::close(fd) != 0 && code == 0) code = errno;
  if (code == 0) return true;
  ::unlink(path.c_str());
  set_error(error, "write", path, code);
  return false;
}

bool append_file(const std::string& path, std::string_view content, std::string* error) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  int code = fd < 0 ? errno : write_all(fd, content);
  if (fd >= 0 && ::close(fd) != 0 && code == 0) code = errno;
  if (code != 0) set_error(error, "write", path, code);
  return code == 0;
}

bool write_file_atomic(const std::string& path, std::string_view content, std::string* error) {
  struct stat status = {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists && !S_ISREG(status.st_mode)) {
    const int code = write_directly(path, content);
    if (code != 0) set_error(error, "write", path, code);
    return code == 0;
  }

  // The process and a counter make the name unique among concurrent writers.
  static std::atomic<int> counter{0};
  const std::string temp = fmt::format("{}.tmp.{}.{}", path, ::getpid(), counter.fetch_add(1));
  const int fd = ::open(temp.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) {
    const int code = errno;
    set_error(error, "write", path, code);
    if (error != nullptr && code == ENOENT) {
      *error =
          fmt::format("cannot write '{}': its directory does not exist; create it first", path);
    }
    return false;
  }
  int code = write_all(fd, content);
  if (code == 0 && exists && ::fchmod(fd, status.st_mode & 07777) != 0) code = errno;
  if (::close(fd) != 0 && code == 0) code = errno;
  if (code == 0 && ::rename(temp.c_str(), path.c_str()) != 0) code = errno;
  if (code != 0) {
    ::unlink(temp.c_str());
    set_error(error, "write", path, code);
  }
  return code == 0;
}

bool is_folder(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

std::vector<std::string> list_files(const std::string& dir, std::string_view suffix) {
  namespace fs = std::filesystem;
  std::vector<std::string> paths;
  std::error_code code;
  fs::recursive_directory_iterator it(dir, fs::directory_options::skip_permission_denied, code);
  for (; !code && it != fs::recursive_directory_iterator(); it.increment(code)) {
    std::error_code ignored;
    if (!it->is_regular_file(ignored)) continue;
    std::string path = it->path().string();
    if (std::string_view(path).ends_with(suffix)) paths.push_back(std::move(path));
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace nautilus::base
