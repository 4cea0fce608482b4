// SPDX-License-Identifier: Apache-2.0
// The command line tool: one sub-command per file.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/nearest.h"
#include "command.h"

namespace {

constexpr const char* kFooter =
    "Exit status: 0 success; 1 the program has errors, a check or a test failed; 2 wrong use of "
    "the command line or an\n"
    "unreadable file; 70 an error in nautilus itself.\n"
    "`nautilus COMMAND --help` shows an example of each command.";

// The options a sub-command knows, for "did you mean".
std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* o : app.get_options()) {
    for (const std::string& name : o->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

int report(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) return app.exit(error);  // help
  std::string message = error.what();
  std::string hint;
  const auto used = app.get_subcommands();
  const CLI::App& command = used.empty() ? app : *used.front();
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError)) {
    // The flag itself says more than the positional words that were left over.
    const auto extras = app.remaining(true);
    const auto flag_at = std::find_if(extras.begin(), extras.end(),
                                      [](const std::string& e) { return e.starts_with('-'); });
    const std::string first = flag_at != extras.end() ? *flag_at
                              : extras.empty()        ? ""
                                                      : extras.front();
    const std::string flag = first.substr(0, first.find('='));
    message = fmt::format("`{}` is no option of `nautilus {}`", flag, command.get_name());
    hint = nautilus::base::nearest_name(flag, option_names(command));
    if (nautilus::tool::is_pair(first)) {
      message += "; several values of an option are one word, --shape M=512,N=512";
      hint.clear();
    }
  }
  fmt::print(stderr, "nautilus: {}{}\n", message,
             hint.empty() ? "" : fmt::format("; did you mean `{}`?", hint));
  fmt::print(stderr, "`nautilus {}--help` shows how it is used\n",
             used.empty() ? "" : command.get_name() + " ");
  return nautilus::tool::kUsageError;
}

// A first word that names no command, with the nearest one that does.
bool is_unknown_command(const CLI::App& app, std::string_view word) {
  if (word.starts_with('-')) return false;
  std::vector<std::string> names;
  for (const CLI::App* s : app.get_subcommands({})) names.push_back(s->get_name());
  if (std::find(names.begin(), names.end(), word) != names.end()) return false;
  const auto near = nautilus::base::nearest_name(word, names);
  fmt::print(stderr, "nautilus: `{}` is no command{}\n", word,
             near.empty() ? "" : fmt::format("; did you mean `{}`?", near));
  fmt::print(stderr, "commands are {}\n", fmt::join(names, ", "));
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"nautilus: from the mathematics of a tensor operator to a kernel", "nautilus"};
  app.footer(kFooter);
  app.require_subcommand(1);
  app.get_formatter()->column_width(36);
  int exit_code = nautilus::tool::kOk;
  nautilus::tool::add_new(app, exit_code);
  nautilus::tool::add_check(app, exit_code);
  nautilus::tool::add_print(app, exit_code);
  nautilus::tool::add_eval(app, exit_code);
  nautilus::tool::add_opt(app, exit_code);
  nautilus::tool::add_schedule(app, exit_code);
  nautilus::tool::add_explain(app, exit_code);
  nautilus::tool::add_compile(app, exit_code);
  nautilus::tool::add_build(app, exit_code);
  nautilus::tool::add_run(app, exit_code);
  nautilus::tool::add_bench(app, exit_code);
  nautilus::tool::add_tune(app, exit_code);
  nautilus::tool::add_propose(app, exit_code);
  nautilus::tool::add_worker(app, exit_code);
  nautilus::tool::add_db(app, exit_code);
  nautilus::tool::add_test(app, exit_code);
  nautilus::tool::add_reduce(app, exit_code);
  nautilus::tool::add_doctor(app, exit_code);
  nautilus::tool::add_version(app, exit_code);
  nautilus::tool::add_completion(app, exit_code);
  nautilus::tool::add_lsp(app, exit_code);
  if (argc <= 1) {
    fmt::print("{}", app.help());
    return nautilus::tool::kUsageError;
  }
  app.set_version_flag("--version", "nautilus " NAUTILUS_VERSION);
  if (is_unknown_command(app, argv[1])) return nautilus::tool::kUsageError;
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return report(app, e);
  }
  return exit_code;
}
