# SPDX-License-Identifier: Apache-2.0
"""Nautilus inside of other packages: one module for each."""
