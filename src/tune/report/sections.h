// SPDX-License-Identifier: Apache-2.0
// The sections of a report, each as HTML that begins with its heading. A section says so if the
// trials have nothing to show.
#pragma once

#include "tune/report/findings.h"

namespace nautilus::tune {

std::string best_so_far_section(const Findings& found);
std::string roofline_section(const Findings& found);
std::string decisions_section(const Findings& found);
std::string failures_section(const Findings& found);
std::string schedules_section(const Findings& found);

}  // namespace nautilus::tune
