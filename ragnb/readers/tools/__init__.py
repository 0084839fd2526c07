"""The tables of other tools, a file a family; what each looks like is a table of ``layouts.toml``."""
