// SPDX-License-Identifier: Apache-2.0
// The language server without its stream: messages in, messages out.
//
// It holds the documents that are open. A change makes its document stale; a stale document is
// analysed when a request needs it, or when the client has sent nothing more (`idle`), so that fast
// typing costs one analysis instead of one for each letter.
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
  // `analyser` gets path and text. It must return: serve.h runs it in another process.
  using Analyser = std::function<Analysis(const std::string&, const std::string&)>;
  explicit Server(Analyser analyser) : analyser_(std::move(analyser)) {}

  // The answers to a message, which may be anything; a discarded value if it was not JSON.
  // `is_cancelled`: the client has cancelled the request since.
  std::vector<nlohmann::json> handle(const nlohmann::json& message, bool is_cancelled = false);
  // The messages to send before waiting for the next one.
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
  // Analyses the document if it is stale, and sends the results.
  void refresh(const std::string& uri, Document& document, std::vector<nlohmann::json>& out);

  Analyser analyser_;
  std::map<std::string, Document> documents_;
  bool is_initialised_ = false;
  bool is_shut_down_ = false;
  bool is_over_ = false;
};

// The id of the request that a message cancels; null if it cancels none.
nlohmann::json cancelled_id(const nlohmann::json& message);
// The id of a request; null for other messages.
nlohmann::json request_id(const nlohmann::json& message);

}  // namespace nautilus::lsp
