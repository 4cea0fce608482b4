# SPDX-License-Identifier: Apache-2.0
# Writes texts, one after the other, as the C++ function nautilus::NAMESPACE::FUNCTION() (these,
# OUTPUT and TEXTS are given with -D). A quoted include becomes the text of the file beside it: what
# is emitted includes nothing. Compilers limit the length of one literal, so the text is cut into
# pieces.
set(content "")
foreach(text IN LISTS TEXTS)
  file(READ ${text} own)
  while(own MATCHES "\n#include \"([a-z_]+\\.h)\"\n")
    set(name ${CMAKE_MATCH_1})
    get_filename_component(folder ${text} DIRECTORY)
    file(READ ${folder}/${name} included)
    string(REPLACE "#include \"${name}\"\n" "${included}" own "${own}")
  endwhile()
  string(APPEND content "${own}")
endforeach()
string(LENGTH "${content}" length)
set(pieces "")
set(at 0)
while(at LESS length)
  string(SUBSTRING "${content}" ${at} 8000 piece)
  string(APPEND pieces "    R\"prelude(${piece})prelude\"\n")
  math(EXPR at "${at} + 8000")
endwhile()
file(WRITE ${OUTPUT}.new "// Generated from prelude/.
#include <string_view>

namespace nautilus::${NAMESPACE} {

std::string_view ${FUNCTION}();
std::string_view ${FUNCTION}() {
  static constexpr std::string_view text =
${pieces}      ;
  return text;
}

}  // namespace nautilus::${NAMESPACE}
")
file(COPY_FILE ${OUTPUT}.new ${OUTPUT} ONLY_IF_DIFFERENT)
