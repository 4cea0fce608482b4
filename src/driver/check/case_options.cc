// SPDX-License-Identifier: Apache-2.0
#include "driver/check/case_options.h"

#include <fmt/format.h>

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

ScheduleEdit taken_schedule_edit(std::map<std::string, std::string>& options) {
  const auto taken = [&](const char* name) {
    const auto node = options.extract(name);
    return node.empty() ? std::string() : node.mapped();
  };
  return {taken("split"), taken("combine"), taken("reference")};
}

}  // namespace nautilus::driver
