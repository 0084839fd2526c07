"""The engines beside pandas that a frame may come from, each as a function of an Arrow table."""

import duckdb
import polars as pl

ENGINES = {
    "polars": pl.from_arrow,
    "lazy": lambda table: pl.from_arrow(table).lazy(),
    "pyarrow": lambda table: table,
    "duckdb": lambda table: duckdb.connect().from_arrow(table),
}
