"""The catalogue: every metric, rule, gate, label and note, from the tables and texts of the library.

What the library does not hold (why a threshold, how tools differ, what to do) is in ``catalogue.<lang>.toml``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from markdown import anchor, code, heading, link, page, plain, prose, sentence, table, toctree

import ragnb as rn
from ragnb import texts
from ragnb.diagnostics.completeness import ALLOWED
from ragnb.diagnostics.findings import MODES, READS
from ragnb.diagnostics.rules import rule_texts
from ragnb.scoring import SCORERS
from ragnb.traces import RATES

TOTAL = rn.Metric("total", -math.inf, math.inf, family="total")  # its own name is no metric's
METRICS = {"weighted_score": TOTAL, **rn.METRICS}
RULES = {rule.name: rule for rule in rn.RULES}
DEFAULT_GATES = {gate.name: gate for gate in rn.DEFAULT_GATES}
ALLOW = rn.Scenario.without_files().allow
COMPLETENESS = {
    name: rn.Gate(name, name, ">=", 1 - getattr(ALLOW, key)) for name, key in ALLOWED.items()
}
LABELS = tuple(texts.entry("en", "label"))
COUNTED = {  # by the rates' own definitions, which `label_traces` computes
    "OK": ("correct_outcome", "answer_precision", "citation_hit_rate"),
    "REFUSAL_OK": ("correct_outcome",),
    "OVER_REFUSAL": ("over_refusal",),
    "HALLUCINATION": ("under_refusal",),
    "ANS_NO_HIT": (),
}

_PARTS = {
    "note": ("first", "quoted", "join"),
    "judge.note": ("cut_evidence",),
    "judge.loop": ("message",),
}
_PARTS["judge.loop"] += ("unreported", "most", "written")
_OTHER_CODE = {
    "few_clusters_counted": "few_clusters",
    "few_rows_counted": "few_rows",
    "systems_candidate": "systems",
    "stage_streamed": "stage_unused",
    "no_total_mixed": "no_total",
    "no_total_unbounded": "no_total",
    "on_the_bar": "more_needed",
    "documents_unseen": "documents_may_fail",
    "no_data_blocks": "no_data",
    "no_data_skipped": "no_data",
}
_GROUPS = {
    "run": "note",
    "judge": "judge.note",
    "loop": "judge.loop",
    "calibration": "calibration.note",
}


def note_codes() -> dict[str, dict[str, list[str]]]:
    """Return the codes of notes by where they appear, each with the keys of its texts."""
    found: dict[str, dict[str, list[str]]] = {}
    for group, table_name in _GROUPS.items():
        codes = found.setdefault(group, {})
        for key in texts.entry("en", table_name):
            if key not in _PARTS.get(table_name, ()):
                name = _OTHER_CODE.get(key, key) if group == "run" else key
                codes.setdefault(name, []).append(f"{table_name}.{key}")
    run = found["run"]
    run["least_set"] = ["mode_note.least_set"]
    run |= {f"gold_{key}": [f"gold.{key}"] for key in texts.entry("en", "gold")}
    return found


def note_anchor(group: str, name: str) -> str:
    """Return what a note is called in its anchor: notes of a report by their code alone."""
    return name if group == "run" else f"{group}-{name}"


class Words:
    """The texts of a language: those of the library, and the prose of the catalogue."""

    def __init__(self, lang: str) -> None:
        self.lang, self.prose = lang, prose("catalogue", lang)

    def __getitem__(self, key: str) -> str:
        return str(self.prose["page"][key])

    def metric(self, name: str) -> Mapping[str, str]:
        """Return what is said of a metric, by the library and then by the catalogue."""
        return {
            **self.prose["metrics"].get(name, {}),
            **texts.table(self.lang)["metrics"].get(name, {}),
        }

    def name(self, name: str) -> str:
        """Return a metric's plain name."""
        return self.metric(name)["name"]

    def bold(self, key: str, text: str) -> str:
        """Return a paragraph that begins with what it is about."""
        return f"**{self[key]}** {text}" if text else ""


def pages(lang: str) -> dict[str, str]:
    """Return the pages in one language: path below `generated/` → Markdown."""
    words = Words(lang)
    for name in METRICS:
        if "name" not in words.metric(name):
            raise SystemExit(f"ragnb/texts/{lang}.toml: [metrics.{name}] is missing, or its name")
        if name not in words.prose["metrics"]:
            raise SystemExit(f"docs/ext/catalogue.{lang}.toml: [metrics.{name}] is missing")
    made = {
        "index": index,
        "metrics": metrics,
        "rules": rules,
        "gates": gates,
        "labels": labels,
        "notes": notes,
    }
    return {f"catalogue/{name}.md": write(words) for name, write in made.items()}


def index(words: Words) -> str:
    """Return the first page: one table of metrics, one of gates, and where all other entries are."""
    rows = []
    for name in METRICS:
        told = words.metric(name)
        rule = RULES.get(name)
        limits = (
            " / ".join(f"{at:g}" for at in (rule.warning, rule.critical) if at is not None)
            if rule
            else "—"
        )
        says = plain(told.get("gloss", "") or glossary(words, "score"))
        rows.append(
            [link("metric", name, told["name"]), f"`{name}`", says, _range(words, name), limits]
        )
    of_gates = [
        [
            link("gate", name),
            requirement(words, gate),
            f"`{gate.metric} {gate.op} {gate.threshold:g}`",
        ]
        for name, gate in {**DEFAULT_GATES, **COMPLETENESS}.items()
    ]
    notes_of = []
    for group, codes in note_codes().items():
        entries = " ".join(link("note", note_anchor(group, name), f"`{name}`") for name in codes)
        notes_of.append([words.prose["group"][group], entries])
    others = [
        [words["rules"], " ".join(link("rule", name) for name in RULES)],
        [words["outcomes"], " ".join(link("label", name) for name in LABELS)],
        [words["modes"], " ".join(link("mode", name) for name in MODES)],
        *notes_of,
    ]
    head = [
        words["index_metric"],
        words["identifier"],
        words["index_says"],
        words["range"],
        words["index_warn"],
    ]
    return page(
        f"# {words['title']}",
        words["intro"],
        toctree("metrics", "rules", "gates", "labels", "notes"),
        f"## {words['metrics']}",
        table(head, rows),
        f"## {words['gates']}",
        table([words["index_gate"], words["requires"], words["formula"]], of_gates),
        f"## {words['index_others']}",
        table([words["index_kind"], words["index_entries"]], others),
    )


def glossary(words: Words, name: str) -> str:
    """Return an entry of the report's own glossary."""
    return str(texts.entry(words.lang, f"glossary.{name}.text"))


def _range(words: Words, name: str) -> str:
    metric = METRICS[name]
    arrow = "↑" if metric.better == "higher" else "↓"
    ends = words["to"].format(low=f"{metric.low:g}", high=f"{metric.high:g}")
    return f"{ends} {arrow}" if metric.bounded else arrow


def metrics(words: Words) -> str:
    """Return the page of metrics, by family."""
    parts = [f"# {words['metrics']}", words["metrics_intro"]]
    families = words.prose["family"]
    for name, metric in METRICS.items():
        if metric.family not in families:
            raise SystemExit(
                f"docs/ext/catalogue.*.toml, [family]: {metric.family!r} of {name} is missing"
            )
    for family, title in families.items():
        members = [name for name, metric in METRICS.items() if metric.family == family]
        parts += [f"## {title}", *(part for name in members for part in _metric(words, name))]
    rows = [
        [f"`{name}`", text, _computed(words, name)]
        for name, text in words.prose["computed"].items()
    ]
    head = [words["identifier"], words["index_says"], words["computed_by"]]
    return page(*parts, f"## {words['computed']}", words["computed_intro"], table(head, rows))


def _metric(words: Words, name: str) -> list[str]:
    metric = METRICS[name]
    told = words.metric(name)
    own = words.prose["metrics"][name]
    rule = RULES.get(name)
    low = "when_low" if metric.better == "higher" else "when_high"
    todo = words["see_rule"].format(rule=link("rule", name)) if rule else own["low"]
    return [
        heading("metric", name, told["name"]),
        sentence(plain(told.get("gloss", "") or glossary(words, "score"))),
        table([words["fact"], words["value"]], _facts(words, name)),
        words.bold("needs_text", own.get("needs", "")),
        words.bold("variants", own["variants"]),
        words.bold("threshold_why", own["threshold"]),
        words.bold(low, todo),
    ]


def _facts(words: Words, name: str) -> list[list[str]]:
    metric, rule = METRICS[name], RULES.get(name)
    formula = words.prose["metrics"][name].get(
        "formula", "" if words.lang == "zh" else metric.variant
    )
    facts = {"identifier": f"`{name}`", "formula": plain(formula)}
    if metric.bounded:
        facts["range"] = words["to"].format(low=f"{metric.low:g}", high=f"{metric.high:g}")
    facts["direction"] = words[metric.better]
    if name in rn.METRICS:
        facts["kind"] = words[metric.kind]
        rate = metric.role == "rate"
        facts["weight"] = (
            words["weighs_rate"] if rate else words["weighs"].format(weight=f"{metric.weight:g}")
        )
        facts["needs"] = code(metric.needs)
        key = (
            "rates_unanswerable"
            if name in RATES
            else "grades"
            if metric.grades_refusals
            else "not_grades"
        )
        facts["unanswerable"] = words[key]
    facts["computed_by"] = _computed(words, name)
    facts["aliases"] = code(metric.aliases)
    if rule:
        facts["thresholds"] = f"{_limits(words, rule)} ({link('rule', name)})"
    facts["gate_of"] = ", ".join(
        f"{link('gate', gate.name)} {gate.op} {gate.threshold:g}"
        for gate in DEFAULT_GATES.values()
        if gate.metric == name
    )
    facts["mode_of"] = ", ".join(
        link("mode", mode) for mode, names in READS.items() if name in names
    )
    return [[words[key], text] for key, text in facts.items() if text]


def _computed(words: Words, name: str) -> str:
    if name in RATES:
        return words["by_traces"]
    if name not in SCORERS:
        metric = METRICS[name]
        key = {"rubric": "by_judge", "total": "by_total"}.get(metric.family, "by_none")
        return words[key].format(needs=code(metric.needs))
    scorer = SCORERS[name]
    text = words[f"by_{scorer.by}"].format(made_of=scorer.made_of, needs=code(scorer.needs))
    fixed, each = scorer.calls
    costs = [words["cost_calls"].format(fixed=fixed)] * bool(fixed)
    costs += [words["cost_each"].format(each=each)] * bool(each)
    costs += [words["cost_embeds"]] * bool(scorer.embeds)
    return "; ".join([text, *costs])


def _limits(words: Words, rule: rn.Rule) -> str:
    side = "below" if METRICS[rule.metric].better == "higher" else "above"
    limits = {"warning": rule.warning, "critical": rule.critical}
    return words["join"].join(
        words["limit"].format(severity=words[key], side=words[side].format(at=f"{at:g}"))
        for key, at in limits.items()
        if at is not None
    )


def rules(words: Words) -> str:
    """Return the page of diagnostic rules."""
    parts = [f"# {words['rules']}", words["rules_intro"]]
    for name, rule in RULES.items():
        causes, actions = rule_texts(rule, words.lang)
        reads = link("metric", rule.metric, words.name(rule.metric))
        limits = _limits(words, rule)
        if rule.also:
            other = link("metric", rule.also.metric, words.name(rule.also.metric))
            limits += " " + words["also"].format(
                metric=other, op=rule.also.op, at=f"{rule.also.threshold:g}"
            )
        example = ", ".join(f"`{metric}` {mean:g}" for metric, mean in rule.example.items())
        steps = [
            f"- {plain(str(one['text']))}"
            + f" ({words['setting']} `{one['setting']}`)" * bool(one["setting"])
            for one in actions
        ]
        rows = [[words["identifier"], f"`{name}`"], [words["reads"], reads]]
        rows += [[words["thresholds"], limits], [words["example"], example]]
        problem = words.metric(name).get("problem") if name in METRICS else words["although"]
        parts += [
            heading("rule", name, problem, 2),
            table([words["fact"], words["value"]], rows),
            words.bold("threshold_why", words.prose["rules"][name]),
            f"**{words['causes']}**",
            "\n".join(f"- {plain(cause)}" for cause in causes),
            f"**{words['actions']}**",
            "\n".join(steps),
        ]
    return page(*parts)


def gates(words: Words) -> str:
    """Return the page of gates: those of traces with gold, and those on the input."""
    yaml = "\n".join(
        f'  - {{name: {gate.name}, metric: {gate.metric}, op: "{gate.op}", threshold: {gate.threshold:g}}}'
        for gate in DEFAULT_GATES.values()
    )
    parts = [
        f"# {words['gates']}",
        words["gates_intro"],
        f"## {words['choose']}",
        words["choose_text"],
    ]
    parts += [
        f"## {words['default_gates']}",
        words["default_gates_intro"],
        f"```yaml\ngates:\n{yaml}\n```",
    ]
    parts += [part for gate in DEFAULT_GATES.values() for part in _gate(words, gate)]
    parts += [f"## {words['completeness_gates']}", words["completeness_gates_intro"]]
    return page(*parts, *(part for gate in COMPLETENESS.values() for part in _gate(words, gate)))


def _gate(words: Words, gate: rn.Gate) -> list[str]:
    about, known = words.prose["gates"][gate.name], gate.metric in METRICS
    sign = "≥" if gate.op == ">=" else "≤"
    limit = (
        f"{link('metric', gate.metric) if known else code([gate.metric])} {sign} {gate.threshold:g}"
    )
    return [
        heading(
            "gate", gate.name, f"`{gate.name}`" + (f" {words.name(gate.metric)}" if known else "")
        ),
        f"{sentence(requirement(words, gate))} {limit}",
        words.bold("applies", about["asks"]),
        words.bold("why", about["why"]),
        words.bold("failed", about["failed"]),
    ]


def requirement(words: Words, gate: rn.Gate) -> str:
    """Return what a gate requires, in the words of the report."""
    say, at = texts.load(words.lang), f"{100 * gate.threshold:g} %"
    bound = say(f"requirement.{'at_least' if gate.op == '>=' else 'at_most'}", at=at)
    own = words.metric(gate.metric).get("requirement")
    return own.format(bound=bound) if own else say(f"requirement.{gate.name}", at=at)


def labels(words: Words) -> str:
    """Return the page of answer outcomes and failure modes."""
    parts = [f"# {words['labels']}", f"## {words['outcomes']}", words["outcomes_intro"]]
    for name in LABELS:
        about = words.prose["labels"][name]
        rates = words["join"].join(link("metric", rate, words.name(rate)) for rate in COUNTED[name])
        parts += [
            heading("label", name, texts.entry(words.lang, f"label.{name}")),
            words.bold("meaning", f"`{name}`: {about['definition']}"),
            f"**{words['counted_in']}** {rates}" if rates else words["none"],
            words.bold("action", about["action"]),
        ]
    parts += [f"## {words['modes']}", words["modes_intro"]]
    for name in MODES:
        reads = words["join"].join(
            link("metric", metric, words.name(metric)) for metric in READS.get(name, ())
        )
        parts += [
            heading("mode", name, texts.entry(words.lang, f"mode.{name}")),
            f"`{name}`: {words.prose['modes'][name]}",
            f"**{words['reads']}** {reads}" if reads else "",
        ]
    return page(*parts)


def notes(words: Words) -> str:
    """Return the page of notes, by where they appear."""
    parts = [f"# {words['notes']}", words["notes_intro"]]
    for group, codes in note_codes().items():
        parts.append(f"## {words.prose['group'][group]}")
        for name, keys in codes.items():
            said = [plain(str(texts.entry(words.lang, key))) for key in keys]
            parts += [
                heading("note", note_anchor(group, name), f"`{name}`"),
                "\n>\n".join(f"> {text}" for text in said),
                words.bold("action", words.prose["notes"][group][name]),
            ]
    return page(*parts)


def anchors() -> list[str]:
    """Return every anchor that the catalogue promises."""
    entries = {
        "metric": METRICS,
        "rule": RULES,
        "gate": {**DEFAULT_GATES, **COMPLETENESS},
        "label": LABELS,
    }
    names = [
        (kind, name) for kind, members in {**entries, "mode": MODES}.items() for name in members
    ]
    names += [
        ("note", note_anchor(group, name))
        for group, codes in note_codes().items()
        for name in codes
    ]
    return [anchor(kind, name) for kind, name in names]
