// SPDX-License-Identifier: Apache-2.0
#include "lsp/isolated.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>

namespace nautilus::lsp {
namespace {

struct Pipe {
  int read = -1;
  int write = -1;
};

bool open_pipe(Pipe& p) {
  int ends[2];
  if (::pipe(ends) != 0) return false;
  p = {ends[0], ends[1]};
  return true;
}

void close_end(int& fd) {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

[[noreturn]] void be_child(const std::function<std::string()>& work, Pipe output, Pipe errors) {
  // Standard output is the protocol's, standard input the client's: neither is the child's.
  const int nothing = ::open("/dev/null", O_RDWR);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(nothing, STDOUT_FILENO);
  ::dup2(errors.write, STDERR_FILENO);
  const std::string result = work();
  for (size_t done = 0; done < result.size();) {
    const ssize_t n = ::write(output.write, result.data() + done, result.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) ::_exit(1);
    done += static_cast<size_t>(n);
  }
  ::_exit(0);
}

// Both ends until they are closed; false if the time is over first.
bool read_both(int output, int errors, double seconds, IsolatedResult& result) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  pollfd fds[] = {{output, POLLIN, 0}, {errors, POLLIN, 0}};
  std::string* texts[] = {&result.output, &result.report};
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    if (::poll(fds, 2, static_cast<int>(left.count())) < 0 && errno != EINTR) return false;
    for (size_t k = 0; k < 2; ++k) {
      if (fds[k].fd < 0 || (fds[k].revents & (POLLIN | POLLHUP | POLLERR)) == 0) continue;
      char buffer[65536];
      const ssize_t n = ::read(fds[k].fd, buffer, sizeof buffer);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) {
        fds[k].fd = -1;
      } else {
        texts[k]->append(buffer, static_cast<size_t>(n));
      }
    }
  }
  return true;
}

}  // namespace

IsolatedResult run_isolated(const std::function<std::string()>& work, double seconds) {
  IsolatedResult result;
  Pipe output;
  Pipe errors;
  if (!open_pipe(output)) {
    result.report = fmt::format("no pipe: {}", std::strerror(errno));
    return result;
  }
  const pid_t child = open_pipe(errors) ? ::fork() : -1;
  if (child == 0) be_child(work, output, errors);
  close_end(output.write);
  close_end(errors.write);
  if (child < 0) {
    result.report = fmt::format("no process: {}", std::strerror(errno));
  } else {
    const bool is_over = read_both(output.read, errors.read, seconds, result);
    if (!is_over) ::kill(child, SIGKILL);
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    result.ok = is_over && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!is_over) {
      result.report = fmt::format("it took more than {} s", seconds);
    } else if (WIFSIGNALED(status)) {
      result.report += fmt::format("ended by signal {}", WTERMSIG(status));
    }
  }
  close_end(output.read);
  close_end(errors.read);
  return result;
}

}  // namespace nautilus::lsp
