// SPDX-License-Identifier: Apache-2.0
#include "driver/check/case_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/parse.h"

namespace nautilus::driver {

bool read_request(const ir::Program& program, const std::map<std::string, std::string>& options,
                  RunRequest& out, std::string& error) {
  for (const auto& [name, text] : options) {
    const ir::Param* param = nullptr;
    for (const ir::Op& op : program.body) {
      if (op.is<ir::Param>() && op.as<ir::Param>().name.str() == name) param = &op.as<ir::Param>();
    }
    if (name == "inputs") {
      if (text != "exact" && text != "normal") {
        error = fmt::format("inputs are `normal` or `exact`, not `{}`", text);
        return false;
      }
      out.inputs = text == "exact" ? spec::InputKind::Exact : spec::InputKind::Normal;
      continue;
    }
    const auto value = ir::parse_scalar(text, param ? param->dtype : expr::DType::I64, &error);
    if (!value) {
      error = fmt::format("`{}`: {}", name, error);
      return false;
    }
    if (name == "seed") {
      out.seed = static_cast<uint64_t>(value->i);
    } else if (name == "idle_limit") {
      out.idle_limit = value->i;
    } else if (name == "unjudged") {
      out.must_judge = value->i == 0;
    } else if (param) {
      out.given.scalars.emplace(name, *value);
    } else {
      out.given.sizes.emplace(name, value->i);
    }
  }
  return true;
}

std::vector<std::map<std::string, std::string>> options_of_runs(
    const std::map<std::string, std::string>& options) {
  std::vector<std::map<std::string, std::string>> out;
  for (size_t run = 0, runs = 1; run < runs; ++run) {
    out.emplace_back();
    for (const auto& [name, list] : options) {
      const size_t values = 1 + static_cast<size_t>(std::count(list.begin(), list.end(), ','));
      runs = std::max(runs, values);
      size_t begin = 0;
      for (size_t k = 0; k < std::min(run, values - 1); ++k) begin = list.find(',', begin) + 1;
      out.back().emplace(name, list.substr(begin, list.find(',', begin) - begin));
    }
  }
  return out;
}

ScheduleEdit taken_schedule_edit(std::map<std::string, std::string>& options) {
  const auto taken = [&](const char* name) {
    const auto node = options.extract(name);
    return node.empty() ? std::string() : node.mapped();
  };
  return {taken("split"), taken("combine"), taken("reference")};
}

}  // namespace nautilus::driver
