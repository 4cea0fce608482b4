// SPDX-License-Identifier: Apache-2.0
// Indented lines of C++ text.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace nautilus::emit {

class Writer {
 public:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    text_.append(static_cast<size_t>(indent_), ' ');
    // Not format_to, which would compile all of fmt into every file that writes lines.
    text_ += fmt::vformat(fmt::string_view(format), fmt::make_format_args(args...));
    text_ += '\n';
  }
  template <class... Args>
  void open(fmt::format_string<Args...> format, Args&&... args) {
    line(format, std::forward<Args>(args)...);
    indent_ += 2;
  }
  void close(std::string_view text = "}") {
    indent_ -= 2;
    line("{}", text);
  }
  void open_else() {
    close("} else {");
    indent_ += 2;
  }
  void indent(int by) { indent_ += by; }
  void blank() { text_ += '\n'; }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
  int indent_ = 0;
};

}  // namespace nautilus::emit
