// SPDX-License-Identifier: Apache-2.0
// nautilus version
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "command.h"

namespace nautilus::tool {

void add_version(CLI::App& app, int& exit_code) {
  auto json = std::make_shared<bool>(false);
  CLI::App* c = app.add_subcommand("version", "Show the version and how the tool was built");
  c->add_flag("--json", *json, "as JSON");
  c->footer("Example: nautilus version --json");
  c->callback([json, &exit_code] {
    const nlohmann::json j = {
        {"version", NAUTILUS_VERSION}, {"compiler", __VERSION__}, {"targets", {"oracle"}}};
    if (*json) {
      fmt::print("{}\n", j.dump(2));
    } else {
      fmt::print("nautilus {} (built with {})\n", NAUTILUS_VERSION, __VERSION__);
    }
    exit_code = kOk;
  });
}

}  // namespace nautilus::tool
