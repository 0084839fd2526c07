"""The engines beside pandas that a frame may come from, each as a function of an Arrow table."""

import duckdb
import polars as pl

ENGINES = {
    "polars": pl.from_arrow,
    "lazy": lambda table: pl.from_arrow(table).lazy(),
    "pyarrow": lambda table: table,
    "duckdb": duckdb.from_arrow,  # of the connection that lives as long as the process
}
