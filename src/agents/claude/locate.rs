//! Where Claude Code keeps its sessions: `projects/<folder>/<uuid>.jsonl` in `$CLAUDE_CONFIG_DIR` or
//! `~/.claude`.
//!
//! `<folder>` is the encoded directory (see [`folder_name`]). The encoding loses letters, so it is never
//! decoded: the directory of a session is what its lines say. Next to the sessions stand subagents
//! (`agent-*.jsonl` in 2.0, `<uuid>/subagents/` since), which are no sessions of their own.

use crate::agents::files::{self, Seen};
use crate::agents::paths::is_of;
use crate::agents::{Found, Peek, Store, speech};
use crate::json::{Tape, Value};
use crate::record::{Problems, Result};
use crate::stream::World;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// The store.
#[derive(Debug)]
pub(super) struct Sessions;

/// Longest name of a folder before it is cut and a hash appended, in UTF-16 units.
const LONGEST: usize = 200;

/// The name of the folder in which Claude Code keeps the sessions of a directory; `directory` is absolute
/// and free of links.
///
/// Every UTF-16 unit outside `A-Za-z0-9` becomes a dash. Of more than 200 units the first 200 stay, then
/// a dash and, in base 36, the magnitude of a 32-bit hash of the whole path (`h * 31 + unit`). Seen in
/// 2.1.332.
pub(super) fn folder_name(directory: &Path) -> String {
    let text = directory.to_string_lossy();
    let mut name = String::new();
    let mut hash = 0i32;
    for unit in text.encode_utf16() {
        hash = hash.wrapping_mul(31).wrapping_add(i32::from(unit));
        match u8::try_from(unit) {
            Ok(b) if b.is_ascii_alphanumeric() => name.push(char::from(b)),
            _ => name.push('-'),
        }
    }
    if name.len() > LONGEST {
        name.truncate(LONGEST);
        name.push('-');
        name.push_str(&base36(hash.unsigned_abs()));
    }
    name
}

fn base36(mut n: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.extend(char::from_digit(n % 36, 36));
        n /= 36;
        if n == 0 {
            return digits.iter().rev().collect();
        }
    }
}

/// The session id that a file name tells.
fn id_of(name: &str) -> Option<&str> {
    name.strip_suffix(".jsonl").filter(|stem| files::is_uuid(stem))
}

impl Store for Sessions {
    fn places(&self, root: Option<&Path>, configured: Option<&Path>, world: &World) -> Vec<PathBuf> {
        // a root may be the client's home or the folder of projects itself
        let inside = |root: PathBuf| match root.join("projects") {
            projects if projects.is_dir() || !root.is_dir() && !root.ends_with("projects") => projects,
            _ => root,
        };
        if let Some(root) = root {
            return vec![inside(world.resolve(root))];
        }
        if let Some(home) = world.variable("CLAUDE_CONFIG_DIR") {
            return vec![world.resolve(Path::new(home)).join("projects")];
        }
        match (configured, world.home()) {
            (Some(configured), _) => vec![inside(configured.to_owned())],
            (None, Some(home)) => vec![home.join(".claude/projects")],
            (None, None) => Vec::new(),
        }
    }

    fn list(&self, place: &Path, problems: &mut Problems) -> Result<Vec<Found>> {
        let mut seen = Seen::default();
        let mut sessions = Vec::new();
        let mut folders = Vec::new();
        let top = files::entries(place, problems);
        // a folder of one project, given as root
        let project = !place.ends_with("projects") && top.iter().any(|entry| id_of(&entry.name).is_some());
        if project {
            folders.push(top);
        } else {
            for entry in top {
                let Some(metadata) = files::metadata(&entry, problems) else { continue };
                if metadata.is_dir() && seen.first(&metadata) {
                    folders.push(files::entries(&entry.path, problems));
                }
            }
        }
        for entry in folders.into_iter().flatten() {
            let Some(id) = id_of(&entry.name).map(str::to_owned) else { continue };
            let Some(metadata) = files::metadata(&entry, problems) else { continue };
            // files of 0 bytes are left by 2.0
            if metadata.is_file() && metadata.len() > 0 && seen.first(&metadata) {
                sessions.push(files::found(entry, &id, place, &metadata));
            }
        }
        Ok(sessions)
    }

    fn peek(&self, found: &Found) -> Result<Peek> {
        let place = || found.path.display().to_string();
        let mut file = files::open(&found.path)?;
        let mut glance = Glance::default();
        let mut tape = Tape::new();
        let went_on = files::head(&file, |line| {
            if let Ok(value) = tape.parse(line) {
                glance.line(value);
            }
            match glance.prompt.is_some() && glance.started_in.is_some() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })
        .map_err(crate::record::Error::io(place()))?;
        if went_on {
            files::tail(&mut file, |line| {
                if let Ok(value) = tape.parse(line) {
                    glance.line(value);
                }
            })
            .map_err(crate::record::Error::io(place()))?;
        }
        Ok(Peek {
            working_directory: glance.last.or_else(|| glance.started_in.clone()),
            started_in: glance.started_in,
            title: glance.custom_title.or(glance.ai_title),
            // nothing said in 16 MiB, and more to come: rather offered than hidden
            conversation: glance.main || glance.sidechain || (went_on && glance.long),
            subagent: glance.sidechain && !glance.main,
            prompt: glance.prompt,
            headless: glance.headless,
        })
    }

    fn belongs(&self, found: &Found, peek: &Peek, project: &Path) -> bool {
        let Some(started_in) = &peek.started_in else { return in_folder_of(found, project) };
        if is_of(started_in, project) {
            return true;
        }
        // The client goes by the folder alone. It is right but where two directories share a name: then
        // the lines name the other one, whose name would be the same.
        in_folder_of(found, project) && folder_name(started_in) != folder_name(project)
    }

    fn is_id(&self, text: &str) -> bool {
        files::begins_uuid(text)
    }

    fn id_of(&self, path: &Path) -> Option<String> {
        id_of(path.file_name()?.to_str()?).map(str::to_ascii_lowercase)
    }

    fn subagents(&self, found: &Found, problems: &mut Problems) -> Result<Vec<PathBuf>> {
        let mut seen = Seen::default();
        let mut agents = Vec::new();
        let is_agent = |name: &str| name.starts_with("agent-") && name.ends_with(".jsonl");
        // since 2.1: a folder of their own
        for entry in files::entries(&found.path.with_extension("").join("subagents"), problems) {
            if is_agent(&entry.name)
                && files::metadata(&entry, problems).is_some_and(|m| m.is_file() && seen.first(&m))
            {
                agents.push(entry.path);
            }
        }
        // 2.0: next to the sessions, and the parent's id in their lines
        let beside = found.path.parent().map(|folder| files::entries(folder, problems));
        for entry in beside.into_iter().flatten().filter(|entry| is_agent(&entry.name)) {
            let Some(metadata) = files::metadata(&entry, problems) else { continue };
            if metadata.is_file() && entry.path != found.path && seen.first(&metadata) {
                match first_words(&entry.path) {
                    Ok(about) if about.warm_up => {}
                    Ok(about)
                        if about.session.as_ref().is_some_and(|id| id.eq_ignore_ascii_case(&found.id)) =>
                    {
                        agents.push(entry.path);
                    }
                    Ok(_) => {}
                    Err(e) => problems.add(files::UNREADABLE, None, e.to_string()),
                }
            }
        }
        Ok(agents)
    }
}

/// Whether a session stands in the folder that the client uses for a directory.
fn in_folder_of(found: &Found, project: &Path) -> bool {
    let folder = found.path.parent().and_then(Path::file_name).and_then(|name| name.to_str());
    folder.is_some_and(|folder| folder == folder_name(project))
}

/// Gathers what selects a session.
#[derive(Debug, Default)]
struct Glance {
    started_in: Option<PathBuf>,
    last: Option<PathBuf>,
    custom_title: Option<String>,
    ai_title: Option<String>,
    /// A prompt or an answer of the session itself.
    main: bool,
    prompt: Option<String>,
    headless: bool,
    /// One of a subagent inside the file (1.0).
    sidechain: bool,
    /// Other tree lines, as a session without a word may have them at its beginning.
    long: bool,
}

impl Glance {
    fn line(&mut self, line: Value<'_>) {
        let text = |key: &str| line.get(key).and_then(|v| v.text());
        if let Some(directory) = text("cwd").filter(|d| !d.is_empty()) {
            let directory = PathBuf::from(directory.decode().into_owned());
            self.started_in.get_or_insert_with(|| directory.clone());
            self.last = Some(directory);
        }
        let Some(kind) = text("type") else { return };
        match &*kind.decode() {
            kind @ ("user" | "assistant") if line.get("message").is_some() => {
                self.headless |= text("entrypoint").is_some_and(|how| how.starts_with("sdk-"));
                match line.get("isSidechain").and_then(|v| v.bool()) {
                    Some(true) => self.sidechain = true,
                    _ if kind == "assistant" => self.main = true,
                    _ => self.user(line),
                }
            }
            "custom-title" => self.custom_title = title(text("customTitle")).or(self.custom_title.take()),
            "ai-title" => self.ai_title = title(text("aiTitle")).or(self.ai_title.take()),
            _ => self.long |= text("uuid").is_some(),
        }
    }
}

/// So many bytes of a prompt are looked at.
const LOOKED: usize = 16 << 10;

impl Glance {
    fn user(&mut self, line: Value<'_>) {
        let says = |key: &str| line.get(key).and_then(|v| v.bool()) == Some(true);
        let Some(content) = line.get("message").and_then(|m| m.get("content")) else { return };
        if says("isCompactSummary") || content.items().any(|block| block.get("tool_use_id").is_some()) {
            self.main = true;
            return;
        }
        if says("isMeta") {
            return;
        }
        let blocks = content.items().filter_map(|block| block.get("text").and_then(|t| t.text()));
        for text in content.text().into_iter().chain(blocks) {
            if let Some(shown) = speech::shown(&text.head(LOOKED)) {
                self.main = true;
                self.prompt.get_or_insert(shown);
            }
        }
        // a picture alone is a prompt, too
        self.main |= content.items().any(|block| block.get("source").is_some());
    }
}

fn title(text: Option<crate::json::Text<'_>>) -> Option<String> {
    text.filter(|t| !t.is_blank()).map(|t| t.decode().into_owned())
}

/// What the beginning of a subagent's file says.
#[derive(Debug, Default)]
struct FirstWords {
    session: Option<String>,
    /// 2.0 warms up its subagents with the prompt "Warmup"; nobody asked for those.
    warm_up: bool,
}

fn first_words(path: &Path) -> Result<FirstWords> {
    let mut words = FirstWords::default();
    let mut tape = Tape::new();
    files::head(files::open(path)?, |line| {
        let Ok(value) = tape.parse(line) else { return ControlFlow::Continue(()) };
        let Some(session) = value.get("sessionId").and_then(|v| v.text()) else {
            return ControlFlow::Continue(());
        };
        let prompt = value.get("message").and_then(|m| m.get("content")).and_then(|c| c.text());
        words.warm_up = prompt.is_some_and(|p| p.decode() == "Warmup");
        words.session = Some(session.decode().into_owned());
        ControlFlow::Break(())
    })
    .map_err(crate::record::Error::io(path.display().to_string()))?;
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::files::UNREADABLE;
    use std::fs;
    use std::os::unix::fs::symlink;

    const A: &str = "aaaaaaaa-0000-4000-8000-000000000001";
    const B: &str = "bbbbbbbb-0000-4000-8000-000000000002";

    fn line(kind: &str, cwd: &str, more: &str) -> String {
        format!(
            r#"{{"type":"{kind}","uuid":"u","parentUuid":null,"cwd":"{cwd}","message":{{"role":"{kind}","content":"hi"}}{more}}}"#
        ) + "\n"
    }

    fn put(path: PathBuf, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn list(place: &Path) -> (Vec<String>, Problems) {
        let mut problems = Problems::default();
        let mut ids: Vec<_> =
            Sessions.list(place, &mut problems).unwrap().into_iter().map(|f| f.id).collect();
        ids.sort();
        (ids, problems)
    }

    fn only(place: &Path) -> (Found, Peek) {
        let found = Sessions.list(place, &mut Problems::default()).unwrap();
        assert_eq!(found.len(), 1);
        let peek = Sessions.peek(&found[0]).unwrap();
        (found[0].clone(), peek)
    }

    #[test]
    fn folders_are_named_as_the_client_names_them() {
        let name = |p: &str| folder_name(Path::new(p));
        assert_eq!(name("/srv/my_proj.x"), "-srv-my-proj-x");
        assert_eq!(name("/home/u/외주/my_app.v2"), "-home-u----my-app-v2");
        assert_eq!(name("/tmp/café 漢+x_y@Z"), "-tmp-caf----x-y-Z");
        // outside the basic plane: two UTF-16 units
        assert_eq!(name("/a😀b"), "-a--b");
        let exact = format!("/{}", "a".repeat(199));
        assert_eq!(name(&exact), format!("-{}", "a".repeat(199)));
        let long = format!("/{}", "a".repeat(200));
        assert_eq!(name(&long), format!("-{}-{}", "a".repeat(199), hash_of(&long)));
    }

    /// `String.hashCode` as Java documents it, in wide arithmetic, for comparison.
    fn hash_of(text: &str) -> String {
        let mut sum = 0i128;
        for unit in text.encode_utf16() {
            sum = (sum * 31 + i128::from(unit)).rem_euclid(1 << 32);
        }
        let signed = if sum >= 1 << 31 { (1i128 << 32) - sum } else { sum };
        let mut n = signed;
        let mut text = String::new();
        while n > 0 {
            text.insert(0, char::from_digit((n % 36) as u32, 36).unwrap());
            n /= 36;
        }
        text
    }

    #[test]
    fn only_main_sessions_are_listed() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("projects");
        let folder = place.join("-w-app");
        put(folder.join(format!("{A}.jsonl")), &line("user", "/w/app", ""));
        put(folder.join(format!("{B}.jsonl")), "");
        put(folder.join("agent-0a1b2c3.jsonl"), &line("user", "/w/app", ""));
        put(folder.join(A).join("subagents/agent-x.jsonl"), &line("user", "/w/app", ""));
        put(folder.join(A).join(format!("{B}.jsonl")), &line("user", "/w/app", ""));
        put(folder.join("notes.jsonl"), "x");
        put(place.join(format!("{B}.jsonl")), &line("user", "/w/app", ""));
        let (ids, problems) = list(&place);
        assert_eq!(ids, [A]);
        assert!(problems.is_empty());
        // the folder of one project, named as root
        assert_eq!(list(&folder).0, [A]);
        assert_eq!(list(&dir.path().join("none")), (vec![], Problems::default()));
    }

    #[test]
    fn links_are_followed_once() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("projects");
        put(place.join("-w-app").join(format!("{A}.jsonl")), &line("user", "/w/app", ""));
        put(dir.path().join("elsewhere").join(format!("{B}.jsonl")), &line("user", "/w/b", ""));
        symlink(place.join("-w-app"), place.join("-again")).unwrap();
        symlink(dir.path().join("elsewhere"), place.join("-w-b")).unwrap();
        symlink(&place, place.join("-up")).unwrap();
        fs::hard_link(
            place.join("-w-app").join(format!("{A}.jsonl")),
            place.join("-w-app").join(format!("{}9.jsonl", &A[..35])),
        )
        .unwrap();
        symlink(place.join("-round"), place.join("-round")).unwrap();
        let (ids, problems) = list(&place);
        assert_eq!(ids, [A, B]);
        // a link that leads nowhere is named, and costs nothing else
        assert_eq!(problems.count(UNREADABLE), 1);
        let found = Sessions.list(&place, &mut Problems::default()).unwrap();
        assert!(found.iter().any(|f| f.path.parent().unwrap().ends_with("-w-app")));
    }

    #[test]
    fn a_look_inside_tells_directory_title_and_use() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(format!("projects/-w-app/{A}.jsonl"));
        let state = r#"{"type":"ai-title","aiTitle":"Made","sessionId":"x"}
{"type":"custom-title","customTitle":"First","sessionId":"x"}
"#;
        let filler = line("attachment", "/w/app", &format!(r#","x":"{}""#, "x".repeat(300_000)));
        let last =
            line("assistant", "/w/app/sub", "") + r#"{"type":"custom-title","customTitle":"Mine \u00e9"}"#;
        put(file.clone(), &(state.to_owned() + &filler + &line("user", "/w/app", "") + &filler + &last));
        let (_, peek) = only(&dir.path().join("projects"));
        assert_eq!(peek.title.as_deref(), Some("Mine é"));
        assert_eq!(peek.started_in.as_deref(), Some(Path::new("/w/app")));
        assert_eq!(peek.working_directory.as_deref(), Some(Path::new("/w/app/sub")));
        assert!(peek.conversation && !peek.subagent);

        put(file.clone(), "{\"type\":\"summary\",\"summary\":\"Old\",\"leafUuid\":\"l\"}\nnot json\n");
        let (_, peek) = only(&dir.path().join("projects"));
        assert_eq!(peek, Peek::default());

        put(file, &line("user", "/w/app", r#","isSidechain":true"#));
        assert!(only(&dir.path().join("projects")).1.subagent);
    }

    #[test]
    fn a_session_belongs_where_it_started() {
        let dir = tempfile::tempdir().unwrap();
        let projects = dir.path().join("projects");
        let belongs = |folder: &str, cwd: &str, project: &str| {
            let _ = fs::remove_dir_all(&projects);
            put(projects.join(folder).join(format!("{A}.jsonl")), &line("user", cwd, ""));
            let (found, peek) = only(&projects);
            Sessions.belongs(&found, &peek, Path::new(project))
        };
        assert!(belongs("-w-app", "/w/app", "/w/app"));
        assert!(!belongs("-w-app", "/w/app", "/w/other"));
        // two directories, one name
        assert!(!belongs("-w-my-app", "/w/my.app", "/w/my_app"));
        // moved to another machine's folder: the client goes by the folder
        assert!(belongs("-w-app", "/home/else", "/w/app"));
        // CLAUDE_CODE_PROJECT_DIR_NAME
        assert!(belongs("shared", "/w/app", "/w/app"));
        // through a link
        let real = dir.path().join("real");
        fs::create_dir(&real).unwrap();
        symlink(&real, dir.path().join("link")).unwrap();
        let real = real.canonicalize().unwrap();
        assert!(belongs("x", dir.path().join("link").to_str().unwrap(), real.to_str().unwrap()));
    }

    #[test]
    fn subagents_of_both_layouts_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("projects/-w-app");
        put(folder.join(format!("{A}.jsonl")), &line("user", "/w/app", ""));
        let of = |id: &str, prompt: &str| {
            format!(
                r#"{{"type":"user","sessionId":"{id}","message":{{"role":"user","content":"{prompt}"}}}}"#
            ) + "\n"
        };
        put(folder.join("agent-1.jsonl"), &of(A, "go"));
        put(folder.join("agent-2.jsonl"), &of(B, "go"));
        put(folder.join("agent-3.jsonl"), &of(A, "Warmup"));
        put(folder.join(A).join("subagents/agent-4.jsonl"), &of(A, "go"));
        put(folder.join(A).join("subagents/agent-4.meta.json"), "{}");
        put(folder.join(A).join("subagents/journal.jsonl"), "{}");
        let (found, _) = only(&dir.path().join("projects"));
        let names: Vec<_> = Sessions
            .subagents(&found, &mut Problems::default())
            .unwrap()
            .into_iter()
            .map(|p| p.file_name().unwrap().to_str().unwrap().to_owned())
            .collect();
        assert_eq!(names, ["agent-4.jsonl", "agent-1.jsonl"]);
    }

    #[test]
    fn places_are_those_of_the_client() {
        let world = |v: &[(&str, &str)]| {
            World::new(v.iter().map(|(k, v)| (k.into(), v.into())).collect(), "/here".into()).unwrap()
        };
        let places = |root: Option<&str>, conf: Option<&str>, v: &[(&str, &str)]| {
            Sessions.places(root.map(Path::new), conf.map(Path::new), &world(v))
        };
        let home = ("HOME", "/h");
        assert_eq!(places(None, None, &[home]), [PathBuf::from("/h/.claude/projects")]);
        assert_eq!(places(None, Some("/c/projects"), &[home]), [PathBuf::from("/c/projects")]);
        assert_eq!(
            places(None, Some("/c"), &[home, ("CLAUDE_CONFIG_DIR", "/e")]),
            [PathBuf::from("/e/projects")]
        );
        assert_eq!(
            places(Some("r"), Some("/c"), &[("CLAUDE_CONFIG_DIR", "/e")]),
            [PathBuf::from("/here/r/projects")]
        );
        assert!(places(None, None, &[]).is_empty());
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(places(dir.path().to_str(), None, &[]), [dir.path()]);
    }
}
