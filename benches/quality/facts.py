"""How many planted facts a summary holds, whether it knows their state, and what it says that is not so.

Counted per fact:

- *found*: its name stands in what is left of the session.
- *state*: the ledger's entry with the name tells the true state and no other one of that kind of fact. An entry that
  tells none takes that of the heading above it. Only ledgers are asked: raw records tell no state by themselves.
- *stale*: the successor is misled: the old value of a correction is there and the new one is not, or the ledger gives
  a state that the fact had before.
- *unmarked*: an entry of the ledger shows the old value of a correction, and neither has the new one nor says that it
  is over, wherever else the new one may stand.
- *promoted*: a look-alike stands in the ledger."""
import re
from dataclasses import dataclass

from plant import KINDS, STATES
from stream import has

# Words that tell a state, by language-independent mark or in English or Chinese. Denials come first, they contain the others.
WORDS = {
    "file": (
        ("moved", r"\b(?:moved|renamed|move|rename)\b|→|->|移动|移至|改名|重命名|更名"),
        ("deleted", r"\b(?:deleted|removed|delete)\b|删除|移除|已删"),
        ("created", r"\b(?:created|new|added|create)\b|新建|创建|新增|建立"),
        ("edited", r"\b(?:edited|modified|changed|updated|edit)\b|修改|更改|编辑|改动|更新"),
    ),
    "command": (
        ("failed", r"\b(?:fail(?:ed|s|ing)?|exit(?: code)?:? ?[1-9]\d*|broken|red)\b|✗|✘|❌|失败|未通过|出错|退出码?[:： ]?[1-9]\d*"),
        ("passed", r"\b(?:pass(?:ed|es|ing)?|ok|succeed(?:ed|s)?|success|green|exit(?: code)?:? ?0)\b|✓|✔|✅|成功|通过|正常|退出码?[:： ]?0"),
    ),
    "error": (
        ("open", r"\b(?:un(?:resolved|fixed)|not (?:yet )?(?:resolved|fixed)|still|open)\b|未解决|没有解决|未修复|尚未|仍"),
        ("resolved", r"\b(?:resolved|fixed|solved|gone)\b|解决|修复|消失"),
    ),
    "todo": (
        ("waiting", r"\b(?:pending|to ?do|not started|waiting|open)\b|\[ \]|☐|待办|待处理|待做|未开始|未完成|等待"),
        ("doing", r"\b(?:in[ _]progress|doing|ongoing|current)\b|\[[~>*-]\]|进行中|正在"),
        ("done", r"\b(?:done|completed?|finished)\b|\[[xX]\]|✓|✔|☑|✅|完成|已做"),
    ),
}
# What an aside tells about the past is no present state: "ok (failed 2 times before)".
ASIDE = re.compile(r"[(（][^()（）]*(?:before|earlier|previous|first|was|were|之前|先前|曾|原)[^()（）]*[)）]|\b(?:was|previously|formerly|failed|before)\b[^;.；。]*\b(?:now|then)\b|(?:之前|先前|曾)[^；。]*(?:现在|现已|后来)")
OVER = re.compile(r"\b(?:replac\w*|supersed\w*|overrid\w*|overrul\w*|no longer|instead of|rather than|not|was|old|earlier|before|former\w*|obsolete|outdated|previous\w*|corrected|withdrawn)\b|~~|取代|不再|不要|不是|改为|改用|作废|过时|旧|原为|原来|之前|先前|更正|已被|而非", re.IGNORECASE)
HEADING = re.compile(r"^\s{0,3}(?:#{1,6}\s|\*\*[^*]+\*\*:?\s*$)|^[^-*\s#(][^#(]{0,60}[:：]\s*$")
ITEM = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s")


@dataclass
class Score:
    """Counts over any number of sessions; `kinds` maps a kind to (found, planted)."""
    kinds: dict
    states: list
    stale: list
    unmarked: list
    promoted: list

    @classmethod
    def zero(cls):
        return cls({kind: [0, 0] for kind in KINDS}, [0, 0], [0, 0], [0, 0], [0, 0])

    def add(self, other):
        for kind, (found, of) in other.kinds.items():
            self.kinds[kind][0] += found
            self.kinds[kind][1] += of
        for mine, more in ((self.states, other.states), (self.stale, other.stale), (self.unmarked, other.unmarked), (self.promoted, other.promoted)):
            mine[0] += more[0]
            mine[1] += more[1]

    def found(self):
        return share([sum(f for f, _ in self.kinds.values()), sum(n for _, n in self.kinds.values())])


def share(pair):
    """A quotient, or None where there is nothing to count."""
    return pair[0] / pair[1] if pair[1] else None


def entries(text):
    """(heading, entry) of a ledger. An entry is a list item with the lines that hang on it, or any other line."""
    heading, entry = "", []
    for line in text.split("\n"):
        if HEADING.match(line):
            if entry:
                yield heading, "\n".join(entry)
            heading, entry = line, []
        elif not line.strip():
            if entry:
                yield heading, "\n".join(entry)
            entry = []
        elif entry and line[:1] in " \t>" and not (ITEM.match(line) and ITEM.match(entry[0])):
            entry.append(line)
        else:
            if entry:
                yield heading, "\n".join(entry)
            entry = [line]
    if entry:
        yield heading, "\n".join(entry)


def states(kind, text):
    """The states of this kind of fact that a text tells."""
    text, told = ASIDE.sub(" ", text), set()
    for state, words in WORDS["error" if kind.startswith("error") else kind]:
        text, hits = re.subn(words, " ", text, flags=re.IGNORECASE)
        if hits:
            told.add(state)
    return told


def told_state(fact, ledger):
    """The one state that the entries with the fact's name tell; None: none, or several."""
    told = set()
    for heading, entry in ledger:
        if not has(entry, fact.text):
            continue
        # the name itself may read like a state
        told |= states(fact.kind, entry.replace(fact.text, " ")) or states(fact.kind, heading)
    return told.pop() if len(told) == 1 else None


def score(planted, out):
    """The Score of one Output for one Planted session."""
    made, text, ledger = Score.zero(), out.text(), list(entries(out.told))
    for fact in planted.facts:
        count = made.kinds[fact.kind]
        count[1] += 1
        found = has(text, fact.text)
        count[0] += found
        if fact.old:
            made.stale[1] += 1
            made.stale[0] += has(text, fact.old) and not found
            if out.told:
                made.unmarked[1] += 1
                made.unmarked[0] += any(unmarked(fact, entry) for _, entry in ledger)
        if fact.kind in STATES and any(has(entry, fact.text) for _, entry in ledger):
            state = told_state(fact, ledger)
            made.states[1] += 1
            made.states[0] += state == fact.state
            if fact.past:
                made.stale[1] += 1
                made.stale[0] += state in fact.past
    if out.told:
        for lure in planted.lures:
            made.promoted[1] += 1
            made.promoted[0] += has(out.told, lure)
    return made


def unmarked(fact, entry):
    """Whether an entry shows the old value as if it held."""
    return has(entry, fact.old) and not has(entry, fact.text) and not OVER.search(entry.replace(fact.old, " "))
