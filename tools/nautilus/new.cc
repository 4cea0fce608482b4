// SPDX-License-Identifier: Apache-2.0
// nautilus new: a program to start from, which checks and runs as it is.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "command.h"
#include "starters.h"

namespace nautilus::tool {
namespace {

struct NewOptions {
  std::string name;
  std::string kind = "attention";
  bool json = false;
};

int run_new(const NewOptions& o) {
  const std::string path = o.name.ends_with(".naut") ? o.name : o.name + ".naut";
  if (std::filesystem::path(path).stem().empty() || path.ends_with("/.naut")) {
    usage_error(fmt::format("`{}` names no file", o.name));
    return kUsageError;
  }
  const auto starter = std::find_if(starters().begin(), starters().end(),
                                    [&](const Starter& s) { return s.kind == o.kind; });
  std::string error;
  if (!base::write_new_file(path, starter->text, &error)) {
    usage_error(error);
    return kUsageError;
  }
  const std::string commands[] = {fmt::format("nautilus run {} --emulate --check", path),
                                  fmt::format("nautilus explain {}", path)};
  if (o.json) {
    const nlohmann::json j = {{"file", path}, {"kind", o.kind}, {"next", commands}};
    fmt::print("{}\n", j.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return kOk;
  }
  fmt::print("wrote {}, a program to start from ({}). Next:\n", path, o.kind);
  fmt::print("  {}   # its kernels, without a GPU, against its definition\n", commands[0]);
  fmt::print("  {}   # how the kernels were derived\n", commands[1]);
  return kOk;
}

}  // namespace

void add_new(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<NewOptions>();
  CLI::App* c = app.add_subcommand("new", "Write a program to start from");
  c->add_option("NAME", o->name, "of the program; NAME.naut is written, and must not be there yet")
      ->required();
  std::vector<std::string> kinds;
  for (const Starter& s : starters()) kinds.emplace_back(s.kind);
  c->add_option("--kind", o->kind,
                "attention; product: a matrix product with an epilogue; rows: reductions along "
                "rows; points: each element by itself")
      ->check(CLI::IsMember(kinds))
      ->capture_default_str();
  c->add_flag("--json", o->json, "the file and the next commands as JSON");
  c->footer("Example: nautilus new my_layer --kind product");
  c->callback([o, &exit_code] { exit_code = run_new(*o); });
}

}  // namespace nautilus::tool
