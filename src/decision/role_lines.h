// SPDX-License-Identifier: Apache-2.0
// Lines about when the roles of a CTA do their work, and with how many registers.
#pragma once

#include "decision/shared_words.h"
#include "ir/op.h"

namespace nautilus::decision {

struct Registers {
  static constexpr std::string_view kFormat = "registers{ compute $compute}{ load $load}{ $by}";
  static constexpr std::string_view kDoc =
      "Registers of a thread of the warp groups that compute, and, form tile, of the loader warps; "
      "multiples of 8.";
  ir::OptionalInt compute;
  ir::OptionalInt load;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("compute", s.compute);
    f("load", s.load);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Turns {
  static constexpr std::string_view kFormat = "turns $use{ $by}";
  static constexpr std::string_view kDoc =
      "Form tile: warp groups that share a tile take turns at issuing their products.";
  Switch use = Switch::Off;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("use", s.use);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct InFlight {
  static constexpr std::string_view kFormat = "in_flight $products{ $by}";
  static constexpr std::string_view kDoc =
      "Form tile: products of earlier steps that may be under way when a step issues its own (0 or "
      "1).";
  ir::OptionalInt products;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("products", s.products);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Takes {
  static constexpr std::string_view kFormat = "takes $moment{ $by}";
  static constexpr std::string_view kDoc =
      "Form tile: tiles that element-wise work takes from shared memory are taken while products "
      "run (early), or where they are used (late).";
  Moment moment = Moment::Early;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("moment", s.moment);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Branches {
  static constexpr std::string_view kFormat = "branches $moment{ $by}";
  static constexpr std::string_view kDoc =
      "Form tile: rare branches of a step stand behind the work that does not need them (late), or "
      "where their value is computed (early).";
  Moment moment = Moment::Early;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("moment", s.moment);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Hoist {
  static constexpr std::string_view kFormat = "hoist $columns{ $by}";
  static constexpr std::string_view kDoc =
      "Form tile: work that depends on the column alone is done once for all rows in tiles of at "
      "most so many columns; 0: nowhere.";
  ir::OptionalInt columns;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("columns", s.columns);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

}  // namespace nautilus::decision
