"""Polars, imported on first use: reading a small CSV does not need it, and its import takes 0.2 s."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl
else:

    class _Polars:
        def __getattr__(self, name: str) -> Any:
            import polars

            return getattr(polars, name)

    pl = _Polars()

__all__ = ["pl"]
