// SPDX-License-Identifier: Apache-2.0
#include "lsp/framing.h"

#include <gtest/gtest.h>

namespace nautilus::lsp {
namespace {

TEST(LspFraming, PutsPiecesTogether) {
  const std::string stream = framed("{\"a\":1}") + framed("{}");
  Framing framing;
  std::vector<std::string> got;
  for (const char c : stream) {
    framing.feed({&c, 1});
    while (auto message = framing.next()) got.push_back(*message);
  }
  EXPECT_EQ(got, (std::vector<std::string>{"{\"a\":1}", "{}"}));
}

TEST(LspFraming, GoesOnBehindADamagedHead) {
  Framing framing;
  framing.feed("Content-Length: much\r\n\r\n" + framed("{}"));
  EXPECT_EQ(framing.next(), "");
  EXPECT_EQ(framing.next(), "{}");
  EXPECT_FALSE(framing.next());
}

TEST(LspFraming, TakesOtherHeadLines) {
  Framing framing;
  framing.feed("Content-Type: application/vscode-jsonrpc\r\ncontent-length:2\r\n\r\n{}");
  EXPECT_EQ(framing.next(), "{}");
}

}  // namespace
}  // namespace nautilus::lsp
