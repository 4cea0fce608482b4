// SPDX-License-Identifier: Apache-2.0
// A database of trials in a SQLite file: one row for each trial, never changed, so that merging is
// the union of rows. Many processes may write at the same time; a trial is on the disk when `add`
// returns, and a killed process loses nothing that was added.
#pragma once

#include <memory>

#include "tune/records/schema.h"
#include "tune/records/trial.h"

namespace nautilus::tune {

enum class Access : uint8_t { Read, Write };  // Write creates the file if there is none

// Selects trials; empty fields match everything.
struct Query {
  std::string equations = {};
  std::optional<std::map<std::string, int64_t>> sizes = {};
  std::string target = {};
  std::string machine = {};

  static Query of(const Problem& problem) {
    return {problem.equations, problem.sizes, problem.target, problem.machine};
  }
};

class Database {
 public:
  static constexpr int kSchema = 1;

  // Nothing, and why, if the file is missing, is not a database of trials, or has a newer schema.
  // An older one is brought to this version's schema if it may be written, and refused otherwise.
  static std::unique_ptr<Database> open(const std::string& path, Access access, std::string* error);
  // With other steps to the newest schema, for tests of migration.
  static std::unique_ptr<Database> open(const std::string& path, Access access,
                                        std::span<const SchemaStep> steps, std::string* error);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // True also if the trial is there already. All of a list or none of it.
  bool add(const Trial& trial, std::string* error) { return add(std::vector{trial}, error); }
  bool add(const std::vector<Trial>& trials, std::string* error);

  // In the order of their identities: the same rows give the same list.
  std::optional<std::vector<Trial>> find(const Query& query, std::string* error) const;

  // Problems with trials, in order.
  std::optional<std::vector<Problem>> problems(std::string* error) const;

  // For every problem keeps only the trials of its winner and those that disqualify a schedule.
  // Returns the number of dropped rows.
  std::optional<int64_t> drop_slower(std::string* error);

 private:
  struct Handle;
  explicit Database(std::unique_ptr<Handle> handle);
  std::unique_ptr<Handle> handle_;
};

// Where trials are stored unless a command says otherwise: $NAUTILUS_DB, or `trials.db` in the
// user's data folder. Empty if there is no home, or if the variable is `none`.
std::string default_database();

}  // namespace nautilus::tune
