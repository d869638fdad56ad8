"""What all parts of the quality benchmark share: records, their text, the names in a text, sizes, running a filter."""
import functools
import json
import os
import re
import subprocess
import tempfile
from dataclasses import dataclass, field

# o200k pieces, roughly: a word with its humps, a run of digits, an ideograph, a run of other signs.
PIECES = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\x00-\x7f]|\n+|[ \t]{2,}|[^\sA-Za-z0-9\u0080-\U0010ffff]+")


@functools.lru_cache(maxsize=1 << 14)
def tokens(text):
    """Tokens of `text`, estimated; within a few per cent of o200k over a few thousand tokens of a session. The same
    ruler for every method, so that none is ahead by counting kindly."""
    total = 0.0
    for match in PIECES.finditer(text):
        piece = match.group()
        first, size = piece[0], len(piece)
        if first.isascii() and first.isalpha():
            total += 0.97 + 0.06 * max(0, size - 4)
        elif first.isascii() and first.isdigit():
            total += -(-size // 3)
        elif first in "\n \t":
            total += 0.75
        elif first.isascii():
            total += 0.8 + 0.13 * (size - 1)
        else:
            total += 0.7
    return round(total)


def cut(text, budget):
    """The longest beginning of `text`, in whole lines if possible, of at most `budget` tokens."""
    if tokens(text) <= budget:
        return text
    low, high = 0, len(text)
    while high - low > 8:
        middle = (low + high) // 2
        if tokens(text[:middle]) <= budget:
            low = middle
        else:
            high = middle
    end = text.rfind("\n", 0, low)
    return text[:end if end > low * 3 // 4 else low]


def content(record):
    """All text of a message: what was said, the tool's output, or the tool's name and arguments."""
    if record.get("role") == "tool_call":
        given = record.get("input")
        return f"{record.get('tool_name') or ''} " + " ".join(strings(given))
    given = record.get("content")
    if isinstance(given, str):
        return given
    return "\n".join(block["text"] for block in given or [] if isinstance(block, dict) and isinstance(block.get("text"), str))


def strings(value):
    """Every string and number inside a JSON value, in order. Keys belong to the tool, not to the conversation."""
    if isinstance(value, dict):
        for item in value.values():
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)
    elif isinstance(value, str):
        yield value
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield str(value)


def is_message(record):
    return record.get("type") == "message"


def is_live(record):
    return is_message(record) and record.get("dropped") is None


def is_prompt(record):
    """Whether a turn of the human begins here."""
    return is_live(record) and record["role"] == "user" and record.get("origin") is None and not record.get("synthetic")


def sessions(lines):
    """The sessions of a stream, each a list of records from `session` to `end`."""
    inside = []
    for line in lines:
        if not line.strip():
            continue
        record = json.loads(line)
        if record.get("type") == "abort":
            raise ValueError("the stream was aborted: " + line.strip()[:300])
        inside.append(record)
        if record.get("type") == "end":
            if not record.get("failed"):
                yield inside
            inside = []
    if inside:
        raise ValueError("the stream ends inside a session")


def dumped(records):
    return "".join(json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n" for record in records)


@dataclass
class Output:
    """What is left of a session. `told` is what the method says in words of its own, the ledger; `kept` are the texts
    of the records that stay live behind it."""
    told: str = ""
    kept: list = field(default_factory=list)

    def text(self):
        return "\n".join([self.told, *self.kept])

    def size(self):
        return tokens(self.text())

    def within(self, budget):
        """The same, cut where it exceeds `budget`: nobody gets points for being too long."""
        if self.size() <= budget:
            return self
        out = Output(cut(self.told, budget))
        left = budget - tokens(out.told)
        for text in self.kept:
            piece = cut(text, max(left, 0))
            if piece:
                out.kept.append(piece)
            left -= tokens(piece)
        return out


@dataclass(frozen=True)
class Command:
    """A filter as a shell template; `{budget}` becomes a number of tokens. `whole`: the records that stay live count
    too, not only the summary that the filter has made."""
    name: str
    template: str
    whole: bool = True

    def run(self, records, budget, path):
        """The Output for one session. The command gets a cleared environment and a home of its own."""
        with tempfile.TemporaryDirectory(prefix="relay-quality-") as home:
            env = {"HOME": home, "PATH": path, "LANG": "C.UTF-8"}
            made = subprocess.run(
                ["bash", "-o", "pipefail", "-c", self.template.replace("{budget}", str(budget))],
                input=dumped(records).encode(), capture_output=True, env=env, cwd=home, check=False)
        if made.returncode:
            raise RuntimeError(f"{self.name}: exit {made.returncode}: {made.stderr.decode(errors='replace').strip()[-600:]}")
        return output(records, list(sessions(made.stdout.decode().splitlines())), self.whole)


def output(before, after, whole):
    """What a filter made of the session `before`. A summary that was there before is no work of the filter."""
    if len(after) != 1:
        raise RuntimeError(f"one session went in, {len(after)} came out")
    old = {content(record) for record in before if is_message(record) and record["role"] == "summary"}
    out = Output()
    told = []
    for record in filter(is_live, after[0]):
        text = content(record)
        if record["role"] == "summary" and text not in old:
            told.append(text)
        elif whole and record.get("origin") != "harness":
            out.kept.append(text)
    out.told = "\n".join(told)
    return out


# A name: something that a person would copy rather than say again. Letters beyond ASCII are prose.
NAME = re.compile(r"""
    https?://[^\s"'<>()\[\]{}，。；]+                  # address
  | (?:~|\.{1,2})?/?(?:[\w.@+-]+/)+[\w.@+-]*[\w+-]      # path
  | --?[a-z][\w-]{2,}                                   # flag
  | [\w-]+(?:\.[\w-]+)+                                 # file.ext, module.name
  | [A-Za-z][\w]*::[\w:]+                               # module::name
  | [A-Za-z0-9]+(?:[_-][A-Za-z0-9]+)+                   # snake_case, kebab-case
  | [a-z]+[0-9]*[A-Z][A-Za-z0-9]+                       # camelCase
  | [A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+                   # PascalCase
  | (?=[a-z0-9]*[0-9])(?=[a-z0-9]*[a-z])[a-z0-9]{5,}    # hashes, ids
""", re.VERBOSE | re.ASCII)


def names(text):
    """The names in a text, in order, each as often as it stands there."""
    for match in NAME.finditer(text):
        name = match.group().rstrip(".,:;-")
        if 4 <= len(name) <= 160 and any(c.isalpha() for c in name):
            yield name


def has(text, name):
    """Whether `name` stands in `text` as a whole, not as a piece of a longer name."""
    at = text.find(name)
    while at >= 0:
        before, after = text[at - 1:at], text[at + len(name):at + len(name) + 1]
        if not joined(before) and not joined(after):
            return True
        at = text.find(name, at + 1)
    return False


def joined(sign):
    return sign != "" and (sign == "_" or (sign.isascii() and sign.isalnum()))


def executables(folder):
    """The search path of a command: ours first, then the system's. Nothing of the caller's."""
    return f"{os.path.abspath(folder)}:/usr/local/bin:/usr/bin:/bin"
