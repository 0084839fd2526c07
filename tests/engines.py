"""The engines beside pandas that a frame may come from, each as a function of an Arrow table."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

ENGINES = {
    "polars": pl.from_arrow,
    "lazy": lambda table: pl.from_arrow(table).lazy(),
    "pyarrow": lambda table: table,
    "duckdb": duckdb.from_arrow,  # of the connection that lives as long as the process
}


def nullable(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame with the types of pandas that have gaps of their own."""
    with np.errstate(
        invalid="ignore"
    ):  # pandas 3.0 casts infinite values to whole numbers to look at them
        return frame.convert_dtypes()


EVERY_ENGINE = {
    "pandas": lambda table: table.to_pandas(),
    "nullable": lambda table: nullable(table.to_pandas()),
    "arrow": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    **ENGINES,
}


def on(engine, columns):
    """Return columns, or an Arrow table of them, as a frame of an engine."""
    return EVERY_ENGINE[engine](columns if isinstance(columns, pa.Table) else pa.table(columns))
