// SPDX-License-Identifier: Apache-2.0
#include "lsp/server.h"

#include "lsp/json_access.h"
#include "lsp/replies.h"

namespace nautilus::lsp {
namespace {

using nlohmann::json;

// Of JSON-RPC and of the protocol.
constexpr int kParseError = -32700;
constexpr int kInvalidRequest = -32600;
constexpr int kMethodNotFound = -32601;
constexpr int kInvalidParams = -32602;
constexpr int kNotInitialised = -32002;
constexpr int kCancelled = -32800;

json failure(const json& id, int code, const std::string& message) {
  return {{"jsonrpc", "2.0"}, {"id", id}, {"error", {{"code", code}, {"message", message}}}};
}

bool is_id(const json& id) { return id.is_string() || id.is_number_integer(); }

// A failed request, in place of its result.
json refusal(int code, const std::string& message) {
  return {{"refused", code}, {"message", message}};
}

std::string uri_in(const json& params) {
  const json* document = member(params, "textDocument");
  return document ? text_in(*document, "uri") : "";
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// For names only; documents are never read from files.
std::string path_of_uri(std::string_view uri) {
  constexpr std::string_view kScheme = "file://";
  if (uri.starts_with(kScheme)) uri.remove_prefix(kScheme.size());
  std::string path;
  for (size_t i = 0; i < uri.size(); ++i) {
    const bool is_escape = uri[i] == '%' && i + 2 < uri.size() && hex_digit(uri[i + 1]) >= 0 &&
                           hex_digit(uri[i + 2]) >= 0;
    path +=
        is_escape ? static_cast<char>(hex_digit(uri[i + 1]) * 16 + hex_digit(uri[i + 2])) : uri[i];
    if (is_escape) i += 2;
  }
  return path;
}

json capabilities() {
  return {{"capabilities",
           {{"positionEncoding", "utf-16"},
            {"textDocumentSync", {{"openClose", true}, {"change", 1}}},  // 1: whole texts
            {"hoverProvider", true},
            {"definitionProvider", true},
            {"documentSymbolProvider", true}}},
          {"serverInfo", {{"name", "nautilus"}, {"version", NAUTILUS_VERSION}}}};
}

}  // namespace

json cancelled_id(const json& j) {
  const json* params = member(j, "params");
  if (text_in(j, "method") != "$/cancelRequest" || !params) return nullptr;
  const json* id = member(*params, "id");
  return id && is_id(*id) ? *id : json();
}

json request_id(const json& j) {
  const json* id = member(j, "id");
  return id && is_id(*id) && member(j, "method") ? *id : json();
}

std::vector<json> Server::handle(const json& j, bool is_cancelled) {
  std::vector<json> out;
  if (j.is_discarded()) return {failure(nullptr, kParseError, "the message is no JSON")};
  const json* id = member(j, "id");
  const auto method = maybe_text(j, "method");
  if (!method) {
    // An answer of the client; we ask it nothing.
    if (id && (member(j, "result") || member(j, "error"))) return {};
    return {failure(id && is_id(*id) ? *id : json(), kInvalidRequest, "the message has no method")};
  }
  const json nothing = json::object();
  const json* given = member(j, "params");
  const json& params = given ? *given : nothing;
  if (!id) {
    notify(*method, params, out);
    return out;
  }
  if (!is_id(*id)) return {failure(nullptr, kInvalidRequest, "the id is neither text nor integer")};
  if (is_cancelled) return {failure(*id, kCancelled, "the request was taken back")};
  if (!is_initialised_ && *method != "initialize")
    return {failure(*id, kNotInitialised, "`initialize` comes first")};
  if (is_shut_down_) return {failure(*id, kInvalidRequest, "the server is shut down")};
  const json result = request(*method, params, out);
  if (const auto code = integer_in(result, "refused"))
    out.push_back(failure(*id, static_cast<int>(*code), text_in(result, "message")));
  else
    out.push_back({{"jsonrpc", "2.0"}, {"id", *id}, {"result", result}});
  return out;
}

json Server::request(const std::string& method, const json& params, std::vector<json>& out) {
  if (method == "initialize") {
    if (is_initialised_) return refusal(kInvalidRequest, "`initialize` came before");
    is_initialised_ = true;
    return capabilities();
  }
  if (method == "shutdown") {
    is_shut_down_ = true;
    return nullptr;
  }
  const bool is_hover = method == "textDocument/hover";
  const bool is_definition = method == "textDocument/definition";
  const bool is_symbols = method == "textDocument/documentSymbol";
  if (!is_hover && !is_definition && !is_symbols)
    return refusal(kMethodNotFound, "there is no method `" + method + "`");
  const std::string uri = uri_in(params);
  const auto document = documents_.find(uri);
  if (document == documents_.end()) return refusal(kInvalidParams, "`" + uri + "` is not open");
  refresh(uri, document->second, out);
  const LineTable lines(document->second.text);
  if (is_symbols) return symbols_json(document->second.analysis, lines);
  const json* at = member(params, "position");
  const auto line = at ? integer_in(*at, "line") : std::nullopt;
  const auto character = at ? integer_in(*at, "character") : std::nullopt;
  if (!line || !character) return refusal(kInvalidParams, "the request has no position");
  const Position position{*line, *character};
  return is_hover ? hover_json(document->second.analysis, position, lines)
                  : definition_json(document->second.analysis, position, uri, lines);
}

void Server::notify(const std::string& method, const json& params, std::vector<json>& out) {
  if (method == "exit") is_over_ = true;
  if (!is_initialised_ || is_shut_down_) return;
  if (method == "textDocument/didOpen") open_document(params);
  if (method == "textDocument/didChange") change_document(params);
  if (method == "textDocument/didClose") close_document(params, out);
}

void Server::open_document(const json& params) {
  const json* item = member(params, "textDocument");
  const auto uri = item ? maybe_text(*item, "uri") : std::nullopt;
  const auto text = item ? maybe_text(*item, "text") : std::nullopt;
  if (!uri || !text) return;
  const json* version = member(*item, "version");
  documents_[*uri] = {*text, version ? *version : json(), {}, true};
}

void Server::change_document(const json& params) {
  const json* item = member(params, "textDocument");
  const json* changes = member(params, "contentChanges");
  const auto document = documents_.find(uri_in(params));
  if (!changes || !changes->is_array() || document == documents_.end()) return;
  Document& d = document->second;
  for (const json& change : *changes) {
    // The server asks for whole texts; a change with a range is ignored instead of being mistaken
    // for the whole text.
    const auto text = maybe_text(change, "text");
    if (text && !member(change, "range")) d.text = *text;
  }
  const json* version = member(*item, "version");
  if (version) d.version = *version;
  d.is_stale = true;
}

void Server::close_document(const json& params, std::vector<json>& out) {
  const std::string uri = uri_in(params);
  if (documents_.erase(uri) == 0) return;
  out.push_back({{"jsonrpc", "2.0"},
                 {"method", "textDocument/publishDiagnostics"},
                 {"params", {{"uri", uri}, {"diagnostics", json::array()}}}});
}

void Server::refresh(const std::string& uri, Document& d, std::vector<json>& out) {
  if (!d.is_stale) return;
  d.is_stale = false;
  d.analysis = analyser_(path_of_uri(uri), d.text);
  json params = {{"uri", uri},
                 {"diagnostics", diagnostics_json(d.analysis, uri, LineTable(d.text))}};
  if (d.version.is_number_integer()) params["version"] = d.version;
  out.push_back(
      {{"jsonrpc", "2.0"}, {"method", "textDocument/publishDiagnostics"}, {"params", params}});
}

std::vector<json> Server::idle() {
  std::vector<json> out;
  for (auto& [uri, document] : documents_) refresh(uri, document, out);
  return out;
}

}  // namespace nautilus::lsp
