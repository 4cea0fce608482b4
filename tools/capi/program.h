// SPDX-License-Identifier: Apache-2.0
// What stands behind nautilus_program: the program that was opened and, once they are asked for,
// its kernels.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "driver/kernels/stored_kernels.h"
#include "driver/load/load.h"
#include "driver/load/signature.h"
#include "emit/emit.h"
#include "failure.h"
#include "plan/edited_sources.h"
#include "plan/prepared.h"

namespace nautilus::capi {

// What nautilus_open was told, with texts of its own.
struct OpenRequest {
  uint32_t flags = 0;
  std::string name;  // of the text, for messages
  std::string text;
  std::string sizes;
  std::optional<std::string> schedule;
  std::optional<std::string> target;
  std::optional<std::string> database;
  std::optional<std::string> cuda_source;
};

// A program as kernels. Never changed once it is there.
struct Lowered {
  driver::Kernels kernels;
  std::optional<std::string> schedule;  // that was given, or that trials say is best
  std::string note;                     // where it comes from
  std::vector<emit::KernelText> texts;
  std::vector<std::string> sources;  // CUDA files, by kernel
  std::vector<std::string> forms;    // by kernel
  plan::EditedSources edited;
  std::unique_ptr<plan::Prepared> plan;
};

struct State {
  OpenRequest request;
  driver::Unit unit;
  std::optional<ir::Program> loaded;
  driver::Signature signature;
  std::vector<std::vector<const char*>> dims;  // of the signature's tensors, for callers
  // Its tensors, sizes and scalars as a plan that launches nothing: shapes are solved by it.
  std::optional<ir::Program> frame_program;
  std::unique_ptr<plan::Prepared> sizing;
  std::string warnings;

  // Of what follows, and of the unit, whose expressions every pass adds to.
  std::mutex mutex;
  std::unique_ptr<Lowered> lowered;
  std::map<int, std::string> texts;  // by nautilus_text_kind
  std::string broken;                // the report of a failed check; empty: all is well
};

// Messages that came since there were `before` of them.
std::string messages_since(const driver::Unit& unit, size_t before);

// Does the work under the state's lock, on a thread whose failed checks come back as a failure. The
// work must own what it touches besides the state: after a failed check it is never ended, and the
// state is kept for ever.
Failure with_state(const std::shared_ptr<State>& state, const char* what,
                   std::function<Failure(State&)> work);

// Parses and checks; the state is new. Then everything of it up to the lock is set.
Failure load(State& state);
// The kernels, if they are not there yet. For work of with_state.
Failure lower(State& state);
// The same for a caller without the lock; the result lives as long as the state.
Failure lowered_of(const std::shared_ptr<State>& state, const Lowered** lowered);

// If set, called at the beginning of each such work: for tests, which break a check in it.
extern void (*test_hook)();

}  // namespace nautilus::capi

struct nautilus_program {
  std::shared_ptr<nautilus::capi::State> state;
};
