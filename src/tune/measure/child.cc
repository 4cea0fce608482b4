// SPDX-License-Identifier: Apache-2.0
#include "tune/measure/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>

extern char** environ;

namespace nautilus::tune {

bool Child::start(const std::vector<std::string>& command, std::string* error) {
  stop();
  signal(SIGPIPE, SIG_IGN);  // a child that is gone is an answer, no reason to end
  int to[2];
  int from[2];
  if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) {
    *error = fmt::format("no pipe: {}", std::strerror(errno));
    return false;
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, from[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  // In a group of its own: Ctrl-C is for the search, which lets the trial end.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const int status =
      posix_spawnp(&pid_, arguments[0], &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  close(to[0]);
  close(from[1]);
  in_ = to[1];
  out_ = from[0];
  if (status == 0) return true;
  pid_ = -1;
  stop();
  *error = fmt::format("{}: {}", command[0], std::strerror(status));
  return false;
}

bool Child::send(const std::string& line) {
  const std::string text = line + "\n";
  for (size_t at = 0; at < text.size();) {
    const ssize_t n = write(in_, text.data() + at, text.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += static_cast<size_t>(n);
  }
  return true;
}

Child::Answer Child::receive(double seconds, std::string& line) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::duration<double>(seconds);
  for (;;) {
    if (const size_t end = read_.find('\n'); end != std::string::npos) {
      line = read_.substr(0, end);
      read_.erase(0, end + 1);
      return Answer::Line;
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    if (left.count() <= 0) return Answer::Late;
    pollfd wait{out_, POLLIN, 0};
    const int ready = poll(&wait, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno != EINTR) return Answer::Ended;
    if (ready <= 0) continue;
    char buffer[65536];
    const ssize_t n = read(out_, buffer, sizeof buffer);
    if (n > 0) read_.append(buffer, static_cast<size_t>(n));
    if (n == 0 || (n < 0 && errno != EINTR)) return Answer::Ended;
  }
}

std::string Child::end() {
  if (pid_ <= 0) return "it was not running";
  int status = 0;
  kill(pid_, SIGKILL);  // if it only closed its output
  const bool is_known = waitpid(pid_, &status, 0) == pid_;
  pid_ = -1;
  stop();
  if (!is_known) return "its process ended";
  if (WIFSIGNALED(status))
    return fmt::format("its process ended by signal {} ({})", WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
  return fmt::format("its process ended with status {}", WEXITSTATUS(status));
}

void Child::stop() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  pid_ = -1;
  for (int* end : {&in_, &out_}) {
    if (*end >= 0) close(*end);
    *end = -1;
  }
  read_.clear();
}

}  // namespace nautilus::tune
