// SPDX-License-Identifier: Apache-2.0
#include "runtime/nvrtc.h"

#include <fmt/format.h>

#include "runtime/nvrtc_places.h"
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
  int (*ptx_size)(Program, size_t*) = nullptr;
  int (*ptx)(Program, char*) = nullptr;
};

struct Loaded {
  SharedLibrary library{nvrtc_places(NvrtcSurroundings::of_process())};
  Api api;
  std::string error;

  Loaded() {
    if (!library.is_open()) {
      error =
          "NVRTC was not found; install the CUDA toolkit (12.3 or newer) or `pip install "
          "nvidia-cuda-nvrtc-cu12`, or set CUDA_HOME, or NAUTILUS_NVRTC to the file: " +
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
    load(api.ptx_size, "nvrtcGetPTXSize");
    load(api.ptx, "nvrtcGetPTX");
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

namespace {

// A translation unit in NVRTC, compiled unless `error` says otherwise.
class Compilation {
 public:
  Compilation(const std::string& source, const std::string& file_name,
              const std::vector<std::string>& options, std::string* error) {
    const Loaded& l = loaded();
    if (!l.error.empty()) {
      *error = l.error;
      return;
    }
    if (const int status =
            l.api.create(&program_, source.c_str(), file_name.c_str(), 0, nullptr, nullptr)) {
      *error = fmt::format("NVRTC: {}", l.api.error_string(status));
      return;
    }
    std::vector<const char*> words;
    for (const std::string& o : options) words.push_back(o.c_str());
    const int status = l.api.compile(program_, static_cast<int>(words.size()), words.data());
    log_ = log_of(l.api, program_);
    is_ok_ = status == 0;
    if (!is_ok_) *error = fmt::format("{}: {}\n{}", file_name, l.api.error_string(status), log_);
  }
  ~Compilation() {
    if (program_) loaded().api.destroy(&program_);
  }
  Compilation(const Compilation&) = delete;
  Compilation& operator=(const Compilation&) = delete;

  bool is_ok() const { return is_ok_; }
  const std::string& log() const { return log_; }

  // What one of NVRTC's pairs of functions gives; empty if there is nothing.
  std::string result(int (*size_of)(Program, size_t*), int (*get)(Program, char*)) const {
    size_t size = 0;
    if (size_of(program_, &size) != 0) return "";
    std::string out(size, '\0');
    if (size == 0 || get(program_, out.data()) != 0) return "";
    return out;
  }

 private:
  Program program_ = nullptr;
  std::string log_;
  bool is_ok_ = false;
};

std::vector<std::string> common_options(const std::string& architecture) {
  std::vector<std::string> all = {"--gpu-architecture=" + architecture, "--std=c++17"};
  // NVRTC's own cache returns machine code without the assembler's report, which decides whether a
  // kernel is accepted.
  std::string ignored;
  const auto info = nvrtc_info(&ignored);
  if (info && (info->major > 12 || (info->major == 12 && info->minor >= 9)))
    all.emplace_back("--no-cache");
  return all;
}

}  // namespace

std::optional<CompiledKernel> compile_cuda(const std::string& source, const std::string& file_name,
                                           const std::string& architecture,
                                           const std::vector<std::string>& options,
                                           std::string* error) {
  std::vector<std::string> all = common_options(architecture);
  all.emplace_back("--ptxas-options=-v");
  all.insert(all.end(), options.begin(), options.end());
  const Compilation unit(source, file_name, all, error);
  if (!unit.is_ok()) return std::nullopt;
  const Api& api = loaded().api;
  CompiledKernel result{unit.result(api.cubin_size, api.cubin), unit.log(), {}};
  if (result.cubin.empty()) {
    *error = fmt::format("NVRTC made no machine code for {}; is it an `sm_` architecture?",
                         architecture);
    return std::nullopt;
  }
  result.report = parse_ptxas_report(result.log);
  return result;
}

std::optional<std::string> compile_ptx(const std::string& source, const std::string& file_name,
                                       const std::string& architecture, std::string* error) {
  const std::string number = architecture.substr(architecture.find('_') + 1);
  const Compilation unit(source, file_name, common_options("compute_" + number), error);
  if (!unit.is_ok()) return std::nullopt;
  std::string text = unit.result(loaded().api.ptx_size, loaded().api.ptx);
  while (!text.empty() && text.back() == '\0') text.pop_back();
  if (!text.empty()) return text;
  *error = fmt::format("NVRTC made no assembler text for {}", architecture);
  return std::nullopt;
}

}  // namespace nautilus::runtime
