"""XML in a stream: one record at a time, nothing expanded, nothing fetched."""

from __future__ import annotations

import html
import io
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import IO, Any

from lxml import etree

from micol.errors import MicolError
from micol.formats.base import squeezed
from micol.layout import Problems, RecordError

CHUNK_BYTES = 1 << 16
MAX_ENTITY_LENGTH = 200
# Entities stay as they are, no DTD is loaded, no address is opened. `huge_tree` stays off: it would lift
# libxml2's guard against entities that multiply in attributes, and big files of small records need it not.
SAFELY = {
    "resolve_entities": False,
    "load_dtd": False,
    "no_network": True,
    "huge_tree": False,
    "collect_ids": False,
    "remove_comments": True,
    "remove_pis": True,
}


def root(stream: IO[bytes], path: str | Path) -> Any:
    """The outermost element as it begins, with nothing in it yet."""
    parser = etree.XMLPullParser(("start",), **SAFELY)
    try:
        while chunk := stream.read(CHUNK_BYTES):
            parser.feed(chunk)
            for _, element in parser.read_events():
                return element
        return parser.close()
    except etree.XMLSyntaxError as error:
        raise MicolError(f"{path}:{error.lineno or 1}: {malformed(error).problem}; check the file") from error


def refuse_multiplying_entities(content: bytes, path: str | Path) -> None:
    """For parsers that expand entities: short names for addresses may pass, nothing that could multiply."""
    declared = root(io.BytesIO(content), path).getroottree().docinfo.internalDTD
    for entity in declared.iterentities() if declared is not None else ():
        meaning = entity.content or ""
        if len(meaning) > MAX_ENTITY_LENGTH or "&" in meaning or "%" in meaning:
            raise MicolError(
                f"{path}: the entity {entity.name!r} is long or made of others, which could fill the memory; "
                "write its meaning where it is used"
            )


def records(
    stream: IO[bytes], tags: Collection[str], problems: Problems, roots: Collection[str] = ()
) -> Iterator[Any]:
    """Each element with one of these tags, once it is complete; it is gone when the next is asked for.

    roots: the outermost element must be one of these; another file would only fill the memory.
    """
    parser = etree.XMLPullParser(("end",), tag=tuple(tags), **SAFELY)
    beginning = etree.XMLPullParser(("start",), **SAFELY) if roots else None
    try:
        while chunk := stream.read(CHUNK_BYTES):
            if beginning is not None:
                beginning.feed(chunk)
                for _, element in beginning.read_events():
                    check_root(element, roots, problems)
                    beginning = None
                    break
            parser.feed(chunk)
            for _, element in parser.read_events():
                yield element
                forget(element)
        parser.close()
        for _, element in parser.read_events():
            yield element
    except etree.XMLSyntaxError as error:
        problems.add(error.lineno or 1, malformed(error))


def check_root(element: Any, roots: Collection[str], problems: Problems) -> None:
    name = etree.QName(element).localname
    if name not in roots:
        expected = " or ".join(f"<{root}>" for root in roots)
        raise MicolError(
            f"{problems.source}: expected {expected}, got <{name}>; check the format and the file"
        )


def malformed(error: etree.XMLSyntaxError) -> RecordError:
    words = squeezed(str(error.msg or error)).rsplit(", line ", 1)[0]
    return RecordError(f"not well-formed XML from here on ({words})", "download the file again or repair it")


def forget(element: Any) -> None:
    """Empties an element and drops what stands before it, there and in the elements around it."""
    element.clear(keep_tail=False)
    while element is not None:
        while (before := element.getprevious()) is not None:
            before.getparent().remove(before)
        element = element.getparent()


def flat(element: Any, leave_out: Collection[str] = ()) -> str:
    """The text of an element on one line, without its mark-up."""
    return "" if element is None else squeezed("".join(pieces(element, leave_out)))


def pieces(element: Any, leave_out: Collection[str]) -> Iterator[str]:
    yield element.text or ""
    for child in element:
        if child.tag is etree.Entity:
            # A reference such as &alpha; to an entity of a DTD that was not loaded.
            yield html.unescape(child.text)
        elif isinstance(child.tag, str) and etree.QName(child).localname not in leave_out:
            yield from pieces(child, leave_out)
        yield child.tail or ""
