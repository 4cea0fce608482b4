// SPDX-License-Identifier: Apache-2.0
#include "tune/work/work_list.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "base/files.h"
#include "tune/records/trial.h"
#include "tune/work/budget.h"

namespace nautilus::tune {
namespace {

constexpr std::array<std::string_view, 5> kStates = {"free", "held", "lost", "failed", "done"};

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> out;
  line = line.substr(0, line.find('#'));
  constexpr std::string_view kBlank = " \t\r";
  for (size_t at = line.find_first_not_of(kBlank); at < line.size();
       at = line.find_first_not_of(kBlank, at)) {
    const size_t end = std::min(line.find_first_of(kBlank, at), line.size());
    out.emplace_back(line.substr(at, end - at));
    at = end;
  }
  return out;
}

// `M=64,N=80`; false if it is something else.
bool read_sizes(std::string_view text, std::map<std::string, int64_t>& out) {
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string_view pair = text.substr(at, end - at);
    at = end + 1;
    const size_t equals = pair.find('=');
    if (equals == 0 || equals == std::string_view::npos) return false;
    const std::string_view number = pair.substr(equals + 1);
    int64_t value = 0;
    const auto r = std::from_chars(number.data(), number.data() + number.size(), value);
    if (r.ec != std::errc() || r.ptr != number.data() + number.size() || value < 0) return false;
    if (!out.emplace(pair.substr(0, equals), value).second) return false;
  }
  return true;
}

// Nothing, and why, if the words of a line are not a job.
std::optional<Job> job_of(const std::vector<std::string>& words, std::string* error) {
  Job out;
  out.file = words[0];
  for (size_t k = 1; k < words.size(); ++k) {
    const bool is_sizes = words[k].find('=') != std::string::npos;
    if (is_sizes && out.sizes.empty() && !out.seconds && read_sizes(words[k], out.sizes)) continue;
    if (!is_sizes && !out.seconds && (out.seconds = seconds_of(words[k]))) continue;
    *error = fmt::format("`{}`: a job is FILE [M=64,N=80] [2m]", words[k]);
    return std::nullopt;
  }
  return out;
}

std::string this_process() {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return fmt::format("{} {}", host, getpid());
}

// Created with its content; false with EEXIST if it is there already.
bool create(const std::string& path, const std::string& content) {
  const int file = open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
  if (file < 0) return false;
  // Who created it has it, whatever of the text is on the disk.
  [[maybe_unused]] const ssize_t ignored = write(file, content.data(), content.size());
  close(file);
  return true;
}

bool touch(const std::string& path) { return utimensat(AT_FDCWD, path.c_str(), nullptr, 0) == 0; }

std::optional<double> changed_at(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return std::nullopt;
  return static_cast<double>(status.st_mtim.tv_sec) +
         1e-9 * static_cast<double>(status.st_mtim.tv_nsec);
}

// By the clock of the file system, which is one for all machines that share it.
std::optional<double> now_in(const std::string& folder) {
  std::string name = this_process();
  std::replace(name.begin(), name.end(), ' ', '.');
  const std::string path = fmt::format("{}/clock.{}", folder, name);
  create(path, "");
  if (!touch(path)) return std::nullopt;
  const auto out = changed_at(path);
  unlink(path.c_str());
  return out;
}

}  // namespace

std::string_view word(JobState state) { return kStates[static_cast<size_t>(state)]; }

std::string Job::text() const {
  return sizes.empty() ? file : fmt::format("{} {}", file, sizes_text(sizes));
}

std::string Job::key() const { return text_hash(text()); }

std::optional<WorkList> WorkList::read(const std::string& path, std::string* error) {
  const auto text = base::read_file(path, error);
  if (!text) return std::nullopt;
  WorkList out;
  out.folder_ = path + ".claims";
  std::map<std::string, int> lines;  // by job
  int number = 0;
  for (size_t at = 0; at < text->size();) {
    const size_t end = std::min(text->find('\n', at), text->size());
    const auto words = words_of(std::string_view(*text).substr(at, end - at));
    at = end + 1;
    ++number;
    if (words.empty()) continue;
    auto job = job_of(words, error);
    if (!job) {
      *error = fmt::format("{}:{}: {}", path, number, *error);
      return std::nullopt;
    }
    job->line = number;
    const auto [first, is_new] = lines.emplace(job->text(), number);
    if (!is_new) {
      *error = fmt::format("{}:{}: the job of line {} again", path, number, first->second);
      return std::nullopt;
    }
    out.jobs_.push_back(std::move(*job));
  }
  return out;
}

std::string WorkList::claim_path(const Job& job, int number) const {
  return fmt::format("{}/{}.{}", folder_, job.key(), number);
}

std::string WorkList::done_path(const Job& job) const {
  return fmt::format("{}/{}.done", folder_, job.key());
}

bool WorkList::make_folder(std::string* error) const {
  std::error_code code;
  std::filesystem::create_directories(folder_, code);
  if (!code) return true;
  *error = fmt::format("{}: {}", folder_, code.message());
  return false;
}

int WorkList::last_claim(const Job& job) const {
  int number = 0;
  while (access(claim_path(job, number + 1).c_str(), F_OK) == 0) ++number;
  return number;
}

std::optional<JobState> WorkList::state(const Job& job, std::string* error) const {
  if (access(done_path(job).c_str(), F_OK) == 0) return JobState::Done;
  const int last = last_claim(job);
  if (last == 0) return JobState::Free;
  const std::string claim = claim_path(job, last);
  if (access((claim + ".failed").c_str(), F_OK) == 0) return JobState::Failed;
  const auto touched = changed_at(claim);
  const auto now = now_in(folder_);
  if (!touched || !now) {
    *error = fmt::format("{}: {}", folder_, std::strerror(errno));
    return std::nullopt;
  }
  return *now - *touched > lease_ ? JobState::Lost : JobState::Held;
}

std::optional<Claim> WorkList::take(const Job& job, bool retries, std::string* error) const {
  if (!make_folder(error)) return std::nullopt;
  // Read before the state: if another worker claims the next number meanwhile, that number is in
  // use and creating it fails.
  const int last = last_claim(job);
  if (last > 0) {
    if (!retries) return std::nullopt;
    const auto found = state(job, error);
    if (found != JobState::Lost && found != JobState::Failed) return std::nullopt;
  }
  const std::string path = claim_path(job, last + 1);
  if (create(path, fmt::format("{} {}\n{}\n", this_process(), date_now(), job.text())))
    return Claim{path};
  if (errno != EEXIST) *error = fmt::format("{}: {}", path, std::strerror(errno));
  return std::nullopt;
}

bool WorkList::finish(const Job& job, const std::string& result, std::string* error) const {
  return base::write_file_atomic(done_path(job), result, error);
}

bool WorkList::give_back(const Claim& claim, const std::string& reason, std::string* error) const {
  return base::write_file_atomic(claim.path + ".failed", reason + "\n", error);
}

Heartbeat::Heartbeat(Claim claim, double seconds)
    : thread_([this, claim = std::move(claim), seconds] {
        std::unique_lock lock(mutex_);
        const auto is_over = [this] { return is_over_; };
        while (!changed_.wait_for(lock, std::chrono::duration<double>(seconds), is_over))
          touch(claim.path);
      }) {}

Heartbeat::~Heartbeat() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

}  // namespace nautilus::tune
