// SPDX-License-Identifier: Apache-2.0
//
// From a body to a loaded library: host_table.h, host.h and the body in one text, through the
// system's compiler. Without optimization: the kernel's own arithmetic is a small part of a run,
// and compiling is most of the time of a test.
#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>

#include "base/files.h"
#include "emulator/machine.h"
#include "runtime/kernel_cache.h"

extern char** environ;

namespace nautilus::emulator {

// host_table.h and prelude/host.h, generated (scripts/embed_prelude.cmake).
std::string_view host_prelude();

namespace {

constexpr const char* kFlags[] = {
    "-std=c++17",      "-O0",       "-w",
    "-shared",         "-fPIC",     "-fvisibility=hidden",
    "-fno-exceptions", "-fno-rtti", "-fno-asynchronous-unwind-tables"};

// A temporary folder that is removed with the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    const char* base = std::getenv("TMPDIR");
    path_ = fmt::format("{}/nautilus-emulator-XXXXXX", base != nullptr && *base ? base : "/tmp");
    if (mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  ~TemporaryFolder() {
    std::error_code status;
    if (!path_.empty()) std::filesystem::remove_all(path_, status);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> out;
  for (size_t i = 0; i < text.size();) {
    const size_t begin = text.find_first_not_of(' ', i);
    if (begin == std::string_view::npos) break;
    const size_t end = std::min(text.find(' ', begin), text.size());
    out.emplace_back(text.substr(begin, end - begin));
    i = end;
  }
  return out;
}

bool is_on_path(const std::string& program) {
  if (program.find('/') != std::string::npos) return access(program.c_str(), X_OK) == 0;
  const char* path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "/usr/bin:/bin";
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(':'), rest.size());
    if (access(fmt::format("{}/{}", rest.substr(0, end), program).c_str(), X_OK) == 0) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

// The command that starts the compiler; empty if there is no compiler.
std::vector<std::string> find_compiler() {
  const char* chosen = std::getenv("CXX");
  for (const char* candidate : {chosen, "c++", "g++", "clang++"}) {
    if (candidate == nullptr) continue;
    std::vector<std::string> command = words(candidate);
    if (!command.empty() && is_on_path(command[0])) return command;
  }
  return {};
}

// The exit status, and all output in a file.
int execute(std::vector<std::string> command, const std::string& output) {
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  const int status =
      posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (status != 0) return status;
  int result = 0;
  while (waitpid(child, &result, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(result) ? WEXITSTATUS(result) : -1;
}

// The bytes of the library.
std::optional<std::string> build(const std::string& text, const std::vector<std::string>& compiler,
                                 std::string* error) {
  const TemporaryFolder folder;
  if (folder.path().empty()) {
    *error = "cannot create a temporary folder";
    return std::nullopt;
  }
  const std::string source = folder.path() + "/kernel.cc";
  const std::string library = folder.path() + "/kernel.so";
  const std::string log = folder.path() + "/log";
  if (!base::write_file_atomic(source, text, error)) return std::nullopt;
  std::vector<std::string> command = compiler;
  command.insert(command.end(), std::begin(kFlags), std::end(kFlags));
  command.insert(command.end(), {"-o", library, source, "-lm"});
  if (execute(command, log) != 0) {
    std::string ignored;
    *error = fmt::format("{} cannot compile the kernel:\n{}", compiler[0],
                         base::read_file(log, &ignored).value_or(""));
    return std::nullopt;
  }
  return base::read_file(library, error);
}

}  // namespace

std::unique_ptr<CompiledBody> CompiledBody::compile(const std::string& body,
                                                    const CompileOptions& options,
                                                    std::string* error) {
  const std::vector<std::string> compiler = find_compiler();
  if (compiler.empty()) {
    *error = "no C++ compiler: set CXX, or install one as c++, g++ or clang++";
    return nullptr;
  }
  const std::string text = fmt::format("{}\n#line 1 \"kernel\"\n{}", host_prelude(), body);
  std::vector<std::string_view> parts = {"emulator", text};
  parts.insert(parts.end(), compiler.begin(), compiler.end());
  parts.insert(parts.end(), std::begin(kFlags), std::end(kFlags));
#if defined(__aarch64__)
  parts.push_back("aarch64");  // a home folder may be shared by machines of different kinds
#elif defined(__x86_64__)
  parts.push_back("x86-64");
#endif
  const runtime::KernelCache cache(options.cache_folder);
  const std::string key = runtime::KernelCache::key(parts);
  std::optional<std::string> library;
  if (options.use_cache) library = cache.get(key);
  if (!library) {
    library = build(text, compiler, error);
    if (!library) return nullptr;
    std::string ignored;
    if (options.use_cache) cache.put(key, *library, &ignored);
  }
  // The loader needs a separate file for every library: it treats the same path as the same
  // library.
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/kernel.so";
  if (!base::write_file_atomic(path, *library, error)) return nullptr;
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    *error = fmt::format("cannot load the compiled kernel: {}", dlerror());
    return nullptr;
  }
  auto* bind = reinterpret_cast<void (*)(const HostTable*)>(dlsym(handle, "nautilus_bind"));
  if (bind == nullptr) {
    *error = "the compiled kernel is not one of ours";
    dlclose(handle);
    return nullptr;
  }
  bind(&host_table());
  return std::unique_ptr<CompiledBody>(new CompiledBody(handle, body));
}

CompiledBody::~CompiledBody() { dlclose(handle_); }

void* CompiledBody::symbol(const std::string& name) const { return dlsym(handle_, name.c_str()); }

std::string CompiledBody::line_text(int line) const {
  size_t begin = 0;
  for (int i = 1; i < line; ++i) {
    begin = text_.find('\n', begin);
    if (begin == std::string::npos) return "";
    ++begin;
  }
  const size_t end = std::min(text_.find('\n', begin), text_.size());
  const size_t first = std::min(text_.find_first_not_of(" \t", begin), end);
  return text_.substr(first, end - first);
}

}  // namespace nautilus::emulator
