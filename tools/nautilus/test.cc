// SPDX-License-Identifier: Apache-2.0
// nautilus test: run text tests.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "driver/check/test_case.h"
#include "driver/check/test_runner.h"
#include "json_output.h"

namespace nautilus::tool {
namespace {

struct TestOptions {
  std::vector<std::string> paths;
  bool update = false;
  bool list = false;
  bool device = false;
  bool json = false;
  int threads = 0;
};

int run_test(const TestOptions& o) {
  if (o.list && o.json) {
    nlohmann::json j = nlohmann::json::array();
    for (const auto& [command, meaning] : driver::test_commands())
      j.push_back({{"command", command}, {"meaning", meaning}});
    write_json(j);
    return kOk;
  }
  if (o.list) {
    for (const auto& [command, meaning] : driver::test_commands())
      fmt::print("{:<40} {}\n", command, meaning);
    return kOk;
  }
  if (o.update && o.device) {
    usage_error("--update goes without --device: expectations do not depend on one");
    return kUsageError;
  }
  const char* ci = std::getenv("CI");
  if (o.update && ci && std::string_view(ci) == "true") {
    usage_error("--update is refused when CI=true: expectations are changed by people");
    return kUsageError;
  }
  const std::vector<std::string> paths =
      o.paths.empty() ? std::vector<std::string>{"test"} : o.paths;
  for (const std::string& path : paths) {
    if (std::filesystem::exists(path)) continue;
    usage_error(fmt::format("there is no file or folder {}", path));
    return kUsageError;
  }
  const driver::TestReport report = driver::run_text_tests(paths, {o.update, o.threads, o.device});
  if (report.passed + report.failed == 0) {
    usage_error("no tests found");
    return kUsageError;
  }
  if (o.json)
    write_json({{"ok", report.failed == 0},
                {"passed", report.passed},
                {"failed", report.failed},
                {"updated", report.updated},
                {"text", report.text}});
  else
    fmt::print("{}{} passed, {} failed\n", report.text, report.passed, report.failed);
  return report.failed ? kProgramError : kOk;
}

}  // namespace

void add_test(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<TestOptions>();
  CLI::App* c = app.add_subcommand("test", "Run text tests: input and expectation in one file");
  c->add_option("PATH", o->paths, "test files and folders (default: test)");
  c->add_flag("--update", o->update, "rewrite the expectations (refused when CI=true)");
  c->add_flag("--device", o->device,
              "run the kernels of `kernels` and `fusion` on the GPU, leave out other tests");
  c->add_option("-j,--threads", o->threads, "files at a time (default: all cores)");
  c->add_flag("--list", o->list, "list the commands a test may name");
  c->add_flag("--json", o->json, kJsonHelp);
  c->footer("Example: nautilus test test/spec --update");
  c->callback([o, &exit_code] { exit_code = run_test(*o); });
}

}  // namespace nautilus::tool
