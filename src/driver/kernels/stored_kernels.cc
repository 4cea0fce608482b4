// SPDX-License-Identifier: Apache-2.0
#include "driver/kernels/stored_kernels.h"

#include <fmt/format.h>

#include <charconv>

#include "base/build_id.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/target_of.h"
#include "matile/ops.h"
#include "scalar/ops.h"
#include "schedule/text/schedule.h"

namespace nautilus::driver {
namespace {

using schedule::KernelSchedule;

std::string entry_of(const ir::Program& program, const KernelRequest& request) {
  return runtime::KernelCache::key({"kernels 2", base::build_id(), ir::print(program),
                                    ir::target_of(program).name, request.schedule ? "given" : "",
                                    request.schedule.value_or("")});
}

// Texts with their lengths before them.
void add_text(std::string& out, std::string_view text) {
  out += fmt::format("{}\n", text.size());
  out += text;
}

std::optional<std::string_view> next_text(std::string_view& rest) {
  const size_t end = rest.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  size_t length = 0;
  const auto r = std::from_chars(rest.data(), rest.data() + end, length);
  if (r.ec != std::errc() || r.ptr != rest.data() + end || length > rest.size() - end - 1)
    return std::nullopt;
  const std::string_view text = rest.substr(end + 1, length);
  rest.remove_prefix(end + 1 + length);
  return text;
}

// A note is a kernel of a schedule with its lines, in the order of schedules, and its numbers.
void add_note(std::string& out, const KernelNote& note) {
  // A placeholder: the text needs a hash.
  const schedule::Schedule lines{
      "note", std::string(16, '0'), {}, {{note.kernel, {note.lines}, note.form}}};
  add_text(out, schedule::print(lines));
  add_text(out, note.statement);
  add_text(out, fmt::format("{}", note.alternative));
  add_text(out, fmt::format("{}", note.alternatives));
}

std::optional<KernelNote> next_note(std::string_view& rest, Unit& unit) {
  const auto text = next_text(rest);
  const auto statement = text ? next_text(rest) : std::nullopt;
  const auto alternative = statement ? next_text(rest) : std::nullopt;
  const auto alternatives = alternative ? next_text(rest) : std::nullopt;
  if (!alternatives) return std::nullopt;
  const auto lines = schedule::parse_schedule(*text, unit.pool);
  if (!lines || lines->kernels.size() != 1 || lines->kernels[0].alternatives.size() != 1)
    return std::nullopt;
  const KernelSchedule& k = lines->kernels[0];
  const auto number = [](std::string_view digits) {
    size_t n = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), n);
    return n;
  };
  return KernelNote{k.name,
                    k.form,
                    std::string(*statement),
                    number(*alternative),
                    number(*alternatives),
                    k.alternatives[0]};
}

std::string joined(const auto& lines) { return fmt::format("{}", fmt::join(lines, "\n")); }

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    out.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

// Empty texts if there is none.
void add_origin(std::string& out, const std::optional<Origin>& origin) {
  add_text(out, origin ? ir::print(origin->statements) : "");
  add_text(out, origin ? joined(origin->in_tiles) : "");
  add_text(out, origin ? joined(origin->derivation) : "");
}

// False if a required value is missing.
bool next_origin(std::string_view& rest, std::optional<Origin>& origin, Unit& unit) {
  const auto statements = next_text(rest);
  const auto in_tiles = statements ? next_text(rest) : std::nullopt;
  const auto derivation = in_tiles ? next_text(rest) : std::nullopt;
  if (!derivation) return false;
  if (statements->empty()) return true;
  diag::Sink ignored(unit.sources);
  const uint32_t file = unit.sources.add("stored statements", std::string(*statements));
  auto parsed = ir::parse(file, {&scalar::level()}, unit.pool, ignored);
  if (!parsed) return false;
  const std::vector<std::string> names = lines_of(*in_tiles);
  origin = Origin{std::move(*parsed), {names.begin(), names.end()}, lines_of(*derivation)};
  return true;
}

std::string text_of(const Kernels& kernels) {
  std::string out;
  add_text(out, kernels.schedule);
  add_text(out, ir::print(kernels.program));
  add_origin(out, kernels.origin);
  for (const KernelNote& note : kernels.notes) add_note(out, note);
  return out;
}

std::optional<Kernels> kernels_of_text(std::string_view text, Unit& unit) {
  const auto schedule = next_text(text);
  const auto program = schedule ? next_text(text) : std::nullopt;
  if (!program) return std::nullopt;
  diag::Sink ignored(unit.sources);
  const uint32_t file = unit.sources.add("stored kernels", std::string(*program));
  auto parsed = ir::parse(file, {&matile::level()}, unit.pool, ignored);
  if (!parsed) return std::nullopt;
  Kernels out{std::move(*parsed), std::string(*schedule)};
  out.is_stored = true;
  if (!next_origin(text, out.origin, unit)) return std::nullopt;
  while (!text.empty()) {
    auto note = next_note(text, unit);
    if (!note) return std::nullopt;
    out.notes.push_back(std::move(*note));
  }
  return out;
}

}  // namespace

bool are_stored(const ir::Program& program, const KernelRequest& request,
                const runtime::KernelCache& cache) {
  return !base::build_id().empty() && cache.get(entry_of(program, request));
}

std::optional<Kernels> stored_kernels(const ir::Program& program, const KernelRequest& request,
                                      const runtime::KernelCache& cache, Unit& unit,
                                      std::string* error) {
  // Without an id of the build, entries of other builds cannot be told apart.
  if (request.trace || base::build_id().empty() || program.level == &matile::level())
    return make_kernels(program, request, unit, error);
  const std::string key = entry_of(program, request);
  if (const auto entry = cache.get(key)) {
    if (auto known = kernels_of_text(*entry, unit)) return known;
  }
  KernelRequest with_notes = request;
  with_notes.has_notes = true;
  auto made = make_kernels(program, with_notes, unit, error);
  std::string ignored;  // a full disk costs the cache, not the result
  if (made) cache.put(key, text_of(*made), &ignored);
  return made;
}

}  // namespace nautilus::driver
