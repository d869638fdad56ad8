"""Future-Reference Recall: does what is left of a session name what its next steps needed?

A session is cut before prompts of the user. What the next messages name (the user's and the model's texts, arguments of
tool calls), and what the past had named already, but not everywhere, would have been needed from the summary. The share
of it that the shortened past names is the recall. Files that the next calls work on are counted once more by
themselves. The future is never shown to the method: records behind the cut, and what the session record tells of them,
are taken out."""
import random
from dataclasses import dataclass, field

from stream import content, has, is_live, is_message, is_prompt, names, strings, tokens

AHEAD = 60        # messages of the future that count
CUTS = 4          # most cuts of a session
COMMON = 0.2      # a name in more than this share of the past's messages is no news
LEAST_NEEDED = 5  # names that a cut must need
FILE_KEYS = ("file_path", "path", "notebook_path", "filePath")


@dataclass
class Cut:
    """A past, as the stream that a method gets, and what its future needed."""
    past: list
    needed: list
    files: list


@dataclass
class Session:
    """A session, the half that it is in (by a hash of its content), and its cuts."""
    name: str
    half: int
    cuts: list = field(default_factory=list)


def cuts(records, least):
    """The cuts of a session whose past is at least `least` tokens: what fits whole needs no method."""
    root = (records[0].get("working_directory") or "").rstrip("/")
    inside = records[1:-1]
    made = []
    for at in chosen(inside, least):
        past, future = inside[:at], [r for r in inside[at:] if is_live(r) and speaks(r)][:AHEAD]
        needed, files = wanted(past, future, root)
        if len(needed) >= LEAST_NEEDED:
            made.append(Cut(ended(records, past), needed, files))
    return made


def chosen(inside, least):
    """Where a session is cut: before prompts, and where there are too few of them (one prompt, hours of work) also
    before steps of the model."""
    prompts, steps, size, open_calls, group = [], [], 0, set(), None
    for at, record in enumerate(inside):
        if not is_live(record):
            continue
        if size >= least and not open_calls:
            if is_prompt(record):
                prompts.append(at)
            elif speaks(record) and record["role"] != "user" and record.get("group") != group:
                steps.append(at)
        group = record.get("group")
        if record["role"] == "tool_call":
            open_calls.add(record.get("tool_call_id"))
        elif record["role"] == "tool_result":
            open_calls.discard(record.get("tool_call_id"))
        size += tokens(content(record))
    places = prompts if len(prompts) >= CUTS else sorted(prompts + spaced(steps, CUTS - len(prompts)))
    return spaced(places, CUTS)


def spaced(places, count):
    """`count` of the places, evenly, from the first one on."""
    return [places[n * len(places) // count] for n in range(count)] if len(places) > count else places


def speaks(record):
    return record["role"] in ("user", "assistant", "tool_call") and record.get("origin") is None


def wanted(past, future, root):
    """(names, files) of the future that the past knows. Paths are told from the project's folder."""
    spread, told, known = {}, 0, set()
    for record in past:
        if is_live(record) and record.get("origin") != "harness":
            told += 1
            for name in {relative(name, root) for name in names(content(record))}:
                spread[name] = spread.get(name, 0) + 1
            known.update(worked_on(record, root))
    needed, files = {}, {}
    for record in future:
        for name in names(content(record)):
            name = relative(name, root)
            if 0 < spread.get(name, 0) <= max(1, COMMON * told) and len(name) >= 4:
                needed[name] = None
        for name in worked_on(record, root):
            if name in known or name in spread:
                files[name] = None
    return list(needed), list(files)


def worked_on(record, root):
    """The files that a call reads or writes by its arguments or by a patch."""
    if record.get("role") != "tool_call":
        return
    given = record.get("input")
    if isinstance(given, dict):
        for key in FILE_KEYS:
            if isinstance(given.get(key), str) and "." in given[key].rsplit("/", 1)[-1]:
                yield relative(given[key], root)
    for text in strings(given):
        if "*** Begin Patch" in text:
            for line in text.split("\n"):
                for mark in ("*** Add File: ", "*** Update File: ", "*** Delete File: "):
                    if line.startswith(mark):
                        yield relative(line[len(mark):].strip(), root)


def relative(name, root):
    if root and name.startswith(root + "/"):
        name = name[len(root) + 1:]
    return name[2:] if name.startswith("./") else name


def ended(records, past):
    """The past as a stream of its own, without what its first record knows of the future."""
    first = {k: v for k, v in records[0].items() if k not in ("file_snapshot", "title", "context", "updated_at", "extra")}
    messages = [r for r in past if is_message(r)]
    end = {"type": "end", "session_id": records[0]["session_id"], "messages": len(messages), "live": sum(map(is_live, messages)), "problems": []}
    return [first, *past, end]


def score(cut, out):
    """(names found, names needed, files found, files needed)"""
    text = out.text()
    return (sum(has(text, name) for name in cut.needed), len(cut.needed), sum(has(text, name) for name in cut.files), len(cut.files))


def interval(per_session, seed=1, rounds=1000):
    """(share, low, high): sums of (found, needed) pairs, and 95 % of what other draws of the same sessions would give."""
    return difference(per_session, [(0, 0)] * len(per_session), seed, rounds)


def difference(ours, theirs, seed=1, rounds=1000):
    """(difference of shares, low, high) of two methods over the same sessions, drawn together."""
    def of(chosen):
        def quotient(rows):
            found, needed = sum(rows[i][0] for i in chosen), sum(rows[i][1] for i in chosen)
            return found / needed if needed else 0.0
        return quotient(ours) - quotient(theirs)

    count = len(ours)
    if not count:
        return None
    rng = random.Random(seed)
    drawn = sorted(of([rng.randrange(count) for _ in range(count)]) for _ in range(rounds))
    return of(range(count)), drawn[int(rounds * .025)], drawn[min(int(rounds * .975), rounds - 1)]
