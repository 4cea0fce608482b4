# SPDX-License-Identifier: Apache-2.0
# Writes the device prelude as C++ string literals (OUTPUT, TEXT are given with -D). Compilers limit
# the length of one literal, so the text is cut into pieces.
file(READ ${TEXT} content)
string(LENGTH "${content}" length)
set(pieces "")
set(at 0)
while(at LESS length)
  string(SUBSTRING "${content}" ${at} 8000 piece)
  string(APPEND pieces "    R\"cuda(${piece})cuda\"\n")
  math(EXPR at "${at} + 8000")
endwhile()
file(WRITE ${OUTPUT}.new "// Generated from prelude/.
#include \"emit/emit.h\"

namespace nautilus::emit {

std::string_view device_prelude() {
  static constexpr std::string_view text =
${pieces}      ;
  return text;
}

}  // namespace nautilus::emit
")
file(COPY_FILE ${OUTPUT}.new ${OUTPUT} ONLY_IF_DIFFERENT)
