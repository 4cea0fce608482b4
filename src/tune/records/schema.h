// SPDX-License-Identifier: Apache-2.0
// The versions of a database of trials and the steps between them. A file records its version
// (`PRAGMA user_version`); a new file gets all steps, an older one those that it lacks.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

struct sqlite3;

namespace nautilus::tune {

// SQL from one version to the next. Steps are never changed once released: existing files have gone
// through them.
struct SchemaStep {
  std::string_view what;  // for messages: "a table of trials"
  const char* sql;
};

// Step k leads from version k to k + 1; version 0 is a file without tables.
std::span<const SchemaStep> schema_steps();

// Nothing, and why, if the file is not a database, or one of something else.
std::optional<int> schema_of(sqlite3* db, std::string* error);

// Applies the missing steps in one transaction: all of them, or the file does not change. Several
// processes may call this at the same time; one of them migrates, the others wait.
bool migrate(sqlite3* db, std::span<const SchemaStep> steps, std::string* error);

}  // namespace nautilus::tune
