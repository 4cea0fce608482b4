// SPDX-License-Identifier: Apache-2.0
#include "driver/load/load.h"

#include "compile/manager.h"
#include "ir/parse.h"
#include "ir/target_of.h"
#include "spec/language/elaborate.h"
#include "text/lexer.h"

namespace nautilus::driver {

bool is_ir_text(std::string_view text) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    line.remove_prefix(std::min(line.find_first_not_of(" \t\r"), line.size()));
    if (!line.empty() && line[0] != '#') {
      const std::string_view word = line.substr(0, line.find_first_of(" \t@"));
      return word.ends_with(".program");
    }
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return false;
}

std::optional<ir::Program> load_text(std::string path, std::string text,
                                     const std::map<std::string, int64_t>& statics, Unit& unit) {
  const bool is_ir = is_ir_text(text);
  const uint32_t file = unit.sources.add(std::move(path), std::move(text));
  auto program = is_ir ? ir::parse(file, levels(), unit.pool, unit.sink)
                       : spec::elaborate(file, {statics}, unit.pool, unit.sources, unit.sink);
  if (!program) return std::nullopt;
  if (unit.target) program = ir::with_target(std::move(*program), *unit.target, unit.pool);
  if (is_ir) {
    if (!verify(*program, unit.sink) || !compile::verify_after(*program, unit.sink))
      return std::nullopt;
  } else {
    const bool ok = verify(*program, unit.sink);
    NAUT_CHECK(ok, "the elaborated program does not verify: {}", unit.sink.all().back().message);
  }
  return program;
}

}  // namespace nautilus::driver
