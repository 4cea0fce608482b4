// SPDX-License-Identifier: Apache-2.0
#include "base/build_id.h"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <cstdint>
#include <cstring>
#include <string_view>

namespace nautilus::base {
namespace {

struct IdSearch {
  uintptr_t own = 0;  // an address of this code
  std::string found;
};

constexpr size_t padded(size_t bytes) { return (bytes + 3) & ~size_t{3}; }

// Notes are a header, a name and a content, each padded to four bytes.
std::string id_in_notes(const char* notes, size_t bytes) {
  size_t at = 0;
  while (at + sizeof(ElfW(Nhdr)) <= bytes) {
    ElfW(Nhdr) header;
    std::memcpy(&header, notes + at, sizeof header);
    const size_t name = at + sizeof header;
    const size_t content = name + padded(header.n_namesz);
    if (content + header.n_descsz > bytes) return "";
    if (header.n_type == NT_GNU_BUILD_ID &&
        std::string_view(notes + name, header.n_namesz) == std::string_view("GNU", 4)) {
      std::string out;
      for (size_t k = 0; k < header.n_descsz; ++k)
        out += fmt::format("{:02x}", static_cast<unsigned char>(notes[content + k]));
      return out;
    }
    at = content + padded(header.n_descsz);
  }
  return "";
}

int look_at(dl_phdr_info* object, size_t, void* data) {
  auto& search = *static_cast<IdSearch*>(data);
  bool is_own = false;
  std::string id;
  for (int k = 0; k < object->dlpi_phnum; ++k) {
    const auto& segment = object->dlpi_phdr[k];
    const uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && search.own >= begin && search.own < begin + segment.p_memsz)
      is_own = true;
    if (segment.p_type == PT_NOTE && id.empty())
      id = id_in_notes(reinterpret_cast<const char*>(begin), segment.p_memsz);
  }
  if (is_own) search.found = std::move(id);
  return is_own ? 1 : 0;
}

}  // namespace

const std::string& build_id() {
  static const std::string id = [] {
    IdSearch search{reinterpret_cast<uintptr_t>(&build_id), {}};
    dl_iterate_phdr(look_at, &search);
    return search.found;
  }();
  return id;
}

}  // namespace nautilus::base
