// SPDX-License-Identifier: Apache-2.0
#include "runtime/nvrtc.h"

#include <fmt/format.h>

#include <cstdlib>

#include "runtime/shared_library.h"

namespace nautilus::runtime {
namespace {

using Program = void*;

// The entry points used, with the types of NVRTC's C interface (its status is an int, 0 means
// success).
struct Api {
  int (*version)(int*, int*) = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*create)(Program*, const char*, const char*, int, const char* const*,
                const char* const*) = nullptr;
  int (*destroy)(Program*) = nullptr;
  int (*compile)(Program, int, const char* const*) = nullptr;
  int (*log_size)(Program, size_t*) = nullptr;
  int (*log)(Program, char*) = nullptr;
  int (*cubin_size)(Program, size_t*) = nullptr;
  int (*cubin)(Program, char*) = nullptr;
};

std::vector<std::string> library_names() {
  // The versioned names come with the run-time packages, the plain one with the toolkit.
  std::vector<std::string> names = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* root = std::getenv(variable))
      names.push_back(fmt::format("{}/lib64/libnvrtc.so", root));
  }
  names.emplace_back("/usr/local/cuda/lib64/libnvrtc.so");
  return names;
}

struct Loaded {
  SharedLibrary library{library_names()};
  Api api;
  std::string error;

  Loaded() {
    if (!library.is_open()) {
      error = "NVRTC was not found; install the CUDA toolkit (12.3 or newer) or set CUDA_HOME: " +
              library.error();
      return;
    }
    load(api.version, "nvrtcVersion");
    load(api.error_string, "nvrtcGetErrorString");
    load(api.create, "nvrtcCreateProgram");
    load(api.destroy, "nvrtcDestroyProgram");
    load(api.compile, "nvrtcCompileProgram");
    load(api.log_size, "nvrtcGetProgramLogSize");
    load(api.log, "nvrtcGetProgramLog");
    load(api.cubin_size, "nvrtcGetCUBINSize");
    load(api.cubin, "nvrtcGetCUBIN");
  }

  template <class F>
  void load(F*& function, const char* name) {
    function = reinterpret_cast<F*>(library.symbol(name));
    if (!function && error.empty())
      error = fmt::format("{} has no {}: it is too old", library.name(), name);
  }
};

const Loaded& loaded() {
  static const Loaded state;
  return state;
}

std::string log_of(const Api& api, Program program) {
  size_t size = 0;
  if (api.log_size(program, &size) != 0 || size <= 1) return "";
  std::string log(size, '\0');
  if (api.log(program, log.data()) != 0) return "";
  log.resize(size - 1);
  return log;
}

}  // namespace

std::optional<NvrtcInfo> nvrtc_info(std::string* error) {
  const Loaded& l = loaded();
  if (!l.error.empty()) {
    *error = l.error;
    return std::nullopt;
  }
  NvrtcInfo info{l.library.name(), 0, 0};
  l.api.version(&info.major, &info.minor);
  return info;
}

std::optional<CompiledKernel> compile_cuda(const std::string& source, const std::string& file_name,
                                           const std::string& architecture,
                                           const std::vector<std::string>& options,
                                           std::string* error) {
  const Loaded& l = loaded();
  if (!l.error.empty()) {
    *error = l.error;
    return std::nullopt;
  }
  const Api& api = l.api;
  Program program = nullptr;
  if (const int status =
          api.create(&program, source.c_str(), file_name.c_str(), 0, nullptr, nullptr)) {
    *error = fmt::format("NVRTC: {}", api.error_string(status));
    return std::nullopt;
  }
  std::vector<std::string> all = {"--gpu-architecture=" + architecture, "--std=c++17",
                                  "--ptxas-options=-v"};
  // NVRTC's own cache returns machine code without the assembler's report, which decides whether a
  // kernel is accepted.
  int major = 0;
  int minor = 0;
  api.version(&major, &minor);
  if (major > 12 || (major == 12 && minor >= 9)) all.emplace_back("--no-cache");
  all.insert(all.end(), options.begin(), options.end());
  std::vector<const char*> words;
  for (const std::string& o : all) words.push_back(o.c_str());
  const int status = api.compile(program, static_cast<int>(words.size()), words.data());
  CompiledKernel result;
  result.log = log_of(api, program);
  size_t size = 0;
  if (status != 0) {
    *error = fmt::format("{}: {}\n{}", file_name, api.error_string(status), result.log);
  } else if (api.cubin_size(program, &size) != 0 || size == 0) {
    *error = fmt::format("NVRTC made no machine code for {}; is it an `sm_` architecture?",
                         architecture);
  } else {
    result.cubin.resize(size);
    api.cubin(program, result.cubin.data());
    result.report = parse_ptxas_report(result.log);
  }
  api.destroy(&program);
  return result.cubin.empty() ? std::nullopt : std::optional(std::move(result));
}

}  // namespace nautilus::runtime
