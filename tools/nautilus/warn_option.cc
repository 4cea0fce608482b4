// SPDX-License-Identifier: Apache-2.0
#include "warn_option.h"

#include <fmt/format.h>

#include <algorithm>

#include "driver/report/warnings.h"

namespace nautilus::tool {

void add_warn_option(CLI::App& command, WarnOption& o) {
  command
      .add_option("--warn", o.mode,
                  "about what is right but far slower than it need be (docs/fast_and_slow.md); "
                  "error: exit status 1 if there is something")
      ->check(CLI::IsMember({"on", "off", "error"}))
      ->capture_default_str();
  command
      .add_option("--large-intermediate", o.intermediate_mb,
                  "warn about tensors between kernels of more than so many MB (default: what the "
                  "target's cache holds)")
      ->check(CLI::PositiveNumber);
}

void warn(const ir::Program& program, const driver::Kernels& kernels, const WarnOption& o,
          bool tries_static, driver::Unit& unit) {
  if (!o.is_on()) return;
  driver::report_warnings(
      program, kernels,
      {.intermediate_bytes = 1e6 * o.intermediate_mb, .tries_static = tries_static}, unit);
}

bool is_failure(const WarnOption& o, const driver::Unit& unit) {
  const auto& all = unit.sink.all();
  const bool has_any =
      std::any_of(all.begin(), all.end(), [](const diag::Diagnostic& d) { return !d.is_error(); });
  if (o.mode != "error" || !has_any) return false;
  fmt::print(stderr, "nautilus: --warn error: the warnings above count as errors\n");
  return true;
}

}  // namespace nautilus::tool
