// SPDX-License-Identifier: Apache-2.0
// The functions of fmt that the core calls, compiled into the library: distributions have fmt as a
// shared library alone, of which a process can have one version.
//
// The headers have all of it as inline functions; naming one makes the compiler write it down. What
// this list lacks with another version of fmt is taken from the shared library, and
// scripts/check_library.sh says so.
#undef FMT_SHARED
#define FMT_HEADER_ONLY
#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <locale>
#include <string>

namespace {

template <auto kFunction>
struct Named {
  [[gnu::used]] static inline const auto kept = kFunction;
};
template struct Named<static_cast<std::string (*)(fmt::string_view, fmt::format_args)>(
    &fmt::vformat)>;
template struct Named<static_cast<void (*)(std::FILE*, fmt::string_view, fmt::format_args)>(
    &fmt::vprint)>;
template struct Named<&fmt::detail::throw_format_error>;
template struct Named<static_cast<bool (*)(uint32_t)>(&fmt::detail::is_printable)>;
template struct Named<&fmt::detail::assert_fail>;
template struct Named<&fmt::detail::thousands_sep_impl<char>>;
// With -O3 its callers here have it inlined, those of the core not.
template struct Named<&fmt::detail::locale_ref::get<std::locale>>;

}  // namespace
