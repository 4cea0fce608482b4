// SPDX-License-Identifier: Apache-2.0
// The language server without its stream: messages in, messages out.
//
// It holds the documents that are open. A change makes its document stale; a stale document is
// looked at when somebody asks about it, or when the client has nothing more to say (`idle`), so
// that fast typing costs one look, not one for each letter.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lsp/analysis.h"

namespace nautilus::lsp {

class Server {
 public:
  // `analyser` gets path and text. It must come back: serve.h has it work in another process.
  using Analyser = std::function<Analysis(const std::string&, const std::string&)>;
  explicit Server(Analyser analyser) : analyser_(std::move(analyser)) {}

  // What to send for a message, which may be anything at all; discarded if it was no JSON.
  // `is_cancelled`: a request that the client has taken back since.
  std::vector<nlohmann::json> handle(const nlohmann::json& message, bool is_cancelled = false);
  // What to send before waiting for the next message.
  std::vector<nlohmann::json> idle();

  // After `exit`: 0 if `shutdown` came before it.
  bool is_over() const { return is_over_; }
  int exit_status() const { return is_shut_down_ ? 0 : 1; }

 private:
  struct Document {
    std::string text;
    nlohmann::json version;
    Analysis analysis;
    bool is_stale = true;
  };

  nlohmann::json request(const std::string& method, const nlohmann::json& params,
                         std::vector<nlohmann::json>& out);
  void notify(const std::string& method, const nlohmann::json& params,
              std::vector<nlohmann::json>& out);
  void open_document(const nlohmann::json& params);
  void change_document(const nlohmann::json& params);
  void close_document(const nlohmann::json& params, std::vector<nlohmann::json>& out);
  // Looks at the document if it is stale, and says what was found.
  void refresh(const std::string& uri, Document& document, std::vector<nlohmann::json>& out);

  Analyser analyser_;
  std::map<std::string, Document> documents_;
  bool is_initialised_ = false;
  bool is_shut_down_ = false;
  bool is_over_ = false;
};

// The id of the request that a message takes back; null if it takes back none.
nlohmann::json cancelled_id(const nlohmann::json& message);
// The id of a request; null if it is none.
nlohmann::json request_id(const nlohmann::json& message);

}  // namespace nautilus::lsp
