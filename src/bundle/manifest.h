// SPDX-License-Identifier: Apache-2.0
// What a bundle holds, as JSON for tools and for people (docs/bundles.md).
#pragma once

#include <map>
#include <string>

#include "bundle/bundle.h"

namespace nautilus::bundle {

// `files` are the other files of the bundle: the manifest has their hashes.
std::string manifest_text(const Bundle& bundle, const std::map<std::string, std::string>& files);

}  // namespace nautilus::bundle
