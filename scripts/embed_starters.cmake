# SPDX-License-Identifier: Apache-2.0
# Writes the programs of share/starters as C++ string literals (OUTPUT, TEXTS are given with -D).
set(rows "")
foreach(text IN LISTS TEXTS)
  get_filename_component(kind ${text} NAME_WE)
  file(READ ${text} content)
  string(APPEND rows "    {\"${kind}\", R\"naut(${content})naut\"},\n")
endforeach()
file(WRITE ${OUTPUT}.new "// Generated from share/starters/*.naut.
#include \"starters.h\"

namespace nautilus::tool {

const std::vector<Starter>& starters() {
  static const std::vector<Starter> all = {
${rows}  };
  return all;
}

}  // namespace nautilus::tool
")
file(COPY_FILE ${OUTPUT}.new ${OUTPUT} ONLY_IF_DIFFERENT)
