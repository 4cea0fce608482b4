// SPDX-License-Identifier: Apache-2.0
// The correctness ladder: one program run at every level, with the results compared.
//
// definition = blocked evaluator = scalar interpreter, bit for bit; the scalar program in the
// declared dtypes within the error bounds. Later levels join here.
#pragma once

#include <optional>
#include <string>

#include "driver/load/load.h"
#include "ir/environment.h"
#include "spec/eval/judge.h"
#include "spec/eval/random_inputs.h"

namespace nautilus::driver {

struct RunRequest {
  ir::Environment given;  // sizes, scalars, tensors named by the caller
  spec::InputKind inputs = spec::InputKind::Normal;
  uint64_t seed = 1;
  // An output that is not judged counts as wrong. False for random programs.
  bool must_judge = true;
  int64_t idle_limit = 0;  // of the emulator (emulator.h), 0: its own
};

// Everything a run needs: sizes and scalars completed, missing inputs drawn. Empty if something was
// reported.
std::optional<ir::Environment> prepare(const ir::Program& program, const RunRequest& request,
                                       Unit& unit);

// The results of the oracle. If the request asks for it, outputs that bounds do not judge get
// sampled bounds. Empty if something was reported.
std::optional<spec::Results> oracle_results(const ir::Program& program, const ir::Environment& env,
                                            const RunRequest& request, Unit& unit);

// What is wrong with one output, for people; empty if the oracle accepts it.
std::string objection(const expr::Tensor& got, const spec::Result& want, const ir::Program& program,
                      const RunRequest& request);

// Runs the ladder. Returns the first disagreement as text, or an empty string; nothing if a
// diagnostic was reported.
std::optional<std::string> check_ladder(const ir::Program& program, const RunRequest& request,
                                        Unit& unit);

}  // namespace nautilus::driver
