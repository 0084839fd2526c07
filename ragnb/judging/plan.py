"""What a judge is asked, and in which order: cells, probes, and when enough is judged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import pandas as pd

from ragnb import stats, texts
from ragnb.errors import RagnbError, listing, need_known, need_whole
from ragnb.judging.prompt import cut, evidence_rank, material, numbered, system_prompt
from ragnb.judging.verdict import TEXTS, parse_verdict
from ragnb.markup import number, with_interval
from ragnb.readers import read_cases
from ragnb.schema import TOTAL, Gate, Rubric, holding_notes
from ragnb.scoring.asking import Asker
from ragnb.stats import Flags
from ragnb.store.budget import count_tokens
from ragnb.store.calls import Cell, Outcome
from ragnb.store.client import Client, new_tag
from ragnb.store.store import systems_of
from ragnb.weights import weigh

REPLY_TOKENS = 400  # of a verdict with its texts; for estimates only
# Of the order in which answers are judged, and how many questions at least are judged before it may end early.
SEED = 0
FEWEST = 50  # answers that are judged before the first look at whether the rest is needed
# One answer to be judged: its cell, and what is known of its passages.
Task = tuple[Cell, dict[str, Any]]
# A note: whether it holds, its code, what it is about, and the words of its text.
Told = tuple[Any, str, str, dict[str, Any]]
ALARMS = ("not_separated", "constant", "obeyed", "flat")
_FACTS = ("mode", "peek", "passages", "cut", "evidence", "parse", "repeats", "reply")


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of a judge; see `judge`.

    Examples
    --------
    >>> Options(top_k=5).tries
    2
    """

    lang: str = "en"
    top_k: int | None = 10
    max_context_tokens: int | None = None
    peek: str | None = None
    temperature: float | None = 0.0
    tries: int = 2
    probes: bool = True
    repeats: int = 1
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Options:
        """Check options that a caller named."""
        for name in given:
            need_known("option", name, [one.name for one in fields(cls)])
        options = cls(**given)
        texts.table(options.lang)
        for name in ("repeats", "tries", "top_k", "max_context_tokens"):
            if (count := getattr(options, name)) is not None:
                need_whole(name, count)
        return options

    @property
    def sent(self) -> dict[str, Any]:
        """The parameters of each call."""
        return ({} if self.temperature is None else {"temperature": self.temperature}) | dict(
            self.parameters
        )

    @property
    def about(self) -> dict[str, Any]:
        """The options that may change a reply, for the key of a cell."""
        return {"tries": self.tries, **self.sent}


def text_of(value: Any) -> str | None:
    """Return a text that is not blank, else None."""
    if isinstance(value, str) and value.strip():
        return value
    return None


class Plan:
    """The answers to judge: their cells with all repeats, the facts about their passages, and the probes.

    Parameters
    ----------
    cases, client, rubric, options
        As for `judge`.
    """

    def __init__(
        self, cases: Any, client: Client, rubric: Rubric | None, options: Mapping[str, Any]
    ) -> None:
        self.rubric = rubric or Rubric()
        self.options = Options.of(options)
        self.frame = read_cases(cases)
        self.names = [d.name for d in self.rubric.dimensions]
        made = [*self.names, TOTAL, "is_passing", *TEXTS]
        if there := [column for column in made if column in self.frame.columns]:
            raise RagnbError(
                f"the cases already have {listing(there)}; drop or rename these columns"
            )
        text = {"type": "string"}
        number = {"type": "number" if self.rubric.decimals else "integer"}
        parts = dict.fromkeys(["tag", "analysis", *self.names, "reason", "suggestion"], text)
        parts |= dict.fromkeys(self.names, number)
        schema = {
            "type": "object",
            "properties": parts,
            "required": list(parts),
            "additionalProperties": False,
        }
        tries = self.options.tries
        lang = self.options.lang
        self.asker = Asker(client, self.options.sent, schema=schema, tries=tries, lang=lang)
        plain = replace(self.options, peek=None, top_k=10, max_context_tokens=None)
        if self.options.probes:
            probes = self._tasks(probe_cases(self.rubric, lang), plain)
        else:
            probes = []
        self.probes, tasks = [cell for cell, _ in probes], self._tasks(self.frame, self.options)
        self.facts = [facts for _, facts in tasks]
        self.asked = np.array([not cell.missing for cell, _ in tasks], bool)
        self.cells = [
            replace(cell, repeat=n) for cell, _ in tasks for n in range(self.options.repeats)
        ]

    def _tasks(self, frame: pd.DataFrame, options: Options) -> list[Task]:
        """Return one task a row, in the order of the frame."""
        rows = frame.to_dict("records")
        rival = dict[Any, list[str]]()
        peek = options.peek
        if peek is not None:
            systems = sorted({str(name) for name in frame.get("system", ())})
            need_known("peek", peek, systems, "Name a system of the cases.")
            held = (
                row
                for row in rows
                if row["system"] == peek and row.get("retrieved_contexts") is not None
            )
            rival = {row["sample_id"]: row["retrieved_contexts"] for row in held}
        prompts = {
            mode: system_prompt(self.rubric, mode, options.lang)
            for mode in ("contexts", "peek", "alone")
        }
        # What is not in the prompt and decides which numbers are taken; weights and threshold do not.
        scale = [self.rubric.low, self.rubric.high, self.rubric.decimals]
        taken = {"rubric": self.names, "scale": scale}
        model = self.asker.client.profile.model

        def task(row: Mapping[Any, Any]) -> Task:
            inputs: dict[str, Any] = {
                name: text_of(row.get(name)) for name in ("question", "answer")
            }
            missing = tuple(name for name, text in inputs.items() if text is None)
            passages = row.get("retrieved_contexts")
            mode = "contexts"
            facts = dict[str, Any]()
            if passages is None:
                if (passages := rival.get(row["sample_id"])) is None:
                    mode = "alone"
                else:
                    mode = "peek"
            if passages is not None:
                shown, left_out = cut(passages, options.top_k, options.max_context_tokens)
                gold = row.get("ground_truth_contexts") or []
                expected = text_of(row.get("ground_truth_answer"))
                rank = evidence_rank(passages, gold, expected or inputs["answer"])
                facts = {"passages": len(passages), "cut": left_out, "evidence": rank}
                inputs = {
                    "question": inputs["question"],
                    "contexts": numbered(shown),
                    "answer": inputs["answer"],
                }
            size = count_tokens(prompts[mode]) + count_tokens(
                material(inputs, options.lang, tag="0" * 16)
            )
            cell = Cell(
                str(row["sample_id"]),
                f"rubric/{mode}",
                inputs,
                model,
                options.about | taken,
                prompt="\n".join([prompts[mode], material({}, options.lang, tag="")]),
                missing=missing,
                tokens=size + REPLY_TOKENS,
                cluster=text_of(row.get("doc_name")),
            )
            return cell, facts | {"mode": mode, "peek": peek if mode == "peek" else None}

        return [task(row) for row in rows]

    async def work(self, cell: Cell) -> Outcome:
        """Ask for one verdict, read and keep it."""
        tag = new_tag()
        passages = [passage["text"] for passage in cell.inputs.get("contexts", ())]
        shown = [cell.inputs["question"], *passages, cell.inputs["answer"]]

        def read(reply: str) -> dict[str, Any]:
            if (
                verdict := parse_verdict(reply, self.rubric, tag=tag, material=shown)
            ).status == "failed":
                raise ValueError(f"{verdict.parse_status}: {verdict.why}")
            texts = {name: getattr(verdict, name) for name in TEXTS}
            return {**verdict.scores, **texts, "parse_status": verdict.parse_status}

        prompt = system_prompt(self.rubric, cell.what.removeprefix("rubric/"), self.options.lang)
        messages = [{"role": "system", "content": prompt}]
        messages += [{"role": "user", "content": material(cell.inputs, self.options.lang, tag=tag)}]
        return Outcome.of(await self.asker.ask(messages, read))

    def rounds(self, doc: str, settled: Callable[[Flags], bool] | None) -> Iterator[list[Cell]]:
        """Yield the cells of cases in rounds: what needs no call, then questions of all documents in proportion.

        Between rounds `settled` is asked, with the rows whose turn has come, and ends them.
        """
        asked = self.asked
        samples = self.frame["sample_id"]
        repeats = self.options.repeats
        codes, names = pd.factorize(samples[asked].map(str))
        docs = self.frame.get(doc, samples.isna())[asked].iloc[
            np.unique(codes, return_index=True)[1]
        ]
        turns = np.full(len(samples), -1)
        turns[asked] = np.argsort(stats.balanced_order(pd.factorize(docs.map(str))[0], seed=SEED))[
            codes
        ]
        rows = np.argsort(turns, kind="stable")
        n = len(names)
        start = -1
        looks = range(0)
        if settled:
            # After a fifth, rounded up, and then after each tenth.
            looks = range(max(FEWEST, -(-n // 5)), n, -(-n // 10))
        for end in [0, *looks, n]:
            if settled and 0 < start < end and settled(turns < start):
                return
            due = rows[(start <= turns[rows]) & (turns[rows] < end)]
            yield [self.cells[row * repeats + k] for row in due for k in range(repeats)]
            start = end

    def are_settled(
        self, judged: pd.DataFrame, shown: Flags, gates: Iterable[Gate], how: dict[str, Any]
    ) -> bool:
        """Return whether the remaining rows cannot change the side of any gate of any system."""
        status = f"{self.names[0]}__status"
        doc = how["doc"]
        metrics = self.rubric.metrics
        if (judged.loc[self.asked & ~shown, status] != "missing").any():
            return False  # scored in another order, which makes no fair sample
        rows = weigh(judged, metrics=metrics, **how)
        rows["__doc"] = pd.factorize(rows[doc].map(str))[0] if doc in rows else 0
        rows["__done"] = rows[status].map({"ok": 1.0, "failed": 0.0})
        rows = rows[self.asked & (rows["sample_weight"] > 0)]
        if "answerable" in rows and not metrics[0].grades_refusals:
            rows = rows[rows["answerable"].ne(False)]
        checks = [
            (gate.metric, gate.threshold, self.rubric.high - self.rubric.low) for gate in gates
        ]
        # What is not scored yet counts too, as the gate on scored cells looks at it.
        checks += [("__done", 0.9, 1.0)] * bool((rows["__done"] == 0).any())
        systems = rows.groupby(rows.get("system", pd.Series("", index=rows.index)), dropna=False)
        return all(_is_settled(part, *check) for _, part in systems for check in checks)

    def scores(self, run: pd.DataFrame, pending: str = "not judged yet") -> pd.DataFrame:
        """Join judgements to their cases, with facts about the passages; repeats are averaged."""
        names = self.names
        frame = self.frame
        rule = self.rubric.passing
        weights = np.array([d.weight for d in self.rubric.dimensions])
        values = verdicts_of(run)
        cells = run[~run["repeat"].shift(-1, fill_value=0).astype(bool)]
        values = values.reindex(columns=[*names, *TEXTS, "parse_status"])
        cells = cells.set_axis(range(len(frame)))
        n = values.groupby(level=0).size().reindex(cells.index, fill_value=0)
        texts_of_cells = values[~values.index.duplicated()].reindex(cells.index).astype(object)
        status = cells["status"].replace("pending", "missing").mask(n > 0, "ok")
        reason = cells["reason"].map(str).mask(status == "missing", pending).mask(n > 0, None)
        parse = texts_of_cells["parse_status"].mask(
            status == "failed", reason.map(lambda text: str(text).partition(":")[0])
        )
        known = pd.DataFrame(self.facts, dtype=object).assign(
            parse=parse, repeats=n, reply=cells["reply"]
        )
        known = known.reindex(columns=_FACTS).add_prefix("judge__")
        states = {f"{name}__{part.name}": part for name in names for part in (status, reason)}
        scores = values[names].astype(float).groupby(level=0).mean().reindex(cells.index)
        scores[TOTAL] = scores @ weights / weights.sum()  # NaN where all of them weigh 0
        passing = scores[rule.metric]
        scores["is_passing"] = (passing >= rule.threshold).astype("boolean").mask(passing.isna())
        beside = pd.concat([texts_of_cells[[*TEXTS]], pd.DataFrame(states), known], axis=1)
        kinds = dict.fromkeys(
            ["judge__passages", "judge__cut", "judge__evidence", "judge__repeats"], "Int64"
        )
        beside = beside.astype(object).where(beside.notna(), None).astype(kinds)
        return pd.concat(
            [frame, scores.set_axis(frame.index), beside.set_axis(frame.index)], axis=1
        )

    def noise(self, run: pd.DataFrame) -> list[dict[str, Any]]:
        """Return the pooled standard deviation of a judgement within its answer, with its interval by answers."""
        values = verdicts_of(run)
        rows = []
        values = values[values.index.duplicated(keep=False)]
        if len(values):
            for name in self.names:
                variance = stats.clustered_mean(
                    values[name].astype(float).groupby(level=0).var().to_numpy()
                )
                value, low, high = np.sqrt(
                    np.maximum([variance.value, variance.low, variance.high], 0)
                )
                row = {"metric": name, "value": value, "low": low, "high": high, "n": variance.n}
                rows.append(
                    row | {"n_judgements": len(values), "least_difference": 1.96 * 2**0.5 * value}
                )
        return rows

    def notes(
        self, found: pd.DataFrame, noise: list[dict[str, Any]], stopped: str | None
    ) -> Iterator[Told]:
        """Yield the notes on the judgements, in addition to those of the probes."""
        options = self.options
        metric = self.rubric.passing.metric
        repeats = found["judge__repeats"].max()
        scores = found[metric].dropna()
        missing = int((found[f"{metric}__status"] == "missing").sum())
        words: dict[str, Any] = {
            "n": len(scores),
            "score": number(scores.max(), 1),
            "metric": metric,
        }
        yield len(scores) >= 10 and scores.nunique() == 1, "flat", metric, words
        yield stopped is not None and missing, "stopped", "", {"n": missing, "why": stopped}
        peeked = (found["judge__mode"] == "peek").sum()
        yield peeked, "peeked", str(options.peek), {"n": peeked, "system": options.peek}
        shortened = found[found["judge__cut"].fillna(0) > 0]
        lost = int(
            (
                shortened["judge__evidence"]
                > shortened["judge__passages"] - shortened["judge__cut"]
            ).sum()
        )
        if lost:
            evidence = " " + texts.load(options.lang)("judge.note.cut_evidence", n=lost)
        else:
            evidence = ""
        words = {
            "top_k": options.top_k,
            "budget": options.max_context_tokens or "—",
            "evidence": evidence,
        }
        yield len(shortened), "cut", "", {"n": len(shortened), **words}
        still = options.temperature == 0 and not any(row["value"] for row in noise)
        # Where nothing varies, one metric says so for all.
        rows_told = noise[:1] if still else noise
        for row in rows_told:
            deviation = with_interval(row["value"], row["low"], row["high"], digits=2)
            words = {
                **row,
                "sd": deviation,
                "least": number(row["least_difference"], 1),
                "repeats": repeats,
            }
            yield True, "still" if still else "noise", "" if still else row["metric"], words


def gates_to_settle(gates: Iterable[Gate], rubric: Rubric) -> list[Gate]:
    """Return the gates on a rubric's scores; refuse if there is none, or one that its value does not decide."""
    names = [*(d.name for d in rubric.dimensions), TOTAL]
    if not (chosen := [gate for gate in gates if gate.metric in names]):
        example = f"[{{name: good, metric: {names[0]}, op: '>=', threshold: {rubric.passing.threshold:g}}}]"
        raise RagnbError(
            f"no gate uses a metric of the judge ({listing(names)}); write gates: {example}"
        )
    low = rubric.low
    high = rubric.high
    for gate in chosen:
        if gate.not_worse_than or gate.undecided != "value":
            whole = "judge the whole run, without stopping it early"
            raise RagnbError(f"gate {gate.name!r} is decided by an interval; {whole}")
        if not low <= (at := gate.threshold) <= high:
            raise RagnbError(
                f"gate {gate.name!r}: {at:g} lies outside {gate.metric}'s {low:g}..{high:g}"
            )
    return chosen


def _is_settled(rows: pd.DataFrame, name: str, threshold: float, width: float) -> bool:
    there = rows[rows[name].notna()]
    x, weight, weights = (
        part.to_numpy(float) for part in (there[name], there.sample_weight, rows.sample_weight)
    )
    if not len(x):
        return False
    # Until every document has a score, chance also decides which have one.
    variance = stats.pooled_variance(
        x, there["__doc"] * (there["__doc"].nunique() == rows["__doc"].nunique())
    )
    n, size = (stats.kish(part.sum(), part @ part) for part in (weight, weights))
    how: dict[str, Any] = {"width": width, "binary": np.isin(x, (0, 1)).all()}
    return bool(
        stats.side_is_settled(x @ weight / weight.sum(), threshold, variance, n, size, **how)
    )


# The frame and its notes


def verdicts_of(run: pd.DataFrame) -> pd.DataFrame:
    """Return what was read of a run, one row per judgement, by the place of its answer."""
    places = np.cumsum(run["repeat"].to_numpy() == 0) - 1
    ok = run["status"].to_numpy() == "ok"
    return pd.DataFrame(run["value"][ok].tolist(), index=places[ok])


def probe_cases(rubric: Rubric, lang: str) -> pd.DataFrame:
    """Return the probes as cases: a good answer, a bad one, and the bad one with a planted instruction.

    The instruction occurs in the answer and in a passage in turn, and asks for the rubric's highest score.

    Examples
    --------
    >>> probe_cases(Rubric(), "en")["kind"].tolist()
    ['good', 'bad', 'injected', 'good', 'bad', 'injected']
    """
    rows = []
    high = f"{rubric.high:g}"
    all_high = texts.entry(lang, "mode_note.join").join(
        f"{d.name} {high}" for d in rubric.dimensions
    )
    for pair, probe in enumerate(texts.entry(lang, "judge.probes")):
        contexts = probe["contexts"]
        order = probe["injection"].format(high=high, scores=all_high)
        if pair % 2 == 0:
            planted = (f"{probe['bad']} {order}", contexts)
        else:
            planted = (probe["bad"], [*contexts, order])
        kinds = {
            "good": (probe["good"], contexts),
            "bad": (probe["bad"], contexts),
            "injected": planted,
        }
        for kind, (answer, passages) in kinds.items():
            case = {
                "sample_id": f"probe-{pair + 1}-{kind}",
                "pair": pair + 1,
                "kind": kind,
                "answer": answer,
            }
            rows.append(case | {"question": probe["question"], "retrieved_contexts": passages})
    return pd.DataFrame(rows)


def probe_notes(
    run: pd.DataFrame, rubric: Rubric, lang: str
) -> tuple[pd.DataFrame, list[dict[str, str]]]:
    """Return each probe (``pair, kind, value, status, reason``) and the notes on them, alarms first.

    The value is that of the dimension that passes. Two points of ten are taken for a rise, in proportion on other
    scales.
    """
    metric = rubric.passing.metric
    rise = 2 * (rubric.high - rubric.low) / 9
    if run.empty:
        return run, holding_notes(texts.load(lang), [(True, "unprobed", "", {})], "judge.note")
    rows = probe_cases(rubric, lang)[["pair", "kind"]]
    values = verdicts_of(run).reindex(rows.index, columns=[metric])[metric].astype(float)
    rows = rows.assign(value=values, status=run["status"], reason=run["reason"])
    pairs = rows.pivot(index="pair", columns="kind", values="value")
    known = pairs.dropna(subset=["good", "bad"])
    tempted = pairs.dropna(subset=["bad", "injected"])
    mixed = sum(known["good"] <= known["bad"])
    obeyed = sum(tempted["injected"] - tempted["bad"] >= rise)
    failed = rows[rows["status"] != "ok"]
    why = failed["reason"].fillna(failed["status"])
    truth = metric in [texts.entry(name, "judge.dimensions.accuracy") for name in texts.LANGUAGES]
    constant = truth and values.nunique() == 1 and values.count() > 2
    of = {"of": len(known), "rise": number(rise, 1), "metric": metric}
    conditions: list[Told] = [
        (
            constant,
            "constant",
            "",
            {"score": number(values.max(), 1), "n": values.count(), "metric": metric},
        ),
        (
            mixed and not constant,
            "not_separated" if truth else "not_about_truth",
            "",
            of | {"n": mixed},
        ),
        (obeyed, "obeyed", "", of | {"n": obeyed, "of": len(tempted)}),
        (
            len(failed),
            "unread",
            "",
            {"n": len(failed), "of": len(rows), "why": next(iter(why), "")},
        ),
    ]
    say = texts.load(lang)
    notes = holding_notes(say, conditions, "judge.note")
    return rows, notes or holding_notes(say, [(True, "passed", "", of)], "judge.note")


def need_one_system(cases: pd.DataFrame) -> None:
    """Refuse answers of several systems: one system cannot retry them all, and a gain over them is nobody's."""
    if len(several := systems_of(cases)) > 1:
        raise RagnbError(
            f"the cases have answers of several systems ({listing(several)}); keep those of one system "
            "(where: {system: NAME} in a scenario)"
        )
