// SPDX-License-Identifier: Apache-2.0
#include "schedule/text/schedule_names.h"

#include <algorithm>

namespace nautilus::schedule {
namespace {

using ir::Field;
using ir::FieldKind;

// Calls f for every name of a line, which f may change.
template <class F>
ir::Op with_each_name(const ir::Op& line, F&& f) {
  auto data = ir::copy_data(line);
  for (const Field& field : line.info().fields) {
    if (field.kind == FieldKind::Name) f(ir::field_value<ir::Name>(data.get(), field));
    if (field.kind == FieldKind::NameList) {
      for (ir::Name& name : ir::field_value<ir::Names>(data.get(), field)) f(name);
    }
  }
  return ir::Op(line.info(), line.span(), std::move(data));
}

template <class F>
void for_each_line(Schedule& schedule, F&& f) {
  for (ir::Op& line : schedule.lines) f(line);
  for (KernelSchedule& k : schedule.kernels) {
    for (ir::Block& alternative : k.alternatives) {
      for (ir::Op& line : alternative) f(line);
    }
  }
}

}  // namespace

std::set<std::string> names_in(const Schedule& schedule) {
  std::set<std::string> out;
  for (const KernelSchedule& k : schedule.kernels) out.insert(k.name);
  Schedule copy = schedule;
  for_each_line(copy, [&](ir::Op& line) {
    with_each_name(line, [&](ir::Name& name) {
      if (name) out.emplace(name.str());
    });
  });
  return out;
}

std::vector<NamePiece> pieces_of_name(std::string_view name,
                                      const std::map<std::string, int64_t>& places) {
  const auto is_known = [&](std::string_view text) { return places.contains(std::string(text)); };
  if (is_known(name)) return {{name, true}};
  std::vector<NamePiece> axes;
  bool are_axes = name.find('.') != std::string_view::npos;
  for (size_t begin = 0; are_axes && begin <= name.size();) {
    const size_t end = std::min(name.find('.', begin), name.size());
    if (begin > 0) axes.push_back({name.substr(begin - 1, 1)});
    axes.push_back({name.substr(begin, end - begin), true});
    are_axes = is_known(axes.back().text);
    begin = end + 1;
  }
  if (are_axes) return axes;
  for (size_t end = name.size(); end-- > 1;) {
    if ((name[end] == '.' || name[end] == '_') && is_known(name.substr(0, end)))
      return {{name.substr(0, end), true}, {name.substr(end)}};
  }
  return {{name}};
}

Schedule with_names(const Schedule& schedule, const std::vector<std::string>& now,
                    expr::ExprPool& pool) {
  const auto renamed = [&](std::string_view name) {
    std::string out;
    for (const NamePiece& piece : pieces_of_name(name, schedule.places)) {
      const auto place = piece.is_known ? schedule.places.at(std::string(piece.text)) : -1;
      const bool is_there = place >= 0 && static_cast<size_t>(place) < now.size();
      out += is_there ? std::string_view(now[static_cast<size_t>(place)]) : piece.text;
    }
    return out;
  };
  Schedule out = schedule;
  for (KernelSchedule& k : out.kernels) k.name = renamed(k.name);
  for_each_line(out, [&](ir::Op& line) {
    line = with_each_name(line, [&](ir::Name& name) {
      if (name) name = pool.name(renamed(name.str()));
    });
  });
  out.places.clear();
  out.listed.clear();
  for (size_t k = 0; k < now.size(); ++k) out.places.emplace(now[k], static_cast<int64_t>(k));
  return out;
}

}  // namespace nautilus::schedule
