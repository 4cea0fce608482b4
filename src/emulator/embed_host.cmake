# SPDX-License-Identifier: Apache-2.0
# Writes the texts that stand in front of a kernel on the host as a C++ string (OUTPUT and TEXTS are
# given with -D). Literals of limited length are joined by the compiler.
set(rows "")
foreach(text IN LISTS TEXTS)
  file(READ ${text} content)
  string(APPEND rows "    R\"prelude(${content})prelude\"\n")
endforeach()
file(WRITE ${OUTPUT}.new "// Generated from the host prelude.
#include <string_view>

namespace nautilus::emulator {

std::string_view host_prelude();
std::string_view host_prelude() {
  return
${rows}      ;
}

}  // namespace nautilus::emulator
")
file(COPY_FILE ${OUTPUT}.new ${OUTPUT} ONLY_IF_DIFFERENT)
