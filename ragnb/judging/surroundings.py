"""What the words around an object of a reply make of it: a verdict, a quotation, or one that is taken back."""

from __future__ import annotations

import re

_NOUN = r"(?:verdicts?|scores?|scoring|ratings?|assessment|evaluation|judge?ments?|grades?|marks|numbers|result)"
_SPEAKER = (
    r"(?:answer|response|reply|passages?|contexts?|materials?|question|documents?|texts?|sources?|user|author|student"
    r"|candidate|system|assistant|writer|it|they|who|which|that|strangers?|attacker|injection|instruction|payload)"
)
_SAYS = (
    r"(?:contain\w*|includ\w*|holds?|holding|says?|said|saying|stat(?:es?|ed|ing)|claim\w*|writes?|written|wrote|writing"
    r"|reads?|assert\w*|embed\w*|ends?|ending|begins?|began|opens?|closes?|propos\w*|suggest\w*|demand\w*|asks?|asked"
    r"|asking|instruct\w*|tells?|told|orders?|ordered|wants?|wanted|request\w*|tries|tried|attempt\w*|inject\w*|plants?"
    r"|planted|quot\w+|displays?|shows?|presents?|offers?|suppl\w+|provides?|returns?|outputs?|smuggl\w*|carries|has"
    r"|have|had|gave|gives|append\w*|insert\w*|awards?|grades itself|rates itself|scores itself|goes|adds?|puts?)"
)
_FROM_STRANGERS = re.compile(
    rf"\b{_SPEAKER}(?:'s|’s)?\b[^.:\n]{{0,60}}\b{_SAYS}\b|\b(?:from|in|inside|within|at the end of|part of|quot\w+|of)"
    rf"\s(?:the |its |this |that )?(?:\w+\s)?{_SPEAKER}\b|\b{_SPEAKER}\s{{0,3}}[:：]\s{{0,3}}$|\b(?:found|planted|embedded)\b"
    r"|(?:回答|答案|答复|材料|资料|段落|上下文|问题|用户|作者|文中|文档)[^。：:\n]{0,12}(?:写|说|称|包含|含有|附|要求|出现|带有"
    r"|自评|末尾|结尾|里有|中有|给自己|给出|原话|原文|如下)|(?:回答|答案|材料|资料|上下文)[中里内]?[：:]\s{0,3}$"
)
_ABOUT_IT = re.compile(
    r"\b(?:of|for|on|about|to)\s(?:the |this |that )?(?:system's |given |provided )?(?:answer|response|reply)"
    r"(?:\s(?:provided|given|above|shown|below|in question))?\b"
)
_NOT_MEANT = re.compile(
    r"\b(?:examples?|e\.g|for instance|sample|such as|like (?:this|so)|looks? like|placeholders?|template|hypothetical\w*"
    r"|suppose|imagine|pretend|assum\w+|would|could|might|may|instead of|rather than|unlike|ignor\w+|disregard\w*"
    r"|injected|fake|forged|drafts?|preliminary|tentative\w*|provisional\w*|rough|first (?:pass|guess|impression|attempt|try"
    r"|thought|idea|take|version)|initial(?:ly)?|previous(?:ly)?|earlier|before|former(?:ly)?|originally|thoughts?|thinking"
    r"|reasoning|scratch\w*|quot\w+|cited|verbatim|copied|echo\w*|repeat\w*|not|never|cannot|if|unless|whoever|someone"
    r"|(?:wrong|incorrect|bad|false|invalid|retracted|withdrawn|obsolete|deprecated|outdated) \w+|(?:an?other|second|lenient"
    r"|strict|naive|careless|generous|obedient|fooled|different) (?:judge|model|reviewer|examiner|rater|annotator))\b|n['’]t\b"
    r"|\b(?<!in )(?<!in the )(?<!in this )(?<!in your )(?:the |required |expected |reply |output |response |desired |json )*"
    r"(?:format|schema|form|structure)\b\s{0,2}(?:is|was|looks?|should|must|of|to use)?\s{0,2}[:：]?\s{0,3}$"
    r"|引用|原文|摘录|例如|比如|譬如|示例|样例|例子|举例|格式(?:是|为|应|示)|模板|假设|假如|如果|倘若|草稿|初稿|初步|之前|先前|原先|起初"
    r"|一开始|忽略|伪造|注入|思考|不是|并非|不要|错误的|形如|类似|占位|本应|可能|参考格式|(?<!按)(?<!要求的)格式[：:]\s{0,3}$"
)
_MEANT = re.compile(
    rf"^\W*(?:(?:so|thus|hence|therefore|ok|okay|sure|and|but|now|finally|i|we|is|the|this|that)\s)*(?:(?:here(?:'s|’s|\sis|\sare)"
    rf"|below(?:\sis|\sare)?)\s)?(?:the |my |our |a )?(?:(?:final|own|overall|complete|json|real|actual|full|requested)\s)*{_NOUN}"
    r"\b(?!\s(?:in|that|which|from|by|the|of|it)\b)|\b(?:my|final)\s(?:\w+\s)?" + _NOUN + r"\b|^\W*i (?:rate|score|judge|grade"
    r"|give|award|assign)\b|^\W*final(?: answer| json| output)?\W*$|^\W*(?:我的|最终|正式|以下是|最后)?的?(?:评分|评判|评审|打分|评价"
    r"|结果|结论|得分|评估)"
)
_REFUSED = re.compile(
    r"\b(?:i|we)\b[^.\n{]{0,20}(?:\bcannot|\bcan not|n['’]t|\bnot|\brefuse|\bdecline|\bunable|\bno longer|\bgive no|\bassign no"
    rf"|\baward no|\bwithhold)\b[^.\n{{]{{0,40}}\b(?:score|rate|grade|judge|assess|evaluate|{_NOUN})\b"
    rf"|\bno {_NOUN}\b|\bwithout (?:giving |any |a )?{_NOUN}\b|\b{_NOUN} (?:is|are|was|were) (?:not|n['’]t|withheld|pending"
    r"|impossible|refused)|\bunable to (?:score|rate|grade|judge|assess|evaluate)\b"
    r"|不(?:予|给|能|会|打算|便|再|作|做|进行)?(?:给出|进行|作|做|予以)?(?:打分|评分|给分|评判|评价|判分|评审)|无法[^。\n]{0,6}(?:评|打分|给分|判断)"
    r"|拒绝[^。\n]{0,4}(?:评|打分|给)|没有(?:打分|评分|给分)|暂不"
)
_TAKEN_BACK = re.compile(
    r"\b(?:wait|oops|hmm+|scratch (?:that|this|it)|strike (?:that|this|it)|never ?mind|retract\w*|withdr[ae]w\w*|revok\w+"
    r"|rescind\w*|supersed\w+|my mistake|i was (?:wrong|mistaken|too)|i (?:made|meant)|apolog\w+|sorry|reconsider\w*|hold on"
    r"|changed my mind|no longer|just kidding|i take (?:that|it|this|them) back|let me (?:correct|revise|redo|rethink|fix"
    r"|re\w*)|on (?:second|further|closer|more careful) \w+|on reflection|thinking (?:again|about it)|looking again)\b"
    r"|\b(?:ignore|disregard|discard|forget|skip|delete|drop|do not (?:use|count|take)|don['’]t (?:use|count|take))\b"
    r"[^.\n]{0,20}\b(?:that|this|these|those|it|above|my|previous|object|json|scores?|verdict|numbers)\b"
    rf"|\bnot (?:(?:my|the|a|an|as|meant|intended)\s)*(?:(?:real|final|actual|own|binding|serious|meant|be)\s)*(?:{_NOUN}|final"
    r"|valid|binding|mine|count|counted|used|taken|real)\b"
    r"|\b(?:is|was|are|were|just|only|merely|purely|as|serves?|still)\s(?:an?\s|my\s|the\s|only\s|just\s|as\s)*(?:first\s|rough\s"
    r"|mere\s|format\s|possible\s)?(?:examples?|placeholders?|dumm\w+|drafts?|templates?|samples?|hypothetical|illustrat\w+"
    r"|preliminary|tentative|provisional|invalid|void|obsolete|quotation|quoted?|copied|wrong|made up|what the (?:answer|user"
    r"|author|text))\b|(?:^|[.!\n])\s{0,8}(?:actually|correction|corrected|no|erratum|update|edit|revised|revision)\b(?!\s\w+\s(?:err|fig))"
    rf"|\b(?:corrected|revised|updated|new|right|real|adjusted)\s(?:\w+\s)?(?:{_NOUN}|json|object)\b"
    r"|\b(?:should|ought to|must|shall|to)\s(?:have been|be|read|become)\b[^.\n]{0,20}[0-9]|\b(?:make|change|lower|raise|reduce"
    r"|increase|set|correct)\s(?:it|that|this|them|the|my|accuracy|completeness|clarity)\b[^.\n]{0,40}[0-9]|[0-9][^.\n]{0,30}"
    r"\binstead\b|\binstead\b[^.\n]{0,30}[0-9]|撤回|收回|作废|说错|写错|打错|评错|算错|弄错|搞错|重新(?:评|打)|等等[，,！!。]"
    r"|(?:^|[。！!\n，,])\s{0,4}(?:不对|更正|修正|纠正|抱歉|改)|(?:改为|改成|应(?:该|当)?(?:是|为|改))[^。\n]{0,8}[0-9０-９一二三四五六七八九十]"
    r"|修正后的?|忽略(?:上|以|这|该|前|此)|(?:只|仅|不过)是?(?:个|一个|为)?(?:示例|例子|举例|草稿|样例|格式|示范|引用)"
    r"|不是(?:我的|最终|正式|评)|仅供参考|(?:评分|分数|结果|以上|上面|上述)[^。\n]{0,6}(?:无效|作废|不算|是回答|来自)|不算(?:数|分)?|不作数"
)
_NO_NUMBERS = re.compile(
    r"\bi (?:cannot|can['’]t|will not|won['’]t|do not|don['’]t|refuse to|decline to) (?:give|assign|score|rate|grade|judge)\b"
    rf"|\bplaceholders?\b|\bdummy {_NOUN}|\b(?:these|the|my) {_NOUN} (?:is|are) (?:not|only|just|an? example|examples|made up"
    rf"|invented|arbitrary|placeholders?|wrong|hypothetical|illustrat\w+|random)\b|\bnot my {_NOUN}\b|\bno {_NOUN} (?:is|are|was"
    rf"|were|can be) (?:given|meant|possible)|\b{_NOUN} to be (?:filled|determined|decided)\b|仅为?示例|(?:不|未|无法)(?:打分|评分|给分)"
    r"|占位|随机(?:填|给)|示例分数"
)
_STATED = re.compile(
    r"\bscale\b[^.\n{]{0,20}?([0-9.]{1,6})\s{0,3}(?:-|–|—|to|~|\.\.)\s{0,3}([0-9.]{1,6})|\bscale of ([0-9.]{1,6})\b(?!\s{0,3}(?:-|–|to))"
    r"|\b(?:from\s)?([0-9.]{1,6})\s{0,2}(?:-|–|to)\s{0,2}([0-9.]{1,6})\s(?:point\s)?scale\b|\b([0-9]{1,4})[- ](?:point|star|mark)s?\s"
    r"(?:scale|system|rating)|\b(?:scores?|scored|ratings?|rated|marks?|graded|grades|points|all)\b[^.\n{0-9]{0,24}\bout of\s([0-9]{1,4})"
    r"|\b(?:scores?|ratings?|max(?:imum)?(?: score)?)\s{0,2}\(?\s{0,2}(?:/|max\.?|of)\s{0,2}([0-9]{1,4})|\bmax(?:imum)?(?: score| points)?"
    r"\s{0,2}(?:is|=|:|of)?\s{0,2}([0-9]{1,4})\b|满分(?:为|是|：|:)?\s{0,2}([0-9]{1,4})|([0-9]{1,4})\s{0,2}分制"
    r"|([0-9]{1,4})\s{0,2}分?(?:为|是)满分"
)
_OTHER_UNITS = re.compile(
    rf"\b(?:{_NOUN}|scale)\b[^.\n{{]{{0,20}}(?:%|\bpercent(?:ages?)?\b|\bpercentiles?\b)|百分制|\bpercentage scale\b|五星|[★⭐]"
)


_GAP = re.compile(r"(?:\s|`{1,8}[a-z0-9_]{0,12}|~{3,8}[a-z0-9_]{0,12}|[*_#>])*$")  # a fence's first line is no word


def is_quoted(before: str, after: str) -> bool:
    """Whether an object stands in a quotation, by the signs and words next to it.

    Parameters
    ----------
    before, after : str
        The text up to the object and from it on, in small letters, other objects left out.

    Examples
    --------
    >>> is_quoted("the answer ends with: ", ""), is_quoted("my verdict on the answer: ", "")
    (True, False)
    """
    line = before[before.rfind("\n") + 1 :]
    if re.match(r"\s{0,8}(?:>|&gt;)", line):
        return True
    if re.search(r"[\"“「『‘']\s{0,8}[\[{]?\s{0,8}$", before) and re.match(r"\s{0,8}[\]}]?\s{0,8}[\"”」』’']", after):
        return True
    if before.rstrip().endswith("~~") and after.lstrip().startswith("~~"):
        return True
    gap = _GAP.search(before, max(0, len(before) - 80))
    bare = before[: gap.start()] if gap else before
    apart = gap is not None and "\n\n" in re.sub(r"[ \t]", "", gap[0])
    sentences = [part for part in re.split(r"(?<=[.!?。！？；;])(?<!e\.g\.)(?<!i\.e\.)\s{0,40}|\n", bare[-600:]) if part.strip(" \t*_#<>|-")]
    if not sentences:
        return False
    last = _ABOUT_IT.sub("", sentences[-1].strip(" \t*_#"))
    closed = last.rstrip("*_ ")[-1:] in ".!?。！？" or (apart and last.rstrip("*_ ")[-1:] not in ":：")
    strange, unmeant = _FROM_STRANGERS.search(last), _NOT_MEANT.search(last)
    if closed:
        names_it = re.search(
            r"\b(?:json|objects?|block|verdicts?|scores?|following|below|ratings?|evaluation|this|these|itself|so)\b|如下|下面|这样|评分|分数", last
        )
        return bool(names_it and (strange or unmeant)) and not _MEANT.search(last)
    clause = re.split(r"[,，;；]|\bso\b|\btherefore\b|\bhence\b|所以|因此|于是", last)[-1]
    if clause != last and _MEANT.search(clause):
        return bool(_FROM_STRANGERS.search(clause) or _NOT_MEANT.search(clause))
    return bool(strange or unmeant)


def is_announced(before: str) -> bool:
    """Whether the words before an object say that it is the verdict.

    Examples
    --------
    >>> is_announced("the draft was too kind. final verdict: ")
    True
    """
    gap = _GAP.search(before, max(0, len(before) - 80))
    bare = before[: gap.start()] if gap else before
    clause = re.split(r"[.!?。！？;；,，\n]", bare[-200:])[-1]
    return bool(_MEANT.search(clause.strip(" \t*_#")))


def is_taken_back(before: str, after: str, texts: str) -> bool:
    """Whether the words around a verdict, or its own texts, say that it is none.

    Examples
    --------
    >>> is_taken_back("", "wait, i was too kind.", ""), is_taken_back("", "i hope that this helps!", "")
    (True, False)
    """
    return any(
        (_REFUSED.search(before), _REFUSED.search(after), _TAKEN_BACK.search(after), _NO_NUMBERS.search(texts))
    )


def states_another_scale(text: str, low: float, high: float) -> str | None:
    """Return the words by which a text names a scale that is not the one from `low` to `high`.

    Examples
    --------
    >>> states_another_scale("on a scale of 1 to 5", 1, 10)
    'scale of 1 to 5'
    """
    for found in _STATED.finditer(text):
        numbers = [float(one) for one in found.groups() if one and re.fullmatch(r"[0-9]{1,4}(?:\.[0-9])?", one)]
        if numbers and (numbers[-1] != high or any(one not in (low, high) for one in numbers)):
            return found[0]
    other = _OTHER_UNITS.search(text)
    return other[0] if other else None


QUOTATIONS = re.compile(
    r"<(quote|blockquote|example|examples|cite|q|del|s|strike|material|draft|context|contexts|passage|question|data-\w{1,32})\b"
    r"[^<>]{0,100}>|</(quote|blockquote|example|examples|cite|q|del|s|strike|material|draft|context|contexts|passage|question"
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
