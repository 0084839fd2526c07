"""The progress bar of a run, in a terminal and in a notebook."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bar_of(total: int, still: int, progress: bool | None) -> Iterator[Callable[[int], None]]:
    """Show a bar of all cells that starts at those done before; yield what moves it to a number done since."""
    from tqdm.auto import tqdm
    from tqdm.notebook import tqdm_notebook

    hidden = not progress if progress is not None else (False if issubclass(tqdm, tqdm_notebook) else None)
    # The total counts distinct cells: those open now and those that were done before.
    with tqdm(total=still, disable=hidden, unit="cell", dynamic_ncols=True) as bar:
        yield lambda done: bar.update(done - bar.n) if done > bar.n else None
