"""How a file is called in a view: a notebook's cell by its number, other files by their name."""

from __future__ import annotations

import os
import sys


def file_label(file: str) -> str:
    """``Cell In[3]`` for a cell of the running notebook, else the file's name."""
    ipython = sys.modules.get("IPython")  # no notebook, no import
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is not None:
        known = shell.compile.format_code_name(file)
        if known is not None:
            return " ".join(known)
    return os.path.basename(file)
