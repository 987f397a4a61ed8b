# SPDX-License-Identifier: Apache-2.0
"""How a kept interpreter shows a value: its text, the rich forms that notebooks know, and the figures of matplotlib.

Inside the jar. A bundle is a dict from MIME type to text, bytes (images, PDF) or plain data (JSON); `text/plain` is always there.
Whatever code a value brings along to show itself may fail: then that form is missing.
"""

from __future__ import annotations

import sys
from typing import Any, Dict, List

from ._codec import Codec
from ._codec_types import type_name

TEXT_MAX_CHARACTERS = 64 << 10
# Of one cell; what is beyond is left out, and said so.
MAX_BUNDLES = 64
MAX_BYTES = 24 << 20
MAX_FORMS = 16
# Containers with more elements are shown in part: their whole text could take longer than the cell.
MANY = 2000

METHODS = (
    ("text/html", "_repr_html_"),
    ("text/markdown", "_repr_markdown_"),
    ("text/latex", "_repr_latex_"),
    ("image/svg+xml", "_repr_svg_"),
    ("image/png", "_repr_png_"),
    ("image/jpeg", "_repr_jpeg_"),
    ("application/pdf", "_repr_pdf_"),
    ("application/json", "_repr_json_"),
)
BINARY = ("image/png", "image/jpeg", "application/pdf")
_PLAIN = frozenset([type(None), bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset])
_DATA = Codec(max_bytes=MAX_BYTES)


def cut(text: str, most: int = TEXT_MAX_CHARACTERS) -> str:
    """The text, or its two ends."""
    return text if len(text) <= most else f"{text[: most // 2]}\n[...]\n{text[-(most // 2) :]}"


def text_of(value: Any) -> str:
    """repr(), bounded, whatever the class does when it is asked."""
    try:
        if type(value) in _PLAIN and hasattr(value, "__len__") and len(value) > MANY:
            return short_text(value, MANY, TEXT_MAX_CHARACTERS)
        return cut(str(repr(value)))
    except Exception as error:
        return f"<{type_name(type(value))} whose repr() raised {type_name(type(error))}>"


def short_text(value: Any, elements: int = 6, characters: int = 80) -> str:
    """The beginning of a repr()."""
    import reprlib

    short = reprlib.Repr()
    for name in ("maxlist", "maxtuple", "maxdict", "maxset", "maxfrozenset", "maxarray", "maxdeque"):
        setattr(short, name, elements)
    short.maxstring = short.maxother = short.maxlong = characters
    try:
        return cut(short.repr(value), 2 * characters)
    except Exception as error:
        return f"<{type_name(type(value))} whose repr() raised {type_name(type(error))}>"


def _checked(kind: str, data: Any) -> Any:
    """What a form gives, as it is sent: None if it cannot be."""
    if kind in BINARY and type(data) is str:
        import base64

        return base64.b64decode(data)
    if kind in BINARY:
        return bytes(data)
    if kind.endswith("json"):
        _DATA.encode(data)
        return data
    return str(data) if isinstance(data, str) else None


def _add(forms: Dict[str, Any], kind: Any, data: Any) -> None:
    if type(kind) is not str or len(kind) > 100 or data is None or len(forms) >= MAX_FORMS:
        return
    try:
        data = _checked(kind, data)
    except Exception:
        return
    if data is not None:
        forms[kind] = data


def bundle(value: Any) -> Dict[str, Any]:
    """All forms of a value."""
    forms: Dict[str, Any] = {"text/plain": text_of(value)}
    cls = type(value)
    if cls in _PLAIN or isinstance(value, type):
        return forms
    many = getattr(cls, "_repr_mimebundle_", None)
    if many is not None:
        try:
            found = many(value, include=None, exclude=None)
            for kind, data in dict(found[0] if isinstance(found, tuple) else found).items():
                _add(forms, kind, data)
        except Exception:
            pass
    for kind, method in METHODS:
        ask = getattr(cls, method, None)
        if ask is not None and kind not in forms:
            try:
                data = ask(value)
            except Exception:
                continue
            _add(forms, kind, data[0] if isinstance(data, tuple) and data else data)
    if _is_figure(value):
        _add(forms, "image/png", _png(value))
    return forms


# --- matplotlib, if the cell has loaded it ---


def _is_figure(value: Any) -> bool:
    figures = sys.modules.get("matplotlib.figure")
    return figures is not None and isinstance(value, getattr(figures, "Figure", ()))


def _png(figure: Any) -> bytes:
    import io

    file = io.BytesIO()
    figure.savefig(file, format="png", bbox_inches="tight")
    return file.getvalue()


def open_figures(but: Any) -> List[Dict[str, Any]]:
    """Show the figures that a cell leaves open, and close them. but: one that is shown already."""
    plots: Any = sys.modules.get("matplotlib.pyplot")
    if plots is None:
        return []
    found = []
    for number in plots.get_fignums():
        figure = plots.figure(number)
        if figure is not but:
            found.append({"text/plain": text_of(figure), "image/png": _png(figure)})
    plots.close("all")
    return found


class Displays:
    """What one cell shows."""

    def __init__(self) -> None:
        self.bundles: List[Dict[str, Any]] = []
        self._bytes = 0

    def add(self, forms: Dict[str, Any]) -> None:
        """Beyond the bounds one last bundle says so."""
        if len(self.bundles) > MAX_BUNDLES or self._bytes > MAX_BYTES:
            return
        self._bytes += len(_DATA.encode(forms)) if self._fits(forms) else MAX_BYTES + 1
        if len(self.bundles) == MAX_BUNDLES or self._bytes > MAX_BYTES:
            forms = {"text/plain": f"[the rest of {MAX_BUNDLES} displays or {MAX_BYTES >> 20} MB is left out]"}
        self.bundles.append(forms)

    @staticmethod
    def _fits(forms: Dict[str, Any]) -> bool:
        return sum(len(data) for data in forms.values() if isinstance(data, (str, bytes))) <= MAX_BYTES
