// SPDX-License-Identifier: Apache-2.0
#include "lsp/serve.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>

#include "lsp/framing.h"
#include "lsp/isolated.h"
#include "lsp/server.h"

namespace nautilus::lsp {
namespace {

// A program takes milliseconds; an analysis that takes longer than this is useless while typing.
constexpr double kSeconds = 10;

Analysis analyse_isolated(const std::string& path, const std::string& text) {
  const auto work = [&] {
    return to_json(analyse(path, text))
        .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  };
  const IsolatedResult result = run_isolated(work, kSeconds);
  if (result.ok) {
    const auto json = nlohmann::json::parse(result.output, nullptr, false);
    if (auto analysis = analysis_from_json(json)) return std::move(*analysis);
  }
  Analysis failed;
  failed.findings.push_back({.code = "internal",
                             .is_error = true,
                             .range = {},
                             .message = "nautilus could not check this program: " + result.report,
                             .related = {}});
  return failed;
}

class Stream {
 public:
  Stream(int input, int output) : input_(input), output_(output) {}

  // The messages that have arrived; `waits`: waits for at least one.
  void read(bool waits, std::deque<nlohmann::json>& messages) {
    pollfd fd{input_, POLLIN, 0};
    while (!is_closed_ && (waits || ::poll(&fd, 1, 0) > 0)) {
      char buffer[65536];
      const ssize_t n = ::read(input_, buffer, sizeof buffer);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) {
        is_closed_ = true;
        break;
      }
      framing_.feed({buffer, static_cast<size_t>(n)});
      while (auto message = framing_.next()) {
        messages.push_back(nlohmann::json::parse(*message, nullptr, false));
        waits = false;
      }
    }
  }

  void write(const std::vector<nlohmann::json>& messages) {
    for (const nlohmann::json& m : messages) {
      const std::string text =
          framed(m.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
      for (size_t done = 0; done < text.size() && !is_gone_;) {
        const ssize_t n = ::write(output_, text.data() + done, text.size() - done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0)
          is_gone_ = true;
        else
          done += static_cast<size_t>(n);
      }
    }
  }

 private:
  int input_;
  int output_;
  Framing framing_;
  bool is_closed_ = false;  // no more messages come; answers may still be read
  bool is_gone_ = false;    // the client no longer reads answers
};

bool takes_back(const std::deque<nlohmann::json>& later, const nlohmann::json& id) {
  return !id.is_null() && std::any_of(later.begin(), later.end(), [&](const nlohmann::json& m) {
    return cancelled_id(m) == id;
  });
}

}  // namespace

int serve(int input, int output) {
  ::signal(SIGPIPE, SIG_IGN);  // a client that is gone is seen by the write that fails
  Server server(analyse_isolated);
  Stream stream(input, output);
  std::deque<nlohmann::json> messages;
  while (!server.is_over()) {
    stream.read(false, messages);
    if (messages.empty()) {
      stream.write(server.idle());
      stream.read(true, messages);
      if (messages.empty()) break;
      continue;
    }
    const nlohmann::json message = std::move(messages.front());
    messages.pop_front();
    stream.write(server.handle(message, takes_back(messages, request_id(message))));
  }
  return server.exit_status();
}

}  // namespace nautilus::lsp
