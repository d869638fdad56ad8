"""Whether each line of a ledger can be traced: its `(#seq)` must lead to a record that contains what the line says.

What a line says are its names and its words. Words of the ledger's own (states, counts, headings) are few, so a line is
supported when every name, and most words, stand in the records that it refers to: those of the `seq`, the other half of
the same tool call, and the session record. The share of *bare* tokens is that of lines that are a list of names and say
nothing about them, that of *empty* lines is of questions, praise, announcements, repeats and such lists."""
import re
from collections import defaultdict
from dataclasses import dataclass, field

from facts import HEADING, ITEM
from stream import content, is_message, names, strings, tokens

REFERENCE = re.compile(r"[(（]\s*(#\d+(?:\s*(?:[,;、，…–-]|\.\.)?\s*#?\d+)*)\s*[)）]")
WORD = re.compile(r"[A-Za-z]{3,}|[\u3400-\u9fff]")
MOST = 0.6  # share of a line's words that must be in its records
# What a ledger says of states in Chinese; each character would count as a word.
OWN = re.compile("已解决|未解决|现已成功|已运行|成功|失败|在处理|之后|新建|修改|删除|移动|读取|搜索|写入|此后|改动")


@dataclass
class Lines:
    """Counts over any number of ledgers, and the first lines that failed, each with the reason."""
    lines: int = 0
    untraced: int = 0     # no reference at all
    unresolved: int = 0   # a reference to a record that does not exist
    unsupported: int = 0  # the record does not say so
    bare: int = 0         # tokens of bare lists of names
    tokens: int = 0       # tokens of all lines
    empty: int = 0        # lines that tell a successor nothing
    all: int = 0          # lines of which this was asked
    failed: list = field(default_factory=list)

    def add(self, other):
        for name in ("lines", "untraced", "unresolved", "unsupported", "bare", "tokens", "empty", "all"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.failed += other.failed[:max(0, 40 - len(self.failed))]

    def bad(self):
        return self.untraced + self.unresolved + self.unsupported


class Records:
    """The text behind each `seq`; 0 is the session record, which has none."""

    def __init__(self, records):
        self.text, calls, self.other = defaultdict(str), defaultdict(list), defaultdict(set)
        self.session = " ".join(strings({k: v for k, v in records[0].items() if k not in ("file_snapshot", "via")}))
        for record in filter(is_message, records):
            self.text[record["seq"]] += content(record) + "\n"
            if record.get("tool_call_id"):
                calls[record["tool_call_id"]].append(record["seq"])
        for seqs in calls.values():
            for seq in seqs:
                self.other[seq].update(seqs)

    def behind(self, seqs):
        own = dict.fromkeys(s for seq in seqs for s in (seq, *sorted(self.other[seq])))
        return "\n".join([*(self.text[seq] for seq in own), self.session])


def referred(line):
    """The sequence numbers that a line refers to. A range stands for its two ends: what is between need not exist."""
    return [int(n) for found in REFERENCE.findall(line) for n in re.findall(r"\d+", found)]


def statements(text):
    """The traceable pieces of a ledger. A piece ends with its reference, with the next item, or with a heading. What
    stands before the first heading, and lines that only introduce others, say nothing that could be traced."""
    piece, started = [], not any(HEADING.match(line) for line in text.split("\n"))
    for line in text.split("\n"):
        if HEADING.match(line) or not line.strip():
            if HEADING.match(line):
                started = True
                # a heading may itself carry what it is about
                if REFERENCE.search(line):
                    yield line
            if piece and (HEADING.match(line) or not started):
                if started:
                    yield "\n".join(piece)
                piece = []
            continue
        if not started:
            continue
        if piece and ITEM.match(line) and not line[0].isspace():
            yield "\n".join(piece)
            piece = []
        piece.append(line)
        if REFERENCE.search(line):
            yield "\n".join(piece)
            piece = []
    if piece and started:
        yield "\n".join(piece)


PRAISE = re.compile(r"\b(?:perfect|excellent|great|awesome|all done|all set|ready for|looks good|absolutely right|good catch)\b|太好了|完美|一切就绪|大功告成", re.I)
ANNOUNCED = re.compile(r"^(?:let me|let's|let us|i'll|i’ll|i will|now let|next,? i)\b|^(?:让我|我来|接下来我)", re.I)
EXACT = re.compile(r"\d|`|[A-Za-z]+_[A-Za-z]|/[a-z]")


def read(ledger):
    """The Lines of a ledger of which only its own words are looked at: which of its lines are empty. What the user
    said, and quotations, are never."""
    made, seen, theirs = Lines(), set(), False
    for line in ledger.split("\n"):
        if HEADING.match(line):
            theirs = bool(re.search(r"user|request|goal|用户|请求|目标", line, re.I))
        if not ITEM.match(line):
            continue
        body = REFERENCE.sub(" ", ITEM.sub("", line, count=1)).strip()
        key = re.sub(r"\W", "", body).lower()
        made.all += 1
        told = body.rstrip().endswith(("?", "？")) or ANNOUNCED.search(body) or (PRAISE.search(body) and not EXACT.search(body)) or bare(body)
        made.empty += bool((told and not theirs) or key in seen)
        seen.add(key)
    return made


def check(records, ledger):
    """The Lines of one ledger about one session."""
    made, source = read(ledger), Records(records)
    for said in statements(ledger):
        made.lines += 1
        size = tokens(said)
        made.tokens += size
        plain = REFERENCE.sub(" ", said)
        if bare(plain):
            made.bare += size
        seqs = referred(said)
        if not seqs:
            made.untraced += 1
            made.failed.append(("no reference", said))
        elif missing := [seq for seq in seqs if seq and seq not in source.text]:
            made.unresolved += 1
            made.failed.append((f"no record {missing[0]}", said))
        elif why := unsupported(plain, source.behind(seqs)):
            made.unsupported += 1
            made.failed.append((why, said))
    return made


def bare(text):
    """Whether a line is a list of names: three or more, and fewer words than names around them."""
    listed = list(names(text))
    rest = text
    for name in sorted(set(listed), key=len, reverse=True):
        rest = rest.replace(name, " ")
    words = len(re.findall(r"[A-Za-z]{2,}", rest)) + len(re.findall(r"[\u3400-\u9fff]", rest)) / 2
    return len(listed) >= 3 and words < len(listed)


def unsupported(text, source):
    """Why the records do not contain what a line says; None when they do."""
    body = ITEM.sub("", text, count=1)
    flat, low = " ".join(source.split()), source.lower()
    for name in names(body):
        at = body.find(name)
        short = body[at + len(name):at + len(name) + 2].lstrip()[:1] in ("…", ".") or body[max(at - 2, 0):at].rstrip()[-1:] == "…"
        if name not in source and name not in flat and not (short and name[:12] in source):
            return f"{name} is not in the record"
    words = [word.lower() for word in WORD.findall(OWN.sub(" ", body))]
    known = sum(word in low for word in words)
    # short lines are mostly the ledger's own words, and have been judged by their names
    if len(words) >= 8 and known < MOST * len(words):
        return f"{known} of {len(words)} words are in the record"
    return None
