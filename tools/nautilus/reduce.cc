// SPDX-License-Identifier: Apache-2.0
// nautilus reduce: from a program that fails to a small one that fails in the same way.
#include "driver/check/reduce.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/files.h"
#include "json_output.h"

extern char** environ;

namespace nautilus::tool {
namespace {

struct ReduceOptions {
  std::string file;
  std::string command;
  std::string output;
  int seconds = 20;
  int most = 2000;
  bool json = false;
};

// What a run showed, without what differs between programs that fail in the same way: the exit
// status, and the first line of its messages with numbers and quoted names left out.
struct Outcome {
  int status = 0;
  std::string message;
  bool operator==(const Outcome&) const = default;
};

std::string without_particulars(std::string_view line) {
  std::string out;
  bool is_quoted = false;
  for (const char c : line) {
    if (c == '`') is_quoted = !is_quoted;
    if (is_quoted || (c >= '0' && c <= '9')) continue;
    out += c;
  }
  return out;
}

// The line that says what failed: the first with `error`, `WRONG` or the tool's name before
// it, else the first.
std::string telling_line(const std::string& log) {
  std::string first;
  for (size_t begin = 0; begin < log.size();) {
    const size_t end = std::min(log.find('\n', begin), log.size());
    const std::string line = log.substr(begin, end - begin);
    begin = end + 1;
    if (first.empty()) first = line;
    // A code of a diagnostic is a fact about the failure; its text has names in it.
    const size_t code = line.find("error[");
    if (code != std::string::npos) return line.substr(code, line.find(']', code) + 1 - code);
    if (line.find("WRONG") != std::string::npos) return "WRONG";
    if (line.find("error") != std::string::npos) return without_particulars(line);
    if (line.rfind("nautilus: ", 0) == 0) return without_particulars(line);
  }
  return without_particulars(first);
}

class Runner {
 public:
  explicit Runner(const ReduceOptions& o) : o_(o) {
    const std::string pattern =
        (std::filesystem::temp_directory_path() / "nautilus_reduce_XXXXXX").string();
    std::vector<char> name(pattern.begin(), pattern.end());
    name.push_back('\0');
    if (mkdtemp(name.data())) folder_ = name.data();
  }
  ~Runner() {
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  bool is_ready() const { return !folder_.empty(); }

  Outcome run(const std::string& text) const {
    // The name of a program may be that of its file, so the file keeps its name.
    const std::string file = folder_ + "/" + std::filesystem::path(o_.file).filename().string();
    const std::string log = folder_ + "/log";
    std::string error;
    if (!base::write_file_atomic(file, text, &error)) return {-1, error};
    const std::string command = with_file(file);
    const std::string limit = std::to_string(o_.seconds);
    std::vector<std::string> words{"timeout", limit, "sh", "-c", command};
    std::vector<char*> arguments;
    for (std::string& w : words) arguments.push_back(w.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    pid_t child = 0;
    const int spawned =
        posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (spawned != 0) return {-1, "cannot start a shell"};
    int result = 0;
    while (waitpid(child, &result, 0) < 0 && errno == EINTR) {
    }
    const int status = WIFEXITED(result) ? WEXITSTATUS(result) : 128 + WTERMSIG(result);
    return {status, telling_line(base::read_file(log, &error).value_or(""))};
  }

 private:
  // `{}` stands for the file; without one it is the last argument.
  std::string with_file(const std::string& file) const {
    std::string command = o_.command;
    const size_t at = command.find("{}");
    if (at == std::string::npos) return command + " '" + file + "'";
    return command.replace(at, 2, "'" + file + "'");
  }

  const ReduceOptions& o_;
  std::string folder_;
};

int run_reduce(ReduceOptions o) {
  std::string error;
  const auto text = base::read_file(o.file, &error);
  if (!text) {
    usage_error(error);
    return kUsageError;
  }
  if (o.command.empty()) {
    std::error_code failed;
    const auto self = std::filesystem::read_symlink("/proc/self/exe", failed);
    o.command = fmt::format("'{}' run {{}} --emulate --check",
                            failed ? std::string("nautilus") : self.string());
  }
  const Runner runner(o);
  if (!runner.is_ready()) {
    usage_error("cannot create a temporary folder");
    return kUsageError;
  }
  const Outcome wanted = runner.run(*text);
  if (wanted.status == 0) {
    return report_failure(o.json, fmt::format("{} does not fail: the command gives 0", o.file));
  }
  if (!o.json) fmt::print(stderr, "{}: status {}, {}\n", o.file, wanted.status, wanted.message);
  const auto reduced = driver::reduce(
      *text, [&](const std::string& t) { return runner.run(t) == wanted; }, o.most);
  if (!o.output.empty() && !base::write_file_atomic(o.output, reduced.text, &error)) {
    usage_error(error);
    return kUsageError;
  }
  if (o.json) {
    write_json({{"ok", true},
                {"status", wanted.status},
                {"message", wanted.message},
                {"bytes_before", text->size()},
                {"runs", reduced.tried},
                {"text", reduced.text}});
    return kOk;
  }
  fmt::print(stderr, "{} of {} bytes are left after {} runs\n", reduced.text.size(), text->size(),
             reduced.tried);
  if (o.output.empty()) fmt::print("{}", reduced.text);
  return kOk;
}

}  // namespace

void add_reduce(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<ReduceOptions>();
  CLI::App* c = app.add_subcommand("reduce", "Make a program that fails smaller");
  c->add_option("FILE", o->file, "a program that fails, of any level")->required();
  c->add_option("--command", o->command,
                "what fails, with {} for the file; default: nautilus run {} --emulate --check");
  c->add_option("-o,--output", o->output, "write the smaller program to this file");
  c->add_option("--seconds", o->seconds, "the longest a run may take")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  c->add_option("--most", o->most, "the most programs to try")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  c->add_flag("--json", o->json, kJsonHelp);
  c->footer(
      "A run fails in the same way if its exit status and its first message, numbers and names\n"
      "aside, are the same.\n"
      "Example: nautilus reduce wrong.naut -o small.naut");
  c->callback([o, &exit_code] { exit_code = run_reduce(*o); });
}

}  // namespace nautilus::tool
