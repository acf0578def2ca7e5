"""Models on the hub: a model folder goes there with its card, and is found there by its name."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from micol import __version__
from micol.card import model_card
from micol.errors import MicolError, UsageError

if TYPE_CHECKING:
    from micol.folder import ModelFolder

# owner/name, as the hub writes it.
REPOSITORY = re.compile(r"[\w][\w.-]{0,95}/[\w][\w.-]{0,95}", re.ASCII)
HOW_TO_LOG_IN = "log in with `hf auth login`, or set HF_TOKEN"


def model_path(model: str | Path) -> Path:
    """The folder that a name means: one on this disk if there is any, else a model on the hub, fetched."""
    path = Path(model)
    if path.exists() or not isinstance(model, str) or not REPOSITORY.fullmatch(model):
        return path
    return fetched(model)


def fetched(repository: str) -> Path:
    """The folder of a model of the hub in this machine's cache; only what has changed is fetched."""
    from huggingface_hub import snapshot_download

    with hub_errors_in_words(f"{repository}: no such folder here, and not fetched from the hub"), bars():
        return Path(snapshot_download(repository, library_name="micol", library_version=__version__))


def push(folder: Path, repository: str, *, public: bool = False, message: str = "A micol model") -> str:
    """Uploads a model folder in one commit; returns its address. A new repository is private, or public."""
    from micol.folder import ModelFolder

    if not REPOSITORY.fullmatch(repository):
        raise UsageError(
            f"{repository!r} is no name of a repository; expected OWNER/NAME, such as library/subjects"
        )
    model = ModelFolder(folder)
    config = model.read_config()
    from huggingface_hub import CommitOperationAdd, HfApi

    additions = [
        CommitOperationAdd(name, card(model, config, repository) if name == "README.md" else str(path))
        for name, path in files(folder)
    ]
    api = HfApi(library_name="micol", library_version=__version__)
    with hub_errors_in_words(f"{repository}: not uploaded"), bars():
        address = api.create_repo(repository, private=not public, exist_ok=True)
        with warnings.catch_warnings():
            # The hub's library takes labels.parquet for a data set that went astray.
            warnings.simplefilter("ignore", UserWarning)
            api.create_commit(repository, additions, commit_message=message)
    return str(address)


def files(folder: Path) -> Iterator[tuple[str, Path]]:
    """The files of a model, by their names within it; what is hidden is not part of it."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_file() and not any(part.startswith(".") for part in name.parts):
            yield name.as_posix(), path


def card(model: ModelFolder, config: Mapping[str, Any], repository: str) -> bytes:
    """The card that tells how to load the model by its name; one that was edited by hand stays as it is."""
    import pyarrow.parquet as pq

    written = (model.path / "README.md").read_text(encoding="utf-8")
    if written != model_card(config):
        return written.encode()
    return model_card(config, repository, pq.read_metadata(model.labels).num_rows).encode()


@contextmanager
def bars() -> Iterator[None]:
    """The hub's progress bars on a terminal; in a log or a pipe, none."""
    from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    if sys.stderr.isatty() or are_progress_bars_disabled():
        yield
        return
    disable_progress_bars()
    try:
        yield
    finally:
        enable_progress_bars()


@contextmanager
def hub_errors_in_words(problem: str) -> Iterator[None]:
    """What went wrong on the way to the hub, in one sentence."""
    from huggingface_hub import errors

    try:
        yield
    except errors.GatedRepoError as error:
        raise MicolError(
            f"{problem}: its owner grants access on request; ask there, and {HOW_TO_LOG_IN}"
        ) from error
    except errors.RepositoryNotFoundError as error:
        raise MicolError(
            f"{problem}: no such model; check the name, or, if it is private, {HOW_TO_LOG_IN}"
        ) from error
    except (errors.OfflineModeIsEnabled, errors.LocalEntryNotFoundError) as error:
        raise MicolError(
            f"{problem}: the hub cannot be reached (no network, or HF_HUB_OFFLINE is set); connect, or copy "
            "the model folder here"
        ) from error
    except errors.HfHubHTTPError as error:
        status = error.response.status_code
        said = f", {error.server_message}" if error.server_message else ""
        remedy = HOW_TO_LOG_IN if status in (401, 403) else "try again later"
        raise MicolError(f"{problem}: the hub answers {status}{said}; {remedy}") from error
    except errors.HTTPError as error:
        raise MicolError(
            f"{problem}: the hub cannot be reached ({type(error).__name__}); check the network"
        ) from error
