// SPDX-License-Identifier: Apache-2.0
// nautilus version
#include <fmt/format.h>

#include "json_output.h"
#include "target/target.h"

namespace nautilus::tool {
namespace {

#ifdef NAUTILUS_EMULATOR
constexpr bool kHasEmulator = true;
#else
constexpr bool kHasEmulator = false;
#endif
#ifdef NAUTILUS_SQLITE
constexpr bool kHasDatabases = true;
#else
constexpr bool kHasDatabases = false;
#endif

}  // namespace

void add_version(CLI::App& app, int& exit_code) {
  auto json = std::make_shared<bool>(false);
  CLI::App* c = app.add_subcommand("version", "Show the version and how the tool was built");
  c->add_flag("--json", *json, kJsonHelp);
  c->footer("Example: nautilus version --json");
  c->callback([json, &exit_code] {
    std::vector<std::string> targets;
    for (const target::Target* t : target::targets()) {
      if (t != &target::toy()) targets.emplace_back(t->name);
    }
    if (*json) {
      write_json({{"version", NAUTILUS_VERSION},
                  {"compiler", __VERSION__},
                  {"targets", targets},
                  {"emulator", kHasEmulator},
                  {"databases", kHasDatabases}});
    } else {
      fmt::print("nautilus {} (built with {}), for {}; {} emulator, {} databases of trials\n",
                 NAUTILUS_VERSION, __VERSION__, fmt::join(targets, ", "),
                 kHasEmulator ? "with" : "without", kHasDatabases ? "with" : "without");
    }
    exit_code = kOk;
  });
}

}  // namespace nautilus::tool
