//! Paths of the machine on which a session ran, as text. That machine may be another one, and of Windows.
//!
//! Absolute are `/home/u/x`, `C:\x` and `c:/x`, `\\server\share\x`, `\\wsl.localhost\Ubuntu\x` and `\\wsl$\Ubuntu\x`,
//! `/mnt/c/x` (which is `C:\x` inside a WSL), and the URIs of editors, `file:///C:/x` and
//! `vscode-remote://wsl+Ubuntu/x`. Paths of Windows go by no case, and `\` and `/` part their names alike; what is
//! `/home/u/x` inside a WSL is the same file as `\\wsl.localhost\Ubuntu\home\u\x`. Nothing is looked up on a disk:
//! `..` takes back the name before it, as both clients resolve it.

use std::borrow::Cow;
use std::path::PathBuf;

/// Where a path begins.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Root {
    /// `/`
    Unix,
    /// A drive, its letter small.
    Drive(char),
    /// A share of a server, or another machine; small letters.
    Share(String),
    /// The files of a WSL; the name of the distribution in small letters.
    Wsl(String),
}

/// A path taken apart.
#[derive(Debug)]
struct Parsed {
    root: Root,
    names: Vec<String>,
}

/// Whether a path says where it stands, whatever the directory.
pub fn is_absolute(path: &str) -> bool {
    parsed(path, false).is_some()
}

/// Whether a path is absolute on Windows, so that it means nothing to the disk of this machine.
pub fn is_of_windows(path: &str) -> bool {
    !path.starts_with('/') && parsed(path, false).is_some()
}

/// Whether two absolute paths are the same place.
pub fn same(a: &str, b: &str) -> bool {
    inside(a, b).is_some_and(|rest| rest.as_os_str().is_empty())
}

/// What of an absolute path is below a folder, as a path of this machine; empty for the folder itself. `None` when it
/// stands elsewhere. It goes by whole names: `/home/a` does not hold `/home/ab`.
pub fn inside(path: &str, folder: &str) -> Option<PathBuf> {
    let folder = parsed(folder, false)?;
    let windows = folder.root != Root::Unix;
    let path = parsed(path, windows)?;
    let exact = match (&folder.root, &path.root) {
        (Root::Unix, Root::Unix) => true,
        // inside a WSL its files have no other name
        (Root::Wsl(_), Root::Unix) | (Root::Unix, Root::Wsl(_)) => false,
        (a, b) if a == b => false,
        _ => return None,
    };
    let rest = path.names.get(folder.names.len()..)?;
    let same = |a: &str, b: &str| a == b || (!exact && small(a) == small(b));
    path.names.iter().zip(&folder.names).all(|(a, b)| same(a, b)).then(|| rest.iter().collect())
}

/// A path as seen from a directory, both as the session spells them, without `.`, `..` and doubled separators. What
/// begins with `~` stays as it is.
pub fn joined(directory: Option<&str>, path: &str) -> String {
    let at = directory.and_then(|directory| Some((directory, parsed(directory, false)?.root)));
    match at {
        _ if path.starts_with('~') => path.to_owned(),
        Some((directory, root)) if root != Root::Unix && !directory.starts_with('/') => {
            let apart = if directory.contains('\\') { '\\' } else { '/' };
            let whole = match (&root, path.strip_prefix(['\\', '/'])) {
                // Git Bash calls a drive /c
                (_, Some(_)) if path.starts_with('/') => match parsed(path, true) {
                    Some(Parsed { root: Root::Drive(letter), names }) if !path.starts_with("/mnt/") => {
                        format!("{}:/{}", letter.to_ascii_uppercase(), names.join("/"))
                    }
                    _ => return tidy(path).into_owned(),
                },
                (_, _) if is_absolute(path) => return tidy(path).into_owned(),
                // the root of the same drive
                (Root::Drive(letter), Some(rest)) => format!("{}:/{rest}", letter.to_ascii_uppercase()),
                _ => format!("{directory}{apart}{path}"),
            };
            let spelled = match apart {
                '\\' => whole.replace('/', "\\"),
                _ => whole.replace('\\', "/"),
            };
            tidy(&spelled).into_owned()
        }
        Some((directory, _)) if !is_absolute(path) => tidy(&format!("{directory}/{path}")).into_owned(),
        None if !is_absolute(path) => match directory {
            Some(directory) => tidy(&format!("{directory}/{path}")).into_owned(),
            None => tidy(path).into_owned(),
        },
        _ => tidy(path).into_owned(),
    }
}

/// By what a file is known, however its path is spelled.
pub fn key(path: &str) -> Cow<'_, str> {
    match parsed(path, false) {
        None | Some(Parsed { root: Root::Unix, .. }) => tidy(path),
        Some(Parsed { root, names }) => {
            let root = match root {
                // no path of Unix has a `:` behind its first letter
                Root::Drive(letter) => format!("{letter}:"),
                Root::Share(share) => format!("\\\\{share}"),
                Root::Wsl(_) => return Cow::Owned(format!("/{}", names.join("/"))),
                Root::Unix => String::new(),
            };
            Cow::Owned(names.iter().fold(root, |whole, name| whole + "/" + &small(name)))
        }
    }
}

/// A path in the same spelling without `.`, `..` and doubled separators.
fn tidy(path: &str) -> Cow<'_, str> {
    if path.contains("://") || path.starts_with("\\\\?\\") || path.starts_with("\\\\.\\") {
        return Cow::Borrowed(path);
    }
    let windows = is_of_windows(path);
    let parts = |c: char| c == '/' || (windows && c == '\\');
    let share = windows && path.starts_with("\\\\");
    let body = if share { path.get(2..).unwrap_or_default() } else { path };
    let mut names: Vec<&str> = Vec::new();
    // names that `..` does not take back: a drive, a server and its share
    let fixed = match (windows, share) {
        (true, true) => 2,
        (true, false) => 1,
        _ => 0,
    };
    let rooted = path.starts_with('/');
    let mut changed = false;
    for (n, name) in body.split(parts).enumerate() {
        match name {
            "" if n == 0 && rooted => {}
            "" | "." => changed = true,
            ".." if names.len() > fixed && names.last() != Some(&"..") => {
                names.pop();
                changed = true;
            }
            ".." if rooted || windows => changed = true,
            _ => names.push(name),
        }
    }
    if !changed {
        return Cow::Borrowed(path);
    }
    let apart = if path.contains('\\') && windows { "\\" } else { "/" };
    let head = match (share, rooted) {
        (true, _) => "\\\\",
        (_, true) => "/",
        _ => "",
    };
    let mut whole = format!("{head}{}", names.join(apart));
    if windows && !share && names.len() == 1 {
        // `C:` alone is no root
        whole.push_str(apart);
    }
    Cow::Owned(whole)
}

fn small(text: &str) -> String {
    text.to_lowercase()
}

/// The drive that a text begins with, and what follows.
fn drive(text: &str) -> Option<(char, &str)> {
    let letter = text.chars().next().filter(char::is_ascii_alphabetic)?;
    let rest = text.get(1..)?.strip_prefix(':')?;
    (rest.is_empty() || rest.starts_with(['\\', '/'])).then(|| (letter.to_ascii_lowercase(), rest))
}

/// The drive behind a folder of drives: `c` or `c/…`.
fn mounted(rest: &str) -> Option<(char, &str)> {
    let letter = rest.chars().next().filter(char::is_ascii_alphabetic)?;
    let rest = rest.get(1..)?;
    (rest.is_empty() || rest.starts_with('/')).then(|| (letter.to_ascii_lowercase(), rest))
}

/// Takes an absolute path apart. `windows`: it was written on Windows, where Git Bash says `/c/x` for `C:\x` and
/// `//server/share` for `\\server\share`.
fn parsed(path: &str, windows: bool) -> Option<Parsed> {
    if let Some(rest) = path.strip_prefix("file://") {
        let rest = unescaped(rest);
        let rest = rest.strip_prefix("localhost").filter(|r| r.starts_with('/')).unwrap_or(&rest);
        return match rest.strip_prefix('/') {
            Some(local) if drive(local).is_some() => parsed(local, true),
            Some(_) => parsed(rest, windows),
            None => remote(rest),
        };
    }
    if let Some(rest) = path.strip_prefix("vscode-remote://") {
        let rest = unescaped(rest);
        let (machine, rest) = rest.split_once('/').unwrap_or((&rest, ""));
        let root = match machine.split_once('+') {
            Some(("wsl", distribution)) => Root::Wsl(small(distribution)),
            _ => Root::Share(small(machine)),
        };
        return Some(Parsed { root, names: names(rest, false) });
    }
    if let Some((letter, rest)) = drive(path) {
        return Some(Parsed { root: Root::Drive(letter), names: names(rest, true) });
    }
    if let Some(rest) = path.strip_prefix("\\\\?\\").or_else(|| path.strip_prefix("\\\\.\\")) {
        return match rest.get(..4) {
            Some(unc) if unc.eq_ignore_ascii_case("UNC\\") => remote(rest.get(4..).unwrap_or_default()),
            _ => drive(rest).and_then(|_| parsed(rest, true)),
        };
    }
    if let Some(rest) = path.strip_prefix("\\\\") {
        return remote(rest);
    }
    let rest = path.strip_prefix('/')?;
    if let Some(rest) = rest.strip_prefix('/') {
        let lower = small(rest);
        if windows || lower.starts_with("wsl.localhost/") || lower.starts_with("wsl$/") {
            return remote(rest);
        }
    }
    let folder = rest.strip_prefix("mnt/").or_else(|| rest.strip_prefix("cygdrive/"));
    if let Some((letter, rest)) = folder.or(windows.then_some(rest)).and_then(mounted) {
        return Some(Parsed { root: Root::Drive(letter), names: names(rest, true) });
    }
    Some(Parsed { root: Root::Unix, names: names(rest, false) })
}

/// `server\share\…`, where the server may be a WSL.
fn remote(text: &str) -> Option<Parsed> {
    let both = ['\\', '/'];
    let (server, rest) = text.split_once(both).unwrap_or((text, ""));
    let (share, rest) = rest.split_once(both).unwrap_or((rest, ""));
    if server.is_empty() {
        return None;
    }
    let root = match small(server).as_str() {
        "wsl.localhost" | "wsl$" => Root::Wsl(small(share)),
        server => Root::Share(format!("{server}/{}", small(share))),
    };
    Some(Parsed { root, names: names(rest, true) })
}

/// The names that lead to a place.
fn names(text: &str, windows: bool) -> Vec<String> {
    let mut names = Vec::new();
    for name in text.split(|c: char| c == '/' || (windows && c == '\\')) {
        match name {
            "" | "." => {}
            ".." => {
                names.pop();
            }
            name => names.push(name.to_owned()),
        }
    }
    names
}

/// The text of a URI. What is no escape, or would be no UTF-8, stays.
fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, more)) = rest.split_first() {
        let hex = |n: usize| more.get(n).and_then(|b| char::from(*b).to_digit(16));
        match (byte, hex(0), hex(1)) {
            (b'%', Some(high), Some(low)) => {
                out.push(u8::try_from(high * 16 + low).unwrap_or_default());
                rest = more.get(2..).unwrap_or_default();
            }
            _ => {
                out.push(byte);
                rest = more;
            }
        }
    }
    String::from_utf8(out).map_or(Cow::Borrowed(text), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_place_is_the_same_place() {
        let alike: [&[&str]; 3] = [
            &[
                r"C:\Users\Jane\shop\src\a.py",
                "c:/users/jane/shop/src/a.py",
                r"c:\USERS\jane/shop\.\src\x\..\a.py",
                r"\\?\C:\Users\Jane\shop\src\a.py",
                "/mnt/c/Users/Jane/shop/src/a.py",
                "file:///C:/Users/Jane/shop/src/a.py",
                "file:///c%3A/Users/jane/shop/src/a.py",
            ],
            &[
                r"\\Server\Share\shop\a.py",
                r"\\server\share\Shop\A.py",
                r"\\?\UNC\server\share\shop\a.py",
                "file://server/share/shop/a.py",
            ],
            &[
                r"\\wsl.localhost\Ubuntu\home\jane\a.py",
                r"\\wsl$\ubuntu\home\jane\a.py",
                "//wsl.localhost/Ubuntu/home/jane/a.py",
                "vscode-remote://wsl+Ubuntu/home/jane/a.py",
                "vscode-remote://wsl%2Bubuntu/home/jane/a.py",
                "file://wsl.localhost/Ubuntu/home/jane/a.py",
                "/home/jane/a.py",
            ],
        ];
        for (group, paths) in alike.iter().enumerate() {
            for a in *paths {
                assert!(is_absolute(a), "{a}");
                for b in *paths {
                    assert!(same(a, b), "{a} {b}");
                }
                for other in alike.iter().enumerate().filter(|(n, _)| *n != group).flat_map(|(_, p)| *p) {
                    assert!(!same(a, other) && !same(other, a), "{a} {other}");
                }
            }
            // as the ledger of files knows them
            let lower = |p: &str| key(p).to_lowercase();
            assert!(paths.iter().all(|p| lower(p) == lower(paths[0])), "{paths:?}");
        }
        // Git Bash, seen from a folder of Windows
        assert_eq!(inside("/c/Users/x/a", r"C:\users\X"), Some("a".into()));
        assert_eq!(inside("//server/share/a", r"\\server\share"), Some("a".into()));
        assert_eq!(inside("/c/Users/x/a", "/home"), None);
    }

    #[test]
    fn what_is_relative_or_elsewhere() {
        for relative in ["", "a", r"a\b", "C:a", "C", "1:/x", r"\a", "~/x", r"..\x", "http:x"] {
            assert!(!is_absolute(relative), "{relative}");
        }
        for (path, folder, rest) in [
            ("/home/ab", "/home/a", None),
            ("/home/A/x", "/home/a", None),
            (r"D:\x\y", r"C:\x", None),
            (r"C:\xy", r"C:\x", None),
            (r"C:\x\..\y", r"C:\x", None),
            (r"C:\X\ÄRA.py", r"c:\x", Some("ÄRA.py")),
            ("/home/a/b/../c", "/home/a/", Some("c")),
            // a name of Unix may hold a `\`
            (r"/home/a/b\c", "/home/a", Some(r"b\c")),
            ("/home/a", "/", Some("home/a")),
            (r"\\wsl$\Debian\home\a\x", r"\\wsl.localhost\Ubuntu\home\a", None),
        ] {
            assert_eq!(inside(path, folder), rest.map(PathBuf::from), "{path} {folder}");
        }
        assert!(is_of_windows(r"C:\x") && !is_of_windows("/mnt/c/x") && !is_of_windows("x"));
    }

    #[test]
    fn a_path_is_joined_in_the_spelling_of_its_directory() {
        for (directory, path, whole) in [
            ("/w", "./a.rs", "/w/a.rs"),
            ("/w/", "a//b/../c", "/w/a/c"),
            ("/w", "/x/./y/", "/x/y"),
            ("/w", "../../..", "/"),
            ("/w", "~/a/./b", "~/a/./b"),
            ("/w", r"C:\x\a.py", r"C:\x\a.py"),
            (r"C:\w", r"src\tax.py", r"C:\w\src\tax.py"),
            (r"C:\w\", "src/tax.py", r"C:\w\src\tax.py"),
            ("c:/w", r"src\tax.py", "c:/w/src/tax.py"),
            (r"C:\w", r"..\..\..\x", r"C:\x"),
            (r"C:\w", r"..", r"C:\"),
            (r"C:\w", r"\top\x", r"C:\top\x"),
            (r"C:\w", "/c/w/x", r"C:\w\x"),
            (r"C:\w", "/tmp/x", "/tmp/x"),
            (r"C:\w", r"D:\x\.\y", r"D:\x\y"),
            (r"\\server\share\w", r"..\..\a", r"\\server\share\a"),
            (r"\\wsl$\Ubuntu\home\u", "a/b", r"\\wsl$\Ubuntu\home\u\a\b"),
            ("/mnt/c/w", "a/b", "/mnt/c/w/a/b"),
        ] {
            assert_eq!(joined(Some(directory), path), whole, "{directory} {path}");
        }
        assert_eq!(joined(None, "./a"), "a");
        assert_eq!(joined(None, "../a"), "../a");
        assert_eq!(joined(Some("w"), "a"), "w/a");
        assert_eq!(joined(None, "file:///C:/a/../b"), "file:///C:/a/../b");
    }
}
