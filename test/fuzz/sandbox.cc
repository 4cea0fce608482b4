// SPDX-License-Identifier: Apache-2.0
//
// The child tells its progress through shared memory, which outlives it; what it wrote to stderr
// goes to a file in memory and says why it died.
#include "sandbox.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstring>

#include "base/check.h"

namespace nautilus::fuzz {
namespace {

constexpr size_t kMaxCodes = 128;

struct Shared {
  int64_t current;
  int64_t cases;
  int64_t accepted;
  int64_t codes[kMaxCodes];
  bool has_failed;
  char key[512];
  char message[16384];
};

template <size_t N>
void copy_text(char (&to)[N], const std::string& from) {
  const size_t n = std::min(from.size(), N - 1);
  std::memcpy(to, from.data(), n);
  to[n] = 0;
}

// A program that runs away must not take the machine's memory. What may be written is limited, not
// addresses: a driver reserves more of those than any machine has. Sanitizers write more than any
// limit.
void limit_memory() {
#if !defined(__SANITIZE_ADDRESS__)
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
  return;
#endif
#endif
  const rlimit limit{rlim_t{4} << 30, rlim_t{4} << 30};
  setrlimit(RLIMIT_DATA, &limit);
#endif
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
}

// Of the processor: a case that waits for its turn on a busy machine does not hang. One that waits
// for itself is stopped by the clock.
void limit_time(unsigned seconds) {
  const itimerval limit{{0, 0}, {static_cast<time_t>(seconds), 0}};
  setitimer(ITIMER_PROF, &limit, nullptr);
  alarm(10 * seconds);
}

[[noreturn]] void child(Shared& shared, int err, int64_t first, int64_t count,
                        Clock::time_point deadline, CaseFunction run, void* context) {
  dup2(err, STDERR_FILENO);
  limit_memory();
  for (int64_t i = first; i < first + count && Clock::now() < deadline; ++i) {
    shared.current = i;
    limit_time(kSecondsPerCase);
    const Verdict v = run(context, i);
    limit_time(0);
    ++shared.cases;
    shared.accepted += v.is_accepted;
    if (v.code) ++shared.codes[static_cast<size_t>(*v.code) % kMaxCodes];
    if (v.key.empty()) continue;
    shared.has_failed = true;
    copy_text(shared.key, v.key);
    copy_text(shared.message, v.message);
    break;
  }
  _exit(0);
}

std::string read_all(int fd) {
  std::string text(64 * 1024, '\0');
  const ssize_t n = pread(fd, text.data(), text.size(), 0);
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return text;
}

// The line `at file:line` of a failed check or the summary of a sanitizer names the bug; numbers
// and names in the message differ from case to case.
std::string crash_key(const std::string& output, int status) {
  for (const std::string_view mark : {"\n  at ", "SUMMARY: "}) {
    const size_t at = output.find(mark);
    if (at == std::string::npos) continue;
    const size_t begin = at + mark.size();
    return fmt::format("crash {}", output.substr(begin, output.find('\n', begin) - begin));
  }
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    return signal == SIGALRM || signal == SIGPROF ? "hang" : fmt::format("signal {}", signal);
  }
  return fmt::format("exit {}", WEXITSTATUS(status));
}

}  // namespace

void Tally::add(const Tally& other) {
  cases += other.cases;
  accepted += other.accepted;
  for (const auto& [code, n] : other.codes) codes[code] += n;
}

Batch run_batch(int64_t first, int64_t count, Clock::time_point deadline, CaseFunction run,
                void* context) {
  void* memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  NAUT_CHECK(memory != MAP_FAILED, "no shared memory");
  auto& shared = *new (memory) Shared{};
  shared.current = first;
  const int err = memfd_create("stderr", MFD_CLOEXEC);
  NAUT_CHECK(err >= 0, "no file in memory");
  std::fflush(stdout);
  const pid_t pid = fork();
  NAUT_CHECK(pid >= 0, "cannot fork");
  if (pid == 0) child(shared, err, first, count, deadline, run, context);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  Batch batch;
  batch.tally.cases = shared.cases;
  batch.tally.accepted = shared.accepted;
  for (size_t k = 0; k < diag::all_codes().size() && k < kMaxCodes; ++k) {
    if (shared.codes[k]) {
      batch.tally.codes[std::string(diag::info(static_cast<diag::Code>(k)).number)] =
          shared.codes[k];
    }
  }
  if (shared.has_failed) {
    batch.failure = FailedCase{shared.current, shared.key, shared.message};
  } else if (status != 0) {
    const std::string output = read_all(err);
    batch.failure = FailedCase{shared.current, crash_key(output, status), output};
    ++batch.tally.cases;
  }
  munmap(memory, sizeof(Shared));
  close(err);
  return batch;
}

}  // namespace nautilus::fuzz
