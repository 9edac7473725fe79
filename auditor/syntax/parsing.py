"""Source to a syntax tree, whatever the source is.

The parser is that of the running interpreter: a file that needs a newer grammar is reported as
unparsed, with the version that tried.
"""

from __future__ import annotations

import ast
import sys

from auditor.facts import Unparsed

#: A file longer than this is not source that a person wrote; parsing it would need about
#: 200 times its size in memory.
MAX_SOURCE_BYTES = 8 * 1024 * 1024


def parse(source: bytes) -> ast.Module | Unparsed:
    """``ast.parse`` with every way in which a hostile file can fail turned into a value."""
    if len(source) > MAX_SOURCE_BYTES:
        size = len(source) / 1024 / 1024
        return Unparsed(f"{size:.0f} MiB is more than the {MAX_SOURCE_BYTES >> 20} MiB read", 0)
    version = f"Python {sys.version_info.major}.{sys.version_info.minor}"
    try:
        return ast.parse(source)
    except SyntaxError as error:
        return Unparsed(f"does not parse as {version}: {error.msg}", error.lineno or 0)
    except ValueError as error:
        return Unparsed(f"does not parse as {version}: {error}", 0)
    except (RecursionError, MemoryError):
        return Unparsed(f"nested too deeply for the parser of {version}", 0)
