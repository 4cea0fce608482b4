// SPDX-License-Identifier: Apache-2.0
#include "tune/records/database.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#ifdef NAUTILUS_SQLITE
#include <sqlite3.h>
#endif

#include "tune/records/winner.h"

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

// Why a file of a schema cannot be used; empty if it can.
std::string objection_to(const std::string& path, int schema, size_t newest, bool writes) {
  const auto version = static_cast<size_t>(schema);
  if (version > newest)
    return fmt::format(
        "{}: its schema is {}, and this version of nautilus knows them up to {}; a newer one reads "
        "it, and `nautilus db export` of that one writes trials that every version imports",
        path, version, newest);
  if (version == newest || writes) return "";
  if (version == 0) return fmt::format("{}: an empty database", path);
  return fmt::format(
      "{}: its schema is {}, and this version of nautilus reads {}; `nautilus db --db {} upgrade` "
      "brings it there",
      path, version, newest, path);
}

}  // namespace

struct Database::Handle {
  sqlite3* db = nullptr;
  std::string path;

  ~Handle() { sqlite3_close(db); }

  std::string message() const {
    const int cause = sqlite3_system_errno(db);
    const bool is_io = (sqlite3_errcode(db) & 0xFF) == SQLITE_IOERR && cause != 0;
    return fmt::format("{}: {}{}", path, sqlite3_errmsg(db),
                       is_io ? fmt::format(" ({})", std::strerror(cause)) : "");
  }
  bool run(const char* text, std::string* error) const {
    if (sqlite3_exec(db, text, nullptr, nullptr, nullptr) == SQLITE_OK) return true;
    *error = message();
    return false;
  }
  // Between begin and commit; undone if it fails.
  template <class Body>
  bool in_transaction(Body&& body, std::string* error) const {
    if (!run("BEGIN IMMEDIATE", error)) return false;
    if (!body())
      *error = message();
    else if (run("COMMIT", error))
      return true;
    sqlite3_exec(db, "ROLLBACK", nullptr, nullptr, nullptr);
    return false;
  }
};

Database::Database(std::unique_ptr<Handle> handle) : handle_(std::move(handle)) {}
Database::~Database() = default;

std::unique_ptr<Database> Database::open(const std::string& path, Access access,
                                         std::string* error) {
  return open(path, access, schema_steps(), error);
}

std::unique_ptr<Database> Database::open(const std::string& path, Access access,
                                         std::span<const SchemaStep> steps, std::string* error) {
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
  std::string why;
  const auto schema = schema_of(handle->db, &why);  // nothing also for a file of something else
  if (!schema) {
    *error = fmt::format("{}: {}", path, why);
    return nullptr;
  }
  if (const std::string objection = objection_to(path, *schema, steps.size(), writes);
      !objection.empty()) {
    *error = objection;
    return nullptr;
  }
  if (writes) {
    // The log in place of a journal lets others read meanwhile. Another process may be creating the
    // file at the same time; then that one sets the log.
    sqlite3_exec(handle->db, "PRAGMA journal_mode = WAL", nullptr, nullptr, nullptr);
    if (static_cast<size_t>(*schema) < steps.size() && !migrate(handle->db, steps, &why)) {
      *error = fmt::format("{}: {}", path, why);
      return nullptr;
    }
    // Every trial is on the disk before the next one begins.
    if (!handle->run("PRAGMA synchronous = FULL", error)) return nullptr;
  }
  return std::unique_ptr<Database>(new Database(std::move(handle)));
}

bool Database::add(const std::vector<Trial>& trials, std::string* error) {
  const bool ok = handle_->in_transaction(
      [&] {
        Statement insert(handle_->db,
                         "INSERT OR IGNORE INTO trials(identity, equations, sizes, target, machine,"
                         " trial) VALUES(?1, ?2, ?3, ?4, ?5, ?6)");
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
  if (!ok)
    *error += fmt::format("; {} not added", trials.size() == 1
                                                ? "the trial was"
                                                : fmt::format("{} trials were", trials.size()));
  return ok;
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
std::unique_ptr<Database> Database::open(const std::string& path, Access access,
                                         std::span<const SchemaStep>, std::string* error) {
  return open(path, access, error);
}
bool Database::add(const std::vector<Trial>&, std::string*) { return false; }
std::optional<std::vector<Trial>> Database::find(const Query&, std::string*) const { return {}; }
std::optional<std::vector<Problem>> Database::problems(std::string*) const { return {}; }
std::optional<int64_t> Database::drop_slower(std::string*) { return {}; }

#endif

}  // namespace nautilus::tune
