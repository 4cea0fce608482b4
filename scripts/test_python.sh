#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs the Python package around a library that is built already, into an environment of its own, and runs its
# tests there: NumPy with the oracle and the emulator; parts for PyTorch are skipped where it is not installed.
#
# usage: scripts/test_python.sh BUILD_FOLDER [pytest's options]
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1
shift
environment=$build/python-environment
python=${PYTHON:-python3}

if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
  echo "python tests: left out, $python has no venv (Debian: python3-venv)"
  exit 0
fi
[ -x "$environment/bin/python" ] || "$python" -m venv "$environment"
if ! "$environment/bin/python" -c 'import numpy, pytest, scikit_build_core' 2>/dev/null; then
  "$environment/bin/pip" install -q --disable-pip-version-check numpy pytest 'scikit-build-core>=0.10'
fi
NAUTILUS_PREBUILT=$(realpath "$build/libnautilus.so") "$environment/bin/pip" install -q --disable-pip-version-check \
  --no-build-isolation --no-deps --force-reinstall .
# From another folder, so that the installed package is tested and not the sources.
cd "$build"
"python-environment/bin/python" -m pytest -q -p no:cacheprovider "$@" ../python/tests
