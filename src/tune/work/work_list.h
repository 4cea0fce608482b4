// SPDX-License-Identifier: Apache-2.0
// A list of problems that many workers tune, on one machine or on several with a shared folder.
//
// A line is a job: `FILE [M=64,N=80] [2m]`, a program, its sizes, the time for it; `#` begins a
// comment. The folder LIST.claims records the state of each job. Files there are only created,
// never changed or removed: creation is atomic on every shared file system:
//   KEY.1, KEY.2, ...  claims; the last one counts. The worker that creates the next number has the
//   job.
//   KEY.1.failed       why the job of this claim did not finish
//   KEY.done           the result of the job
// The holder of a claim touches it from time to time; a claim that was not touched for long is
// lost.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace nautilus::tune {

struct Job {
  int line = 0;  // of the list
  std::string file;
  std::map<std::string, int64_t> sizes;
  std::optional<double> seconds;  // nothing: the worker's budget

  // The problem; the same for whoever reads the list.
  std::string text() const;
  // The name of its claims.
  std::string key() const;
};

enum class JobState : uint8_t {
  Free,
  Held,    // by a worker that renews its claim
  Lost,    // by a worker that does not renew it
  Failed,  // with a reason, or given back
  Done,
};
std::string_view word(JobState state);

struct Claim {
  std::string path;
};

class WorkList {
 public:
  // Nothing, and why with the line, if the file is not a list or has a job twice.
  static std::optional<WorkList> read(const std::string& path, std::string* error);

  const std::vector<Job>& jobs() const { return jobs_; }
  // A claim that was not touched for this many seconds is lost.
  void set_lease(double seconds) { lease_ = seconds; }

  // Nothing, and why, if the folder of claims cannot be written.
  std::optional<JobState> state(const Job& job, std::string* error) const;

  // Claims the job if it is free and no other worker claims it meanwhile; `retries`: also if its
  // worker is lost or it failed. Nothing and no error: it is not available.
  std::optional<Claim> take(const Job& job, bool retries, std::string* error) const;

  bool finish(const Job& job, const std::string& result, std::string* error) const;
  // Workers that retry may claim it again.
  bool give_back(const Claim& claim, const std::string& reason, std::string* error) const;

 private:
  // The number of the last claim; 0: none.
  int last_claim(const Job& job) const;
  std::string claim_path(const Job& job, int number) const;
  std::string done_path(const Job& job) const;
  bool make_folder(std::string* error) const;

  std::string folder_;  // of claims
  std::vector<Job> jobs_;
  double lease_ = 300;
};

// Renews a claim as long as this object lives.
class Heartbeat {
 public:
  Heartbeat(Claim claim, double seconds);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace nautilus::tune
