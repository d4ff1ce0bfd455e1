"""object_symbols: the names that a 64-bit object file (ELF or Mach-O) offers, and those it takes from elsewhere.

The engine reads them before it links: LLVM's linker would quietly look names up in the process, so
a call that the code generator made to some helper would work on one machine and not on the next.
"""

from __future__ import annotations

import struct

_ELF_SYMBOL_TABLE = 2  # section type
_ELF_LOCAL = 0  # binding
_MACHO_MAGIC = 0xFEEDFACF
_MACHO_SYMBOL_TABLE = 2  # load command
_MACHO_EXTERNAL, _MACHO_TYPE, _MACHO_DEBUG = 0x01, 0x0E, 0xE0  # bits of a symbol's type byte


def object_symbols(object_bytes: bytes) -> tuple[set[str], set[str]]:
    """Names that the object defines for others, and names that it uses and does not define."""
    if object_bytes[:4] == b"\x7fELF":
        return _elf(object_bytes)
    if len(object_bytes) > 4 and struct.unpack_from("<I", object_bytes)[0] == _MACHO_MAGIC:
        return _macho(object_bytes)
    raise ValueError(f"object begins with {object_bytes[:4]!r}; expected 64-bit ELF or Mach-O")


def _name(strings: bytes, start: int) -> str:
    return strings[start : strings.index(b"\0", start)].decode()


def _elf(data: bytes) -> tuple[set[str], set[str]]:
    (sections_at,) = struct.unpack_from("<Q", data, 40)
    entry_bytes, count = struct.unpack_from("<HH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, sections_at + k * entry_bytes) for k in range(count)]
    defined: set[str] = set()
    undefined: set[str] = set()
    for _, kind, _, _, offset, nbytes, link, _, _, _ in sections:
        if kind != _ELF_SYMBOL_TABLE:
            continue
        strings_at, strings_bytes = sections[link][4:6]
        strings = data[strings_at : strings_at + strings_bytes]
        for symbol in struct.iter_unpack("<IBBHQQ", data[offset : offset + nbytes]):
            name, binding, section = symbol[0], symbol[1] >> 4, symbol[3]
            if name and binding != _ELF_LOCAL:
                (defined if section else undefined).add(_name(strings, name))
    return defined, undefined


def _macho(data: bytes) -> tuple[set[str], set[str]]:
    (commands,) = struct.unpack_from("<I", data, 16)
    at = 32
    defined: set[str] = set()
    undefined: set[str] = set()
    for _ in range(commands):
        command, nbytes = struct.unpack_from("<II", data, at)
        if command == _MACHO_SYMBOL_TABLE:
            symbols_at, count, strings_at, strings_bytes = struct.unpack_from("<IIII", data, at + 8)
            strings = data[strings_at : strings_at + strings_bytes]
            table = data[symbols_at : symbols_at + 16 * count]
            for name, kind, _, _, _ in struct.iter_unpack("<IBBHQ", table):
                if kind & _MACHO_EXTERNAL and not kind & _MACHO_DEBUG:
                    (defined if kind & _MACHO_TYPE else undefined).add(_name(strings, name).removeprefix("_"))
        at += nbytes
    return defined, undefined
