"""The card of a model: what it is, what it was made of, and how to load it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def model_card(
    config: Mapping[str, Any], repository: str = "path/to/this/folder", labels: int | None = None
) -> str:
    """A model card in the hub's form.

    `repository` is what the model loads by; `labels` their number now, where it has changed since training.
    """
    settings, data, training = config["settings"], config["data"], config["training"]
    labels = data["labels"] if labels is None else labels
    kind = "bi-encoder" if settings["architecture"] == "bi" else "cross-encoder"
    encoders = "`encoder/` is an ordinary Hugging Face encoder."
    if "reader" in config:
        kind = "bi-encoder with a cross-encoder"
        encoders = "`encoder/` (bi) and `cross_encoder/` are ordinary Hugging Face encoders."
    base = str(training.get("base", ""))
    # Only a name of the hub means anything there; a folder on somebody's disk does not.
    base_line = (
        f"base_model: {base}\n" if base.count("/") == 1 and not base.startswith((".", "/", "~")) else ""
    )
    fields = [*config["schema"]["nodes"].values(), *config["schema"]["links"].values()]
    if "pairs_used" in training:
        origin = (
            f"It was trained without any labelled document: from {training['pairs_used']:,} pairs of similar "
            f"documents, found by `{settings['path']}` in the metadata ({', '.join(fields)}) of "
            f"{data['documents']:,} documents."
        )
    else:
        origin = "Its encoder is as it came: untrained, with no labelled document read."
    rows = {
        "labels": f"{labels:,}",
        # A union's bar would end the cell.
        "meta-path": f"`{settings['path']}`".replace("|", "\\|"),
        "recipe": settings["recipe"],
        "base encoder": base or "unknown",
        "micol": config["versions"]["micol"],
    }
    table = "\n".join(f"| {name} | {value} |" for name, value in rows.items())
    report = "".join(f"- {line}\n" for line in config.get("report", ()))
    told = f"\n## Training report\n{report}" if report else ""
    kept = (
        "\n`memory/` holds texts of documents that the model was trained on, to look for similar ones; "
        "whoever has the\nmodel can read them. No labels of documents are in it.\n"
        if "evidence" in config
        else ""
    )
    return f"""---
library_name: micol
pipeline_tag: text-classification
tags: [zero-shot, multi-label, micol]
{base_line}---
# A MICoL {kind}
Tags documents with {labels:,} labels. {origin}

| | |
| --- | --- |
{table}

```python
import micol

model = micol.load("{repository}")
for tagged in model.suggest([{{"id": "d1", "title": "…", "abstract": "…"}}], limit=5):
    print(tagged.id, [label.name for label in tagged.labels])
```
{told}{kept}
{encoders} All settings, versions and data fingerprints: `config.toml`.
"""
