// SPDX-License-Identifier: Apache-2.0
// Rejections of expressions in which running and streamed values meet.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "algebra/outcome.h"
#include "expr/print.h"

namespace nautilus::algebra {

inline Rejection mixed(std::string code, std::string_view what, expr::Expr node) {
  return {std::move(code), fmt::format("{}: `{}`", what, expr::to_string(node))};
}

}  // namespace nautilus::algebra
