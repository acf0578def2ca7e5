"""WordNet: glosses of nouns are the documents, general nouns above them and their topics the labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from development.common import Made, ancestors, document, label, nearest, unpacked
from micol.progress import track

PARTS_OF_SPEECH = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}
# The lexicographers' files of nouns begin with number 3.
NOUN_FILES = (
    "Tops", "act", "animal", "artifact", "attribute", "body", "cognition", "communication", "event",
    "feeling", "food", "group", "location", "motive", "object", "person", "phenomenon", "plant",
    "possession", "process", "quantity", "relation", "shape", "state", "substance", "time",
)  # fmt: skip
FIRST_NOUN_FILE = 3
ABOVE, BELOW, TOPIC = ("@", "@i"), ("~", "~i"), ";c"
# A noun is a label if it has so many right below it and is not among the most general (entity, thing) …
MIN_BELOW, MIN_DEPTH = 10, 4
# … or if it is the topic of so many synsets.
MIN_TOPIC = 5
WORDNET_LEVELS = 3


@dataclass(frozen=True)
class Synset:
    """Words that mean the same, what they mean, and pointers (kind, synset) to others."""

    id: str
    file: int
    words: tuple[str, ...]
    gloss: str
    pointers: tuple[tuple[str, str], ...]

    @classmethod
    def parse(cls, line: str, letter: str) -> Synset:
        """A line of data.noun and its like: offset, file, type, words, pointers, frames | gloss."""
        head, gloss = line.split("|", 1)
        fields = head.split()
        end = 4 + 2 * int(fields[3], 16)
        # Adjectives may carry a mark of position, as in `galore(ip)`.
        words = tuple(word.split("(")[0].replace("_", " ") for word in fields[4:end:2])
        numbers = range(end + 1, end + 1 + 4 * int(fields[end]), 4)
        # Satellite adjectives (s) are kept among the adjectives (a).
        pointers = tuple((fields[at], fields[at + 2].replace("s", "a") + fields[at + 1]) for at in numbers)
        return cls(letter + fields[0], int(fields[1]), words, gloss.strip(), pointers)

    def to(self, *kinds: str) -> list[str]:
        return [target for kind, target in self.pointers if kind in kinds]

    @property
    def is_noun(self) -> bool:
        return self.id.startswith("n")


def synsets(folder: Path) -> dict[str, Synset]:
    found: dict[str, Synset] = {}
    for part, letter in PARTS_OF_SPEECH.items():
        lines = (folder / f"data.{part}").read_text(encoding="latin-1").split("\n")
        for line in track(lines, f"reading WordNet's {part} file", unit="lines"):
            # The licence comes first, indented.
            if line and not line.startswith("  "):
                synset = Synset.parse(line, letter)
                found[synset.id] = synset
    return found


def wordnet(downloads: Path) -> Made:
    with unpacked("wordnet-base", downloads) as root:
        all_synsets = synsets(root / "usr/share/wordnet")

    def above(id: str) -> list[str]:
        return all_synsets[id].to(*ABOVE)

    general = general_nouns(all_synsets)
    documents = []
    for synset in all_synsets.values():
        if not synset.is_noun or synset.id in general:
            continue
        topics = [topic for topic in synset.to(TOPIC) if topic in general]
        gold = dict.fromkeys([*ancestors(synset.id, above, general, WORDNET_LEVELS), *topics])
        documents.append(
            document(
                synset.id,
                ", ".join(synset.words),
                synset.gloss,
                gold,
                venue=f"noun.{NOUN_FILES[synset.file - FIRST_NOUN_FILE]}",
                references=[
                    target for kind, target in synset.pointers if kind not in (*ABOVE, *BELOW, TOPIC)
                ],
            )
        )
    labels = [
        label(id, all_synsets[id].words, all_synsets[id].gloss, nearest(id, above, general))
        for id in sorted(general)
    ]
    return Made(documents, labels)


def general_nouns(found: Mapping[str, Synset]) -> set[str]:
    """The nouns that serve as labels."""
    nouns = {id: synset for id, synset in found.items() if synset.is_noun}
    below = Counter(target for synset in nouns.values() for target in synset.to(*ABOVE))
    topics = Counter(target for synset in found.values() for target in synset.to(TOPIC))
    depths: dict[str, int] = {}

    def depth(id: str) -> int:
        if id not in depths:
            depths[id] = 1 + min(map(depth, found[id].to(*ABOVE)), default=-1)
        return depths[id]

    wide = {id for id, count in below.items() if count >= MIN_BELOW and depth(id) >= MIN_DEPTH}
    return wide | {id for id, count in topics.items() if count >= MIN_TOPIC and id in nouns}
