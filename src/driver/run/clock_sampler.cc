// SPDX-License-Identifier: Apache-2.0
#include "driver/run/clock_sampler.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>

extern char** environ;

namespace nautilus::driver {
namespace {

// The first GPU that this process sees, as nvidia-smi numbers them.
std::string first_gpu() {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  const std::string list = visible ? visible : "";
  return list.empty() ? "0" : list.substr(0, list.find(','));
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

ClockSampler::ClockSampler() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return;
  std::string words[] = {"nvidia-smi",
                         "-i",
                         first_gpu(),
                         "--query-gpu=clocks.sm,power.draw,temperature.gpu",
                         "--format=csv,noheader,nounits",
                         "-lms",
                         "50"};
  std::vector<char*> arguments;
  for (std::string& w : words) arguments.push_back(w.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  const int status =
      posix_spawnp(&pid_, "nvidia-smi", &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (status != 0) {
    pid_ = -1;
    close(ends[0]);
    return;
  }
  pipe_ = ends[0];
  reader_ = std::thread([this] { read(); });
}

ClockSampler::~ClockSampler() {
  if (pid_ < 0) return;
  kill(pid_, SIGTERM);
  waitpid(pid_, nullptr, 0);
  reader_.join();  // the pipe ends with the process
  close(pipe_);
}

void ClockSampler::read() {
  std::string line;
  char buffer[256];
  while (true) {
    const ssize_t n = ::read(pipe_, buffer, sizeof buffer);
    if (n <= 0) return;
    for (ssize_t i = 0; i < n; ++i) {
      if (buffer[i] != '\n') {
        line += buffer[i];
        continue;
      }
      const auto sample = parse(line);
      line.clear();
      if (!sample) continue;
      const std::lock_guard lock(mutex_);
      samples_.push_back(*sample);
    }
  }
}

std::optional<ClockSampler::Sample> ClockSampler::parse(const std::string& line) {
  char* end = nullptr;
  Sample s{std::chrono::steady_clock::now(), std::strtod(line.c_str(), &end)};
  if (end == line.c_str() || *end != ',') return std::nullopt;
  const char* second = end + 1;
  s.watts = std::strtod(second, &end);
  if (end == second) return std::nullopt;
  if (*end == ',') s.celsius = std::strtod(end + 1, nullptr);
  return s;
}

std::optional<ClockSampler::Sample> ClockSampler::since(Time start) {
  std::vector<double> mhz;
  std::vector<double> watts;
  std::vector<double> celsius;
  const std::lock_guard lock(mutex_);
  for (const Sample& s : samples_) {
    if (s.time < start) continue;
    mhz.push_back(s.mhz);
    watts.push_back(s.watts);
    celsius.push_back(s.celsius);
  }
  if (mhz.empty()) return std::nullopt;
  return Sample{start, median(mhz), median(watts), median(celsius)};
}

}  // namespace nautilus::driver
