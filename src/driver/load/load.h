// SPDX-License-Identifier: Apache-2.0
// From a file to a verified program, whatever its level.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compile/levels.h"
#include "compile/manager.h"
#include "compile/tile_trial.h"
#include "diag/diagnostic.h"
#include "ir/op.h"
#include "schedule/choose/memo.h"

namespace nautilus::target {
struct Target;
}

namespace nautilus::driver {

using compile::find_level;
using compile::levels;
using compile::verify;

// One unit of work: sources, messages and expressions with one lifetime.
struct Unit {
  diag::SourceMap sources;
  diag::Sink sink{sources};
  expr::ExprPool pool;
  // The target of programs; null: the one they declare, or the default.
  const target::Target* target = nullptr;
  // What lowering and scheduling found about programs of the pool.
  compile::LoweredForms forms;
  compile::TileTrials trials;
  schedule::ScheduleMemo memo;
};

// Whether a text is that of a level, `<level>.program`, and not of the math language.
bool is_ir_text(std::string_view text);

// A text of any level: IR text starts with `<level>.program`, everything else is the math language.
// `statics` overrides static sizes of the math language. The result is verified. Empty if something
// was reported.
std::optional<ir::Program> load_text(std::string path, std::string text,
                                     const std::map<std::string, int64_t>& statics, Unit& unit);

}  // namespace nautilus::driver
