// SPDX-License-Identifier: Apache-2.0
// How a call of the C interface fails: a status, and a text that is the thread's last error.
#pragma once

#include <cstddef>
#include <cstring>
#include <string>

#include "nautilus.h"

namespace nautilus::capi {

struct Failure {
  nautilus_status status = NAUTILUS_OK;
  std::string text = {};

  bool is_ok() const { return status == NAUTILUS_OK; }
};

// Keeps the text for nautilus_last_error.
nautilus_status report(Failure failure);

// A struct of the caller's as this version knows it: what an older header had not is 0. False if it
// has no size.
template <class T>
bool read_struct(const T* from, T& to) {
  if (!from) return true;
  if (from->struct_size < sizeof(size_t)) return false;
  std::memcpy(&to, from, from->struct_size < sizeof(T) ? from->struct_size : sizeof(T));
  return true;
}

// The other way: a newer field is not written where the caller has no place for it.
template <class T>
nautilus_status write_struct(const T& from, T* to) {
  if (!to || to->struct_size < sizeof(size_t))
    return report(
        {NAUTILUS_ERROR_USAGE, "the struct for the answer is null or has no struct_size"});
  const size_t size = to->struct_size;
  std::memcpy(to, &from, size < sizeof(T) ? size : sizeof(T));
  to->struct_size = size;
  return NAUTILUS_OK;
}

}  // namespace nautilus::capi
