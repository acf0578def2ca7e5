"""Options that several verbs have."""

from __future__ import annotations

import click

spark_option = click.option(
    "--spark",
    "spark_settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting of Spark, such as spark.master=spark://head:7077; may be repeated.",
)
