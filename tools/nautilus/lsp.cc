// SPDX-License-Identifier: Apache-2.0
// nautilus lsp: the language server for editors.
#include <unistd.h>

#include "command.h"
#include "lsp/serve.h"

namespace nautilus::tool {

void add_lsp(CLI::App& app, int& exit_code) {
  CLI::App* c = app.add_subcommand(
      "lsp", "Serve an editor: messages, hovers and definitions over standard input and output");
  auto ignored = std::make_shared<bool>(false);
  c->add_flag("--stdio", *ignored, "what it does anyway; editors ask for it");
  c->footer("Example, in an editor's settings: command \"nautilus\", arguments [\"lsp\"]");
  c->callback([ignored, &exit_code] { exit_code = lsp::serve(STDIN_FILENO, STDOUT_FILENO); });
}

}  // namespace nautilus::tool
