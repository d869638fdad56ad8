//! The configuration file: `$RELAY_CONFIG`, else `relay/config.toml` in `$XDG_CONFIG_HOME` or `~/.config`.
//!
//! Everything in it is optional. A key that means nothing is an error that names the right one: a
//! setting that is silently ignored is worse than none.

use crate::record::{Error, Result};
use crate::stream::{World, nearest};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// What the configuration file says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config {
    /// By name of the agent.
    pub agents: BTreeMap<String, Agent>,
    /// Size of a summary in tokens when nothing else says it.
    pub summary_max_tokens: Option<u64>,
    /// How many of the newest tool results relay-trim leaves whole.
    pub tool_call_keep_recent: Option<u64>,
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
        match std::fs::read_to_string(&path) {
            Ok(text) => Config::parse(&text, &path.display().to_string(), world, agents),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound && named.is_none() => Ok(Config::default()),
            Err(e) => Err(Error::io(path.display().to_string())(e)),
        }
    }

    fn parse(text: &str, place: &str, world: &World, agents: &[&str]) -> Result<Config> {
        let table: Table = text.parse().map_err(|e: toml::de::Error| {
            let line = e.span().map_or(1, |s| 1 + text.bytes().take(s.start).filter(|b| *b == b'\n').count());
            wrong(&format!("{place}:{line}"), e.message().to_owned(), None)
        })?;
        let file = File { text, place };
        let mut config = Config::default();
        for (key, value) in &table {
            match key.as_str() {
                "agents" => {
                    for (name, settings) in file.table(key, value)? {
                        if !agents.contains(&name.as_str()) {
                            return Err(file.unknown("agents", name, agents));
                        }
                        let section = format!("agents.{name}");
                        let agent = config.agents.entry(name.clone()).or_default();
                        for (key, value) in file.table(&section, settings)? {
                            match key.as_str() {
                                "session_root" => {
                                    agent.session_root =
                                        Some(world.resolve(Path::new(file.text(key, value)?)))
                                }
                                "context_window" => agent.context_window = Some(file.count(key, value)?),
                                "reserved_tokens" => agent.reserved_tokens = Some(file.count(key, value)?),
                                _ => {
                                    let known = ["session_root", "context_window", "reserved_tokens"];
                                    return Err(file.unknown(&section, key, &known));
                                }
                            }
                        }
                    }
                }
                "relay" => {
                    for (key, value) in file.table(key, value)? {
                        match key.as_str() {
                            "summary_max_tokens" => config.summary_max_tokens = Some(file.count(key, value)?),
                            "tool_call_keep_recent" => {
                                config.tool_call_keep_recent = Some(file.count(key, value)?)
                            }
                            _ => {
                                return Err(file.unknown(
                                    "relay",
                                    key,
                                    &["summary_max_tokens", "tool_call_keep_recent"],
                                ));
                            }
                        }
                    }
                }
                _ => return Err(file.unknown("", key, &["agents", "relay"])),
            }
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

fn wrong(place: &str, what: String, hint: Option<String>) -> Error {
    Error::Usage { what: format!("{place}: {}", what.replace('\n', " ")), hint }
}

/// The file, for errors.
struct File<'a> {
    text: &'a str,
    place: &'a str,
}

impl File<'_> {
    /// The line on which a key is first written: a table does not remember where it came from.
    fn at(&self, key: &str) -> String {
        let found = self.text.lines().position(|line| {
            line.split(['=', '#'])
                .next()
                .is_some_and(|head| head.split(['[', ']', '.', '"', '\'', ' ', '\t']).any(|word| word == key))
        });
        match found {
            Some(n) => format!("{}:{}", self.place, n + 1),
            None => self.place.to_owned(),
        }
    }

    fn unknown(&self, section: &str, key: &str, known: &[&str]) -> Error {
        let hint = match nearest(key, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known here: {}", known.join(", ")),
        };
        let what = match section {
            "" => format!("unknown key `{key}`"),
            _ => format!("unknown key `{key}` in [{section}]"),
        };
        wrong(&self.at(key), what, Some(hint))
    }

    fn table<'v>(&self, key: &str, value: &'v Value) -> Result<&'v Table> {
        let last = key.rsplit('.').next().unwrap_or(key);
        value.as_table().ok_or_else(|| wrong(&self.at(last), format!("`{key}` must be a table"), None))
    }

    fn text<'v>(&self, key: &str, value: &'v Value) -> Result<&'v str> {
        value.as_str().ok_or_else(|| wrong(&self.at(key), format!("`{key}` must be a text"), None))
    }

    fn count(&self, key: &str, value: &Value) -> Result<u64> {
        let number = value.as_integer().and_then(|n| u64::try_from(n).ok());
        number.ok_or_else(|| wrong(&self.at(key), format!("`{key}` must be a number, 0 or more"), None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world(variables: &[(&str, &str)]) -> World {
        World::new(variables.iter().map(|(k, v)| (k.into(), v.into())).collect(), "/work".into()).unwrap()
    }

    fn parse(text: &str) -> Result<Config> {
        Config::parse(text, "config.toml", &world(&[("HOME", "/home/u")]), &["claude", "codex"])
    }

    #[test]
    fn every_documented_key_is_taken() {
        let config = parse(
            "[agents.claude]\nsession_root = \"~/.claude/projects\"\ncontext_window = 200000\nreserved_tokens = 50000\n\
             [relay]\nsummary_max_tokens = 2000\ntool_call_keep_recent = 5\n",
        )
        .unwrap();
        assert_eq!(config.session_root("claude"), Some(Path::new("/home/u/.claude/projects")));
        assert_eq!(config.session_root("codex"), None);
        assert_eq!(config.agents["claude"].context_window, Some(200_000));
        assert_eq!(config.agents["claude"].reserved_tokens, Some(50_000));
        assert_eq!((config.summary_max_tokens, config.tool_call_keep_recent), (Some(2000), Some(5)));
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
            says("# x\n[agents.cluade]\n"),
            "config.toml:2: unknown key `cluade` in [agents] | did you mean `claude`?"
        );
        assert_eq!(
            says("[agents.codex]\ncontext_widow = 1\n"),
            "config.toml:2: unknown key `context_widow` in [agents.codex] | did you mean `context_window`?"
        );
        assert!(says("[relay]\ncolour = 1\n").contains("known here: summary_max_tokens"));
        assert_eq!(
            says("[relay]\nsummary_max_tokens = -1\n"),
            "config.toml:2: `summary_max_tokens` must be a number, 0 or more | "
        );
        assert!(says("relay = 3\n").starts_with("config.toml:1: `relay` must be a table"));
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
        assert_eq!(load(&[]).unwrap(), None);
        let missing = load(&[("RELAY_CONFIG", &text("none.toml"))]).unwrap_err().to_string();
        assert!(missing.ends_with("none.toml: no such file or directory"), "{missing}");
    }
}
