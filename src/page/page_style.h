// SPDX-License-Identifier: Apache-2.0
// The style of reports, light or dark as on the reader's system.
#pragma once

#include <string_view>

namespace nautilus::page {

extern const std::string_view kPageStyle;

}  // namespace nautilus::page
