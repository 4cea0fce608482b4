// SPDX-License-Identifier: Apache-2.0
// A result, or the reason why there is none. A refusal is a value: the caller tries something else.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "base/check.h"

namespace nautilus::algebra {

struct Rejection {
  std::string code;     // one word: `mixed_exponent`
  std::string message;  // a sentence that names the offending node
};

template <class T>
class Outcome {
 public:
  Outcome(T value) : value_(std::move(value)) {}
  Outcome(Rejection rejection) : rejection_(std::move(rejection)) {}

  explicit operator bool() const { return value_.has_value(); }
  const T& operator*() const { return get(); }
  const T* operator->() const { return &get(); }
  T& operator*() { return const_cast<T&>(get()); }
  const Rejection& rejection() const { return rejection_; }

 private:
  const T& get() const {
    NAUT_CHECK(value_.has_value(), "a result was refused: {}", rejection_.message);
    return *value_;
  }
  std::optional<T> value_;
  Rejection rejection_;
};

}  // namespace nautilus::algebra
