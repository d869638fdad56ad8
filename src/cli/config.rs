//! The configuration file: `$RELAY_CONFIG`, else `relay/config.toml` in `$XDG_CONFIG_HOME` or `~/.config`.
//!
//! Everything in it is optional. A key that means nothing is an error that names the right one: a
//! setting that is silently ignored is worse than none.

use super::size::size;
use crate::record::{Error, Result};
use crate::stream::{World, nearest};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use toml::Spanned;

/// What the configuration file says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config {
    /// By name of the agent.
    pub agents: BTreeMap<String, Agent>,
    /// Size of a summary in tokens when nothing else says it.
    pub summary_max_tokens: Option<u64>,
    /// How many of the newest tool results relay-trim leaves whole.
    pub tool_call_keep_recent: Option<u64>,
    /// How many turns relay-trim keeps at most.
    pub recent_turns: Option<u64>,
}

/// Settings of one agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Agent {
    /// Where its sessions are.
    pub session_root: Option<PathBuf>,
    /// Context window in tokens.
    pub context_window: Option<u64>,
    /// Part of the window to leave free, in tokens.
    pub reserved_tokens: Option<u64>,
}

impl Config {
    /// Reads the file, if there is one. `agents` are the names that `[agents.…]` may have.
    ///
    /// # Errors
    /// `RELAY_CONFIG` names a file that cannot be read; the file is no TOML; a key is unknown; a value is
    /// of a wrong kind.
    pub fn load(world: &World, agents: &[&str]) -> Result<Config> {
        let named = world.variable("RELAY_CONFIG").map(|path| world.resolve(Path::new(path)));
        let usual = || {
            let base = world.variable("XDG_CONFIG_HOME").map(PathBuf::from).filter(|p| p.is_absolute());
            Some(base.or_else(|| Some(world.home()?.join(".config")))?.join("relay/config.toml"))
        };
        let Some(path) = named.clone().or_else(usual) else { return Ok(Config::default()) };
        let place = path.display().to_string();
        // a HOME that is no folder, such as /dev/null, has no configuration
        let none = |e: &std::io::Error| {
            named.is_none() && matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
        };
        match std::fs::metadata(&path) {
            // a pipe would be waited for
            Ok(kind) if kind.file_type().is_fifo() || kind.is_dir() => {
                return Err(Error::failed(format!("{place}: is not a plain file")));
            }
            Err(e) if none(&e) => return Ok(Config::default()),
            _ => {}
        }
        match std::fs::read_to_string(&path) {
            Ok(text) => Config::parse(&text, &place, world, agents),
            Err(e) if none(&e) => Ok(Config::default()),
            Err(e) => Err(Error::io(place)(e)),
        }
    }

    fn parse(text: &str, place: &str, world: &World, agents: &[&str]) -> Result<Config> {
        let file: File = toml::from_str(text).map_err(|e| misread(&e, text, place))?;
        let mut config = Config {
            agents: BTreeMap::new(),
            summary_max_tokens: file.relay.summary_max_tokens.map(|n| n.0),
            tool_call_keep_recent: file.relay.tool_call_keep_recent.map(|n| n.0),
            recent_turns: file.relay.recent_turns.map(|n| n.0).filter(|n| *n > 0),
        };
        for (name, found) in file.agents {
            if !agents.contains(&name.get_ref().as_str()) {
                let at = line_of(text, place, Some(name.span()));
                return Err(unknown(&at, name.get_ref(), agents));
            }
            let agent = Agent {
                session_root: found.session_root.map(|root| world.resolve(&root)),
                context_window: found.context_window.map(|n| n.0),
                reserved_tokens: found.reserved_tokens.map(|n| n.0),
            };
            config.agents.insert(name.into_inner(), agent);
        }
        Ok(config)
    }

    /// The folder that the file names for an agent's sessions.
    pub fn session_root(&self, agent: &str) -> Option<&Path> {
        self.agents.get(agent)?.session_root.as_deref()
    }

    /// The folders that the file names, by agent.
    pub fn session_roots(&self) -> BTreeMap<String, PathBuf> {
        self.agents.iter().filter_map(|(name, a)| Some((name.clone(), a.session_root.clone()?))).collect()
    }
}

/// The file as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    agents: BTreeMap<Spanned<String>, AgentTable>,
    #[serde(default)]
    relay: RelayTable,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct AgentTable {
    session_root: Option<PathBuf>,
    context_window: Option<Size>,
    reserved_tokens: Option<Size>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RelayTable {
    summary_max_tokens: Option<Size>,
    tool_call_keep_recent: Option<Size>,
    recent_turns: Option<Size>,
}

/// A number, or a text such as `"150k"`.
#[derive(Debug, Clone, Copy)]
struct Size(u64);

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> std::result::Result<Size, D::Error> {
        struct Visit;
        impl serde::de::Visitor<'_> for Visit {
            type Value = Size;
            fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str("a number, 0 or more, such as 150000 or \"150k\"")
            }
            fn visit_i64<E: serde::de::Error>(self, n: i64) -> std::result::Result<Size, E> {
                let unexpected = serde::de::Unexpected::Signed(n);
                u64::try_from(n).map(Size).map_err(|_| E::invalid_value(unexpected, &self))
            }
            fn visit_u64<E: serde::de::Error>(self, n: u64) -> std::result::Result<Size, E> {
                Ok(Size(n))
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> std::result::Result<Size, E> {
                let unexpected = serde::de::Unexpected::Str(text);
                size(text).map(Size).map_err(|_| E::invalid_value(unexpected, &self))
            }
        }
        from.deserialize_any(Visit)
    }
}

fn wrong(place: &str, what: String, hint: Option<String>) -> Error {
    Error::Usage { what: format!("{place}: {}", what.replace('\n', " ")), hint }
}

/// `FILE:LINE` of a part of the text.
fn line_of(text: &str, place: &str, span: Option<std::ops::Range<usize>>) -> String {
    let before = span.and_then(|span| text.get(..span.start)).unwrap_or("");
    format!("{place}:{}", before.matches('\n').count() + 1)
}

fn unknown(at: &str, key: &str, known: &[&str]) -> Error {
    let hint = match nearest(key, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known here: {}", known.join(", ")),
    };
    wrong(at, format!("unknown key `{key}`"), Some(hint))
}

/// What is wrong with the file, and where. Of a key that it does not know serde says, in words, which there are.
fn misread(e: &toml::de::Error, text: &str, place: &str) -> Error {
    let at = line_of(text, place, e.span());
    let words: Vec<&str> = e.message().split('`').collect();
    match words.as_slice() {
        ["unknown field ", key, ", expected " | ", expected one of ", known @ ..] => {
            let known: Vec<&str> = known.iter().step_by(2).copied().filter(|k| !k.is_empty()).collect();
            unknown(&at, key, &known)
        }
        _ => wrong(&at, e.message().to_owned(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world(variables: &[(&str, &str)]) -> World {
        World::new(variables.iter().map(|(k, v)| (k.into(), v.into())).collect(), "/work".into()).unwrap()
    }

    fn parse(text: &str) -> Result<Config> {
        Config::parse(text, "config.toml", &world(&[("HOME", "/home/u")]), &["mallard", "gander"])
    }

    #[test]
    fn every_documented_key_is_taken() {
        let config = parse(
            "[agents.mallard]\nsession_root = \"~/.mallard/projects\"\ncontext_window = \"200k\"\nreserved_tokens = 50000\n\
             [relay]\nsummary_max_tokens = 2000\ntool_call_keep_recent = 5\nrecent_turns = 9\n",
        )
        .unwrap();
        assert_eq!(config.session_root("mallard"), Some(Path::new("/home/u/.mallard/projects")));
        assert_eq!(config.session_root("gander"), None);
        assert_eq!(config.agents["mallard"].context_window, Some(200_000));
        assert_eq!(config.agents["mallard"].reserved_tokens, Some(50_000));
        assert_eq!((config.summary_max_tokens, config.tool_call_keep_recent), (Some(2000), Some(5)));
        assert_eq!(config.recent_turns, Some(9));
        assert_eq!(parse("").unwrap(), Config::default());
    }

    #[test]
    fn unknown_keys_name_the_right_one() {
        let says = |text: &str| {
            let e = parse(text).unwrap_err();
            assert_eq!(e.exit_code(), 2);
            format!("{e} | {}", e.hint().unwrap_or(""))
        };
        assert_eq!(says("[agent]\n"), "config.toml:1: unknown key `agent` | did you mean `agents`?");
        assert_eq!(
            says("# x\n[agents.mallrad]\n"),
            "config.toml:2: unknown key `mallrad` | did you mean `mallard`?"
        );
        assert_eq!(
            says("[agents.mallard]\ncontext_window = 1\n\n[agents.gander]\ncontext_widow = 1\n"),
            "config.toml:5: unknown key `context_widow` | did you mean `context_window`?"
        );
        assert!(
            says("[relay]\ncolour = 1\n")
                .contains("known here: summary_max_tokens, tool_call_keep_recent, recent_turns")
        );
        // the wrong line is named where the same key is right elsewhere
        let twice = "[agents.mallard]\ncontext_window = 1\n[agents.gander]\ncontext_window = -1\n";
        assert!(
            says(twice)
                .starts_with("config.toml:4: invalid value: integer `-1`, expected a number, 0 or more")
        );
        for (text, line) in [
            ("# summary_max_tokens = 3\n[relay]\nsummary_max_tokens = \"many\"\n", 3),
            ("[relay]\n\nsummary_max_tokens = 1.5\n", 3),
            ("relay = 3\n", 1),
            ("x = \"\"\"\n[agents.gander]\n\"\"\"\n", 1),
            ("agents.gander.context_window = 1\nagents.gander.context_widow = 1\n", 2),
            ("agents = { gander = { context_window = 1 }, mallrad = { } }\n", 1),
            ("[agents.gander]\nsession_root = 7\n", 2),
            ("[relay]\nsummary_max_tokens = 1\nsummary_max_tokens = 2\n", 3),
            ("\n\n[agents]\ngander = 7\n", 4),
        ] {
            assert!(says(text).starts_with(&format!("config.toml:{line}: ")), "{text}: {}", says(text));
        }
        assert!(says("[relay\n").starts_with("config.toml:1: "));
    }

    #[test]
    fn the_file_is_found_where_it_is_meant() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path();
        std::fs::create_dir_all(home.join(".config/relay")).unwrap();
        std::fs::create_dir_all(home.join("xdg/relay")).unwrap();
        let limit = |n: u64| format!("[relay]\nsummary_max_tokens = {n}\n");
        std::fs::write(home.join(".config/relay/config.toml"), limit(1)).unwrap();
        std::fs::write(home.join("xdg/relay/config.toml"), limit(2)).unwrap();
        std::fs::write(home.join("own.toml"), limit(3)).unwrap();
        let text = |p: &str| home.join(p).display().to_string();
        let load =
            |variables: &[(&str, &str)]| Config::load(&world(variables), &[]).map(|c| c.summary_max_tokens);
        let (h, xdg, own) = (text(""), text("xdg"), text("own.toml"));
        assert_eq!(load(&[("HOME", &h)]).unwrap(), Some(1));
        assert_eq!(load(&[("HOME", &h), ("XDG_CONFIG_HOME", &xdg)]).unwrap(), Some(2));
        assert_eq!(
            load(&[("HOME", &h), ("XDG_CONFIG_HOME", &xdg), ("RELAY_CONFIG", &own)]).unwrap(),
            Some(3)
        );
        assert_eq!(load(&[("HOME", "/nowhere")]).unwrap(), None);
        assert_eq!(load(&[("HOME", "/dev/null")]).unwrap(), None);
        assert!(load(&[("RELAY_CONFIG", "/dev/null/x")]).is_err());
        assert_eq!(load(&[("RELAY_CONFIG", "/dev/null")]).unwrap(), None);
        assert_eq!(load(&[]).unwrap(), None);
        let missing = load(&[("RELAY_CONFIG", &text("none.toml"))]).unwrap_err().to_string();
        assert!(missing.ends_with("none.toml: no such file or directory"), "{missing}");
    }
}
