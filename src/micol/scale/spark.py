"""A Spark session for mining and tagging: on the cluster that Spark is set up for, else on this machine."""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from micol.errors import MicolError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER = "spark.master"
# What a task may fail: a worker that is killed takes its task with it, and on one machine Spark would give up
# at once unless it is told otherwise.
ATTEMPTS = 4
PROGRESS = "spark.ui.showConsoleProgress"
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
# On one machine nobody else has to find the driver, and no name of the machine has to be looked up.
ALONE = {
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}


@contextmanager
def session(name: str, given: Mapping[str, str]) -> Iterator[SparkSession]:
    """A session that ends with the block, unless it ran before. `given` are settings, above all others."""
    check_installed()
    # Of what is newer than the tests of Spark's own release; no user can do anything about it.
    warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
    from pyspark.sql import SparkSession

    settings = {PROGRESS: "false", **given}
    if MASTER not in settings and not has_master():
        settings[MASTER] = f"local[{len(os.sched_getaffinity(0))},{ATTEMPTS}]"
    if settings.get(MASTER, "").startswith("local"):
        settings = on_one_machine(settings)
    running = SparkSession.getActiveSession()
    builder = SparkSession.builder.appName(name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        if running is None:
            spark.stop()


def on_one_machine(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings with all that Spark needs to keep to itself, and quiet."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # Workers would be of whatever `python3` the PATH has.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    quiet = f"-Dlog4j2.configurationFile={(Path(__file__).parent / 'log4j2.properties').as_uri()}"
    return {**ALONE, **settings, JAVA_OPTIONS: f"{quiet} {settings.get(JAVA_OPTIONS, '')}".strip()}


def settings_of(given: Iterable[str]) -> dict[str, str]:
    """Settings of Spark from options of the form KEY=VALUE."""
    found = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key.startswith("spark."):
            raise UsageError(
                f"--spark {text}: expected KEY=VALUE, such as {MASTER}=spark://head:7077 or "
                "spark.executor.memory=8g"
            )
        found[key] = value
    return found


def check_installed() -> None:
    try:
        import pyspark  # noqa: F401
    except ModuleNotFoundError:
        raise MicolError(
            "--engine spark needs pyspark, which is not installed; pip install 'micol[scale]'"
        ) from None
    home = os.environ.get("JAVA_HOME")
    if not (shutil.which(str(Path(home) / "bin" / "java")) if home else shutil.which("java")):
        raise MicolError(
            "--engine spark needs Java 17 or newer, and there is none"
            + (f" in JAVA_HOME ({home})" if home else "")
            + "; apt-get install default-jre-headless"
        )


def has_master() -> bool:
    """Whether Spark is told where to run: by spark-submit, in the environment, or in spark-defaults.conf."""
    if "PYSPARK_GATEWAY_PORT" in os.environ or "--master" in os.environ.get("PYSPARK_SUBMIT_ARGS", ""):
        return True
    home = os.environ.get("SPARK_HOME")
    folder = os.environ.get("SPARK_CONF_DIR") or (home and str(Path(home) / "conf"))
    defaults = Path(folder) / "spark-defaults.conf" if folder else None
    return bool(
        defaults
        and defaults.is_file()
        and any(line.split()[:1] == [MASTER] for line in defaults.read_text(encoding="utf-8").splitlines())
    )
