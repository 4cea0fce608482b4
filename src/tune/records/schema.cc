// SPDX-License-Identifier: Apache-2.0
#ifdef NAUTILUS_SQLITE
#include "tune/records/schema.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>

#include "tune/records/database.h"

namespace nautilus::tune {
namespace {

constexpr SchemaStep kSteps[] = {
    {"a table of trials",
     "CREATE TABLE trials(identity TEXT PRIMARY KEY, equations TEXT NOT NULL, sizes TEXT NOT NULL,"
     " target TEXT NOT NULL, machine TEXT NOT NULL, trial TEXT NOT NULL) WITHOUT ROWID;"
     "CREATE INDEX by_problem ON trials(equations, sizes, target, machine);"},
};
static_assert(std::size(kSteps) == Database::kSchema);

bool run_sql(sqlite3* db, const std::string& text) {
  return sqlite3_exec(db, text.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK;
}

// The first number of the first row; nothing if there is none.
std::optional<int64_t> number_of(sqlite3* db, const char* query) {
  sqlite3_stmt* statement = nullptr;
  sqlite3_prepare_v2(db, query, -1, &statement, nullptr);
  std::optional<int64_t> out;
  if (statement && sqlite3_step(statement) == SQLITE_ROW) out = sqlite3_column_int64(statement, 0);
  sqlite3_finalize(statement);
  return out;
}

// Inside a transaction: another process may create the tables between two questions.
std::optional<int> version_in_transaction(sqlite3* db, std::string* error) {
  const auto version = number_of(db, "PRAGMA user_version");
  const auto tables = version ? number_of(db, "SELECT count(*) FROM sqlite_master") : std::nullopt;
  if (!tables) {
    *error = sqlite3_errmsg(db);
    return std::nullopt;
  }
  if (*version < 0 || (*version == 0 && *tables > 0)) {
    *error = "a database of something else";
    return std::nullopt;
  }
  return static_cast<int>(*version);
}

bool take_steps(sqlite3* db, std::span<const SchemaStep> steps, std::string* error) {
  const auto version = version_in_transaction(db, error);
  if (!version) return false;
  for (size_t k = static_cast<size_t>(*version); k < steps.size(); ++k) {
    if (run_sql(db, steps[k].sql)) continue;
    *error = fmt::format("the step from schema {} to {} ({}) failed: {}; nothing was changed", k,
                         k + 1, steps[k].what, sqlite3_errmsg(db));
    return false;
  }
  const size_t newest = std::max(steps.size(), static_cast<size_t>(*version));
  if (run_sql(db, fmt::format("PRAGMA user_version = {}", newest)) && run_sql(db, "COMMIT"))
    return true;
  *error = sqlite3_errmsg(db);
  return false;
}

}  // namespace

std::span<const SchemaStep> schema_steps() { return kSteps; }

std::optional<int> schema_of(sqlite3* db, std::string* error) {
  if (!run_sql(db, "BEGIN")) {
    *error = sqlite3_errmsg(db);
    return std::nullopt;
  }
  const auto version = version_in_transaction(db, error);
  run_sql(db, "ROLLBACK");
  return version;
}

bool migrate(sqlite3* db, std::span<const SchemaStep> steps, std::string* error) {
  if (!run_sql(db, "BEGIN IMMEDIATE")) {
    *error = sqlite3_errmsg(db);
    return false;
  }
  if (take_steps(db, steps, error)) return true;
  run_sql(db, "ROLLBACK");
  return false;
}

}  // namespace nautilus::tune
#endif
