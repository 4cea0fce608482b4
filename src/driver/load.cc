// SPDX-License-Identifier: Apache-2.0
#include "driver/load.h"

#include "ir/parse.h"
#include "matile/ops.h"
#include "scalar/ops.h"
#include "spec/elaborate.h"
#include "spec/ops.h"
#include "text/lexer.h"
#include "vrtile/ops.h"

namespace nautilus::driver {

const std::vector<const ir::Level*>& levels() {
  static const std::vector<const ir::Level*> all = {&spec::level(), &scalar::level(),
                                                    &vrtile::level(), &matile::level()};
  return all;
}

const ir::Level* find_level(std::string_view name) {
  for (const ir::Level* l : levels()) {
    if (l->name == name) return l;
  }
  return nullptr;
}

bool verify(const ir::Program& program, diag::Sink& sink) {
  if (program.level == &spec::level()) return spec::verify(program, sink);
  if (program.level == &scalar::level()) return scalar::verify(program, sink);
  if (program.level == &vrtile::level()) return vrtile::verify(program, sink);
  return matile::verify(program, sink);
}

namespace {

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

}  // namespace

std::optional<ir::Program> load_text(std::string path, std::string text,
                                     const std::map<std::string, int64_t>& statics, Unit& unit) {
  const bool is_ir = is_ir_text(text);
  const uint32_t file = unit.sources.add(std::move(path), std::move(text));
  auto program = is_ir ? ir::parse(file, levels(), unit.pool, unit.sink)
                       : spec::elaborate(file, {statics}, unit.pool, unit.sources, unit.sink);
  if (!program) return std::nullopt;
  if (is_ir) {
    if (!verify(*program, unit.sink)) return std::nullopt;
  } else {
    const bool ok = verify(*program, unit.sink);
    NAUT_CHECK(ok, "the elaborated program does not verify: {}", unit.sink.all().back().message);
  }
  return program;
}

}  // namespace nautilus::driver
