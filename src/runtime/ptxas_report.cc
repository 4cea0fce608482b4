// SPDX-License-Identifier: Apache-2.0
#include "runtime/ptxas_report.h"

#include <charconv>

namespace nautilus::runtime {
namespace {

// The number that stands directly before `unit`, as in "Used 40 registers"; 0 if there is none.
int number_before(std::string_view line, std::string_view unit) {
  const size_t at = line.find(unit);
  if (at == std::string_view::npos) return 0;
  size_t begin = at;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  int value = 0;
  std::from_chars(line.data() + begin, line.data() + at, value);
  return value;
}

std::string quoted(std::string_view line) {
  const size_t begin = line.find('\'');
  const size_t end = begin == std::string_view::npos ? begin : line.find('\'', begin + 1);
  return end == std::string_view::npos ? "" : std::string(line.substr(begin + 1, end - begin - 1));
}

bool is_advisory(std::string_view line) {
  for (size_t at = line.find("C75"); at != std::string_view::npos; at = line.find("C75", at + 1)) {
    const bool has_digits = at + 5 <= line.size() && line[at + 3] >= '0' && line[at + 3] <= '9' &&
                            line[at + 4] >= '0' && line[at + 4] <= '9';
    if (has_digits) return true;
  }
  return false;
}

}  // namespace

PtxasReport parse_ptxas_report(std::string_view log) {
  PtxasReport report;
  while (!log.empty()) {
    const std::string_view line = log.substr(0, log.find('\n'));
    log.remove_prefix(std::min(line.size() + 1, log.size()));
    if (is_advisory(line)) report.advisories.emplace_back(line);
    if (line.find("Compiling entry function") != std::string_view::npos) {
      report.kernels.push_back({quoted(line), 0, 0, 0, 0});
    }
    if (report.kernels.empty()) continue;
    KernelUse& use = report.kernels.back();
    if (line.find("bytes stack frame") != std::string_view::npos) {
      use.stack_bytes = number_before(line, " bytes stack frame");
      use.spill_store_bytes = number_before(line, " bytes spill stores");
      use.spill_load_bytes = number_before(line, " bytes spill loads");
    }
    if (line.find(" registers") != std::string_view::npos)
      use.registers = number_before(line, " registers");
  }
  return report;
}

}  // namespace nautilus::runtime
