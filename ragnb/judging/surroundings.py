"""What the words around an object of a reply make of it: a verdict, a quotation, or one that is taken back.

No list of words knows every way to quote or to retract. So an object without the request's tag may follow nothing,
words that announce a verdict, or whole sentences that speak of no object; and after any object only sentences may
follow that cannot take it back. What is lost by that is asked for again.
"""

from __future__ import annotations

import re

_NOUN = (
    r"(?:verdicts?|scores?|scoring|ratings?|rated|assessment|evaluation|judge?ments?|judging|grades?|graded"
    r"|marks|numbers|results?"
    r"|outcome|points)"
)
_THING = rf"(?:{_NOUN}|json|objects?|blocks?|values|figures i|following|below|above|itself|lines?|snippet|payload)"
_SPEAKER = (
    r"(?:answers?|responses?|reply|replies|passages?|contexts?|materials?|questions?|documents?|texts?|sources?"
    r"|users?|authors?|students?"
    r"|candidates?|systems?|assistants?|writers?|they|who|which|strangers?|attackers?|injections?|instructions?"
    r"|prompt|rubric)"
)
_QUOTING = re.compile(
    r"\b(?:examples?|e\.g|instance|samples?|such as|placeholders?|templates?|schema|hypothetical\w*|suppos\w+"
    r"|imagin\w+|pretend\w*|assum\w+"
    r"|could|might|may|instead|rather|unlike|ignor\w+|disregard\w*|inject\w*|fake|forged|plant\w*|embed\w*"
    r"|drafts?|preliminary|tentativ\w+"
    r"|provisional\w*|rough|first|initial\w*|previous\w*|earlier|before|former\w*|original\w*|thoughts?|thinking"
    r"|reasoning|scratch\w*"
    r"|quot\w+|cit\w+|verbatim|cop(?:y|ied)|echo\w*|repeat\w*|not|never|cannot|no|if|unless|someone|another"
    r"|other|ask\w*|want\w*|demand\w*"
    r"|instruct\w*|told|tells?|orders?|ordered|refus\w+|declin\w+|expected|reference|gold|human|target|perfect"
    r"|ideal|anchors?)\b|n['’]t\b"
    r"|引用|原文|摘录|例如|比如|譬如|示例|样例|例子|举例|模板|假设|假如|如果|倘若|草稿|初稿|初步|初评|之前|先前"
    r"|原先|起初|原本|一开始|忽略|伪造|注入|思考"
    r"|不|并非|错误|形如|类似|占位|可能|参考|人工|让我|要我|希望|要求(?!的)|(?:回答|答案|答复|材料|资料|段落"
    r"|上下文|问题|用户|作者|文)[^。：:\n]{0,12}"
    r"(?:写|说|称|含|附|出现|带有|自评|末尾|结尾|有|给|原话)"
)
_ABOUT_IT = re.compile(
    r"(?<!based )\b(?:of|for|on|about)\s(?:the|this|that)?\s?(?:system's |given |provided |candidate's "
    r")?(?:answer|response"
    r"|reply)\b(?!\s(?:[0-9]|[a-z]\b))(?:\s(?:provided|given|above|shown|below|in question))?"
    r"|\byou(?:['’]ve| have)? (?:asked for|requested|wanted)\b|\bas (?:asked|requested|instructed)\b|\bplease "
    r"(?=find|see)"
    r"|\b(?:based on|according to) the (?:passages|sources|contexts|material|rubric|bands|above|analysis)\b"
    r"|\bjson object\b"
)
_GIVES = re.compile(
    r"\bi (?:would |will |now |hereby |thus |therefore )?(?:rate|score|judge|grade|give|award|assign|assess"
    r"|evaluate)d?"
    r"(?:\s(?:the|this) (?:answer|response))?\b|\b(?:the|this) (?:answer|response) (?:earns?|gets?|deserves?"
    r"|receives?"
    r"|merits?|scores)\b"
)
_CORE = {
    "ok", "okay", "certainly", "absolutely", "alright", "course", "understood", "done",
    "verdict", "verdicts", "score", "scores", "rating", "ratings", "assessment", "evaluation", "judgement",
    "judgment", "judgements", "grade", "grades", "marks", "result", "results", "json", "conclusion",
    "bewertung", "urteil", "ergebnis", "évaluation", "résultat", "evaluación", "puntuación", "resultado",
    "valutazione", "avaliação", "оценка", "here", "follows", "below", "judge", "examiner", "summary", "sure",
    "great", "yes", "right", "got", "so", "therefore", "final", "thus", "hence", "evaluating", "format",
    "form", "scale", "assistant", "review", "python", "javascript", "js",
}  # fmt: skip
_FILLER = {
    "submit", "report", "record", "the", "a", "an", "my", "our", "your", "is", "are", "s", "this", "these",
    "and", "as", "following", "now", "final", "overall", "own", "full", "complete", "requested", "required",
    "valid", "structured", "detailed", "in", "with", "for", "of", "at", "by", "it", "to", "then", "see",
    "find", "thing", "let", "me", "sum", "up", "finally", "step", "total", "on", "out", "from", "each", "per",
    "analysis", "py", "const", "var", "dimension", "dimensions", "rubric", "completed", "alone", "reviewing",
    "reading", "examination", "careful", "considering", "everything", "all", "taking", "into", "account",
    "voici", "mon", "ma", "le", "la", "hier", "ist", "meine", "mein", "das", "aquí", "está", "mi", "el",
    "ecco", "il", "mio", "mia", "aqui", "minha", "вот", "моя", "ll", "i", "have", "you", "go",
}  # fmt: skip
_OWN_REPLY = (
    r"\bfinal answer\b|^[\s*_#]*answer[\s*_]*[:：]?[\s*_]*$"
    r"|^\W*(?:(?:my|final|json)\s)*(?:response|reply|output)\W*$"
)
_OWN_DIGITS = re.compile(r"(?:(?<!\d)1\s?(?:-|–|to)\s?)?(?<!\d)10(?!\d)|^\W*\d{1,2}[.)]|\bstep \d")
_CHINESE = re.compile(
    r"(?:对(?:该|这个|此|本)?回答的|完毕|以下|下面|这|是|为|我|的|对|本|最终|正式|综合|总体|来看|评分|评判|评审"
    r"|打分|评价|结果|结论|得分|评估|判断|如下|输出|给出|格式|按照?|要求的格式|经|核对|后"
    r"|根据|资料|所以|因此|好的?|完成|完毕|分析|请|查看|见|采用|制|满分|分|，|、)+"
)
_REFUSED = re.compile(
    r"\b(?:i|we)\b[^.\n{]{0,20}(?:\bcannot|\bcan not|n['’]t|\bnot|\brefuse|\bdecline|\bunable|\bno longer|\bgive "
    r"no|\bassign no"
    rf"|\baward no|\bwithhold)\b[^.\n{{]{{0,40}}\b(?:score|rate|grade|judge|assess|evaluate|{_NOUN})\b"
    rf"|\bno {_NOUN}\b|\bwithout (?:giving |any |a )?{_NOUN}\b|\b{_NOUN} (?:is|are|was|were) (?:not|n['’]t"
    rf"|withheld|pending"
    r"|impossible|refused)|\bunable to (?:score|rate|grade|judge|assess|evaluate)\b"
    r"|不(?:予|给|能|会|打算|便|再|作|做|进行)?(?:给出|进行|作|做|予以)?(?:打分|评分|给分|评判|评价|判分|评审)"
    r"|无法[^。\n]{0,6}(?:评|打分|给分|判断)"
    r"|拒绝[^。\n]{0,4}(?:评|打|给)|没有(?:打分|评分|给分)|暂不"
)
_POLITE = re.compile(
    r"\W*(?:i hope|hope (?:this|that|it)|hoping|let me know|feel free|if you (?:need|have|would|want|'d)|please "
    r"(?:let|feel)|thanks?\b|thank you"
    r"|cheers|best (?:regards|wishes)|kind regards|(?:is there )?anything else|happy to|glad to|end of|the end"
    r"|end\W*$|done\W*$|json\W*$|as requested"
    rf"|(?:this|my|the) {_NOUN} (?:is|are|was|were) (?:based|made|given) (?:on|by|with) the|(?:the|these) "
    rf"{_NOUN} (?:reflect|follow)"
    r"|(?:judged|evaluated|scored|assessed) (?:by|per|on|with|against|according to) the|(?:that|this|it) (?:is"
    r"|was|concludes) my final"
    r"|(?:scale|scores?|ratings?|max\w*)\b[\w\s:(=]{0,24}(?:1\s?(?:-|–|to)\s?)?10\W*$"
    r"|以上(?:是|为|就是)我的(?:评分|评判|评价|评审|结果)|完毕|供您|希望(?:对您|这|能)|谢谢|感谢|如有|请查|祝"
    r"|满分10分)"
)
_TELLS_OF_THE_ANSWER = re.compile(
    r"\W*(?:(?:explanation|key points|main points|reasons?|reasoning|rationale|analysis|justification|notes?"
    r"|comments?|suggestions?|summary|overall|in short|because"
    r"|since|however|but|while|although)\b\W*)*(?:the|a|an|its|both|all|each|some|one|two|error|omission|no "
    r"error|no omission|passages?"
    r"|there|figures?|dates?|name|quote|give|add|mention|missing|wrong|right)\b(?:[^\w]+[\w'’\"“”-]+){2,}"
)
_LABELLED = re.compile(
    r"\W*(?:explanation|key points|main points|reasons?|reasoning|rationale|analysis|justification|notes?"
    r"|comments?"
    r"|suggestions?|summary|overall|说明|理由|原因|分析|建议|主要问题|总体)"
)
_OF_THE_EXAMINATION = re.compile(
    r"^\W*(?:but|however)\b|\b(?:was|were|been|may|might|must|should|could|mis\w+|overlook\w*|mix\w*|cut|opinion"
    r"|need\w*|empty|interrupt\w*"
    r"|read|look|kind|error in|truncated|typo|shown)\b|误|看错|再|有问题|似乎|也许"
)
_TELLS_IN_CHINESE = re.compile(
    r"回答|资料|段落|缺|遗漏|正确|错误|一致|提到|说明|理由|原因|问题|完整|清楚|建议"
    r"|总体"
)
_REFERS = re.compile(
    rf"\b(?:{_THING}|this|that|these|those|them|it['’]?s|i|me|my|mine|we|our|you|draft|examples?|samples?"
    rf"|illustrat\w+|placeholders?|actual\w*"
    r"|instead|rather|wait|oops|sorry|copied|plant\w*|inject\w*|quot\w+|ask\w*|want\w*|demand\w*|instruct\w*"
    r"|told|order\w*|request\w*"
    r"|corrected|correction|revis\w+|retract\w*|withdr\w+|void|invalid|ignor\w+|disregard\w*|wrote|print\w*"
    r"|previous\w*|earlier|another"
    r"|different|other|applicable|three|four|five|six|seven|eight|nine|ten|hundred|percent|stars?|best|worst"
    r"|poor|excellent|legend|authors?|users?|writers?|attackers?|prompts?|materials?"
    r"|assistants?|models?|systems?|rest|guess\w*|true|fair\w*|too)\b|n['’]t\b|[0-9%★]"
    r"|以上|上述|上面|这|此|本评|我|评分|分数|打分|得分|改|撤|作废|无效|示例|例子|草稿|占位|摘自|来自|出自|引用"
    r"|抄|要求|注入|对象|忽略|更正|修正|重新|演示|为准|自己|待定|[给偏太过][高低]|降|提高到|材料|作者|用户"
    r"|[一二三四五六七八九十]分"
)
_NO_NUMBERS = re.compile(
    r"\b(?:copied|taken|quoted) from\b|\bthis is (?:only|just|merely) (?:an? )?(?:example|draft|template"
    r"|placeholder|test|sample)"
    r"|\bi (?:cannot|can['’]t|will not|won['’]t|do not|don['’]t|refuse to|decline to) (?:give|assign|score|rate"
    r"|grade|judge)\b"
    rf"|\bplaceholders?\b|\bdummy {_NOUN}|\b(?:these|the|my|all) (?:above )?(?:{_NOUN}|values) (?:is|are|here "
    rf"are) (?:not|only|just|an? example"
    rf"|examples|made up|for illustration|invented|arbitrary|placeholders?|wrong|hypothetical|illustrat\w+"
    rf"|random|meaningless)\b"
    rf"|\bnot my (?:own |real )?{_NOUN}\b|\bno {_NOUN} (?:is|are|was|were|can be) (?:given|meant|possible)"
    rf"|\b(?:not|no) (?:a )?(?:real|actual) {_NOUN}"
    rf"|\b{_NOUN} to be (?:filled|determined|decided)\b|仅为?示例|(?:不|未|无法)(?:打分|评分|给分)|占位"
    rf"|随机(?:填|给)|示例分数"
)
_WORDS = {"five": 5, "four": 4, "three": 3, "six": 6, "seven": 7, "ten": 10, "hundred": 100, "twenty": 20}
_N = rf"([0-9]{{1,4}}(?:\.[0-9])?|{'|'.join(_WORDS)})"
_TO = r"\s{0,3}(?:-|–|—|to|~|\.\.|至|到)\s{0,3}"
_STATED = re.compile(
    rf"\bscale\b[^.\n{{]{{0,20}}?\b{_N}{_TO}{_N}\b|\bscale of {_N}\b(?!{_TO})"
    rf"|\b{_N}{_TO}{_N}\s(?:point\s)?(?:scale|rating)\b"
    rf"|\b(?:one |a )?{_N}[- ](?:point|star|mark)s?(?:\s(?:scale|system|rating))"
    rf"|\b(?:{_NOUN}|points|all|each|everything)\b[^.\n{{0-9]{{0,24}}\bout of\s{_N}\b|\b(?:{_NOUN}|stars)\s(?:on"
    rf"|from)\s{_N}{_TO}{_N}\b"
    rf"|\b(?:{_NOUN}|max(?:imum)?(?: score)?)\s{{0,2}}\(?\s{{0,2}}(?:/|max\.?|of)\s{{0,2}}{_N}\b"
    rf"|\bmax(?:imum)?(?: score| points)?"
    rf"\s{{0,2}}(?:is|=|:|of)?\s{{0,2}}{_N}\b|满分(?:为|是|：|:)?\s{{0,2}}{_N}|{_N}\s{{0,2}}分制"
    rf"|{_N}\s{{0,2}}分?(?:为|是)满分"
    rf"|(?:评分|分数|打分|得分)(?:范围|区间)?(?:为|是|：|:)?\s{{0,2}}{_N}{_TO}{_N}"
)
_OTHER_UNITS = re.compile(
    rf"\b(?:{_NOUN}|scale)\b[^.\n{{]{{0,20}}(?:%|\bpercent(?:ages?)?\b|\bpercentiles?\b)|百分制|\bpercentage "
    rf"scale\b|五星|\blikert\b|[★⭐]"
)
_WITHIN_A_SENTENCE = re.compile(
    r"[ \t]{0,8}[`*\"]{0,3}[ \t]{0,8}(?:[,，、;；][ \t]{0,8}(?=\w)|(?:[—–-]|<?[-=]{1,2}>?|\()[ \t]{0,8}(?=\w)"
    r"|(?=[a-z\u4e00-\u9fff]))"
    r"(?!(?:as (?:requested|asked)|hope|thanks?|thank you|let me know|is my|scale|最终|以上是我)\b)"
)
_GAP = re.compile(
    r"(?:\s|`{1,8}[a-zA-Z0-9_]{0,12}|~{3,8}[a-z0-9_]{0,12}|[*_#]|</?[\w|-]{1,30}/?>"
    r"|<\|[\w]{1,30}\|>|\[/?(?:tool_calls|inst|json|verdict|result|output|assistant)\]|\\\w{1,10}|[{\[(])*$"
)
_LABEL = re.compile(
    rf"(?:^|\n)\W{{0,4}}(?:the )?{_SPEAKER}\s{{0,2}}(?:\w{{1,2}}|under review|is|reads"
    rf"|says)?\s{{0,2}}[:：]"
)
_DRAFT = re.compile(
    r"\b(?:drafts?|preliminary|tentativ\w+|provisional\w*|rough|first\w*|initial\w*|previous\w*|earlier|before"
    r"|original\w*|thoughts?|thinking"
    r"|reasoning|scratch\w*)\b|草稿|初稿|初步|初评|之前|先前|原先|起初|原本|一开始|思考"
)
_SENTENCE_ENDS = re.compile(
    r"(?<=[.!?。！？;；])(?<!e\.g\.)(?<!i\.e\.)(?<!\d\.)(?=[\s\"”)*]|[\u4e00-\u9fff])\s{0,40}|\n"
)
_LEADS_ON = re.compile(
    r"\b(?:is|are|was|were|reads?|says?|said|with|to|that|of|as|by|be|writes?|contains?"
    r"|holds?|from|like|and|or)$"
)


def is_marked(before: str, after: str) -> bool:
    """Whether the signs next to an object make it a quotation: a line that begins with ``>``, quotes, a strike.

    Examples
    --------
    >>> is_marked("> ", ""), is_marked("Verdict: ", ".")
    (True, False)
    """
    line = before[before.rfind("\n") + 1 :]
    quoted = re.search(r"[\"“「『‘']\s{0,8}[\[{]?\s{0,8}$", before[-20:])
    return bool(
        re.match(r"\s{0,8}(?:>(?!>>)|&gt;|//|#(?!#)|/\*|<!--)", line)
        or (quoted and re.match(r"\s{0,8}[\]}]?\s{0,8}[\"”」』’']", after))
        or (before.rstrip().endswith("~~") and after.lstrip().startswith("~~"))
    )


def is_quoted(before: str, after: str) -> bool:
    """Whether the words next to an object speak of a quotation, an example or a draft, or do not announce it.

    Parameters
    ----------
    before, after : str
        The text up to the object and from it on, other objects left out.

    Examples
    --------
    >>> is_quoted("The answer ends with: ", ""), is_quoted("My verdict on the answer: ", "")
    (True, False)
    """
    if _WITHIN_A_SENTENCE.match(after):
        return True
    words, sentences, apart = _sentences(before)
    if not sentences or _is_announced(sentences[-1]):
        return len(sentences) > 1 and bool(re.fullmatch(r"\W*answer\W*", sentences[-1]))
    last = sentences[-1]
    closed = last[-1] in '.!。！"”)'
    if not closed and (not apart or last[-1] in ":：" or _LEADS_ON.search(last)):
        return True
    if len(re.findall(r"[a-zà-ÿ]+|[\u4e00-\u9fff]{2}", last)) < 3 or _LABEL.search(words):
        return True
    if re.search(r"\b(?:i|my|earns?|gets?|deserves?|receives?|merits?)\b|我", last) and not _QUOTING.search(last):
        return False
    named = re.search(rf"\b{_THING}\b|\b(?:this|so)\W*$|如下|下面|这样|评分|分数|原文", last)
    return bool(named and (_QUOTING.search(last) or not closed or re.search(rf"\b{_SPEAKER}\b", last)))


def is_announced(before: str) -> bool:
    """Whether the words before an object say that it is the verdict.

    Examples
    --------
    >>> is_announced("The draft was too kind. Final verdict: "), is_announced("Human verdict: ")
    (True, False)
    """
    _, sentences, _ = _sentences(before)
    return bool(sentences) and _is_announced(sentences[-1])


def is_draft(before: str) -> bool:
    """Whether the words before an object call it an earlier verdict of the judge's own.

    Examples
    --------
    >>> is_draft("My first draft: "), is_draft("The answer says: ")
    (True, False)
    """
    _, sentences, _ = _sentences(before)
    return bool(sentences and _DRAFT.search(sentences[-1]))


def _sentences(before: str) -> tuple[str, list[str], bool]:
    """The words before an object, their sentences, and whether an empty line parts them from it."""
    gap = _GAP.search(before, max(0, len(before) - 120))
    words = re.sub(r"\{[^{}\n]{0,80}\}|<[^<>\n]{1,80}>", " ", before[: gap.start()] if gap else before).lower()
    parts = _SENTENCE_ENDS.split(words[-600:])
    sentences = [part.strip(" \t*_#|-") for part in parts if re.search(r"[^\W\d_]", part)]
    return words, sentences, gap is not None and "\n\n" in re.sub(r"[ \t\r]", "", gap[0])


def _is_announced(sentence: str) -> bool:
    """Whether a sentence has only words that announce a verdict; of one with a comma, its last clause."""
    clauses = re.split(r"[,，;；]|\b(?=so\b|therefore\b|hence\b)|(?=所以|因此|于是)", sentence)
    follows = re.match(r"\W*(?:so|therefore|hence|所以|因此|于是)", clauses[-1])
    for clause in (clauses[-1], sentence):
        rest, whole = _OWN_DIGITS.sub(" ", _without_the_answer(clause)), _without_the_answer(sentence)
        if _QUOTING.search(rest if follows else whole) or re.search(r"\d", rest):
            return False
        if re.search(r"[?？]$|\baccording to\b|\bbased on\b", whole):
            return False
        rest = _CHINESE.sub(" here ", rest)
        words = re.findall(r"[^\W\d_]+", re.sub(_OWN_REPLY, "verdict", rest))
        form = re.search(r"\bform(?:at)?\b|格式(?!.{0,4}(?:评|打))", clause)
        if form and not re.search(r"\b(?:in|as|with)\b|按|用|以", clause):
            return False
        if words and all(word in _CORE or word in _FILLER for word in words):
            return bool(_CORE.intersection(words))
    return False


def _without_the_answer(sentence: str) -> str:
    """A sentence without the words that name the answer as what is judged."""
    return _GIVES.sub(" verdict ", _ABOUT_IT.sub(lambda found: " json " if "json" in found[0] else " ", sentence))


def is_taken_back(before: str, after: str, texts: str) -> bool:
    """Whether the words around a verdict, or its own texts, say that it is none, or may do so.

    Parameters
    ----------
    before, after : str
        In small letters; of `after`, what repeats the scores is left out.
    texts : str
        The verdict's own.

    Examples
    --------
    >>> is_taken_back("", "wait, i was too kind.", ""), is_taken_back("", "i hope that this helps!", "")
    (True, False)
    """
    after = re.sub(r"</?[\w|-]{1,30}/?>|<\|\w{1,30}\|>|`{1,8}[a-z]{0,12}", " ", after)
    sentences = {part.strip() for part in re.split(r"(?<=[?？])|[.!。！\n]", after)}
    refused = _REFUSED.search(before) or _REFUSED.search(after) or _NO_NUMBERS.search(texts)
    return bool(refused) or not all(map(_is_harmless, sentences))


def _is_harmless(sentence: str) -> bool:
    """Whether a sentence after a verdict cannot take it back: it is polite, or tells of the answer."""
    if not re.search(r"[\w?？]", sentence) or _POLITE.match(sentence):
        return True
    if _REFERS.search(sentence) or sentence.endswith(("?", "？")):
        return False
    if _OF_THE_EXAMINATION.search(sentence) and not _LABELLED.match(sentence):
        return False
    return bool(_TELLS_IN_CHINESE.search(sentence) or _TELLS_OF_THE_ANSWER.match(sentence))


def states_another_scale(text: str, low: float, high: float) -> str | None:
    """Return the words by which a text names a scale that is not the one from `low` to `high`.

    Examples
    --------
    >>> states_another_scale("on a scale of 1 to 5", 1, 10)
    'scale of 1 to 5'
    """
    for found in _STATED.finditer(text):
        numbers = [float(_WORDS.get(one, one)) for one in found.groups() if one]
        if numbers and (numbers[-1] != high or any(one not in (low, high) for one in numbers)):
            return found[0]
    other = _OTHER_UNITS.search(text)
    return other[0] if other else None


QUOTATIONS = re.compile(
    r"<(quote|blockquote|example|examples|cite|q|del|s|strike|material|draft|context|contexts|passage|question"
    r"|data-\w{1,32})\b"
    r"[^<>]{0,100}>|</(quote|blockquote|example|examples|cite|q|del|s|strike|material|draft|context|contexts"
    r"|passage|question"
    r"|data-\w{1,32})\s{0,4}>|<!--|-->",
    re.IGNORECASE,
)


def quoted_regions(text: str) -> list[tuple[int, int]]:
    """Return from where to where a text is marked as a quotation, an example, struck out or a comment."""
    regions, opened = list[tuple[int, int]](), list[tuple[str, int]]()
    for mark in QUOTATIONS.finditer(text):
        name = (mark[1] or mark[2] or "!").lower()
        if mark[1] or mark[0] == "<!--":
            opened.append((name, mark.start()))
        elif opened and opened[-1][0] == name:
            regions.append((opened.pop()[1], mark.end()))
    return regions + [(start, len(text)) for _, start in opened]
