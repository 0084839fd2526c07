"""Polars, opened when it is first used: to read a small CSV takes none of it, and its import .2 s."""

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
