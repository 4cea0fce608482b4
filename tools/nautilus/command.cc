// SPDX-License-Identifier: Apache-2.0
#include "command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "diag/render.h"
#include "driver/kernels/given_schedule.h"
#include "driver/kernels/stored_kernels.h"
#include "driver/load/tensor_text.h"
#include "matile/ops.h"
#include "spec/ops.h"
#include "target/target.h"
#include "tune/records/near_best.h"
#include "tune/records/tuned_plan.h"

namespace nautilus::tool {

void usage_error(const std::string& message) { fmt::print(stderr, "nautilus: {}\n", message); }

void print_messages(const driver::Unit& unit) {
  if (unit.sink.all().empty()) return;
  const bool colour = isatty(STDERR_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
  fmt::print(stderr, "{}", diag::render_all(unit.sink, colour));
}

std::string messages_json(const driver::Unit& unit) {
  nlohmann::json list = nlohmann::json::array();
  for (const diag::Diagnostic& d : unit.sink.all()) {
    auto place = [&](const diag::Label& l) {
      nlohmann::json j = {{"label", l.text}};
      if (l.span.is_known()) {
        const auto begin = unit.sources.place(l.span.file, l.span.begin);
        const auto end = unit.sources.place(l.span.file, l.span.end);
        j["file"] = unit.sources.path(l.span.file);
        j["line"] = begin.line;
        j["column"] = begin.column;
        j["end_line"] = end.line;
        j["end_column"] = end.column;
      }
      return j;
    };
    nlohmann::json j = {{"code", diag::info(d.code).number},
                        {"severity", d.is_error() ? "error" : "warning"},
                        {"message", d.message},
                        {"primary", place(d.primary)},
                        {"secondary", nlohmann::json::array()},
                        {"help", d.help}};
    for (const diag::Label& l : d.secondary) j["secondary"].push_back(place(l));
    list.push_back(j);
  }
  // Program text may stand in a message; bytes that are no UTF-8 are replaced, not refused.
  return list.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

bool choose_target(const std::string& name, driver::Unit& unit) {
  if (name.empty()) return true;
  unit.target = target::find_target(name);
  if (unit.target) return true;
  std::string known;
  for (const target::Target* t : target::targets())
    known += fmt::format("{}`{}`", known.empty() ? "" : ", ", t->name);
  usage_error(fmt::format("there is no target `{}`; known are {}", name, known));
  return false;
}

std::optional<ir::Program> load_file(const std::string& path,
                                     const std::map<std::string, int64_t>& statics,
                                     driver::Unit& unit, int& exit_code) {
  std::string error;
  auto text = base::read_file(path, &error);
  if (!text) {
    if (is_pair(path)) error += ", or write several sizes as one word, --shape M=512,N=512";
    usage_error(error);
    exit_code = kUsageError;
    return std::nullopt;
  }
  auto program = driver::load_text(path, std::move(*text), statics, unit);
  if (!program) exit_code = kProgramError;
  return program;
}

NamedFile named_file(const std::string& text) {
  const size_t equals = text.find('=');
  std::error_code ignored;
  if (equals == std::string::npos || std::filesystem::exists(text, ignored)) return {"", text};
  return {text.substr(0, equals), text.substr(equals + 1)};
}

namespace {

std::vector<std::string> kernel_names(const ir::Program& program) {
  std::vector<std::string> out;
  for (const ir::Op& op : program.body) {
    if (const auto* k = op.get<matile::Kernel>()) out.emplace_back(k->name.str());
  }
  return out;
}

}  // namespace

std::optional<std::string> read_schedule(const std::vector<std::string>& files,
                                         const ir::Program& loaded, driver::Unit& unit,
                                         int& exit_code) {
  std::vector<driver::GivenSchedule> given;
  std::string error;
  for (const std::string& file : files) {
    const NamedFile named = named_file(file);
    auto text = base::read_file(named.path, &error);
    if (!text) {
      usage_error(error);
      exit_code = kUsageError;
      return std::nullopt;
    }
    given.push_back({named.path, named.name, std::move(*text)});
  }
  if (given.empty()) return "";
  auto text = driver::join_schedules(given, loaded, unit, &error);
  if (text) return text;
  fmt::print(stderr, "nautilus: {}\n", error);
  exit_code = kProgramError;
  return std::nullopt;
}

namespace {

// What trials say is best, the user's or those that come with the compiler: for several tuned sizes
// a choice by the sizes of the launch, for one its winner where it has the sizes of the hints or
// sizes near them.
std::optional<std::string> tuned_schedule(const ir::Program& loaded) {
  if (loaded.level->name != "spec") return std::nullopt;
  const std::string path = tune::default_database();
  std::string error;
  if (const auto plan = tune::tuned_plan_of(loaded, path, &error)) {
    fmt::print(stderr,
               "nautilus: the schedules are the best for {} sizes that were tuned on {}; a launch "
               "takes that of the nearest ({})\n",
               plan->shapes, plan->machine, path);
    return plan->schedule;
  }
  const auto best = error.empty() ? tune::best_of(loaded, path, &error) : std::nullopt;
  const auto near =
      error.empty() && !best ? tune::near_best_of(loaded, path, &error) : std::nullopt;
  if (!error.empty()) fmt::print(stderr, "nautilus: no tuned schedules: {}\n", error);
  if (best) {
    fmt::print(stderr, "nautilus: {}\n", tune::note(*best));
    return best->winner.schedule;
  }
  if (!near) return std::nullopt;
  fmt::print(stderr, "nautilus: {}\n", tune::note(*near));
  return near->is_used() ? std::optional(near->best.winner.schedule) : std::nullopt;
}

}  // namespace

void report_schedule(const std::vector<std::string>& files, const std::string& error,
                     driver::Unit& unit) {
  unit.sink.report(diag::Code::DecisionRefused, {},
                   files.empty() ? error : fmt::format("{}: {}", fmt::join(files, ", "), error));
}

std::optional<driver::Kernels> make_kernels(const ir::Program& loaded,
                                            const std::vector<std::string>& schedule_files,
                                            ir::PassTrace* trace, driver::Unit& unit,
                                            int& exit_code, Reuse reuse) {
  const auto schedule = read_schedule(schedule_files, loaded, unit, exit_code);
  if (!schedule) return std::nullopt;
  std::string error;
  driver::KernelRequest request{.schedule = {}, .trace = trace};
  if (!schedule_files.empty())
    request.schedule = schedule;
  else if (const auto best = tuned_schedule(loaded))
    request.schedule = best;
  auto kernels = reuse == Reuse::Cached
                     ? driver::stored_kernels(loaded, request, runtime::KernelCache(), unit, &error)
                     : driver::make_kernels(loaded, request, unit, &error);
  if (!error.empty()) report_schedule(schedule_files, error, unit);
  if (!kernels) exit_code = kProgramError;
  return kernels;
}

std::optional<ir::Program> kernels_of(const ir::Program& loaded,
                                      const std::vector<std::string>& schedule_files,
                                      driver::Unit& unit, int& exit_code, Reuse reuse) {
  auto kernels = make_kernels(loaded, schedule_files, nullptr, unit, exit_code, reuse);
  return kernels ? std::optional(std::move(kernels->program)) : std::nullopt;
}

bool is_pair(std::string_view word) {
  const size_t equals = word.find('=');
  if (equals == 0 || equals == std::string_view::npos || equals + 1 == word.size()) return false;
  const auto is_word = [](char c) {
    return c == '_' || std::isalnum(static_cast<unsigned char>(c));
  };
  return std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals), is_word) &&
         std::isdigit(static_cast<unsigned char>(word[equals + 1]));
}

bool parse_pairs(const std::vector<std::string>& texts, std::map<std::string, std::string>& out) {
  for (const std::string& text : texts) {
    size_t begin = 0;
    while (begin <= text.size()) {
      const size_t end = std::min(text.find(',', begin), text.size());
      const std::string pair = text.substr(begin, end - begin);
      const size_t equals = pair.find('=');
      if (equals == 0 || equals == std::string::npos || equals + 1 == pair.size()) {
        usage_error(fmt::format("`{}` is not of the form NAME=VALUE", pair));
        return false;
      }
      if (!out.emplace(pair.substr(0, equals), pair.substr(equals + 1)).second) {
        usage_error(fmt::format("`{}` is given twice", pair.substr(0, equals)));
        return false;
      }
      begin = end + 1;
    }
  }
  return true;
}

bool parse_sizes(const std::vector<std::string>& texts, std::map<std::string, int64_t>& out) {
  std::map<std::string, std::string> pairs;
  if (!parse_pairs(texts, pairs)) return false;
  for (const auto& [name, text] : pairs) {
    int64_t value = 0;
    const auto r = std::from_chars(text.data(), text.data() + text.size(), value);
    if (r.ec != std::errc() || r.ptr != text.data() + text.size() || value < 0) {
      usage_error(fmt::format("the size `{}={}` is not a number from 0", name, text));
      return false;
    }
    out.emplace(name, value);
  }
  return true;
}

bool read_sources(const std::vector<std::string>& texts, const ir::Program& program,
                  plan::EditedSources& out) {
  std::string error;
  for (const std::string& text : texts) {
    const NamedFile named = named_file(text);
    auto content = base::read_file(named.path, &error);
    if (!content) {
      usage_error(error);
      return false;
    }
    out.push_back({named.name, named.path, std::move(*content)});
  }
  if (plan::assign_sources(kernel_names(program), out, &error)) return true;
  usage_error(error);
  return false;
}

std::string sources_report(const ir::Program& program, const plan::EditedSources& sources) {
  std::string ignored;  // was said when they were read
  std::string out;
  const auto assigned = plan::assign_sources(kernel_names(program), sources, &ignored);
  if (!assigned) return out;
  for (const auto& [kernel, source] : *assigned)
    out += fmt::format("  {} is the one of {}\n", kernel, source->path);
  return out;
}

bool read_scalars(const ir::Program& program, const std::vector<std::string>& texts,
                  ir::Environment& out) {
  std::map<std::string, std::string> pairs;
  if (!parse_pairs(texts, pairs)) return false;
  for (const auto& [name, text] : pairs) {
    const ir::Param* param = nullptr;
    for (const ir::Op& op : program.body) {
      const auto* p = op.get<ir::Param>();
      if (p && p->name.str() == name) param = p;
    }
    std::string error = fmt::format("the program has no scalar `{}`", name);
    const auto value = param ? ir::parse_scalar(text, param->dtype, &error) : std::nullopt;
    if (!value) {
      usage_error(param ? fmt::format("scalar `{}`: {}", name, error) : error);
      return false;
    }
    out.scalars.emplace(name, *value);
  }
  return true;
}

std::optional<expr::Tensor> read_tensor(const std::string& name, const std::string& path,
                                        expr::DType dtype) {
  std::string error;
  const auto content = base::read_file(path, &error);
  const auto array = content ? base::read_npy(*content, &error) : std::nullopt;
  auto tensor = array ? driver::from_npy(*array, dtype, &error) : std::nullopt;
  if (!tensor) usage_error(fmt::format("`{}` from {}: {}", name, path, error));
  return tensor;
}

bool read_inputs(const ir::Program& program, const std::vector<std::string>& texts,
                 ir::Environment& out) {
  std::map<std::string, std::string> pairs;
  if (!parse_pairs(texts, pairs)) return false;
  std::map<std::string, ir::TensorType> types = matile::tensors(program, matile::TensorRole::Input);
  for (const ir::Op& op : program.body) {
    if (const auto* i = op.get<spec::Input>()) types.emplace(i->name.str(), i->type);
  }
  for (const auto& [name, path] : pairs) {
    const auto type = types.find(name);
    if (type == types.end()) {
      usage_error(fmt::format("the program has no input `{}`", name));
      return false;
    }
    auto tensor = read_tensor(name, path, type->second.dtype);
    if (!tensor) return false;
    out.tensors.emplace(name, std::move(*tensor));
  }
  return true;
}

bool write_tensor(const std::string& path, const expr::Tensor& tensor) {
  std::string error;
  if (base::write_file_atomic(path, base::write_npy(driver::to_npy(tensor)), &error)) return true;
  usage_error(error);
  return false;
}

}  // namespace nautilus::tool
