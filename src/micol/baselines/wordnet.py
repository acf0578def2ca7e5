"""WordNet's files (wndb format, as Debian's wordnet-base has them): a word to its synonyms."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from micol.errors import MicolError
from micol.files import reading

PARTS_OF_SPEECH = ("noun", "verb", "adj", "adv")
HOW_TO_PROVIDE = (
    "install Debian's package wordnet-base, or say with --weights wordnet=FOLDER where WordNet is"
)


class WordNet:
    """The sets of synonyms that each word belongs to."""

    def __init__(self, sets_of: dict[str, list[tuple[str, ...]]]) -> None:
        self.sets_of = sets_of
        self.synonyms = cache(self._synonyms)

    @classmethod
    def read(cls, folder: str | Path) -> WordNet:
        """Reads data.noun, data.verb, data.adj and data.adv, plain or .gz; the index says nothing more."""
        folder = Path(folder)
        sets_of: dict[str, list[tuple[str, ...]]] = {}
        for part in PARTS_OF_SPEECH:
            path = folder / f"data.{part}"
            if not path.is_file():
                path = path.with_name(f"{path.name}.gz")
            if not path.is_file():
                raise MicolError(
                    f"{folder}: has no file data.{part}, from which EDA takes synonyms; {HOW_TO_PROVIDE}"
                )
            with reading(path) as file:
                for number, line in enumerate(file, start=1):
                    if line.startswith(b"  "):  # the licence
                        continue
                    words = synonym_set(line.decode(errors="replace"), f"{path}:{number}")
                    for word in words if len(words) > 1 else ():
                        sets_of.setdefault(word, []).append(words)
        return cls(sets_of)

    def _synonyms(self, word: str) -> tuple[str, ...]:
        """All words that share a set with this one, in alphabetical order."""
        found = {other for words in self.sets_of.get(word, ()) for other in words}
        return tuple(sorted(found - {word}))


def synonym_set(line: str, where: str) -> tuple[str, ...]:
    """The words of a line `offset file type count word id word id …`, the count in hexadecimal."""
    parts = line.split()
    try:
        count = int(parts[3], 16)
        words = parts[4 : 4 + 2 * count : 2]
        if len(words) != count:
            raise ValueError
    except (IndexError, ValueError):
        raise MicolError(f"{where}: is no line of WordNet's data files; {HOW_TO_PROVIDE}") from None
    # An adjective may carry its place in brackets: galore(ip).
    return tuple(word.split("(")[0].replace("_", " ").lower() for word in words)
