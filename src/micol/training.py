"""Pairs to a trained ranker: the paper's Algorithm 1, for both architectures."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from micol.classify import Classifier
from micol.corpus import Corpus
from micol.errors import MicolError, UsageError
from micol.evidence.choice import HiddenTitles, judge_paths, verdict
from micol.folder import ModelFolder
from micol.labels import LabelSpace
from micol.metapath import MetaPath
from micol.pairs import Method, Pairs, draw_pairs, why_none
from micol.plots import plot_losses
from micol.progress import say
from micol.rank import team
from micol.rank.base import DEFAULT_BASE, resolve_base
from micol.rank.bi_encoder import BiEncoder
from micol.rank.checkpoints import Checkpoints, clear_failures, kept_beside
from micol.rank.cross_encoder import CrossEncoder
from micol.rank.distill import teacher_lists
from micol.rank.encoder import Encoder, saved_pooling
from micol.rank.examples import ListExamples, PairExamples
from micol.rank.trainer import BiModule, CrossModule, fit
from micol.settings import AUTO, Settings, resolve, resolve_teacher

# Of the pairs that exist, at most this share is held back for validation.
MOST_VALIDATION = 0.1


def train(
    corpus: Corpus,
    labels: LabelSpace,
    path: str = AUTO,
    architecture: str = "bi",
    *,
    recipe: str = "best",
    base: str | None = None,
    ready_pairs: Pairs | None = None,
    output: str | Path | None = None,
    resume: bool = False,
    init_only: bool = False,
    tensorboard: bool = False,
    **given: Any,
) -> Classifier:
    """Trains on the documents' metadata alone and returns a classifier; with `output`, saves it there.

    The path `auto` is chosen without labels. What was used, what was rejected and why: `config["report"]`.
    `ready_pairs` are used in place of drawn ones. Any setting of `micol.settings.Settings` may be given.
    Interrupted, the same call with `resume=True` goes on from the newest whole checkpoint beside `output`.
    """
    settings = resolve(architecture, path, recipe, given)
    if settings.labels_per_document >= len(labels):
        raise UsageError(
            f"labels_per_document must be fewer than there are labels ({len(labels):,} in {labels.source}), "
            f"got {settings.labels_per_document:g}"
        )
    report: list[str] = []
    if settings.path == AUTO and ready_pairs is None and not init_only:
        settings, report = with_chosen_path(corpus, labels, settings)
    teacher = resolve_teacher(settings, given)
    if output is not None:
        ModelFolder(Path(output)).check_free()
    elif team.size() > 1:
        raise UsageError("several processes that train together need an output to share")
    team.join()
    source = resolve_base(base)
    record: dict[str, Any] = {"base": base or DEFAULT_BASE}
    teacher_settings = teacher.as_dict() if teacher else {}
    run = {
        **settings.as_dict(),
        **record,
        **{f"the teacher's {name}": value for name, value in teacher_settings.items()},
        "documents": corpus.fingerprint,
        "labels": labels.fingerprint,
        "given pairs": None if ready_pairs is None else digest(ready_pairs),
        "processes": team.size(),
    }
    with kept_beside(output, run, resume=resume, tensorboard=tensorboard) as checkpoints:
        if init_only:
            settings = replace(settings, evidence=False)
        if init_only or (settings.path == AUTO and ready_pairs is None):
            trained = Trained(untrained(source, settings))
        else:
            pairs = pairs_for(corpus, teacher or settings) if ready_pairs is None else ready_pairs
            with clear_failures(checkpoints.folder):
                trained = fit_ranker(corpus, labels, pairs, source, settings, teacher, checkpoints)
            check_numbers(trained.reader or trained.ranker, labels, settings)
            record["pairs_used"] = len(pairs.anchor)
            record["final_loss"] = [entry["loss"] for entry in trained.log if "loss" in entry][-1]
            if settings.evidence:
                trained, said = with_better_encoder(
                    corpus, labels, trained, untrained(source, teacher or settings), settings.seed
                )
                report.append(said)
        if teacher is not None:
            record["teacher_settings"] = teacher_settings
        classifier = Classifier.build(labels, trained.ranker, settings, record, corpus, trained.reader)
        classifier.config["report"] = report + evidence_report(classifier)
        if output is not None and team.is_leader():
            classifier.save(output)
            if trained.log:
                plot_losses(trained.log, Path(output) / "training.png")
    return classifier


@dataclass(frozen=True)
class Trained:
    """A ranker and its losses; a cross-encoder that is one source of evidence reads beside its teacher."""

    ranker: BiEncoder | CrossEncoder
    log: Sequence[dict[str, Any]] = ()
    reader: CrossEncoder | None = None


def with_chosen_path(corpus: Corpus, labels: LabelSpace, settings: Settings) -> tuple[Settings, list[str]]:
    """The settings with the path that promises most, and why; without any where none promises anything."""
    judged = judge_paths(corpus, labels, settings.seed)
    if not judged or judged[0].score <= 0:
        if settings.architecture == "cross":
            raise MicolError(
                f"{corpus.source}: no meta-path joins documents that are alike, so there is nothing to train "
                "a cross-encoder on; give --path or --pairs-file, or train --architecture bi"
            )
        return settings, ["no meta-path joins documents that are alike, so the encoder stays untrained"]
    best, *others = judged
    report = [f"trained on {best.sentence()}, the highest of {len(judged)}"]
    report += [f"not trained on {other.sentence()}" for other in others]
    return replace(settings, path=best.path), report


def with_better_encoder(
    corpus: Corpus, labels: LabelSpace, trained: Trained, untrained: BiEncoder, seed: int
) -> tuple[Trained, str]:
    """Ranks by the trained encoder if it beats the untrained one where no label is needed to tell."""
    hidden = HiddenTitles.of(corpus, labels, seed)
    if hidden is None:
        return replace(trained, ranker=untrained), (
            "too few titles name a label to tell whether training helped, so the untrained encoder is used"
        )
    assert isinstance(trained.ranker, BiEncoder)
    for ranker in (trained.ranker, untrained):
        ranker.encoder.settle()
    found = verdict(hidden, untrained, trained.ranker)
    return trained if found.helped else replace(trained, ranker=untrained), found.sentence()


def evidence_report(classifier: Classifier) -> list[str]:
    """What each source of evidence weighs, and which were left out."""
    return classifier.fused.fusion.told() if classifier.fused else []


def pairs_for(corpus: Corpus, settings: Settings) -> Pairs:
    """Draws the pairs of the settings' meta-path, those for validation included."""
    wanted = settings.pairs + (settings.validation_pairs if settings.keep_best else 0)
    network, path = corpus.network(), MetaPath(settings.path)
    pairs = draw_pairs(network, path, wanted, seed=settings.seed, method=cast(Method, settings.sampling))
    if not len(pairs.anchor):
        raise MicolError(
            f"{corpus.source}: no document reaches another by {settings.path}, so there is nothing to train "
            f"on: {why_none(network, path)}"
        )
    if len(pairs.anchor) < wanted:
        say(f"only {len(pairs.anchor):,} pairs exist by {settings.path}; training on those")
    return pairs


def pooling_of(source: str, settings: Settings) -> str:
    """As set, else as the base was trained, else the mean."""
    return settings.pooling if settings.pooling != "auto" else saved_pooling(source) or "mean"


def untrained(source: str, settings: Settings) -> BiEncoder:
    if settings.architecture == "cross":
        raise MicolError(
            "an untrained cross-encoder has no score (its linear layer is random); use --architecture bi"
        )
    return BiEncoder(Encoder.load(source, settings.max_tokens), pooling_of(source, settings))


def fit_ranker(
    corpus: Corpus,
    labels: LabelSpace,
    pairs: Pairs,
    source: str,
    settings: Settings,
    teacher: Settings | None,
    checkpoints: Checkpoints,
) -> Trained:
    if settings.architecture == "bi":
        return Trained(*fit_bi(corpus, labels, pairs, source, settings, checkpoints))
    if teacher is None:
        return Trained(*fit_cross(corpus, labels, pairs, source, settings, checkpoints))
    return fit_taught_cross(corpus, labels, pairs, source, settings, teacher, checkpoints)


def fit_bi(
    corpus: Corpus,
    labels: LabelSpace,
    pairs: Pairs,
    source: str,
    settings: Settings,
    checkpoints: Checkpoints,
) -> tuple[BiEncoder, list[dict[str, Any]]]:
    """Eq. 9 on metadata pairs, with titles against abstracts mixed in where the settings ask for it."""
    torch.manual_seed(settings.seed)
    encoder = Encoder.load(source, settings.max_tokens)
    pooling = pooling_of(source, settings)
    before = {name: weight.detach().cpu().clone() for name, weight in encoder.model.state_dict().items()}
    training, validation = split(pairs, settings)
    examples = pair_examples(encoder, corpus, training, settings)
    if settings.hard_negatives:
        examples = with_hard_negatives(examples, untrained(source, settings), settings)
    log = fit(
        BiModule(encoder, pooling),
        settings,
        examples,
        pair_examples(encoder, corpus, validation, settings) if validation else None,
        checkpoints.of("bi"),
        what=f"training on {settings.path}",
    )
    interpolate(encoder.model, before, settings.interpolate)
    return BiEncoder(encoder, pooling), log


def split(pairs: Pairs, settings: Settings) -> tuple[Pairs, Pairs | None]:
    """Pairs to train on and, where the best checkpoint is kept, pairs to judge it by."""
    if not settings.keep_best:
        return pairs, None
    held = max(1, min(settings.validation_pairs, int(len(pairs.anchor) * MOST_VALIDATION)))
    if len(pairs.anchor) <= held:
        raise MicolError(f"{len(pairs.anchor)} pair(s) are too few to hold any back for validation")
    first, last = slice(min(settings.pairs, len(pairs.anchor) - held)), slice(-held, None)
    return (
        Pairs(pairs.anchor[first], pairs.positive[first], pairs.exhausted),
        Pairs(pairs.anchor[last], pairs.positive[last], pairs.exhausted),
    )


def pair_examples(encoder: Encoder, corpus: Corpus, pairs: Pairs, settings: Settings) -> PairExamples:
    """Metadata pairs, of which a share is replaced by (title, abstract) of the anchor."""
    anchors, positives = pairs.anchor, pairs.positive
    documents, inverse = np.unique(np.concatenate([anchors, positives]), return_inverse=True)
    texts = encoder.tokenize(corpus.texts(documents))
    anchor_texts, positive_texts = np.split(inverse, 2)
    owners = documents
    chosen = np.zeros(len(anchors), dtype=bool)
    if settings.title_pairs:
        chosen = np.random.default_rng((settings.seed, 1)).random(len(anchors)) < settings.title_pairs
        parts = corpus.table.select(["title", "abstract"]).take(anchors[chosen]).to_pydict()
        both = np.array(
            [bool(t and a) for t, a in zip(parts["title"], parts["abstract"], strict=True)], dtype=bool
        )
        chosen[np.flatnonzero(chosen)[~both]] = False
        for side, target in (("title", anchor_texts), ("abstract", positive_texts)):
            target[chosen] = len(texts) + np.arange(both.sum())
            texts += encoder.tokenize([text for text, keep in zip(parts[side], both, strict=True) if keep])
            owners = np.concatenate([owners, anchors[chosen]])
    return PairExamples(encoder.framing, texts, anchor_texts, positive_texts, owners)


def with_hard_negatives(examples: PairExamples, encoder: BiEncoder, settings: Settings) -> PairExamples:
    """The examples with what the untrained encoder makes of their texts, by which alike pairs meet."""
    encoder.encoder.settle()
    vectors = encoder.vectors_of(examples.texts, "looking for alike documents").astype(np.float16)
    return replace(examples, neighbourhood=settings.hard_negatives, untrained=vectors)


def interpolate(model: torch.nn.Module, before: dict[str, torch.Tensor], share: float) -> None:
    """Moves the weights back towards the untrained ones: what the base knew and training forgot returns."""
    if share == 1.0:
        return
    with torch.no_grad():
        for name, weight in model.state_dict().items():
            if weight.is_floating_point():
                weight.lerp_(before[name].to(weight.device), 1.0 - share)


def fit_cross(
    corpus: Corpus,
    labels: LabelSpace,
    pairs: Pairs,
    source: str,
    settings: Settings,
    checkpoints: Checkpoints,
) -> tuple[CrossEncoder, list[dict[str, Any]]]:
    """Eq. 11, against random documents as in the paper."""
    torch.manual_seed(settings.seed)
    cross = CrossEncoder.untrained(Encoder.load(source, settings.max_tokens), settings.seed)
    training, validation = split(pairs, settings)
    log = fit(
        CrossModule(cross.encoder, cross.head),
        settings,
        random_negatives(cross, corpus, training, settings),
        random_negatives(cross, corpus, validation, settings) if validation else None,
        checkpoints.of("cross"),
        what=f"training on {settings.path}",
    )
    return cross, log


def random_negatives(cross: CrossEncoder, corpus: Corpus, pairs: Pairs, settings: Settings) -> ListExamples:
    """Each anchor with its positive first, then documents drawn from the whole corpus."""
    generator = np.random.default_rng((settings.seed, 2))
    negatives = generator.integers(len(corpus), size=(len(pairs.anchor), settings.negatives))
    lists = np.concatenate([pairs.positive[:, None], negatives], axis=1)
    documents, inverse = np.unique(
        np.concatenate([pairs.anchor[:, None], lists], axis=1), return_inverse=True
    )
    inverse = inverse.reshape(len(lists), -1)
    tokens = cross.tokenize(corpus.texts(documents))
    targets = np.zeros(lists.shape, dtype=np.float32)
    targets[:, 0] = 1.0
    return ListExamples(cross.encoder.framing, tokens, tokens, inverse[:, 0], inverse[:, 1:], targets)


def fit_taught_cross(
    corpus: Corpus,
    labels: LabelSpace,
    pairs: Pairs,
    source: str,
    settings: Settings,
    teacher_settings: Settings,
    checkpoints: Checkpoints,
) -> Trained:
    """A bi-encoder learns from the pairs and teaches the cross-encoder to rank candidate labels."""
    teacher, _ = fit_bi(corpus, labels, pairs, source, teacher_settings, checkpoints)
    documents = np.random.default_rng((settings.seed, 3)).permutation(len(corpus))[: settings.pairs]
    texts = corpus.texts(documents)
    documents_of, lists, targets = teacher_lists(teacher, texts, labels, settings)
    torch.manual_seed(settings.seed)
    # The cross-encoder begins as its teacher, which is given up for it unless it is to rank beside it.
    beginning = copy.deepcopy(teacher.encoder.model) if settings.evidence else teacher.encoder.model
    encoder = Encoder(beginning, teacher.encoder.tokenizer, settings.max_tokens)
    cross = CrossEncoder.untrained(encoder, settings.seed)
    examples = ListExamples(
        encoder.framing, cross.tokenize(texts), cross.tokenize(labels.texts()), documents_of, lists, targets
    )
    log = fit(
        CrossModule(encoder, cross.head),
        settings,
        examples,
        None,
        checkpoints.of("cross"),
        what="training the cross-encoder",
    )
    return Trained(teacher, log, reader=cross) if settings.evidence else Trained(cross, log)


def check_numbers(ranker: BiEncoder | CrossEncoder, labels: LabelSpace, settings: Settings) -> None:
    """The loss tells that training has diverged only a step later, and there is none after the last."""
    encoder = ranker.encoder
    with encoder.inference():
        batch = encoder.framing.pack(encoder.tokenize(labels.texts()[:1])).to(encoder.device)
        found = encoder.hidden(batch).float()
        if isinstance(ranker, CrossEncoder):
            found = ranker.head(found)
    if not bool(found.isfinite().all()):
        raise MicolError(
            "training has diverged: the encoder's vectors are no numbers any more; lower the learning rate "
            f"(now {settings.learning_rate:g})"
        )


def digest(pairs: Pairs) -> str:
    return hashlib.sha256(pairs.anchor.tobytes() + pairs.positive.tobytes()).hexdigest()
