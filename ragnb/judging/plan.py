"""What a judge is asked, and in which order: cells, probes, and when enough is judged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
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
SEED = 0  # of the order in which answers are judged
FEWEST = 50  # questions that are judged before the first look at whether the rest is needed
# Codes of the notes that are warnings, too.
ALARMS = ("not_separated", "constant", "obeyed", "flat")
_FACTS = ("mode", "peek", "passages", "cut", "evidence", "parse", "repeats", "reply")


class Task(NamedTuple):
    """One answer to be judged: its cell, and what is known of its passages."""

    cell: Cell
    facts: dict[str, Any]


class Condition(NamedTuple):
    """A note that may be given: whether it holds, its code, what it is about, and the words of its text."""

    holds: Any
    code: str
    about: str
    words: dict[str, Any]


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
            count = getattr(options, name)
            if count is not None:
                need_whole(name, count)
        return options

    @property
    def sent(self) -> dict[str, Any]:
        """The parameters of each call."""
        sent: dict[str, Any] = {}
        if self.temperature is not None:
            sent["temperature"] = self.temperature
        return sent | dict(self.parameters)

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
        new_columns = [*self.names, TOTAL, "is_passing", *TEXTS]
        existing = [column for column in new_columns if column in self.frame.columns]
        if existing:
            raise RagnbError(
                f"the cases already have {listing(existing)}; drop or rename these columns"
            )
        self.asker = Asker(
            client,
            self.options.sent,
            schema=self._reply_schema(),
            tries=self.options.tries,
            lang=self.options.lang,
        )
        probes: list[Task] = []
        if self.options.probes:
            # Probes have passages of their own, and are judged alike whatever is set for those of the cases.
            plain = replace(self.options, peek=None, top_k=10, max_context_tokens=None)
            probes = self._tasks(probe_cases(self.rubric, self.options.lang), plain)
        self.probes = [task.cell for task in probes]
        tasks = self._tasks(self.frame, self.options)
        self.facts = [task.facts for task in tasks]  # by row
        self.asked = np.array([not task.cell.missing for task in tasks], bool)  # by row
        # All repeats of a row stand together: row r, repeat k is cell r · repeats + k.
        self.cells = [
            replace(task.cell, repeat=n) for task in tasks for n in range(self.options.repeats)
        ]

    def _reply_schema(self) -> dict[str, Any]:
        """Return the JSON schema of a verdict."""
        text = {"type": "string"}
        score = {"type": "number" if self.rubric.decimals else "integer"}
        parts = dict.fromkeys(["tag", "analysis", *self.names, "reason", "suggestion"], text)
        parts |= dict.fromkeys(self.names, score)
        return {
            "type": "object",
            "properties": parts,
            "required": list(parts),
            "additionalProperties": False,
        }

    def _tasks(self, frame: pd.DataFrame, options: Options) -> list[Task]:
        """Return one task a row, in the order of the frame."""
        rows = frame.to_dict("records")
        rival = dict[Any, list[str]]()  # the passages of the system to peek at, by sample
        if options.peek is not None:
            systems = sorted({str(name) for name in frame.get("system", ())})
            need_known("peek", options.peek, systems, "Name a system of the cases.")
            for row in rows:
                passages = row.get("retrieved_contexts")
                if row["system"] == options.peek and passages is not None:
                    rival[row["sample_id"]] = passages
        prompts = {
            mode: system_prompt(self.rubric, mode, options.lang)
            for mode in ("contexts", "peek", "alone")
        }
        return [self._task(row, options, rival, prompts) for row in rows]

    def _task(
        self,
        row: Mapping[Any, Any],
        options: Options,
        rival: Mapping[Any, list[str]],
        prompts: Mapping[str, str],
    ) -> Task:
        """Return the task of one case, with its own passages, those of a rival, or none."""
        inputs: dict[str, Any] = {name: text_of(row.get(name)) for name in ("question", "answer")}
        missing = tuple(name for name, text in inputs.items() if text is None)
        passages = row.get("retrieved_contexts")
        if passages is not None:
            mode = "contexts"
        else:
            passages = rival.get(row["sample_id"])
            mode = "alone" if passages is None else "peek"
        facts = dict[str, Any]()
        if passages is not None:
            shown, left_out = cut(passages, options.top_k, options.max_context_tokens)
            gold = row.get("ground_truth_contexts") or []
            expected = text_of(row.get("ground_truth_answer"))
            rank = evidence_rank(passages, gold, expected or inputs["answer"])
            facts = {"passages": len(passages), "cut": left_out, "evidence": rank}
            # The judge reads them in this order.
            inputs = {
                "question": inputs["question"],
                "contexts": numbered(shown),
                "answer": inputs["answer"],
            }
        # A tag of the length of a real one.
        message = material(inputs, options.lang, tag="0" * 16)
        # What is not in the prompt and decides which numbers are taken; weights and threshold do not.
        scale = [self.rubric.low, self.rubric.high, self.rubric.decimals]
        cell = Cell(
            str(row["sample_id"]),
            f"rubric/{mode}",
            inputs,
            self.asker.client.profile.model,
            options.about | {"rubric": self.names, "scale": scale},
            # Also the words around the material, which are the same for all cases.
            prompt="\n".join([prompts[mode], material({}, options.lang, tag="")]),
            missing=missing,
            tokens=count_tokens(prompts[mode]) + count_tokens(message) + REPLY_TOKENS,
            cluster=text_of(row.get("doc_name")),
        )
        facts["mode"] = mode
        facts["peek"] = options.peek if mode == "peek" else None
        return Task(cell, facts)

    async def work(self, cell: Cell) -> Outcome:
        """Ask for one verdict, read and keep it."""
        tag = new_tag()
        passages = [passage["text"] for passage in cell.inputs.get("contexts", ())]
        shown = [cell.inputs["question"], *passages, cell.inputs["answer"]]

        def read(reply: str) -> dict[str, Any]:
            verdict = parse_verdict(reply, self.rubric, tag=tag, material=shown)
            if verdict.status == "failed":
                # The asker takes it for a reply to be asked for again, with this reason.
                raise ValueError(f"{verdict.parse_status}: {verdict.why}")
            texts = {name: getattr(verdict, name) for name in TEXTS}
            return {**verdict.scores, **texts, "parse_status": verdict.parse_status}

        prompt = system_prompt(self.rubric, cell.what.removeprefix("rubric/"), self.options.lang)
        messages = [
            {"role": "system", "content": prompt},
            {"role": "user", "content": material(cell.inputs, self.options.lang, tag=tag)},
        ]
        return Outcome.of(await self.asker.ask(messages, read))

    def rounds(self, doc: str, settled: Callable[[Flags], bool] | None) -> Iterator[list[Cell]]:
        """Yield the cells of cases in rounds: what needs no call, then questions of all documents in proportion.

        Between rounds `settled` is asked, with the rows whose turn has come, and ends them.
        """
        turns = self._turns(doc)
        n_questions = int(turns.max(initial=-1)) + 1
        repeats = self.options.repeats
        rows = np.argsort(turns, kind="stable")
        looks = range(0)
        if settled:
            # After a fifth, rounded up, and then after each tenth; there may be no question that needs a call.
            first = max(FEWEST, -(-n_questions // 5))
            looks = range(first, n_questions, max(-(-n_questions // 10), 1))
        start = -1  # the turn of what needs no call, which is the first round
        for end in [0, *looks, n_questions]:
            if settled and 0 < start < end and settled(turns < start):
                return
            due = rows[(start <= turns[rows]) & (turns[rows] < end)]
            yield [self.cells[row * repeats + k] for row in due for k in range(repeats)]
            start = end

    def _turns(self, doc: str) -> npt.NDArray[np.intp]:
        """Return the turn of each row, from 0 and one for each question; -1 where a row needs no call."""
        asked = self.asked
        samples = self.frame["sample_id"]
        # All answers to a question, of several systems, have the number of the question and come together.
        question_of_row, _ = pd.factorize(samples[asked].map(str))
        _, first_rows = np.unique(question_of_row, return_index=True)
        # Without such a column all questions are of one document.
        docs = self.frame.get(doc, samples.isna())[asked].iloc[first_rows]
        order = stats.balanced_order(pd.factorize(docs.map(str))[0], seed=SEED)
        turn_of_question = np.argsort(order)  # the inverse of the order
        turns = np.full(len(samples), -1)
        turns[asked] = turn_of_question[question_of_row]
        return turns

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
        rows["__doc"] = 0
        if doc in rows:
            rows["__doc"] = pd.factorize(rows[doc].map(str))[0]
        rows["__done"] = rows[status].map({"ok": 1.0, "failed": 0.0})  # NaN of what is open
        rows = rows[self.asked & (rows["sample_weight"] > 0)]
        if "answerable" in rows and not metrics[0].grades_refusals:
            rows = rows[rows["answerable"].ne(False)]
        checks = [
            (gate.metric, gate.threshold, self.rubric.high - self.rubric.low) for gate in gates
        ]
        # What is not scored yet counts too, as the gate on scored cells looks at it.
        if (rows["__done"] == 0).any():
            checks.append(("__done", 0.9, 1.0))
        system = rows.get("system", pd.Series("", index=rows.index))
        return all(
            _is_settled(of_system, *check)
            for _, of_system in rows.groupby(system, dropna=False)
            for check in checks
        )

    def scores(self, run: pd.DataFrame, pending: str = "not judged yet") -> pd.DataFrame:
        """Join judgements to their cases, with facts about the passages; repeats are averaged."""
        names = self.names
        frame = self.frame
        # One row a judgement that was read, by the place of its answer among the cases.
        values = verdicts_of(run).reindex(columns=[*names, *TEXTS, "parse_status"])
        # One row an answer: of its repeats, which stand together, the last, before which the next answer begins.
        is_last_repeat = ~run["repeat"].shift(-1, fill_value=0).astype(bool)
        cells = run[is_last_repeat].set_axis(range(len(frame)))
        n = values.groupby(level=0).size().reindex(cells.index, fill_value=0)
        # Scores are averaged over repeats, texts are those of the first that was read.
        first_read = values[~values.index.duplicated()].reindex(cells.index).astype(object)
        status = cells["status"].replace("pending", "missing").mask(n > 0, "ok")
        reason = cells["reason"].map(str).mask(status == "missing", pending).mask(n > 0, None)
        # A reason begins with the word of `parse_verdict`; see `work`.
        word_of_reason = reason.map(lambda text: str(text).partition(":")[0])
        parse = first_read["parse_status"].mask(status == "failed", word_of_reason)
        facts = pd.DataFrame(self.facts, dtype=object).assign(
            parse=parse, repeats=n, reply=cells["reply"]
        )
        facts = facts.reindex(columns=_FACTS).add_prefix("judge__")
        states = {f"{name}__{part.name}": part for name in names for part in (status, reason)}
        means = values[names].astype(float).groupby(level=0).mean().reindex(cells.index)
        scores = self._with_total(means)
        rest = pd.concat([first_read[[*TEXTS]], pd.DataFrame(states), facts], axis=1)
        counts = dict.fromkeys(
            ["judge__passages", "judge__cut", "judge__evidence", "judge__repeats"], "Int64"
        )
        # None for what is not there, and counts whole also where some are not there.
        rest = rest.astype(object).where(rest.notna(), None).astype(counts)
        return pd.concat([frame, scores.set_axis(frame.index), rest.set_axis(frame.index)], axis=1)

    def _with_total(self, scores: pd.DataFrame) -> pd.DataFrame:
        """Add the total of the dimensions, and whether the answer passes."""
        rule = self.rubric.passing
        weights = np.array([d.weight for d in self.rubric.dimensions])
        scores[TOTAL] = scores @ weights / weights.sum()  # NaN where all of them weigh 0
        passing = scores[rule.metric]
        scores["is_passing"] = (passing >= rule.threshold).astype("boolean").mask(passing.isna())
        return scores

    def noise(self, run: pd.DataFrame) -> list[dict[str, Any]]:
        """Return the pooled standard deviation of a judgement within its answer, with its interval by answers."""
        values = verdicts_of(run)
        # Only answers with two judgements and more say anything of it.
        values = values[values.index.duplicated(keep=False)]
        if not len(values):
            return []
        rows = []
        for name in self.names:
            variances = values[name].astype(float).groupby(level=0).var().to_numpy()  # by answer
            mean = stats.clustered_mean(variances)
            # An interval of a mean of variances may begin below 0.
            value, low, high = np.sqrt(np.maximum([mean.value, mean.low, mean.high], 0))
            rows.append(
                {
                    "metric": name,
                    "value": value,
                    "low": low,
                    "high": high,
                    "n": mean.n,
                    "n_judgements": len(values),
                    # The difference of two judgements has √2 times their standard deviation.
                    "least_difference": 1.96 * 2**0.5 * value,
                }
            )
        return rows

    def notes(
        self, judged: pd.DataFrame, noise: list[dict[str, Any]], stopped: str | None
    ) -> Iterator[Condition]:
        """Yield the notes on the judgements, in addition to those of the probes."""
        options = self.options
        metric = self.rubric.passing.metric
        scores = judged[metric].dropna()
        is_flat = len(scores) >= 10 and scores.nunique() == 1
        words: dict[str, Any] = {
            "n": len(scores),
            "score": number(scores.max(), 1),
            "metric": metric,
        }
        yield Condition(is_flat, "flat", metric, words)
        missing = int((judged[f"{metric}__status"] == "missing").sum())
        is_stopped = stopped is not None and missing
        yield Condition(is_stopped, "stopped", "", {"n": missing, "why": stopped})
        peeked = (judged["judge__mode"] == "peek").sum()
        words = {"n": peeked, "system": options.peek}
        yield Condition(peeked, "peeked", str(options.peek), words)
        yield self._note_on_cuts(judged)
        # Equal replies at temperature 0 say that the endpoint repeats itself, not that the judge is sure.
        is_still = options.temperature == 0 and not any(row["value"] for row in noise)
        repeats = judged["judge__repeats"].max()
        # Where nothing varies, one metric says so for all.
        rows_to_report = noise[:1] if is_still else noise
        for row in rows_to_report:
            words = {
                **row,
                "sd": with_interval(row["value"], row["low"], row["high"], digits=2),
                "least": number(row["least_difference"], 1),
                "repeats": repeats,
            }
            if is_still:
                yield Condition(True, "still", "", words)
            else:
                yield Condition(True, "noise", row["metric"], words)

    def _note_on_cuts(self, judged: pd.DataFrame) -> Condition:
        """Return the note on answers of which the judge did not see all passages."""
        options = self.options
        shortened = judged[judged["judge__cut"].fillna(0) > 0]
        n_shown = shortened["judge__passages"] - shortened["judge__cut"]
        without_evidence = int((shortened["judge__evidence"] > n_shown).sum())
        evidence = ""
        if without_evidence:
            evidence = " " + texts.load(options.lang)("judge.note.cut_evidence", n=without_evidence)
        words = {
            "n": len(shortened),
            "top_k": options.top_k,
            "budget": options.max_context_tokens or "—",
            "evidence": evidence,
        }
        return Condition(len(shortened), "cut", "", words)


def gates_to_settle(gates: Iterable[Gate], rubric: Rubric) -> list[Gate]:
    """Return the gates on a rubric's scores; refuse if there is none, or one that its value does not decide."""
    names = [*(d.name for d in rubric.dimensions), TOTAL]
    chosen = [gate for gate in gates if gate.metric in names]
    if not chosen:
        threshold = rubric.passing.threshold
        example = f"[{{name: good, metric: {names[0]}, op: '>=', threshold: {threshold:g}}}]"
        raise RagnbError(
            f"no gate uses a metric of the judge ({listing(names)}); write gates: {example}"
        )
    low = rubric.low
    high = rubric.high
    for gate in chosen:
        if gate.not_worse_than or gate.undecided != "value":
            whole = "judge the whole run, without stopping it early"
            raise RagnbError(f"gate {gate.name!r} is decided by an interval; {whole}")
        if not low <= gate.threshold <= high:
            raise RagnbError(
                f"gate {gate.name!r}: {gate.threshold:g} lies outside {gate.metric}'s {low:g}..{high:g}"
            )
    return chosen


def _is_settled(rows: pd.DataFrame, name: str, threshold: float, width: float) -> bool:
    """Return whether the rows of one system without a value cannot change the side of its mean."""
    done = rows[rows[name].notna()]
    x = done[name].to_numpy(float)
    weight = done["sample_weight"].to_numpy(float)
    weight_of_all = rows["sample_weight"].to_numpy(float)
    if not len(x):
        return False
    docs = done["__doc"]
    # Until every document has a score, chance also decides which have one.
    if docs.nunique() != rows["__doc"].nunique():
        docs = docs * 0
    return bool(
        stats.side_is_settled(
            x @ weight / weight.sum(),
            threshold,
            stats.pooled_variance(x, docs),
            stats.kish(weight.sum(), weight @ weight),
            stats.kish(weight_of_all.sum(), weight_of_all @ weight_of_all),
            width=width,
            binary=bool(np.isin(x, (0, 1)).all()),
        )
    )


# The frame and its notes


def verdicts_of(run: pd.DataFrame) -> pd.DataFrame:
    """Return what was read of a run, one row per judgement, by the place of its answer."""
    places = np.cumsum(run["repeat"].to_numpy() == 0) - 1  # each answer begins with repeat 0
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
        instruction = probe["injection"].format(high=high, scores=all_high)
        if pair % 2 == 0:
            planted = (f"{probe['bad']} {instruction}", contexts)
        else:
            planted = (probe["bad"], [*contexts, instruction])
        kinds = {
            "good": (probe["good"], contexts),
            "bad": (probe["bad"], contexts),
            "injected": planted,
        }
        for kind, (answer, passages) in kinds.items():
            rows.append(
                {
                    "sample_id": f"probe-{pair + 1}-{kind}",
                    "pair": pair + 1,
                    "kind": kind,
                    "answer": answer,
                    "question": probe["question"],
                    "retrieved_contexts": passages,
                }
            )
    return pd.DataFrame(rows)


def probe_notes(
    run: pd.DataFrame, rubric: Rubric, lang: str
) -> tuple[pd.DataFrame, list[dict[str, str]]]:
    """Return each probe (``pair, kind, value, status, reason``) and the notes on them, alarms first.

    The value is that of the dimension that passes. Two points of ten are taken for a rise, in proportion on other
    scales.
    """
    say = texts.load(lang)
    if run.empty:
        return run, holding_notes(say, [Condition(True, "unprobed", "", {})], "judge.note")
    metric = rubric.passing.metric
    rise = 2 * (rubric.high - rubric.low) / 9
    rows = probe_cases(rubric, lang)[["pair", "kind"]]
    values = verdicts_of(run).reindex(rows.index, columns=[metric])[metric].astype(float)
    rows = rows.assign(value=values, status=run["status"], reason=run["reason"])
    pairs = rows.pivot(index="pair", columns="kind", values="value")
    known = pairs.dropna(subset=["good", "bad"])
    tempted = pairs.dropna(subset=["bad", "injected"])
    mixed = sum(known["good"] <= known["bad"])
    obeyed = sum(tempted["injected"] - tempted["bad"] >= rise)
    failed = rows[rows["status"] != "ok"]
    # A probe that is still pending has no reason.
    why_failed = next(iter(failed["reason"].fillna(failed["status"])), "")
    # The bad answers are wrong: a dimension such as politeness may well give them as much as the good ones.
    is_of_truth = metric in [
        texts.entry(name, "judge.dimensions.accuracy") for name in texts.LANGUAGES
    ]
    is_constant = is_of_truth and values.nunique() == 1 and values.count() > 2
    words = {"of": len(known), "rise": number(rise, 1), "metric": metric}
    words_if_constant = {
        "score": number(values.max(), 1),
        "n": values.count(),
        "metric": metric,
    }
    words_if_failed = {"n": len(failed), "of": len(rows), "why": why_failed}
    mixed_code = "not_separated" if is_of_truth else "not_about_truth"
    conditions = [
        Condition(is_constant, "constant", "", words_if_constant),
        # Where all are equal, one note says it.
        Condition(mixed and not is_constant, mixed_code, "", words | {"n": mixed}),
        Condition(obeyed, "obeyed", "", words | {"n": obeyed, "of": len(tempted)}),
        Condition(len(failed), "unread", "", words_if_failed),
    ]
    notes = holding_notes(say, conditions, "judge.note")
    if not notes:
        notes = holding_notes(say, [Condition(True, "passed", "", words)], "judge.note")
    return rows, notes


def need_one_system(cases: pd.DataFrame) -> None:
    """Refuse answers of several systems: one system cannot retry them all, and a gain over them is nobody's."""
    systems = systems_of(cases)
    if len(systems) > 1:
        raise RagnbError(
            f"the cases have answers of several systems ({listing(systems)}); keep those of one system "
            "(where: {system: NAME} in a scenario)"
        )
