# SPDX-License-Identifier: Apache-2.0
"""Results of calls as bytes, and back: data only.

_codec_types.py has the format, _codec_write.py writes it in the jar, _codec_read.py reads it in your program; `Codec` here puts
them together with one set of bounds and listed classes.

Types come back exactly: a tuple is no list, True is no 1, -0.0 is no 0.0. An instance of a subclass cannot be sent. Arrays
need numpy on both sides, loaded already: nothing is imported because of a result.

Nodes are Python values: a list of two ints counts three. Sizes of lists, tuples, dicts and sets are bounded by nodes, those
of the rest by bytes. Keys that collide in a hash table, which cost time without costing bytes, have a bound of their own.
"""

from __future__ import annotations

from typing import Any, Iterable, List, Optional, Tuple, Union

from ._codec_read import Reader, read_item
from ._codec_types import Listed
from ._codec_write import PLAIN_WRITERS, CannotSend, Refusal, Writer, WriteTable, object_writer
from ._errors import ResultError

MAX_BYTES = 64 << 20
MAX_NODES = 10**6
MAX_DEPTH = 100
# Larger messages are read in place instead of from a copy.
VIEW_BYTES = 1 << 20


class Codec:
    """Writes and reads values with one set of listed classes and bounds. Both sides must list the same classes, in order."""

    def __init__(
        self,
        types: Iterable[type] = (),
        *,
        max_bytes: int = MAX_BYTES,
        max_nodes: int = MAX_NODES,
        max_depth: int = MAX_DEPTH,
    ) -> None:
        self.max_bytes = max_bytes
        self.max_nodes = max_nodes
        self.max_depth = max_depth
        self.listed = [Listed(cls) for cls in dict.fromkeys(types)]
        self.places = {listed.cls: index for index, listed in enumerate(self.listed)}
        self.writers = WriteTable(PLAIN_WRITERS)
        for index, listed in enumerate(self.listed):
            self.writers[listed.cls] = object_writer(index, listed)

    def encode_parts(self, value: Any, file_bytes: int = 0, max_files: int = 0) -> Tuple[List[bytes], List[Any]]:
        """The encoding in pieces, to be written one after the other; large bytes and text are not copied into one.

        And buffers that belong into files: bytes and arrays of file_bytes and more, as many as max_files.
        """
        parts: List[bytes] = []
        writer = Writer(parts.append, self)
        writer.file_bytes, writer.files_left = file_bytes, max_files
        try:
            writer.table[type(value)](writer, value)
            if sum(map(len, parts)) + sum(memoryview(file).nbytes for file in writer.files) > self.max_bytes:
                raise CannotSend
        except CannotSend:
            raise ResultError(Refusal(self).find(value)) from None
        return parts, writer.files

    def encode(self, value: Any) -> bytes:
        """The encoding; ResultError names the type that cannot be sent, and where it was."""
        return b"".join(self.encode_parts(value)[0])

    def decode(self, data: Union[bytes, bytearray, memoryview], files: Optional[Any] = None) -> Any:
        """The value of which these bytes are the encoding; ResultError for any others.

        files: what the bytes name as files. Has size() and read() or read_into() of the next one.
        """
        view: Any = data if type(data) is bytes and len(data) <= VIEW_BYTES else memoryview(data).cast("B")
        if len(view) > self.max_bytes:
            raise ResultError(f"the result takes {len(view)} bytes, more than the {self.max_bytes} that are allowed")
        reader = Reader(view if len(view) > VIEW_BYTES else bytes(view), self, files)
        try:
            value = read_item(reader)
        except IndexError:
            reader.pos = reader.end
            reader.fail("it ends too early")
        if reader.pos != reader.end:
            reader.fail("there are bytes after the value")
        return value


_plain = Codec()


def encode(value: Any) -> bytes:
    """With the usual bounds and no listed classes."""
    return _plain.encode(value)


def decode(data: Union[bytes, bytearray, memoryview]) -> Any:
    """With the usual bounds and no listed classes."""
    return _plain.decode(data)
