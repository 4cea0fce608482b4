// SPDX-License-Identifier: Apache-2.0
// The look of reports, light or dark as the reader's system is.
#pragma once

#include <string_view>

namespace nautilus::page {

extern const std::string_view kPageStyle;

}  // namespace nautilus::page
