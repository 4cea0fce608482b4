#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the site of the documents, with every warning an error: a link that leads nowhere, a page
# that is not in the navigation. Then looks for anything that a reader's browser would fetch from
# elsewhere. Needs mkdocs-material (a Python package); without it nothing is checked, and said so.
#
# usage: scripts/check_docs.sh [FOLDER] [NAUTILUS]   (build/site, build/nautilus)
#   PYTHON names the Python that has the package.
set -euo pipefail
cd "$(dirname "$0")/.."
site=${1:-build/site}
export NAUTILUS=${2:-build/nautilus}
python=${PYTHON:-python3}

if ! "$python" -c 'import mkdocs, material' 2>/dev/null; then
  echo "docs: not built, $python has no mkdocs-material (pip install mkdocs-material)"
  exit 0
fi
mkdir -p "$site"
# Pages are written from docs/, README.md and the examples into a folder of their own first.
pages=$(mktemp -d)
trap 'rm -rf "$pages"' EXIT
"$python" scripts/site_pages.py "$pages"
NO_MKDOCS_2_WARNING=1 "$python" -m mkdocs build --strict --quiet --config-file "$pages/mkdocs.yml" --site-dir "$(realpath "$site")"

# Nothing of another host is loaded; links that a reader may follow are not meant.
if grep -rnoE --include='*.html' --include='*.css' \
  '<(script|img|iframe)[^>]*src="?https?:[^" >]*|<link[^>]*rel="?(stylesheet|preconnect|preload)[^>]*https?:[^" >]*|url\(["'\'']?https?:[^)]*|@import[^;]*https?:[^;]*' \
  "$site" | head; then
  echo "docs: the site loads something from elsewhere"
  exit 1
fi
echo "docs: ok, $(find "$site" -name '*.html' | wc -l) pages in $site"
