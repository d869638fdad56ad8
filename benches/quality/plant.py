"""Made-up sessions with planted facts: what a successor must know, at known places, marked by names that occur nowhere
else. The same seed gives the same sessions.

Every second session is Chinese, every second pair has the tools of Codex instead of Claude Code's. Look-alikes, said in
the very words of the facts, stand where nobody decided anything: in tool output, in text of the client, on a branch
that the user left. Ordinary turns around them have names, files, commands and failures of the same make, so that
nothing about a fact is conspicuous but its place."""
import random
from dataclasses import dataclass, field

KINDS = ("task", "constraint", "correction", "file", "command", "error resolved", "error open", "todo", "conclusion", "request")

# States by kind; a fact without states is only said.
STATES = {
    "file": ("created", "edited", "deleted", "moved"),
    "command": ("passed", "failed"),
    "error resolved": ("resolved",),
    "error open": ("open",),
    "todo": ("done", "doing", "waiting"),
}

TASK = {
    "en": ["Please move the {n} importer to {c}. It must keep its answers, only faster. Start by reading how it loads its tables.",
           "I want {c} in this repository: a small service that syncs {n} records at night. Look around first, then propose steps.",
           "Our {n} page is slow since last week. Find out why and bring it back under a second; the switch is {c}."],
    "zh": ["请把 {n} 导入模块迁移到 {c}，结果必须保持一致，只是要更快。先读一下它是怎么加载表的。",
           "我想在这个仓库里加上 {c}：一个每晚同步 {n} 记录的小服务。先看看代码，再给出步骤。",
           "从上周开始 {n} 页面很慢。请找出原因并恢复到一秒以内，开关是 {c}。"],
}
REQUEST = {
    "en": ["Now add a test for {c} and tell me what it costs.", "Could you check why {c} is called twice at start?",
           "Next: document {c} in the README, two sentences.", "Please rename the old helper to {c} everywhere."],
    "zh": ["现在给 {c} 加一个测试，并告诉我开销。", "能看看为什么启动时 {c} 被调用了两次吗？",
           "下一步：在 README 里用两句话说明 {c}。", "请把旧的辅助函数全部改名为 {c}。"],
}
# Half of them without any word of command.
CONSTRAINT = {
    "en": ["Never touch {c}, another team owns it.", "You must run everything behind {c}.", "Don't add dependencies besides {c}.",
           "Releases go through {c}, on every platform.", "The customer reads {c} by hand, so its order stays as it is.",
           "We deploy from {c} only."],
    "zh": ["不要动 {c}，那是别的团队负责的。", "所有操作必须经过 {c}。", "除了 {c} 以外不要加任何依赖。",
           "发布一律走 {c}，每个平台都一样。", "客户会手工读 {c}，顺序保持原样。", "我们部署时用的是 {c}。"],
}
SUBJECT = {
    "en": ["the retry limit", "the preview port", "the cache folder", "the default branch", "the name of the queue", "the staging host",
           "the log level switch", "the index prefix", "the upload bucket", "the feature flag"],
    "zh": ["重试上限", "预览端口", "缓存目录", "默认分支", "队列名称", "预发主机", "日志级别开关", "索引前缀", "上传桶", "功能开关"],
}
FIRST_VALUE = {"en": ["For {s} take {c}.", "{s} is {c}.", "Set {s} to {c}, please."], "zh": ["{s}用 {c}。", "{s}是 {c}。", "请把{s}设为 {c}。"]}
# The old value is named or not.
NEW_VALUE = {
    "en": ["I changed my mind: {s} is {c}, not {o}.", "Use {c} instead of {o} for {s}.", "Correction, {s} is {c}.", "For {s} take {c} from now on."],
    "zh": ["我改主意了：{s}是 {c}，不是 {o}。", "{s}改用 {c}，不要用 {o}。", "更正一下，{s}是 {c}。", "从现在起{s}用 {c}。"],
}
CONCLUSION = {
    "en": ["The cause is that {c} is evaluated twice.", "So {c} holds the lock while the queue drains.", "It turns out that {c} ignores the time zone.",
           "The slow part is {c}: it reads the whole table for each row."],
    "zh": ["原因是 {c} 被求值了两次。", "也就是说 {c} 在队列清空时一直持有锁。", "结果发现 {c} 忽略了时区。", "慢的地方是 {c}：每一行都会读整张表。"],
}
TODO = {
    "en": ["Write the migration for {c}", "Cover {c} with a test", "Wire {c} into the settings page", "Measure {c} under load", "Remove the shim around {c}"],
    "zh": ["编写 {c} 的迁移", "为 {c} 补测试", "把 {c} 接入设置页", "在负载下测量 {c}", "去掉 {c} 外面的垫片"],
}
ERROR = ["error[{c}]: mismatched types in the row decoder", "TypeError: {c} is not a function", "panicked at 'no entry for {c}'",
         "AssertionError: {c} returned 3 rows, expected 4", "undefined reference to `{c}'"]
CHECK = ["cargo test -p {c}", "npm run {c}", "pytest tests/{c}.py -q", "make {c}", "./scripts/{c}.sh --all"]

ASK = {
    "en": ["Have a look at {a} and see whether {n} can be simpler.", "What does {n} do in {a}?", "Please tidy {a} a little.",
           "Does {n} still work after this?", "ok, go on", "Continue with the next part.", "Why is {n} loaded there?", "Show me how {a} is used."],
    "zh": ["看看 {a}，{n} 能不能再简单一些。", "{a} 里的 {n} 是做什么的？", "把 {a} 稍微整理一下。", "改完之后 {n} 还能用吗？", "好，继续", "接着做下一部分。",
           "为什么在那里加载 {n}？", "给我看看 {a} 是怎么用的。"],
}
LOOK = {"en": ["I'll look at {a} first.", "Let me check {n}.", "Reading {a} now."], "zh": ["我先看一下 {a}。", "我来检查 {n}。", "现在读 {a}。"]}
ANSWER = {
    "en": ["{n} is used in two places, both in {a}.", "I left {a} as it was apart from the names.", "The change is small and the rest of {n} is untouched.",
           "There is one more caller of {n}, it is covered by the same test.", "Everything in {a} reads the same way now.",
           "Nothing else depends on {n} as far as I can see.", "I would leave {n} for later."],
    "zh": ["{n} 只在两个地方用到，都在 {a} 里。", "除了命名以外 {a} 保持原样。", "改动很小，{n} 的其余部分没有动。", "{n} 还有一个调用者，同一个测试已经覆盖。",
           "{a} 现在读起来一致了。", "据我所见没有别的地方依赖 {n}。", "我建议 {n} 以后再处理。"],
}
PROSE = ["The reader keeps a table of open rows and writes them when the page is full.", "Each worker has its own queue; a full queue blocks the one before it.",
         "Times are kept in seconds, sizes in bytes.", "See the notes of the last release for what changed here.", "A row without a key is counted and passed over."]


@dataclass
class Fact:
    """`text` must be found; `state` is its true state at the end, `past` the states it had before, `old` a value that is
    no longer true, `turn` where it was said last (0 is the first turn)."""
    kind: str
    text: str
    state: str = None
    past: tuple = ()
    old: str = None
    turn: int = 0


@dataclass
class Planted:
    """A session, what is true in it, and the look-alikes that are not: name to place."""
    records: list
    facts: list = field(default_factory=list)
    lures: dict = field(default_factory=dict)
    language: str = "en"


class Names:
    """Names that occur once: the stems are of one length, so none is a piece of another."""

    def __init__(self, rng):
        self.rng = rng
        self.used = set()

    def stem(self):
        while True:
            stem = "".join(self.rng.choice("bdfgklmnprstvz") + self.rng.choice("aeiou") for _ in range(3))
            if stem not in self.used:
                self.used.add(stem)
                return stem

    def name(self):
        stem, number = self.stem(), self.rng.randrange(100, 1000)
        return self.rng.choice((f"{stem}_{number}", f"{stem.upper()}_{number}", f"--{stem}-{number}", f"{stem}-{number}.internal", f"{stem}{number}"))

    def word(self):
        return f"{self.stem()}_{self.rng.choice(('row', 'page', 'queue', 'index', 'state', 'cache'))}"

    def path(self):
        folder = self.rng.choice(("src", "src/store", "lib/import", "app/pages", "tests"))
        return f"{folder}/{self.stem()}_{self.rng.randrange(10, 100)}.{self.rng.choice(('rs', 'py', 'ts', 'go'))}"

    def slug(self):
        return f"{self.stem()}-{self.rng.choice(('core', 'check', 'unit', 'lint'))}"


class Writer:
    """Writes turns as records of the stream, with the tools of one agent."""

    def __init__(self, rng, names, agent):
        self.rng, self.names, self.agent = rng, names, agent
        self.records, self.seq, self.turn, self.calls = [], 0, 0, 0
        self.root = "/srv/" + names.stem()

    def message(self, role, head=(), tail=(), group=None, dropped=None, harness=None):
        self.seq += 1
        record = {"type": "message", "role": role, "dropped": dropped, "origin": "harness" if harness else None}
        if harness:
            record["harness"] = harness
        record.update({"seq": self.seq, "turn": max(self.turn, 1), "line": self.seq + 1, "part": None, "group": group})
        record.update(head)
        clock = self.seq * 7
        record["timestamp"] = f"2026-02-{1 + clock // 86400:02}T{clock // 3600 % 24:02}:{clock // 60 % 60:02}:{clock % 60:02}.000Z"
        record.update(tail)
        self.records.append(record)

    def prompt(self, text):
        self.turn += 1
        self.message("user", tail={"content": text})

    def harness(self, text):
        self.message("user", tail={"content": text}, harness="environment")

    def left(self, text):
        """A prompt and its answer on a branch that the user left."""
        self.message("user", tail={"content": text}, dropped="branch")
        self.message("assistant", tail={"content": "…"}, dropped="branch", group=f"g{self.seq}")

    def say(self, text):
        self.message("assistant", tail={"content": text}, group=f"g{self.seq}")

    def call(self, tool, given, result, code=None):
        """A call and its result. `code`: the exit code of a command, None for what is no command."""
        self.calls += 1
        head = {"tool_call_id": f"call_{self.calls:04}", "tool_name": tool}
        codex = self.agent == "codex"
        more = {"metadata": {"kind": "custom" if tool == "apply_patch" else "function"}} if codex else {}
        self.message("tool_call", head, {**more, "input": given}, f"g{self.seq}")
        shown = {}
        if codex and code is not None:
            result, shown = f"Process exited with code {code}\nOutput:\n{result}", {"exit_code": code}
        elif code:
            result, shown = f"Exit code {code}\n{result}", {"exit_code": code}
        status = "error" if code else "unknown" if codex and code is None else "ok"
        self.message("tool_result", {**head, "status": status}, {**shown, **more, "content": result})

    def run(self, command, result, code=0):
        if self.agent == "codex":
            self.call("exec_command", {"cmd": command}, result, code)
        else:
            self.call("Bash", {"command": command, "description": "Run it"}, result, code)

    def read(self, path, result):
        if self.agent == "codex":
            self.run(f"sed -n 1,200p {path}", result)
        else:
            self.call("Read", {"file_path": f"{self.root}/{path}"}, result)

    def edit(self, path, old, new):
        if self.agent == "codex":
            self.call("apply_patch", f"*** Begin Patch\n*** Update File: {path}\n@@\n-{old}\n+{new}\n*** End Patch", f"Success. Updated the following files:\nM {path}\n", 0)
        else:
            full = f"{self.root}/{path}"
            self.call("Edit", {"file_path": full, "old_string": old, "new_string": new}, f"The file {full} has been updated.")

    def create(self, path, text):
        if self.agent == "codex":
            body = "\n".join("+" + line for line in text.split("\n"))
            self.call("apply_patch", f"*** Begin Patch\n*** Add File: {path}\n{body}\n*** End Patch", f"Success. Updated the following files:\nA {path}\n", 0)
        else:
            full = f"{self.root}/{path}"
            self.call("Write", {"file_path": full, "content": text}, f"File created successfully at: {full}")

    def plan(self, items):
        """(text, state) of each step, with the states of STATES["todo"]."""
        word = {"done": "completed", "doing": "in_progress", "waiting": "pending"}
        if self.agent == "codex":
            self.call("update_plan", {"plan": [{"step": text, "status": word[state]} for text, state in items]}, "Plan updated")
        else:
            self.call("TodoWrite", {"todos": [{"content": text, "status": word[state], "activeForm": text} for text, state in items]}, "Todos have been modified successfully.")

    def noise(self, size, planted=()):
        """About `size` characters of code, log or prose; `planted` are whole lines within."""
        lines, left, shape = [], size, self.rng.randrange(3)
        while left > 0:
            word = self.names.rng.choice(WORDS)
            if shape == 0:
                line = f"    let {word} = self.{self.rng.choice(WORDS)}.{self.rng.choice(WORDS)}(&{self.rng.choice(WORDS)})?;"
            elif shape == 1:
                line = f"12:{self.rng.randrange(60):02}:{self.rng.randrange(60):02} INFO {word}: {self.rng.choice(WORDS)} took {self.rng.randrange(900)} ms"
            else:
                line = self.rng.choice(PROSE)
            lines.append(line)
            left -= len(line) + 1
        for line in planted:
            lines.insert(self.rng.randrange(len(lines) + 1), line)
        return "\n".join(lines)


WORDS = ("buffer cursor decoder entry filter handle index journal key ledger merge node offset page queue row shard table "
         "update value window writer batch chunk frame guard header item limit mask").split()


class Session:
    """Lays out one session: which turn says what, then writes it."""

    def __init__(self, seed, number, size, per_kind):
        self.rng = random.Random(f"{seed}/{number}")
        self.language = ("en", "zh")[number % 2]
        self.names = Names(self.rng)
        self.writer = Writer(self.rng, self.names, ("claude", "codex")[number // 2 % 2])
        self.size, self.per_kind = size, per_kind
        self.facts, self.lures, self.later = [], {}, []
        self.files = [self.names.path() for _ in range(24)]
        self.things = [self.names.word() for _ in range(24)]

    def pick(self, table):
        return self.rng.choice(table[self.language])

    def filled(self, text, **more):
        return text.format(a=self.rng.choice(self.files), n=self.rng.choice(self.things), **more)

    # What is planted. Each makes the steps of one fact, as (earliest share of the session, function) in their order.

    def statement(self, text):
        """A prompt that says it, alone or behind an ordinary request."""
        def write(turn):
            ask = self.filled(self.pick(ASK)) + ("" if self.language == "zh" else " ") if self.rng.random() < .4 else ""
            self.ordinary(turn, ask + text)
        return write

    def add(self, kind, text, **more):
        fact = Fact(kind, text, **more)
        self.facts.append(fact)
        return fact

    def constraint(self):
        code = self.names.name()
        fact = self.add("constraint", code)
        return [self.noted(fact, self.statement(self.filled(self.pick(CONSTRAINT), c=code)))]

    def correction(self, subject):
        old, new = self.names.name(), self.names.name()
        fact = self.add("correction", new, old=old)
        def said(table, **codes):
            text = self.pick(table).format(s=subject, **codes)
            return self.statement(text[0].upper() + text[1:])
        return [said(FIRST_VALUE, c=old), self.noted(fact, said(NEW_VALUE, c=new, o=old))]

    def file(self, state):
        w, path = self.writer, self.names.path()
        if state == "created":
            fact = self.add("file", path, state=state)
            return [self.noted(fact, self.turn(lambda: w.create(path, w.noise(400))))]
        edit = self.turn(lambda: (w.read(path, w.noise(900)), w.edit(path, w.noise(60), w.noise(80))))
        if state == "edited":
            fact = self.add("file", path, state=state)
            return [self.noted(fact, edit)]
        if state == "deleted":
            fact = self.add("file", path, state=state, past=("edited",))
            return [edit, self.noted(fact, self.turn(lambda: w.run(f"rm {path}", "")))]
        new = self.names.path()
        fact = self.add("file", new, state=state, past=("edited",))
        return [edit, self.noted(fact, self.turn(lambda: w.run(f"git mv {path} {new}", "")))]

    def command(self, state):
        w, slug = self.writer, self.names.slug()
        command = self.rng.choice(CHECK).format(c=slug)
        def ran(passed):
            text = w.noise(500) + ("\n24 passed; 0 failed" if passed else "\n22 passed; 2 failed")
            return self.turn(lambda: w.run(command, text, 0 if passed else 1))
        fact = self.add("command", slug, state=state, past=("failed" if state == "passed" else "passed",))
        return [ran(state != "passed"), self.noted(fact, ran(state == "passed"))]

    def error(self, kind):
        w, code, command = self.writer, self.names.name().lstrip("-"), self.rng.choice(CHECK).format(c=self.names.slug())
        line, path = self.rng.choice(ERROR).format(c=code), self.rng.choice(self.files)
        resolved = kind == "error resolved"
        fact = self.add(kind, code, state="resolved" if resolved else "open", past=("open",) if resolved else ())
        def fails():
            w.run(command, f"{w.noise(300)}\n{line}\n  at {path}:{self.rng.randrange(10, 400)}\n{w.noise(120)}", 101)
            w.edit(path, w.noise(60), w.noise(80))
        steps = [self.noted(fact, self.turn(fails))]
        if resolved:
            steps.append(self.noted(fact, self.turn(lambda: w.run(command, w.noise(200) + "\nok", 0))))
        return steps

    def todo(self, count):
        w = self.writer
        codes = [self.names.name() for _ in range(count)]
        texts = [self.pick(TODO).format(c=code) for code in codes]
        last = [STATES["todo"][min(at * 3 // max(count, 1), 2)] for at in range(count)]
        before = {"done": "doing", "doing": "waiting", "waiting": "waiting"}
        facts = []
        for code, state in zip(codes, last):
            past = () if before[state] == state else ("doing", "waiting") if state == "done" else ("waiting",)
            facts.append(self.add("todo", code, state=state, past=past))
        final = self.turn(lambda: w.plan(list(zip(texts, last))))
        def write(turn):
            for fact in facts:
                fact.turn = turn
            final(turn)
        return [self.turn(lambda: w.plan([(text, "waiting") for text in texts])),
                self.turn(lambda: w.plan([(text, before[state]) for text, state in zip(texts, last)])), write]

    def conclusion(self):
        code = self.names.name()
        fact = self.add("conclusion", code)
        text = self.pick(CONCLUSION).format(c=code)
        return [self.noted(fact, lambda turn: self.ordinary(turn, None, answer=text))]

    def noted(self, fact, write):
        def noting(turn):
            fact.turn = turn
            write(turn)
        return noting

    def turn(self, act):
        """A turn in which the model does something on top of the ordinary."""
        return lambda turn: self.ordinary(turn, None, act=act)

    # Look-alikes: the words of facts where they are none.

    def lure(self, place):
        code = self.names.name().lstrip("-")
        self.lures[code] = place
        table = self.rng.choice((CONSTRAINT, NEW_VALUE, CONCLUSION, TASK, REQUEST) if place == "output" else (CONSTRAINT, NEW_VALUE))
        text = self.pick(table).format(c=code, o=self.names.name(), s=self.pick(SUBJECT), n=self.rng.choice(self.things))
        if place == "output":
            shape = self.rng.randrange(4)
            if shape == 0:
                text = "User: " + text
            elif shape == 1:
                text = "- [ ] " + text
            elif shape == 2:
                text = self.rng.choice(ERROR).format(c=code)
        return text

    # Turns.

    def ordinary(self, turn, prompt, act=None, answer=None):
        w, rng = self.writer, self.rng
        w.prompt(prompt or self.filled(self.pick(ASK)))
        planted = list(self.later)
        self.later.clear()
        steps = rng.randrange(1, 5)
        when = rng.randrange(steps + 1) if act else -1
        for step in range(steps + 1):
            if step == when:
                act()
            if step == steps:
                break
            if rng.random() < .5:
                w.say(self.filled(self.pick(LOOK)))
            self.step(min(12_000, int(rng.lognormvariate(6.6, 1.1))), [planted.pop()] if planted else ())
        if planted:
            w.read(rng.choice(self.files), w.noise(600, planted))
        said = [self.filled(self.pick(ANSWER)) for _ in range(rng.randrange(2, 5))]
        if answer:
            said.insert(rng.randrange(len(said) + 1), answer)
        w.say(("" if self.language == "zh" else " ").join(said))

    def step(self, size, planted):
        w, rng, path = self.writer, self.rng, self.rng.choice(self.files)
        kind = rng.random()
        if planted or kind < .4:
            w.read(path, w.noise(size, planted))
        elif kind < .7:
            w.run(f"grep -rn {rng.choice(self.things)} {path.split('/')[0]}", w.noise(size))
        elif kind < .8:
            code = 1 if rng.random() < .3 else 0
            w.run(rng.choice(("cargo check", "git status --short", "npm run build", "ls -la")), w.noise(min(size, 1500)), code)
        else:
            w.edit(path, w.noise(120), w.noise(160))

    def made(self):
        w, rng, n = self.writer, self.rng, self.per_kind
        threads = []
        subjects = rng.sample(SUBJECT[self.language], min(n, len(SUBJECT[self.language])))
        for at in range(n):
            threads += [self.constraint(), self.file(STATES["file"][at % 4]), self.command(STATES["command"][at % 2]),
                        self.error("error resolved"), self.error("error open"), self.conclusion()]
        threads += [self.correction(subject) for subject in subjects]
        threads.append(self.todo(n))
        places = [(place, step) for thread in threads
                  for place, step in zip(sorted(rng.uniform(.03, .85) for _ in thread), thread)]
        # ordinary turns until the size is reached: a turn is about 3,300 characters
        places += [(rng.uniform(.01, 1), lambda turn: self.ordinary(turn, None)) for _ in range(max(12, self.size * 4 // 3300 - len(places)))]
        lures = ["output"] * (n * 3) + ["client"] * max(1, n // 2) + ["branch"] * max(1, n // 2)
        places += [(rng.uniform(.05, .85), lambda turn, place=place: self.plant_lure(place)) for place in lures]
        task = self.names.name()
        self.add("task", task)
        self.ordinary(0, self.filled(self.pick(TASK), c=task))
        for place, write in sorted(places, key=lambda item: item[0]):
            write(w.turn)
        request = self.names.name()
        self.add("request", request, turn=w.turn)
        w.prompt(self.filled(self.pick(REQUEST), c=request))
        if rng.random() < .5:
            self.step(400, ())
        live = sum(1 for r in w.records if r["dropped"] is None)
        session = f"00000000-0000-4000-8000-{rng.getrandbits(48):012x}"
        first = {"type": "session", "relay": 1, "session_id": session, "source_agent": w.agent, "created_at": w.records[0]["timestamp"],
                 "updated_at": w.records[-1]["timestamp"], "working_directory": w.root}
        end = {"type": "end", "session_id": session, "messages": len(w.records), "live": live, "problems": []}
        return Planted([first, *w.records, end], self.facts, self.lures, self.language)

    def plant_lure(self, place):
        text = self.lure(place)
        if place == "output":
            self.later.append(text)
        elif place == "client":
            self.writer.harness(f"<system-reminder>\n{text}\n</system-reminder>")
        else:
            self.writer.left(text)


def planted(seed, number, size=60_000, per_kind=4):
    """Session `number` of a seed: about `size` tokens, `per_kind` facts of each kind but task and request, which are one."""
    return Session(seed, number, size, per_kind).made()
