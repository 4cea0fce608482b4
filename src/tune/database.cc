// SPDX-License-Identifier: Apache-2.0
#include "tune/database.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#ifdef NAUTILUS_SQLITE
#include <sqlite3.h>
#endif

#include "tune/winner.h"

namespace nautilus::tune {

std::string default_database() {
  const auto folder = [](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value ? value : "";
  };
  if (const std::string path = folder("NAUTILUS_DB"); !path.empty())
    return path == "none" ? "" : path;
  if (const std::string data = folder("XDG_DATA_HOME"); !data.empty())
    return data + "/nautilus/trials.db";
  const std::string home = folder("HOME");
  return home.empty() ? "" : home + "/.local/share/nautilus/trials.db";
}

#ifdef NAUTILUS_SQLITE

namespace {

constexpr int kBusyMs = 30'000;

// One statement, its parameters and rows; finalized with this object.
class Statement {
 public:
  Statement(sqlite3* db, std::string_view text) {
    sqlite3_prepare_v2(db, text.data(), static_cast<int>(text.size()), &statement_, nullptr);
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  void bind(int place, std::string_view value) {
    sqlite3_bind_text(statement_, place, value.data(), static_cast<int>(value.size()),
                      SQLITE_TRANSIENT);
  }
  // SQLITE_ROW, SQLITE_DONE or an error.
  int step() { return statement_ ? sqlite3_step(statement_) : SQLITE_ERROR; }
  void reset() { sqlite3_reset(statement_); }
  std::string text(int column) const {
    const auto* t = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    return t ? std::string(t, static_cast<size_t>(sqlite3_column_bytes(statement_, column))) : "";
  }
  int64_t number(int column) const { return sqlite3_column_int64(statement_, column); }

 private:
  sqlite3_stmt* statement_ = nullptr;
};

}  // namespace

struct Database::Handle {
  sqlite3* db = nullptr;
  std::string path;

  ~Handle() { sqlite3_close(db); }

  std::string message() const { return fmt::format("{}: {}", path, sqlite3_errmsg(db)); }
  bool run(const char* text, std::string* error) const {
    if (sqlite3_exec(db, text, nullptr, nullptr, nullptr) == SQLITE_OK) return true;
    *error = message();
    return false;
  }
  // Between begin and commit; undone if it fails.
  template <class Body>
  bool in_transaction(Body&& body, std::string* error) const {
    if (!run("BEGIN IMMEDIATE", error)) return false;
    if (body() && run("COMMIT", error)) return true;
    if (error->empty()) *error = message();
    sqlite3_exec(db, "ROLLBACK", nullptr, nullptr, nullptr);
    return false;
  }
};

Database::Database(std::unique_ptr<Handle> handle) : handle_(std::move(handle)) {}
Database::~Database() = default;

std::unique_ptr<Database> Database::open(const std::string& path, Access access,
                                         std::string* error) {
  const bool writes = access == Access::Write;
  if (writes) {
    std::error_code ignored;
    const auto folder = std::filesystem::path(path).parent_path();
    if (!folder.empty()) std::filesystem::create_directories(folder, ignored);
  }
  auto handle = std::make_unique<Handle>();
  handle->path = path;
  const int flags = writes ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
  if (sqlite3_open_v2(path.c_str(), &handle->db, flags, nullptr) != SQLITE_OK) {
    *error = handle->message();
    return nullptr;
  }
  sqlite3_busy_timeout(handle->db, kBusyMs);
  Statement version(handle->db, "PRAGMA user_version");
  if (version.step() != SQLITE_ROW) {  // also a file that SQLite did not write
    *error = handle->message();
    return nullptr;
  }
  const int64_t schema = version.number(0);
  Statement tables(handle->db, "SELECT count(*) FROM sqlite_master");
  if (tables.step() != SQLITE_ROW) {
    *error = handle->message();
    return nullptr;
  }
  const bool is_new = schema == 0 && tables.number(0) == 0;
  tables.reset();
  version.reset();
  if (schema > kSchema || (schema == 0 && !is_new)) {
    *error = schema > kSchema
                 ? fmt::format("{}: schema {}, this version reads up to {}", path, schema, kSchema)
                 : fmt::format("{}: a database of something else", path);
    return nullptr;
  }
  if (is_new) {
    if (!writes) {
      *error = fmt::format("{}: an empty database", path);
      return nullptr;
    }
    const std::string create = fmt::format(
        "PRAGMA journal_mode = WAL;"
        "BEGIN IMMEDIATE;"
        "CREATE TABLE IF NOT EXISTS trials(identity TEXT PRIMARY KEY, equations TEXT NOT NULL,"
        " sizes TEXT NOT NULL, target TEXT NOT NULL, machine TEXT NOT NULL, trial TEXT NOT NULL)"
        " WITHOUT ROWID;"
        "CREATE INDEX IF NOT EXISTS by_problem ON trials(equations, sizes, target, machine);"
        "PRAGMA user_version = {};"
        "COMMIT;",
        kSchema);
    if (!handle->run(create.c_str(), error)) return nullptr;
  }
  // Every trial is on the disk before the next one begins.
  if (writes && !handle->run("PRAGMA synchronous = FULL", error)) return nullptr;
  return std::unique_ptr<Database>(new Database(std::move(handle)));
}

bool Database::add(const std::vector<Trial>& trials, std::string* error) {
  return handle_->in_transaction(
      [&] {
        Statement insert(handle_->db,
                         "INSERT OR IGNORE INTO trials VALUES(?1, ?2, ?3, ?4, ?5, ?6)");
        for (const Trial& t : trials) {
          insert.bind(1, identity(t));
          insert.bind(2, t.problem.equations);
          insert.bind(3, sizes_text(t.problem.sizes));
          insert.bind(4, t.problem.target);
          insert.bind(5, t.problem.machine);
          insert.bind(6, to_json(t));
          if (insert.step() != SQLITE_DONE) return false;
          insert.reset();
        }
        return true;
      },
      error);
}

std::optional<std::vector<Trial>> Database::find(const Query& query, std::string* error) const {
  Statement select(handle_->db,
                   "SELECT identity, trial FROM trials WHERE (?1 = '' OR equations = ?1)"
                   " AND (?5 = '' OR sizes = ?2) AND (?3 = '' OR target = ?3)"
                   " AND (?4 = '' OR machine = ?4) ORDER BY identity");
  select.bind(1, query.equations);
  select.bind(2, query.sizes ? sizes_text(*query.sizes) : "");
  select.bind(3, query.target);
  select.bind(4, query.machine);
  select.bind(5, query.sizes ? "given" : "");
  std::vector<Trial> out;
  int status = select.step();
  for (; status == SQLITE_ROW; status = select.step()) {
    auto trial = trial_of_json(select.text(1), error);
    if (!trial) {
      *error = fmt::format("{}: row {}: {}", handle_->path, select.text(0), *error);
      return std::nullopt;
    }
    out.push_back(std::move(*trial));
  }
  if (status == SQLITE_DONE) return out;
  *error = handle_->message();
  return std::nullopt;
}

std::optional<std::vector<Problem>> Database::problems(std::string* error) const {
  const auto trials = find({}, error);
  if (!trials) return std::nullopt;
  std::map<std::string, Problem> found;
  for (const Trial& t : *trials) {
    const Problem& p = t.problem;
    found.emplace(fmt::format("{} {} {} {}", p.equations, sizes_text(p.sizes), p.target, p.machine),
                  p);
  }
  std::vector<Problem> out;
  for (auto& [key, problem] : found) out.push_back(std::move(problem));
  return out;
}

std::optional<int64_t> Database::drop_slower(std::string* error) {
  const auto all = problems(error);
  if (!all) return std::nullopt;
  std::vector<std::string> dropped;
  for (const Problem& problem : *all) {
    const auto trials = find(Query::of(problem), error);
    if (!trials) return std::nullopt;
    const auto best = winner_of(*trials);
    for (const Trial& t : *trials) {
      if (t.verdict == Verdict::Timed && best && t.schedule != best->schedule)
        dropped.push_back(identity(t));
    }
  }
  const bool ok = handle_->in_transaction(
      [&] {
        Statement remove(handle_->db, "DELETE FROM trials WHERE identity = ?1");
        for (const std::string& id : dropped) {
          remove.bind(1, id);
          if (remove.step() != SQLITE_DONE) return false;
          remove.reset();
        }
        return true;
      },
      error);
  if (!ok) return std::nullopt;
  return static_cast<int64_t>(dropped.size());
}

#else

struct Database::Handle {};

Database::Database(std::unique_ptr<Handle> handle) : handle_(std::move(handle)) {}
Database::~Database() = default;

std::unique_ptr<Database> Database::open(const std::string&, Access, std::string* error) {
  *error = "this build has no database: install SQLite (libsqlite3-dev) and build again";
  return nullptr;
}
bool Database::add(const std::vector<Trial>&, std::string*) { return false; }
std::optional<std::vector<Trial>> Database::find(const Query&, std::string*) const { return {}; }
std::optional<std::vector<Problem>> Database::problems(std::string*) const { return {}; }
std::optional<int64_t> Database::drop_slower(std::string*) { return {}; }

#endif

}  // namespace nautilus::tune
