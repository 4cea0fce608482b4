// SPDX-License-Identifier: Apache-2.0
// A process that answers lines with lines. A crash, an endless loop or a fatal error of its device
// costs only that process.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace nautilus::tune {

class Child {
 public:
  Child() = default;
  ~Child() { stop(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Started, with its standard error dropped. False, and why, if it cannot be.
  bool start(const std::vector<std::string>& command, std::string* error);
  bool is_running() const { return pid_ > 0; }

  bool send(const std::string& line);
  enum class Answer : uint8_t { Line, Ended, Late };
  // The next line without its end; Late after this many seconds, Ended if the process has ended.
  Answer receive(double seconds, std::string& line);
  // How it ended, in words; only after Ended.
  std::string end();

  // Killed and waited for.
  void stop();

 private:
  pid_t pid_ = -1;
  int in_ = -1;
  int out_ = -1;
  std::string read_;
};

}  // namespace nautilus::tune
