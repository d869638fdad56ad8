//! Which sessions are meant, by what is in the stores of agents.

use relay::agents::{AGENTS, Agent, claude::Claude, codex::Codex};
use relay::pipeline::select::{Chosen, From, Wanted, select};
use relay::record::Result;
use relay::stream::{Gathered, World};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

const CLAUDE: &[&dyn Agent] = &[&Claude];
const CODEX: &[&dyn Agent] = &[&Codex];

/// A made-up home with stores of both agents.
struct Home {
    dir: tempfile::TempDir,
    project: PathBuf,
    hours: std::cell::Cell<u64>,
}

impl Home {
    fn new() -> Home {
        let dir = tempfile::tempdir().unwrap();
        let project = dir.path().canonicalize().unwrap().join("work");
        fs::create_dir(&project).unwrap();
        Home { dir, project, hours: std::cell::Cell::new(0) }
    }

    fn world(&self) -> World {
        let variables = [
            ("HOME", self.dir.path().to_str().unwrap()),
            ("RELAY_NOW", "2026-03-10T12:00:00Z"),
            ("TZ", "UTC"),
        ];
        let variables = variables.into_iter().map(|(k, v)| (k.into(), v.into())).collect();
        World::new(variables, self.project.clone()).unwrap()
    }

    /// Each file is an hour younger than the one before; the first is of 2026-03-01T01:00Z.
    fn put(&self, path: &str, text: &str) -> PathBuf {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        self.hours.set(self.hours.get() + 1);
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_772_323_200 + 3600 * self.hours.get());
        fs::File::options().append(true).open(&path).unwrap().set_modified(time).unwrap();
        path
    }

    fn claude(&self, folder: &str, id: &str, cwd: &str, title: &str) -> PathBuf {
        let cwd = serde_json::to_string(cwd).unwrap();
        let title = serde_json::to_string(title).unwrap();
        let text = format!(
            "{{\"type\":\"user\",\"cwd\":{cwd},\"uuid\":\"u\",\"parentUuid\":null,\"message\":{{\"role\":\"user\",\"content\":\"hi\"}}}}\n{{\"type\":\"custom-title\",\"customTitle\":{title}}}\n"
        );
        self.put(&format!(".claude/projects/{folder}/{id}.jsonl"), &text)
    }

    fn codex(&self, id: &str, cwd: &str, more: &str) -> PathBuf {
        let text = format!(
            "{{\"timestamp\":\"x\",\"type\":\"session_meta\",\"payload\":{{\"id\":\"{id}\",\"cwd\":\"{cwd}\"{more}}}}}\n{{\"timestamp\":\"x\",\"type\":\"event_msg\",\"payload\":{{\"type\":\"user_message\",\"message\":\"hi\"}}}}\n"
        );
        self.put(&format!(".codex/sessions/2026/03/01/rollout-2026-03-01T00-00-00-{id}.jsonl"), &text)
    }

    fn here(&self) -> &str {
        self.project.to_str().unwrap()
    }

    fn choose(&self, agents: &[&'static dyn Agent], wanted: &Wanted) -> Result<Vec<String>> {
        self.choose_loudly(agents, wanted).0
    }

    fn choose_loudly(
        &self,
        agents: &[&'static dyn Agent],
        wanted: &Wanted,
    ) -> (Result<Vec<String>>, Gathered) {
        let mut heard = Gathered::default();
        let chosen = select(agents, wanted, &self.world(), &mut heard).map(|chosen| {
            let name = |c: Chosen| match c.from {
                From::Stdin => "stdin".to_owned(),
                From::File(found) => found.id,
            };
            chosen.into_iter().map(name).collect()
        });
        (chosen, heard)
    }
}

fn id(head: &str) -> String {
    format!("{head:0<8}-0000-4000-8000-000000000000")
}

fn words(words: &[&str]) -> Wanted {
    Wanted { sessions: words.iter().map(OsString::from).collect(), ..Wanted::default() }
}

fn says(result: Result<Vec<String>>) -> String {
    let e = result.unwrap_err();
    format!("{e} | {}", e.hint().unwrap_or(""))
}

#[test]
fn without_a_word_it_is_the_newest_of_the_project() {
    let home = Home::new();
    home.claude("x", &id("a"), home.here(), "A");
    home.claude("x", &id("b"), home.here(), "B");
    home.claude("y", &id("c"), "/elsewhere", "C");
    // newer ones that are no sessions to go on with
    home.put(&format!(".claude/projects/x/{}.jsonl", id("d")), "{\"type\":\"summary\",\"summary\":\"s\"}\n");
    home.put(&format!(".claude/projects/x/{}.jsonl", id("e")), "");
    home.claude("z", &id("f"), "/tmp/relay-exec-123", "F");
    home.claude("x", "agent-0123456", home.here(), "G");
    let any = Wanted { any_project: true, ..Wanted::default() };
    let all = Wanted { all: true, ..Wanted::default() };
    let other = Wanted { project: Some("/elsewhere".into()), ..Wanted::default() };
    assert_eq!(home.choose(CLAUDE, &Wanted::default()).unwrap(), [id("b")]);
    assert_eq!(home.choose(CLAUDE, &any).unwrap(), [id("c")]);
    assert_eq!(home.choose(CLAUDE, &all).unwrap(), [id("a"), id("b")]);
    assert_eq!(
        home.choose(CLAUDE, &Wanted { all: true, ..any.clone() }).unwrap(),
        [id("a"), id("b"), id("c")]
    );
    assert_eq!(home.choose(CLAUDE, &other).unwrap(), [id("c")]);
    // over all agents the newest wins
    home.codex(&id("1"), home.here(), "");
    home.codex(&id("2"), home.here(), ",\"source\":{\"subagent\":\"review\"}");
    assert_eq!(home.choose(AGENTS, &Wanted::default()).unwrap(), [id("1")]);
    assert_eq!(home.choose(AGENTS, &all).unwrap(), [id("a"), id("b"), id("1")]);
    assert_eq!(home.choose(CODEX, &all).unwrap(), [id("1")]);
}

#[test]
fn a_project_is_meant_through_links_too() {
    let home = Home::new();
    std::os::unix::fs::symlink(&home.project, home.dir.path().join("link")).unwrap();
    home.codex(&id("1"), home.here(), "");
    home.codex(&id("2"), home.dir.path().join("link").to_str().unwrap(), "");
    let linked = Wanted { project: Some("../link".into()), all: true, ..Wanted::default() };
    assert_eq!(home.choose(CODEX, &linked).unwrap(), [id("1"), id("2")]);
}

#[test]
fn a_word_is_an_id_its_beginning_or_a_title() {
    let home = Home::new();
    home.claude("x", &id("abcd1"), "/a", "Fix it");
    home.claude("x", &id("abcd2"), "/b", "Same");
    home.claude("x", &id("beef"), "/b", "Same");
    home.codex(&id("cafe"), "/c", "");
    home.put(
        ".codex/session_index.jsonl",
        &format!("{{\"id\":\"{}\",\"thread_name\":\"Café\"}}\n", id("cafe")),
    );
    let one = |word: &str| home.choose(AGENTS, &words(&[word]));
    assert_eq!(one(&id("abcd1")).unwrap(), [id("abcd1")]);
    assert_eq!(one(&id("abcd1").to_uppercase()).unwrap(), [id("abcd1")]);
    assert_eq!(one("abcd2").unwrap(), [id("abcd2")]);
    assert_eq!(one("cafe").unwrap(), [id("cafe")]);
    assert_eq!(one("Café").unwrap(), [id("cafe")]);
    assert_eq!(one("Fix it").unwrap(), [id("abcd1")]);
    assert_eq!(
        home.choose(AGENTS, &words(&["cafe", "Fix it", "-"])).unwrap(),
        [id("cafe"), id("abcd1"), "stdin".into()]
    );
    let several = says(one("abcd"));
    assert!(several.starts_with("\"abcd\" means 2 sessions: claude abcd2000"), "{several}");
    assert!(several.contains("in /a") && several.contains("in /b"), "{several}");
    assert!(says(one("Same")).starts_with("\"Same\" means 2 sessions"));
    let narrowed = Wanted { project: Some("/a".into()), ..words(&["abcd"]) };
    assert_eq!(home.choose(AGENTS, &narrowed).unwrap(), [id("abcd1")]);
    assert_eq!(one("fix IT").unwrap(), [id("abcd1")]);
    for none in ["abc", "Fix", "", "zzzz"] {
        assert!(says(one(none)).contains("looked in "), "{none}");
    }
}

#[test]
fn of_one_id_in_two_folders_the_newer_is_read_and_the_other_named() {
    let home = Home::new();
    let old = home.claude("x", &id("abcd"), "/a", "T");
    home.claude("y", &id("abcd"), "/a", "T");
    let (chosen, heard) = home.choose_loudly(CLAUDE, &words(&["abcd"]));
    assert_eq!(chosen.unwrap(), [id("abcd")]);
    assert!(heard.said[0].ends_with(&format!("not {}", old.display())), "{:?}", heard.said);
}

#[test]
fn a_path_is_taken_as_it_is() {
    let home = Home::new();
    let path = home.claude("x", &id("a"), "/a", "T");
    fs::write(home.project.join("plain"), "x").unwrap();
    fs::create_dir(home.project.join("folder")).unwrap();
    assert_eq!(home.choose(CLAUDE, &words(&[path.to_str().unwrap()])).unwrap(), [id("a")]);
    assert_eq!(home.choose(CLAUDE, &words(&["plain"])).unwrap(), [""]);
    assert!(says(home.choose(CLAUDE, &words(&["./gone"]))).contains("gone: no such file"));
    // a folder of that name does not hide a title
    assert!(says(home.choose(CLAUDE, &words(&["folder"]))).contains("title or first prompt \"folder\""));
}

#[test]
fn nothing_that_looks_like_a_path_is_taken_for_an_id() {
    let home = Home::new();
    home.put("secret.jsonl", "{}");
    home.put(".claude/secret.jsonl", "{}");
    home.claude("x", &id("a"), "/a", "T");
    for hostile in
        ["../secret", "..", "%2e%2e%2fsecret", "..\\secret", "aaaa\0", "a000\n", "$(touch x)", "-", "*"]
    {
        let chosen = home.choose(AGENTS, &words(&[hostile]));
        match hostile {
            "-" => assert_eq!(chosen.unwrap(), ["stdin"]),
            _ => assert!(chosen.is_err(), "{hostile:?}"),
        }
    }
    use std::os::unix::ffi::OsStrExt;
    let no_text = Wanted { sessions: vec![OsStr::from_bytes(b"ab\xffcd").to_owned()], ..Wanted::default() };
    assert!(home.choose(AGENTS, &no_text).is_err());
    assert!(!home.project.join("x").exists());
}

#[test]
fn hostile_names_are_ordinary_names() {
    let home = Home::new();
    let names = ["$(touch x)", "a\nb", "'q\"", "-rf", "é\u{202e}x", "日本"];
    for (n, name) in names.iter().enumerate() {
        let project = home.dir.path().canonicalize().unwrap().join(name);
        fs::create_dir(&project).unwrap();
        home.claude(&format!("p{n}"), &id(&format!("{n}{n}{n}{n}")), project.to_str().unwrap(), name);
        let wanted = Wanted { project: Some(project), ..Wanted::default() };
        assert_eq!(home.choose(CLAUDE, &wanted).unwrap(), [id(&format!("{n}{n}{n}{n}"))], "{name:?}");
    }
    // titles that are no paths
    assert_eq!(home.choose(CLAUDE, &words(&["$(touch x)"])).unwrap(), [id("0000")]);
}

#[test]
fn every_place_is_named_when_nothing_is_found() {
    let home = Home::new();
    let error = says(home.choose(AGENTS, &Wanted::default()));
    let (claude, codex) = (home.dir.path().join(".claude/projects"), home.dir.path().join(".codex"));
    assert!(error.contains(&format!("no session of project {}", home.here())), "{error}");
    assert!(
        error.contains(&format!("{} (not there), {} (not there)", claude.display(), codex.display())),
        "{error}"
    );
    assert!(error.ends_with("another folder with --root DIR"), "{error}");
    home.claude("x", &id("a"), "/a", "A");
    assert!(
        says(home.choose(AGENTS, &Wanted::default()))
            .contains("one session belongs to another project: --any-project")
    );
    home.claude("x", &id("b"), "/a", "B");
    assert!(says(home.choose(AGENTS, &Wanted::default())).contains("2 sessions belong to other projects"));
    let homeless = World::new(BTreeMap::new(), home.project.clone()).unwrap();
    let error =
        select(AGENTS, &Wanted::default(), &homeless, &mut Gathered::default()).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("HOME is not set"));
}

#[test]
fn a_root_or_the_configuration_names_another_place() {
    let home = Home::new();
    home.claude("x", &id("a"), home.here(), "A");
    fs::rename(home.dir.path().join(".claude"), home.dir.path().join("moved")).unwrap();
    let moved = home.dir.path().join("moved");
    for root in [moved.clone(), moved.join("projects"), moved.join("projects/x")] {
        let wanted = Wanted { root: Some(root.clone()), ..Wanted::default() };
        assert_eq!(home.choose(CLAUDE, &wanted).unwrap(), [id("a")], "{}", root.display());
        let configured = [("claude".to_owned(), root)].into();
        assert_eq!(home.choose(CLAUDE, &Wanted { configured, ..Wanted::default() }).unwrap(), [id("a")]);
    }
}

#[test]
fn what_cannot_be_looked_into_is_named() {
    let home = Home::new();
    home.claude("x", &id("a"), home.here(), "A");
    let round = home.dir.path().join(".claude/projects/round");
    std::os::unix::fs::symlink(&round, &round).unwrap();
    let closed = home.claude("closed", &id("b"), home.here(), "B");
    let folder = closed.parent().unwrap().to_owned();
    let mode = |mode| {
        fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    };
    mode(0o000);
    let (chosen, heard) = home.choose_loudly(CLAUDE, &Wanted::default());
    let superuser = fs::read_dir(&folder).is_ok();
    mode(0o755);
    let expected = if superuser { id("b") } else { id("a") };
    assert_eq!(chosen.unwrap(), [expected]);
    assert!(heard.failed.iter().any(|f| f.contains("projects/round: ")), "{heard:?}");
    assert_eq!(heard.failed.iter().any(|f| f.contains("projects/closed: permission denied")), !superuser);
}

#[test]
fn times_choose_by_last_change() {
    let home = Home::new();
    home.claude("x", &id("a"), home.here(), "A");
    home.claude("x", &id("b"), home.here(), "B");
    home.claude("x", &id("c"), home.here(), "C");
    let between = |since: Option<&str>, until: Option<&str>| {
        let (since, until) = (since.map(str::to_owned), until.map(str::to_owned));
        home.choose(CLAUDE, &Wanted { all: true, since, until, ..Wanted::default() })
    };
    let all = [id("a"), id("b"), id("c")];
    assert_eq!(between(Some("2026-03-01"), Some("2026-03-01")).unwrap(), all);
    assert_eq!(between(Some("2026-03-01T02:00:00Z"), None).unwrap(), all[1..]);
    assert_eq!(between(Some("2026-03-01T03:00:00+01:00"), None).unwrap(), all[1..]);
    assert_eq!(between(Some("2026-03-01T02:00"), Some("2026-03-01T03:00")).unwrap(), all[1..2]);
    assert_eq!(between(Some("10d"), None).unwrap(), all);
    // 2026-03-10T12:00 less 226 hours is 2026-03-01T02:00
    assert_eq!(between(Some("226h"), None).unwrap(), all[1..]);
    assert_eq!(between(None, Some("13560m")).unwrap(), all[..1]);
    assert!(says(between(Some("1h"), None)).contains("no session of project"));
    for wrong in ["", "7", "d", "7x", "soon", "2026-13-01", "-1d", "99999999999d", "2026-03-01T99:00:00Z"] {
        let error = says(between(Some(wrong), None));
        assert!(error.starts_with(&format!("--since: {wrong:?} is no time")), "{error}");
    }
    let both = Wanted { all: true, ..words(&["abcd"]) };
    assert_eq!(home.choose(CLAUDE, &both).unwrap_err().exit_code(), 2);
}

#[test]
fn ten_thousand_sessions_are_listed_and_one_is_chosen() {
    let home = Home::new();
    for n in 0..10_000u32 {
        let folder = home.dir.path().join(format!(".claude/projects/p{}", n % 100));
        if n < 100 {
            fs::create_dir_all(&folder).unwrap();
        }
        fs::write(folder.join(format!("{n:08x}-0000-4000-8000-000000000000.jsonl")), "{}\n").unwrap();
    }
    home.claude("p7", &id("abcd"), home.here(), "Mine");
    assert_eq!(home.choose(CLAUDE, &Wanted::default()).unwrap(), [id("abcd")]);
    assert_eq!(home.choose(CLAUDE, &words(&["Mine"])).unwrap(), [id("abcd")]);
    assert_eq!(home.choose(CLAUDE, &words(&["0000270f"])).unwrap(), ["0000270f-0000-4000-8000-000000000000"]);
    assert!(says(home.choose(CLAUDE, &words(&["0000"]))).contains("means 10000 sessions"));
}
