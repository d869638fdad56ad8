#!/usr/bin/env python3
"""Plain ways to shorten a session, for comparison: head, tail, first-100, textrank.

    baselines.py NAME TOKENS < STREAM > STREAM      as a filter"""
import collections
import functools
import math
import re
import sys

from stream import Output, content, cut, dumped, is_live, sessions, tokens

WORD = re.compile(r"[A-Za-z0-9_]{2,}|[\u3400-\u9fff]")
SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？；])|\n+")
MOST_SENTENCES = 4000  # the newest; more would only take longer


def head(records, budget):
    """The oldest records that fit."""
    return Output(kept=filled((content(r) for r in records if spoken(r)), budget))


def tail(records, budget):
    """The newest records that fit, and the end of the one that does not."""
    kept, left = [], budget
    for record in reversed(records):
        if not spoken(record):
            continue
        text = content(record)
        size = tokens(text)
        if size > left:
            piece = cut(text[::-1], left)[::-1]
            if piece:
                kept.append(piece)
            break
        kept.append(text)
        left -= size
    return Output(kept=kept[::-1])


def first_100(records, budget):
    """The first 100 characters of everything that a person or the model said, oldest first."""
    lines = (f"{r['role']}: {' '.join(content(r)[:100].split())}" for r in records if spoken(r) and r["role"] in ("user", "assistant"))
    return Output(told="\n".join(filled(lines, budget)))


def textrank(records, budget):
    """The sentences in the middle of everything."""
    said = [s.strip() for r in records if spoken(r) for s in SENTENCE.split(content(r))]
    said = [s for s in dict.fromkeys(said) if 20 <= len(s) <= 600][-MOST_SENTENCES:]
    rank = ranked(tuple(said))
    chosen, left = [], budget
    for at in sorted(range(len(said)), key=lambda at: (-rank[at], at)):
        size = tokens(said[at]) + 1
        if size <= left:
            chosen.append(at)
            left -= size
        if left < 10:
            break
    return Output(told="\n".join(said[at] for at in sorted(chosen)))


@functools.lru_cache(maxsize=1)
def ranked(said):
    """TextRank of sentences by the cosine of their words. Similarity is a product of two sparse tables, so a step of the
    iteration goes over the words once instead of over all pairs of sentences."""
    words = [sorted(set(WORD.findall(s.lower()))) for s in said]
    spread = collections.Counter(word for own in words for word in own)
    number = {word: n for n, word in enumerate(spread)}
    worth = [math.log(1 + len(said) / count) for count in spread.values()]
    table = []
    for own in words:
        cells = [(number[word], worth[number[word]]) for word in own]
        length = math.sqrt(sum(value * value for _, value in cells)) or 1.0
        table.append([(word, value / length) for word, value in cells])

    def similar(score):
        by_word = [0.0] * len(worth)
        for cells, value in zip(table, score):
            for word, weight in cells:
                by_word[word] += value * weight
        return [sum([by_word[word] * weight for word, weight in cells]) for cells in table]

    degree = [value or 1.0 for value in similar([1.0] * len(said))]
    rank = [1.0] * len(said)
    for _ in range(12):
        rank = [0.15 + 0.85 * value for value in similar([value / out for value, out in zip(rank, degree)])]
    return rank


def spoken(record):
    return is_live(record) and record.get("origin") != "harness" and record["role"] not in ("reasoning", "summary")


def filled(texts, budget):
    kept, left = [], budget
    for text in texts:
        size = tokens(text) + 1
        if size > left:
            piece = cut(text, left)
            return kept + [piece] if piece else kept
        kept.append(text)
        left -= size
    return kept


BASELINES = {"head": head, "tail": tail, "first-100": first_100, "textrank": textrank}


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in BASELINES:
        raise SystemExit(__doc__)
    for records in sessions(sys.stdin):
        made = BASELINES[sys.argv[1]](records, int(sys.argv[2]))
        first = next((r.get("seq") for r in records if r.get("type") == "message"), None)
        summary = {"type": "message", "role": "summary", "dropped": None, "origin": "relay", "seq": first, "turn": 1,
                   "line": None, "part": None, "group": None, "timestamp": None, "synthetic": True, "content": made.text()}
        for record in records[1:]:
            if record.get("type") == "message" and record.get("dropped") is None:
                record["dropped"] = "trimmed"
        sys.stdout.write(dumped([records[0], summary, *records[1:]]))


if __name__ == "__main__":
    main()
