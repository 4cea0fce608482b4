# SPDX-License-Identifier: Apache-2.0
"""The errors of the package. Their text is what the compiler says: places with carets for programs, the name of
the argument with what was expected and what came for calls."""

from __future__ import annotations


class NautilusError(RuntimeError):
    """Whatever Nautilus refuses or cannot do."""


class ProgramError(NautilusError):
    """The program, its sizes or its schedule are wrong."""


class ArgumentError(NautilusError, ValueError):
    """A tensor, size or scalar of a call does not fit the program."""


class SystemFailure(NautilusError):
    """A file, the CUDA driver, the device compiler or memory."""


class UnsupportedError(NautilusError, NotImplementedError):
    """Not in this build, or not for this program."""


class InternalError(NautilusError):
    """A bug of the compiler; the text is the report."""


class SlowWarning(UserWarning):
    """A program that is right and far slower on a device than it need be; the text says where, and names a cure."""
