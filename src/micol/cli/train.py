"""micol train: documents with metadata and a label space become a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import click

from micol.errors import MicolError
from micol.progress import is_leader, say, say_left_out, say_warnings
from micol.settings import ARCHITECTURES, AUTO, CHOICES, RECIPES, Settings, resolve

if TYPE_CHECKING:
    from micol.classify import Classifier
    from micol.corpus import Corpus
    from micol.pairs import Pairs

# One line for each setting that is not an option of its own; a test holds this complete.
HELP = {
    "pairs": "Pairs to draw and train on; with a teacher, also the documents that it ranks labels for.",
    "validation_pairs": "Further pairs to judge checkpoints by, with --keep-best; at most a tenth of all.",
    "sampling": "How a positive is drawn: uniform, node-first or rarity, as in `micol pairs --method`.",
    "title_pairs": "Share of pairs that are replaced by a document's title against its abstract.",
    "hard_negatives": "Bi-encoder: how many pairs of alike documents meet in a batch; 0: as chance has it.",
    "max_tokens": "Tokens read of a text, or of both texts of the cross-encoder together; more are cut.",
    "pooling": "The bi-encoder's vector: cls, mean, or auto (as the base was trained, else mean).",
    "batch_size": "Pairs in a batch; the bi-encoder's negatives come from it.",
    "gradient_cache": "Texts encoded at once, to fit large batches into memory; 0: as many as fit.",
    "epochs": "Times over all pairs.",
    "learning_rate": "Learning rate at its highest; it falls to zero linearly.",
    "warmup": "Share of the steps over which the learning rate rises.",
    "weight_decay": "AdamW's weight decay; at 0 it is Adam.",
    "temperature": "Divides the bi-encoder's cosines in the loss.",
    "negatives": "Texts set against the positive, cross-encoder only.",
    "teacher": "What the cross-encoder learns from: none (pairs, random negatives) or bi (a bi-encoder).",
    "interpolate": "How far from the untrained (0) to the trained (1) weights the saved ones lie.",
    "keep_best": "Keep the checkpoint with the best validation loss, not the last.",
    "checkpoints": "How often training is saved, so that it can be resumed; 0: never.",
    "dropout": "Train with the base's dropout.",
    "attention_dropout": "Train with the base's attention dropout too, which is slower.",
    "bf16": "Train in bfloat16 where the hardware has it.",
    "compile": "Compile the encoder with torch.compile.",
    "bm25_top": "Candidates a document gets by BM25, when the model tags.",
    "dense_top": "Candidates a document gets by vector, when a bi-encoder tags; 0: none.",
    "evidence": "Fuse the encoder's score with what the text names and what similar and linked documents do.",
    "memory": "Documents remembered, with their vectors, to look for similar and linked ones.",
    "hierarchy": "Whether documents have their special labels alone or the general ones above, too.",
    "labels_per_document": "Labels that people usually give a document, which scores then add up to; 0: "
    "found out, but not well.",
    "seed": "Decides pairs, order and initial weights.",
}


def setting_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """An option for each setting that has a default, in the order of `Settings`."""
    types = get_type_hints(Settings)
    for setting in reversed(fields(Settings)):
        if setting.name in ("architecture", "path", "recipe"):
            continue
        flag = "--" + setting.name.replace("_", "-")
        kind = types[setting.name]
        text = f"{HELP.get(setting.name, '')}  [default: {usual(setting.name)}]"
        if kind is bool:
            option = click.option(f"{flag}/--no-{flag[2:]}", setting.name, default=None, help=text)
        else:
            choices = f"[{'|'.join(CHOICES[setting.name])}]" if setting.name in CHOICES else None
            option = click.option(flag, setting.name, type=kind, metavar=choices, help=text)
        command = option(command)
    return command


def usual(setting: str) -> str:
    """What the default recipe sets, for both architectures."""
    bi, cross = (getattr(resolve(each, "", "best", {}), setting) for each in ARCHITECTURES)
    if isinstance(bi, bool):
        bi, cross = ("yes" if value else "no" for value in (bi, cross))
    return f"{bi}" if bi == cross else f"{bi}; cross: {cross}"


@click.command("train")
@click.argument("docs", nargs=-1, required=True)
@click.option("--labels", "labels_file", required=True, metavar="LABELS", help="The label space.")
@click.option(
    "--path",
    metavar="PATH",
    help="The meta-path, such as 'P->P<-P' or 'P->P|PAP'; auto: chosen without labels.  [default: auto]",
)
@click.option(
    "--architecture", default="bi", show_default=True, type=click.Choice(ARCHITECTURES), help="The ranker."
)
@click.option(
    "--recipe",
    default="best",
    show_default=True,
    type=click.Choice(list(RECIPES)),
    help="Settings to begin with: the paper's to the letter, or those that measured best.",
)
@click.option(
    "--base", metavar="DIR_OR_HUB_ID", help="The encoder to begin with.  [default: all-MiniLM-L6-v2]"
)
@click.option("--init-only", is_flag=True, help="Save the untrained base as a model.")
@click.option(
    "--pairs-file",
    metavar="PAIRS.parquet",
    help="Train on these pairs (columns anchor and positive, document ids) instead of drawn ones.",
)
@click.option(
    "--schema", "schema_file", metavar="S.toml", help="Which fields are metadata; the default is the paper's."
)
@click.option("--exclude-ids", metavar="FILE", help="Leave out the documents whose ids it lists, one a line.")
@click.option("--skip-bad", is_flag=True, help="Leave out broken records, and say which.")
@click.option("--resume", is_flag=True, help="Go on where an interrupted training with the same -o stopped.")
@click.option("--tensorboard", is_flag=True, help="Write TensorBoard logs beside the model.")
@click.option("-o", "--output", required=True, metavar="MODEL", help="The model folder to write.")
@setting_options
def command(
    docs: Sequence[str],
    labels_file: str,
    path: str | None,
    architecture: str,
    recipe: str,
    base: str | None,
    init_only: bool,
    pairs_file: str | None,
    schema_file: str | None,
    exclude_ids: str | None,
    skip_bad: bool,
    resume: bool,
    tensorboard: bool,
    output: str,
    **options: Any,
) -> None:
    """Trains a model on the metadata of DOCS, to tag documents with LABELS; no document needs a label.

    The options behind -o are the settings of training, with the defaults of --recipe best.
    """
    from micol.corpus import Corpus
    from micol.labels import LabelSpace
    from micol.metapath import MetaPath
    from micol.schema import Schema

    given = {name: value for name, value in options.items() if value is not None}
    schema = Schema.read(schema_file)
    # What is wrong with the request is told before a large file is read.
    if pairs_file:
        path = path or Path(pairs_file).name
    elif path in (None, AUTO):
        path = AUTO
    else:
        MetaPath(path).bind(schema)
    resolve(architecture, path, recipe, given)
    check_output(output, resume)
    labels = LabelSpace.read(labels_file, skip_bad=skip_bad)
    corpus = Corpus.read(list(docs), schema, skip_bad=skip_bad)
    say_left_out([*labels.skipped, *corpus.skipped])
    say_warnings(labels.warnings, labels_file)
    if exclude_ids:
        corpus = without(corpus, exclude_ids)
    pairs = read_pairs(pairs_file, corpus) if pairs_file else None

    # After the data, whose errors need not wait for torch to load.
    from micol.training import train

    model = train(
        corpus,
        labels,
        path,
        architecture,
        recipe=recipe,
        base=base,
        ready_pairs=pairs,
        output=output,
        resume=resume,
        init_only=init_only,
        tensorboard=tensorboard,
        **given,
    )
    if is_leader():
        click.echo(summary(model, output))


def check_output(output: str, resume: bool) -> None:
    """Better said before training than after it."""
    from micol.folder import ModelFolder

    ModelFolder(Path(output)).check_free()
    folder = Path(f"{Path(output)}.training")
    if not resume and any(folder.glob("*/checkpoint-*")):
        raise MicolError(
            f"{folder}: holds checkpoints of a training that was interrupted; go on with --resume, or remove "
            "the folder to train anew"
        )


def without(corpus: Corpus, ids_file: str) -> Corpus:
    from micol.files import read_ids

    left_out = read_ids(ids_file)
    kept = [position for position, name in enumerate(corpus.ids) if name not in left_out]
    if not kept:
        raise MicolError(f"{ids_file}: lists every document of {corpus.source}; nothing is left to train on")
    if len(kept) == len(corpus):
        raise MicolError(
            f"{ids_file}: lists no document of {corpus.source}; expected one id a line, such as "
            f"{corpus.ids[0]!r}"
        )
    say(f"{len(corpus) - len(kept):,} documents left out of training, {len(kept):,} remain")
    return corpus.select(kept)


def read_pairs(path: str, corpus: Corpus) -> Pairs:
    """Pairs of document ids as pairs of positions."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    from micol.files import damaged, open_bytes
    from micol.pairs import Pairs

    open_bytes(path).close()  # says in plain words if it cannot be opened
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise damaged(path, error) from error
    positions = []
    for name in ("anchor", "positive"):
        if name not in table.column_names or not pa.types.is_string(table[name].type):
            raise MicolError(
                f"{path}: no column {name!r} of document ids; expected anchor and positive, as `micol pairs` "
                "writes them"
            )
        found = pc.index_in(table[name].combine_chunks(), pa.array(corpus.ids, pa.string()))
        if found.null_count:
            unknown = table[name].filter(pc.is_null(found))[0].as_py()
            raise MicolError(
                f"{path}: the {name} {unknown!r} is no document of {corpus.source} (or was left out of "
                f"training); take it out, {found.null_count:,} such in all"
            )
        positions.append(found.to_numpy(zero_copy_only=False).astype(np.int64))
    if not len(table):
        raise MicolError(
            f"{path}: holds no pair, so there is nothing to train on; make some with `micol pairs`"
        )
    anchor, positive = positions
    return Pairs(anchor, positive, exhausted=True)


def summary(model: Classifier, output: str) -> str:
    """Where the model is, and what it was made with."""
    settings, training = model.config["settings"], model.config["training"]
    usual = resolve(settings["architecture"], settings["path"], settings["recipe"], {}).as_dict()
    changed = [f"{name} {value}" for name, value in settings.items() if usual[name] != value]
    lines = [
        f"model     {output}",
        f"settings  recipe {settings['recipe']}" + (f" with {', '.join(changed)}" if changed else ""),
        f"labels    {len(model.labels):,}",
    ]
    if "pairs_used" in training:
        lines += [f"pairs     {training['pairs_used']:,} by {settings['path']}"]
        lines += [
            f"loss      {training['final_loss']:.4f} at the end; curve in {Path(output) / 'training.png'}"
        ]
    else:
        lines += [f"untrained {training['base']}"]
    return "\n".join([*lines, *(f"          {line}" for line in model.config.get("report", ()))])
