// SPDX-License-Identifier: Apache-2.0
//
// Reading and writing of NumPy's .npy files, the form in which tensors enter and leave the command
// line. The reader treats its input as hostile: every length is checked against the file before it
// is used, and nothing is allocated beyond the size of the file. What it returns is always
// row-major and little-endian, so that the rest of the program needs only one layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nautilus::base {

// `descr` is NumPy's type string in a normal form: a byte order ('<', or '|' where it has no
// meaning), a kind and a size in bytes, such as "<f4", "|b1", "|i1". Kind V is raw bytes: NumPy
// stores types it does not know, such as bfloat16, as "|V2".
struct NpyArray {
  std::string descr;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;
};

// The size of one element in bytes; 0 when the type string is not one the reader returns.
int npy_item_size(std::string_view descr);

// Reads format versions 1 to 3 with elements of 1, 2, 4 or 8 bytes of kinds b, i, u, f and V.
// Column-major and big-endian arrays are converted, and booleans become 0 or 1. On failure
// nullopt, and *error (when not null) says why.
std::optional<NpyArray> read_npy(std::string_view content, std::string* error);

// The array as a version 1.0 file. `bytes` must have the size that descr and shape say.
std::string write_npy(const NpyArray& array);

}  // namespace nautilus::base
