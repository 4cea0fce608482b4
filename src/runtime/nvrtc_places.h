// SPDX-License-Identifier: Apache-2.0
// Where NVRTC may be: the loader's own folders, Python wheels, conda environments, CUDA folders.
#pragma once

#include <string>
#include <vector>

namespace nautilus::runtime {

// What the places depend on; empty where there is none.
struct NvrtcSurroundings {
  std::string asked_for = {};    // $NAUTILUS_NVRTC: this file and no other
  std::string cuda_home = {};    // $CUDA_HOME
  std::string cuda_path = {};    // $CUDA_PATH
  std::string conda = {};        // $CONDA_PREFIX
  std::string environment = {};  // $VIRTUAL_ENV
  std::string home = {};         // $HOME
  std::string own_folder = {};   // of the library or program that this code is in
  std::string root = {};         // prefix of /usr and /opt: for tests

  static NvrtcSurroundings of_process();
};

// Names to try, in this order: names for the loader's own search (it may have loaded one already,
// for another library of the process), then existing files. Of several versions the newest comes
// first.
std::vector<std::string> nvrtc_places(const NvrtcSurroundings& surroundings);

}  // namespace nautilus::runtime
