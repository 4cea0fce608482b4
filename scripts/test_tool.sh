#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The command line as scripts, shells and editors see it: starting programs, oracles, completion, JSON, the
# grammar, the language server. The last one needs the Python packages pygls and lsprotocol; without
# them it is left out, and said so.
#
# usage: scripts/test_tool.sh [NAUTILUS]   (build/nautilus)
#   PYTHON names the Python that has the packages.
set -euo pipefail
cd "$(dirname "$0")/.."
nautilus=${1:-build/nautilus}
python=${PYTHON:-python3}

test/tool/test_new.sh "$nautilus"
test/tool/test_oracle.sh "$nautilus"
test/tool/test_completion.sh "$nautilus"
if ! command -v "$python" >/dev/null 2>&1; then
  echo "left out: JSON, grammar and language server need Python"
  exit 0
fi
"$python" test/tool/test_grammar.py "$nautilus"
"$python" test/tool/test_json.py "$nautilus"
if "$python" -c 'import pygls.lsp.client, lsprotocol.types' 2>/dev/null; then
  "$python" test/tool/test_lsp.py "$nautilus"
else
  echo "left out: the language server is tested with pygls, which $python does not have"
fi
