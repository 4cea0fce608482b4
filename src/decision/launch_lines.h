// SPDX-License-Identifier: Apache-2.0
// Lines about the text of a kernel as a whole. Passes over all kernels of a program read them, when
// it is known which kernels run before it: earlier passes leave them in the kernel's list.
#pragma once

#include "decision/shared_words.h"
#include "ir/op.h"

namespace nautilus::decision {

struct Begin {
  static constexpr std::string_view kFormat = "begin $moment{ $by}";
  static constexpr std::string_view kDoc =
      "A kernel with others in front of it. early: its CTAs start as soon as there is room and "
      "wait for the results of the others. late: it starts when the others have ended.";
  Moment moment = Moment::Early;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("moment", s.moment);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

enum class ReadOrder : uint8_t { Free, Ordered };
const std::vector<std::string_view>& words(ReadOrder);

struct Reads {
  static constexpr std::string_view kFormat = "reads $order{ $by}";
  static constexpr std::string_view kDoc =
      "Reads of global memory by threads. free: the compiler of the text may move them, by the way "
      "for constant data. ordered: they stay where the text has them, which takes fewer registers.";
  ReadOrder order = ReadOrder::Free;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("order", s.order);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Chains {
  static constexpr std::string_view kFormat = "chains $count{ $by}";
  static constexpr std::string_view kDoc =
      "Forms tile and rows: partial results of a thread's part of a reduction. More of them wait "
      "less for each other and take more registers.";
  ir::OptionalInt count;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("count", s.count);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

}  // namespace nautilus::decision
