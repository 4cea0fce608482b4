// SPDX-License-Identifier: Apache-2.0
#include "failure.h"

#include <utility>

namespace nautilus::capi {
namespace {

std::string& last_error() {
  thread_local std::string text;
  return text;
}

}  // namespace

nautilus_status report(Failure failure) {
  if (failure.is_ok()) return NAUTILUS_OK;
  while (failure.text.ends_with('\n')) failure.text.pop_back();
  if (failure.text.empty()) failure.text = "no reason was given";
  last_error() = std::move(failure.text);
  return failure.status;
}

}  // namespace nautilus::capi

const char* nautilus_last_error(void) { return nautilus::capi::last_error().c_str(); }

const char* nautilus_status_name(int status) {
  switch (status) {
    case NAUTILUS_OK:
      return "NAUTILUS_OK";
    case NAUTILUS_ERROR_USAGE:
      return "NAUTILUS_ERROR_USAGE";
    case NAUTILUS_ERROR_PROGRAM:
      return "NAUTILUS_ERROR_PROGRAM";
    case NAUTILUS_ERROR_ARGUMENT:
      return "NAUTILUS_ERROR_ARGUMENT";
    case NAUTILUS_ERROR_WORKSPACE:
      return "NAUTILUS_ERROR_WORKSPACE";
    case NAUTILUS_ERROR_NOT_PREPARED:
      return "NAUTILUS_ERROR_NOT_PREPARED";
    case NAUTILUS_ERROR_SYSTEM:
      return "NAUTILUS_ERROR_SYSTEM";
    case NAUTILUS_ERROR_UNSUPPORTED:
      return "NAUTILUS_ERROR_UNSUPPORTED";
    case NAUTILUS_ERROR_INTERNAL:
      return "NAUTILUS_ERROR_INTERNAL";
    default:
      return "unknown";
  }
}
