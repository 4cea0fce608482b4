// SPDX-License-Identifier: Apache-2.0
// The state of a role at one of its ops: products in flight with the slots and registers they read,
// slots held of each ring, turns entered, tiles that have a value. The rules of verify_flow follow
// it from op to op.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "matile/verify/verify_rules.h"

namespace nautilus::matile {

// A product that was issued and not waited for: a group of matrix instructions.
struct IssuedProduct {
  std::string acc;
  std::string a_tile;                              // empty: from shared memory
  std::vector<std::pair<std::string, int>> slots;  // ring, how many gets before the newest
  friend bool operator==(const IssuedProduct&, const IssuedProduct&) = default;
};

struct FlowState {
  std::deque<IssuedProduct> pending;  // oldest first
  std::map<std::string, int> held;    // slots of a ring
  std::set<std::string> entered;
  std::set<std::string> has_value;  // tiles that were written

  // What a loop's iterations must agree on.
  bool same_flight(const FlowState& other) const {
    return pending == other.pending && held == other.held && entered == other.entered;
  }
};

// The state of a walk, and where it is.
struct FlowContext {
  const Resources& resources;
  diag::Sink& sink;
  RoleTiles tiles;
  FlowState state = {};
  diag::Span span = {};  // of the current op

  void fail(std::string message) { sink.report(diag::Code::NotVerified, span, std::move(message)); }
};

}  // namespace nautilus::matile
