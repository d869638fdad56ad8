"""Do the scorers tell good from bad? Ledgers that know the truth, lie, say nothing, believe everything or lose their
references are scored; so are hand-made sessions whose recall is known. Run by `scripts/quality --self-test`."""
import copy
import os
import re
import shlex
import sys
import unittest

import baselines
import facts
import lines
import plant
import recall
from stream import Command, Output, content, dumped, has, is_live, is_message, is_prompt, names, tokens

HERE = os.path.dirname(os.path.abspath(__file__))
# How a ledger might say it; not the words of the scorer's table by construction, but of a writer of ledgers.
SAYS = {
    "en": {"created": "{} (new file)", "edited": "changed {}", "deleted": "{}: deleted", "moved": "{}, renamed", "passed": "{} passes",
           "failed": "{} → exit 1", "resolved": "{} – fixed", "open": "{} – still open", "done": "[x] {}", "doing": "[>] {} in progress", "waiting": "[ ] {}"},
    "zh": {"created": "{}（新建）", "edited": "修改 {}", "deleted": "{}：已删除", "moved": "{} 已改名", "passed": "{} 通过",
           "failed": "{} → 失败", "resolved": "{}：已解决", "open": "{}：未解决", "done": "{} 已完成", "doing": "{} 进行中", "waiting": "{} 待办"},
}
OPPOSITE = {"created": "deleted", "edited": "deleted", "deleted": "edited", "moved": "edited", "passed": "failed", "failed": "passed",
            "resolved": "open", "open": "resolved", "done": "waiting", "doing": "done", "waiting": "done"}


def small(number=0, seed=1):
    return plant.planted(seed, number, size=12_000, per_kind=4)


def where(made, name):
    """The seq of the last live record with the name."""
    return [r["seq"] for r in made.records if is_live(r) and has(content(r), name)][-1]


def ledger(made, state=lambda fact: fact.state, more=()):
    """A ledger of all facts, each in the state that `state` gives it."""
    said = SAYS[made.language]
    out = ["# Ledger", ""]
    for fact in made.facts:
        text = fact.text if state(fact) is None else said[state(fact)].format(fact.text)
        out.append(f"- {text} (#{where(made, fact.text)})")
    return Output("\n".join([*out, *more]))


class Planting(unittest.TestCase):
    def test_the_same_seed_gives_the_same_bytes(self):
        self.assertEqual(dumped(small(1).records), dumped(small(1).records))
        self.assertNotEqual(dumped(small(1).records), dumped(small(1, seed=2).records))

    def test_every_kind_is_planted_in_both_languages_and_both_sets_of_tools(self):
        seen = set()
        for number in range(4):
            made = small(number)
            self.assertEqual({fact.kind for fact in made.facts}, set(plant.KINDS))
            seen.add((made.language, made.records[0]["source_agent"]))
        self.assertEqual(len(seen), 4)

    def test_facts_are_in_the_conversation_and_look_alikes_where_nobody_said_them(self):
        for number in range(4):
            made = small(number)
            said = "\n".join(content(r) for r in made.records if is_live(r))
            own = "\n".join(content(r) for r in made.records if is_live(r) and r["origin"] is None and r["role"] in ("user", "assistant", "tool_call"))
            for fact in made.facts:
                self.assertTrue(has(said, fact.text), fact)
            self.assertEqual(set(made.lures.values()), {"output", "client", "branch"})
            for lure in made.lures:
                self.assertFalse(has(own, lure), lure)

    def test_the_records_bear_the_states_out(self):
        for number in range(4):
            made = small(number)
            calls = [(r, next(o for o in made.records if o.get("role") == "tool_result" and o["tool_call_id"] == r["tool_call_id"]))
                     for r in made.records if r.get("role") == "tool_call"]
            for fact in made.facts:
                mine = [(content(call), result) for call, result in calls if has(content(call), fact.text)]
                if fact.kind == "command":
                    codes = [result.get("exit_code", 0) for _, result in mine]
                    self.assertEqual(["passed" if code == 0 else "failed" for code in codes], [*fact.past, fact.state], fact)
                elif fact.kind == "file":
                    mark = {"created": r"^Write |Add File", "edited": r"^Edit |Update File", "deleted": r"\brm ", "moved": r"git mv "}[fact.state]
                    self.assertRegex(mine[-1][0], re.compile(mark, re.M), fact)
                elif fact.kind.startswith("error"):
                    at = next(n for n, (_, result) in enumerate(calls) if has(content(result), fact.text))
                    again = [result.get("exit_code", 0) for call, result in calls[at + 1:] if content(call) == content(calls[at][0])]
                    self.assertEqual(again, [0] if fact.state == "resolved" else [], fact)

    def test_a_correction_comes_after_what_it_corrects(self):
        for number in range(4):
            made = small(number)
            for fact in (f for f in made.facts if f.old):
                first = next(r["seq"] for r in made.records if is_prompt(r) and has(content(r), fact.old))
                new = next(r["seq"] for r in made.records if is_prompt(r) and has(content(r), fact.text))
                self.assertLess(first, new)


class Facts(unittest.TestCase):
    def scored(self, out, number):
        return facts.score(small(number), out(small(number)))

    def each(self, out):
        for number in range(4):
            with self.subTest(session=number):
                yield self.scored(out, number)

    def test_the_truth_gets_everything(self):
        for score in self.each(ledger):
            self.assertEqual(score.found(), 1)
            self.assertEqual(facts.share(score.states), 1)
            self.assertEqual([score.stale[0], score.unmarked[0], score.promoted[0]], [0, 0, 0])
            self.assertGreater(min(score.stale[1], score.unmarked[1], score.promoted[1]), 0)

    def test_states_may_stand_in_headings(self):
        for number in range(4):
            made, said = small(number), []
            for state in OPPOSITE:
                said += [f"## {SAYS[made.language][state].format('').strip()}", *(f"- {f.text}" for f in made.facts if f.state == state)]
            self.assertEqual(facts.share(facts.score(made, Output("\n".join(said))).states), 1)

    def test_nothing_gets_nothing(self):
        for score in self.each(lambda made: Output()):
            self.assertEqual(score.found(), 0)
            self.assertIsNone(facts.share(score.states))

    def test_names_without_states_are_found_and_no_more(self):
        for score in self.each(lambda made: ledger(made, lambda fact: None)):
            self.assertEqual(score.found(), 1)
            self.assertEqual(score.states[0], 0)

    def test_lies_are_found_out(self):
        for score in self.each(lambda made: ledger(made, lambda fact: OPPOSITE.get(fact.state))):
            self.assertEqual(score.states[0], 0)

    def test_two_states_at_once_are_no_state(self):
        def both(made):
            return Output(ledger(made).told + "\n" + ledger(made, lambda fact: OPPOSITE.get(fact.state)).told)
        for score in self.each(both):
            self.assertEqual(score.states[0], 0)

    def test_states_of_the_past_are_stale(self):
        def past(made):
            return ledger(made, lambda fact: fact.past[0] if fact.past else fact.state)
        for score in self.each(past):
            self.assertGreater(score.stale[0], 0)
            self.assertEqual(score.stale[0], score.states[1] - score.states[0])

    def test_a_corrected_value_must_be_marked(self):
        def old(form):
            return lambda made: ledger(made, more=[form.format(old=f.old, new=f.text) for f in made.facts if f.old])
        for score in self.each(old("- take {old}")):
            self.assertEqual(facts.share(score.unmarked), 1)
            self.assertEqual(score.stale[0], 0)
        for form in ("- {new}, before: {old}", "- ~~{old}~~ no longer", "- {old}：已作废"):
            for score in self.each(old(form)):
                self.assertEqual(score.unmarked[0], 0, form)

    def test_an_old_value_alone_misleads(self):
        def only_old(made):
            return Output(kept=[f.old for f in made.facts if f.old])
        for score in self.each(only_old):
            self.assertGreater(score.stale[0], 0)
            self.assertEqual(score.stale[0], score.kinds["correction"][1])

    def test_look_alikes_are_counted_in_ledgers_only(self):
        for score in self.each(lambda made: ledger(made, more=[f"- {lure}" for lure in made.lures])):
            self.assertEqual(facts.share(score.promoted), 1)
        for score in self.each(lambda made: Output(kept=list(made.lures))):
            self.assertIsNone(facts.share(score.promoted))

    def test_half_a_name_is_no_name(self):
        self.assertTrue(has("use kolamu_417.", "kolamu_417"))
        self.assertTrue(has("请用kolamu_417。", "kolamu_417"))
        self.assertFalse(has("use kolamu_4172", "kolamu_417"))
        self.assertFalse(has("use xkolamu_417", "kolamu_417"))

    def test_denials_are_not_taken_for_what_they_deny(self):
        for kind, text, state in (("error open", "unresolved", "open"), ("error open", "未解决", "open"), ("error resolved", "已解决", "resolved"),
                                  ("todo", "未完成", "waiting"), ("todo", "not started", "waiting"), ("command", "exit 0", "passed"),
                                  ("command", "exit 101", "failed"), ("command", "ok (failed 2 times before)", "passed"), ("command", "was failing, now passes", "passed")):
            self.assertEqual(facts.states(kind, text), {state}, text)


class Lines(unittest.TestCase):
    def checked(self, *said):
        made = small()
        return lines.check(made.records, "\n".join(["intro", "# Ledger", *said]))

    def test_a_true_ledger_is_supported(self):
        for number in range(4):
            made = small(number)
            got = lines.check(made.records, ledger(made).told)
            self.assertEqual((got.lines, got.bad()), (len(made.facts), 0), got.failed[:3])

    def test_references_to_other_records_are_not(self):
        made = small()
        told = ledger(made).told
        wrong = re.sub(r"\(#\d+\)", "(#2)", told)
        self.assertGreater(lines.check(made.records, wrong).unsupported, len(made.facts) * .9)
        self.assertEqual(lines.check(made.records, re.sub(r"\(#\d+\)", "(#999999)", told)).unresolved, len(made.facts))
        self.assertEqual(lines.check(made.records, re.sub(r" \(#\d+\)", "", told)).untraced, len(made.facts))

    def test_words_that_nobody_said_are_not(self):
        made = small()
        prompt = next(r for r in made.records if is_prompt(r))
        self.assertEqual(self.checked(f"- {content(prompt)} (#{prompt['seq']})").bad(), 0)
        self.assertEqual(self.checked(f"- quick brown foxes jump over seven lazy dogs while violins play (#{prompt['seq']})").unsupported, 1)

    def test_a_statement_of_several_lines_has_one_reference(self):
        made = small()
        prompt = next(r for r in made.records if is_prompt(r))
        words = content(prompt).split()
        got = self.checked("- " + " ".join(words[:4]), "  " + " ".join(words[4:]) + f" (#{prompt['seq']})")
        self.assertEqual((got.lines, got.bad()), (1, 0))

    def test_the_other_half_of_a_call_counts(self):
        made = small()
        call = next(r for r in made.records if r.get("role") == "tool_call" and r["tool_name"] == "Bash")
        self.assertEqual(self.checked(f"- `{call['input']['command']}` (#{call['seq'] + 1})").bad(), 0)

    def test_lists_of_names_are_bare(self):
        self.assertTrue(lines.bare("- Read: src/a.rs, src/b.rs, src/c.rs"))
        self.assertTrue(lines.bare("- src/a.rs, load_rows, --all-rows"))
        self.assertFalse(lines.bare("- src/a.rs: load_rows reads the whole table for every --all-rows"))
        self.assertFalse(lines.bare("- src/a.rs: edited"))

    def test_lines_that_tell_nothing_are_empty(self):
        told = ["# Findings", "- The cause is a lock in src/a.rs (#4)", "- Shall I go on? (#5)", "- Let me look at it (#6)", "- All done, it looks good! (#7)",
                "- 太好了，一切就绪 (#7)", "- The cause is a lock in src/a.rs (#8)", "- src/a.rs, load_rows, --all-rows (#9)", "> Quoted: perfect!",
                "# What the user said", "- Why is it slow? (#2)"]
        got = lines.read("\n".join(told))
        self.assertEqual((got.empty, got.all), (6, 8))

    def test_all_forms_of_references_are_read(self):
        self.assertEqual(lines.referred("x (#3)"), [3])
        self.assertEqual(lines.referred("x (#3, #14)"), [3, 14])
        self.assertEqual(lines.referred("x（#3–#14）"), [3, 14])
        self.assertEqual(lines.referred("fixes issue #3"), [])


def session(*texts):
    """A hand-made session: u… user, a… assistant, r… result of the read call before it."""
    records = [{"type": "session", "relay": 1, "session_id": "s", "source_agent": "claude", "created_at": None, "updated_at": "2026-02-02T00:00:00Z",
                "working_directory": "/srv/shop", "title": "future_title", "file_snapshot": [{"path": "src/future_file.rs", "status": "created"}]}]
    for at, text in enumerate(texts, 1):
        role = {"u": "user", "a": "assistant", "c": "tool_call", "r": "tool_result"}[text[0]]
        record = {"type": "message", "role": role, "dropped": None, "origin": None, "seq": at, "turn": 1, "group": f"g{at}" if text[0] in "ac" else None}
        if role == "tool_call":
            record |= {"tool_call_id": str(at), "tool_name": "Read", "input": {"file_path": text[2:]}}
        else:
            record |= {"content": text[2:]} | ({"tool_call_id": str(at - 1)} if role == "tool_result" else {})
        records.append(record)
    return [*records, {"type": "end", "session_id": "s", "messages": len(texts), "live": len(texts), "problems": []}]


class Recall(unittest.TestCase):
    # The past names two things; the future one of them, a file, and a thing that the past never knew.
    DAY = session("u please look at load_rows and save_rows", "c /srv/shop/src/old_table.rs", "r pub fn load_rows", "a it calls parse_header, parse_footer, see http://x.example/notes",
                  "u why", "a since keep_index is set", "u now use save_rows with new_thing", "c /srv/shop/src/old_table.rs", "r …", "a parse_header, keep_index and http://x.example/notes again")

    def cut(self):
        return [cut for cut in recall.cuts(self.DAY, 0) if len(cut.past) == 8][0]

    def test_needed_is_what_past_and_future_share(self):
        cut = self.cut()
        self.assertEqual(set(cut.needed), {"save_rows", "src/old_table.rs", "parse_header", "keep_index", "http://x.example/notes"})
        self.assertEqual(cut.files, ["src/old_table.rs"])

    def test_the_future_is_not_shown(self):
        told = dumped(self.cut().past)
        for secret in ("new_thing", "future_title", "future_file", "2026-02-02"):
            self.assertNotIn(secret, told)
        self.assertEqual(self.cut().past[-1]["messages"], 6)

    def test_known_recalls(self):
        cut = self.cut()
        self.assertEqual(recall.score(cut, Output()), (0, 5, 0, 1))
        self.assertEqual(recall.score(cut, Output("save_rows, /srv/shop/src/old_table.rs")), (2, 5, 1, 1))
        whole = Output(kept=[content(r) for r in cut.past if is_message(r)])
        self.assertEqual(recall.score(cut, whole), (5, 5, 1, 1))

    def test_long_runs_of_one_prompt_are_cut_at_steps(self):
        steps = [text for n in range(20) for text in (f"c /srv/shop/src/part_{n % 7}.rs", "r fn helper_name()", f"a part_{n % 7}.rs uses helper_{n % 5}_name")]
        cuts = recall.cuts(session("u do all of it", *steps), 50)
        self.assertGreater(len(cuts), 0)
        for cut in cuts:
            self.assertNotEqual(cut.past[-2]["role"], "tool_call")

    def test_intervals_hold_their_value_and_can_be_repeated(self):
        pairs = [(3, 10), (5, 10), (1, 4), (9, 12), (0, 5)]
        value, low, high = recall.interval(pairs)
        self.assertAlmostEqual(value, 18 / 41)
        self.assertTrue(low < value < high)
        self.assertEqual(recall.interval(pairs), (value, low, high))
        self.assertEqual(recall.difference(pairs, pairs), (0, 0, 0))
        self.assertIsNone(recall.difference([], []))

    def test_names_are_what_one_would_copy(self):
        self.assertEqual(list(names("Call load_rows in src/a/table.rs with --all-rows, then HttpClient::get")), ["load_rows", "src/a/table.rs", "--all-rows", "HttpClient::get"])
        self.assertEqual(list(names("This is a plain sentence about nothing.")), [])
        self.assertEqual(list(names("原因是load_rows被调用了两次")), ["load_rows"])


class Methods(unittest.TestCase):
    def test_baselines_keep_to_the_budget(self):
        made = small()
        for name, method in baselines.BASELINES.items():
            for budget in (200, 2000):
                size = method(made.records, budget).size()
                self.assertTrue(budget * .5 < size < budget * 1.05, f"{name}: {size} of {budget}")

    def test_head_knows_the_task_and_tail_the_request(self):
        for method, knows, lacks in ((baselines.head, "task", "request"), (baselines.tail, "request", "task")):
            score = facts.score(small(), method(small().records, 1000))
            self.assertEqual((score.kinds[knows][0], score.kinds[lacks][0]), (1, 0))

    def test_what_is_too_long_is_cut(self):
        out = Output("\n".join(f"row {n}" for n in range(900)), ["kept " * 900])
        self.assertLessEqual(out.within(500).size(), 505)
        self.assertEqual(out.within(100_000), out)

    def test_a_filter_is_run_and_its_output_judged(self):
        made, path = small(), os.path.dirname(sys.executable) + ":/usr/bin:/bin"
        script = f"{shlex.quote(sys.executable)} {shlex.quote(os.path.join(HERE, 'baselines.py'))}"
        out = Command("tail", script + " tail {budget}").run(made.records, 1000, path)
        self.assertEqual(out.told.strip(), baselines.tail(made.records, 1000).text().strip())
        self.assertEqual(out.kept, [])
        same = Command("cat", "cat").run(made.records, 1000, path)
        self.assertEqual(facts.score(made, same).found(), 1)
        self.assertEqual(Command("cat", "cat", whole=False).run(made.records, 1000, path), Output())

    def test_a_filter_that_fails_is_no_result(self):
        made = small()
        for template in ("false", "exit 3", "head -n 5", "true"):
            with self.assertRaises((RuntimeError, ValueError)):
                Command("broken", template).run(made.records, 1000, "/usr/bin:/bin")

    def test_a_summary_of_before_is_not_the_filters(self):
        before = copy.deepcopy(small().records)
        before.insert(1, {"type": "message", "role": "summary", "dropped": None, "origin": None, "seq": 0, "turn": 1, "content": "what Claude said"})
        self.assertEqual(Command("cat", "cat", whole=False).run(before, 1, "/usr/bin:/bin").told, "")
        self.assertIn("what Claude said", Command("cat", "cat").run(before, 1, "/usr/bin:/bin").text())

    def test_the_ruler_is_steady(self):
        self.assertEqual(tokens(""), 0)
        self.assertEqual(tokens("cargo test"), 2)
        self.assertTrue(8 <= tokens("原因是它被求值了两次。") <= 12)


if __name__ == "__main__":
    unittest.main()
