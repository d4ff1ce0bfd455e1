"""Backends: what turns loop nests into machine code and runs it, one package per kind of device."""
