// SPDX-License-Identifier: Apache-2.0
#include "tune/measure/builders.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <thread>

namespace nautilus::tune {

Builders::Builders(std::vector<std::string> command, int count, double seconds)
    : command_(std::move(command)), seconds_(seconds) {
  for (int k = 0; k < std::max(count, 1); ++k) children_.push_back(std::make_unique<Child>());
}

Builders::Answer Builders::ask_one(Child& child, const std::string& request) const {
  Answer out;
  if (!child.is_running() && !child.start(command_, &out.error)) return out;
  const auto said = child.send(request) ? child.receive(seconds_, out.line) : Child::Answer::Ended;
  if (said == Child::Answer::Ended) out.error = child.end();
  if (said == Child::Answer::Late) {
    out.error = fmt::format("not done in {:.0f} s", seconds_);
    child.stop();
  }
  return out;
}

std::vector<Builders::Answer> Builders::ask(const std::vector<std::string>& requests) {
  std::vector<Answer> out(requests.size());
  std::atomic<size_t> next = 0;
  const auto work = [&](Child& child) {
    for (size_t k = next++; k < requests.size(); k = next++) out[k] = ask_one(child, requests[k]);
  };
  std::vector<std::thread> threads;
  for (size_t c = 1; c < std::min(children_.size(), requests.size()); ++c)
    threads.emplace_back([&, c] { work(*children_[c]); });
  work(*children_[0]);
  for (std::thread& t : threads) t.join();
  return out;
}

}  // namespace nautilus::tune
