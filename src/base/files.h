// SPDX-License-Identifier: Apache-2.0
//
// Whole-file reading and writing and sorted directory listing. Every function reports failure
// through its result: a missing file is an ordinary event for a command line tool. Writes replace
// a file in one step, so that an interrupted test update never leaves half a file behind.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nautilus::base {

// The file's bytes unchanged. On failure nullopt, and *error (when not null) says why.
std::optional<std::string> read_file(const std::string& path, std::string* error);

// Writes a temporary file in the same folder and renames it over `path`, keeping the mode of a
// file that is already there. A path that is not a regular file (a pipe, /dev/stdout) is written
// directly, since renaming over it would replace it. False, with *error set, on failure.
bool write_file_atomic(const std::string& path, std::string_view content, std::string* error);

// Creates a new file; fails without changing a file that exists already. False, with *error set, on
// failure.
bool write_new_file(const std::string& path, std::string_view content, std::string* error);

// Appends to a file, and creates it if needed; in one write, so that lines of several writers do
// not mix. False, with *error set, on failure.
bool append_file(const std::string& path, std::string_view content, std::string* error);

// The regular files below `dir` with names that end in `suffix` (all when empty), as paths
// beginning with `dir`, in byte order so that no output depends on the file system. Empty when
// `dir` is not a readable folder; links to folders are not followed.
bool is_folder(const std::string& path);

std::vector<std::string> list_files(const std::string& dir, std::string_view suffix);

}  // namespace nautilus::base
