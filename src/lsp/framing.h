// SPDX-License-Identifier: Apache-2.0
// Messages of the protocol in a stream of bytes: `Content-Length: N`, an empty line, N bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace nautilus::lsp {

class Framing {
 public:
  void feed(std::string_view bytes) { buffer_ += bytes; }
  // The next whole message, or nothing until there are more bytes. A head without a usable length
  // is skipped and gives an empty message. That is not JSON, so it is answered with an error, and
  // reading continues.
  std::optional<std::string> next();

 private:
  std::string buffer_;
};

std::string framed(std::string_view message);

}  // namespace nautilus::lsp
