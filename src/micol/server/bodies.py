"""What requests and answers consist of, for checking and for the OpenAPI description."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from micol.server.limits import MOST_FILTERS, MOST_LABELS

# At least one character that can be seen: what is trimmed must not end up empty.
VISIBLE = r"[^\s\u0000-\u0020\u007f-\u00a0\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff]"

LabelId = Annotated[str, StringConstraints(min_length=1, max_length=1000, pattern=VISIBLE)]
LabelName = Annotated[str, StringConstraints(min_length=1, max_length=1000, pattern=VISIBLE)]
Description = Annotated[str, StringConstraints(max_length=20_000)]
Parents = Annotated[list[LabelId], Field(max_length=100)]
Names = Annotated[
    list[LabelName], Field(min_length=1, max_length=100, description="The preferred name first.")
]
Branches = Annotated[list[LabelId], Field(max_length=MOST_FILTERS)]
# JSON has one kind of number: 5.0 is a whole one.
Whole = Annotated[
    int,
    BeforeValidator(lambda value: int(value) if isinstance(value, float) and value.is_integer() else value),
]
Value = str | Whole | None


class DocumentBody(BaseModel):
    """A document as a line of a documents file has it: any further field is metadata, such as `authors`."""

    model_config = ConfigDict(
        extra="allow",
        strict=True,
        json_schema_extra={
            "example": {
                "id": "d1",
                "title": "A chess engine",
                "abstract": "Plays chess over a network.",
                "authors": ["a1"],
            }
        },
    )
    __pydantic_extra__: dict[str, Value | list[Value]]

    id: Value = Field(None, description="Comes back with the answer; if missing, its number does.")
    title: str | None = ""
    abstract: str | None = ""
    text: str | None = Field("", description="Stands in for title and abstract.")


class SuggestBody(BaseModel):
    """Documents, and what is asked about each of them."""

    model_config = ConfigDict(extra="forbid", strict=True)

    documents: list[DocumentBody] = Field(min_length=1, description="One or many.")
    limit: Whole = Field(5, ge=1, le=MOST_LABELS, description="Labels a document, at the most.")
    threshold: float | None = Field(
        None, allow_inf_nan=False, description="Only labels that score so much or more."
    )
    include: Branches = Field([], description="Only these labels and those below them.")
    exclude: Branches = Field([], description="Not these labels, nor those below them.")
    explain: bool = Field(False, description="Say why each label was suggested.")


class Neighbour(BaseModel):
    """A document of the corpus that speaks for a label."""

    model_config = ConfigDict(extra="allow")

    id: str
    title: str = ""
    via: str = ""


class Explanation(BaseModel):
    """Why a label was suggested; a part that does not apply is empty or missing.

    Places are offsets into `text`, counted in characters (code points), the end not included.
    """

    model_config = ConfigDict(extra="allow")

    named_at: list[tuple[int, int]] = Field([], description="Where the text names the label.")
    shared_words: list[str] = Field([], description="Telling words of both.")
    best_sentence: tuple[int, int] | None = Field(None, description="The sentence nearest to the label.")
    contributions: dict[str, float] = Field({}, description="What each source of evidence adds to the score.")
    neighbours: list[Neighbour] = Field([], description="Documents whose labels were borrowed.")


class SuggestedLabel(BaseModel):
    id: str
    name: str
    score: float
    strength: float = Field(description="The score between 0 and 1.", ge=0, le=1)
    path: list[str] | None = Field(None, description="With `explain`: the labels above it, by name.")
    explanation: Explanation | None = None


class SuggestedLabels(BaseModel):
    id: str
    labels: list[SuggestedLabel] = Field(description="Best first.")
    text: str | None = Field(None, description="With `explain`: what its places refer to.")


class SuggestAnswer(BaseModel):
    results: list[SuggestedLabels] = Field(description="One a document, in order.")
    revision: int = Field(description="How many changes of labels had been made; one for the whole answer.")


class NewLabel(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={
            "example": {"id": "use::sailing", "names": ["Sailing"], "description": "Trips by boat."}
        },
    )

    id: LabelId
    names: Names
    description: Description = ""
    parents: Parents = []


class NewLabels(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    labels: list[NewLabel] = Field(min_length=1, max_length=MOST_LABELS)


class LabelChange(BaseModel):
    """What is to be different; the rest stays."""

    model_config = ConfigDict(extra="forbid", strict=True)

    names: Names | None = None
    description: Description | None = None
    parents: Parents | None = None


class LabelBody(BaseModel):
    id: str
    names: list[str]
    description: str
    parents: list[str]
    children: int = Field(description="How many labels stand right below it.")


class LabelBrief(BaseModel):
    id: str
    name: str


class LabelPlace(LabelBody):
    paths: list[list[LabelBrief]] = Field(description="The ways down to it, each from the top to a parent.")
    below: list[LabelBrief]


class LabelPage(BaseModel):
    total: int
    labels: list[LabelBody]


class EditAnswer(BaseModel):
    ids: list[str] = Field(description="Of the labels added, changed or removed.")
    embedded: int = Field(description="Labels whose text was new to the model.")
    total: int = Field(description="Labels now.")
    revision: int


class Health(BaseModel):
    status: str = Field(examples=["ok"])


class ModelAnswer(BaseModel):
    """What serves here."""

    name: str
    micol: str = Field(description="The version of the program.")
    architecture: str
    labels: int
    revision: int
    hierarchy: bool = Field(description="Whether any label stands below another.")
    read_tokens: int = Field(description="Tokens of a document that are read.")
    metadata: list[str] = Field(description="Fields of a document that are metadata.")
    training: dict[str, Any]
    changes: str = Field(description="Who may change labels: `open`, `token` or `off`.")
    corpus: dict[str, Any] | None = Field(description="The documents whose network can be looked at.")
    limits: dict[str, float]


class CorpusDocument(BaseModel):
    model_config = ConfigDict(extra="allow")

    id: str
    title: str
    abstract: str


class DocumentBrief(BaseModel):
    id: str
    title: str


class CorpusPage(BaseModel):
    total: int
    documents: list[DocumentBrief]


class Relative(BaseModel):
    """A neighbour in the network."""

    id: str
    title: str
    shared: dict[str, list[str]] = Field(description="Metadata that both have.")
    links: list[str] = Field(description="Fields that link to it (→) or from it (←).")


class Relatives(BaseModel):
    id: str
    title: str
    path: str
    total: int = Field(description="Documents that the meta-path reaches.")
    neighbours: list[Relative] = Field(description="Those that share most, first.")
