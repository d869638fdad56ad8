//! In which directory a session goes on.

use super::WriteOptions;
use crate::record::{Error, Result, Session, path};
use crate::stream::World;
use std::path::{Path, PathBuf};

/// What relay-redact leaves in the place of a secret begins like this.
const REDACTED: &str = "<REDACTED:";

/// The directory of the new session: `--project`, else the source's own, after `--map-path`. It exists,
/// and its name is the real one, because clients list sessions by the exact name of the directory.
///
/// # Errors
/// There is none, or it is no directory here. The hint names `--project` and `--map-path`.
pub(in crate::agents) fn project(
    session: &Session,
    options: &WriteOptions,
    world: &World,
) -> Result<PathBuf> {
    let wrong = |what: String| {
        Error::Failed {
        what,
        hint: Some(
            "name the project's directory with --project DIR, or another machine's paths with --map-path OLD=NEW"
                .to_owned(),
        ),
    }
    };
    let directory = match (&options.project, session.working_directory.as_deref()) {
        (Some(given), _) => world.resolve(given),
        (None, None | Some("")) => return Err(wrong("the session does not say where it ran".to_owned())),
        (None, Some(own)) => match mapped_to(own, &options.map_path) {
            Some(mapped) => mapped,
            None if own.contains(REDACTED) => {
                return Err(wrong(format!("the session's directory {own:?} is redacted")));
            }
            None if path::is_of_windows(own) => return Err(of_windows(own)),
            None if !path::is_absolute(own) => {
                return Err(wrong(format!("the session's directory {own:?} is not absolute")));
            }
            None => PathBuf::from(own),
        },
    };
    let shown = format!("{:?}", directory.display().to_string());
    let real = std::fs::canonicalize(&directory)
        .map_err(|e| wrong(format!("the project directory {shown} cannot be used: {}", reason(&e))))?;
    if !real.is_dir() {
        return Err(wrong(format!("{shown} is no directory")));
    }
    Ok(real)
}

fn reason(e: &std::io::Error) -> String {
    match e.kind() {
        std::io::ErrorKind::NotFound => "it does not exist".to_owned(),
        _ => e.to_string(),
    }
}

/// A path of Windows is none of this machine, though a WSL has the same folder below `/mnt`.
fn of_windows(own: &str) -> Error {
    let drive = own.split_once(':').filter(|(letter, _)| letter.len() == 1);
    let mounted = drive
        .map(|(letter, rest)| format!("/mnt/{}{}", letter.to_ascii_lowercase(), rest.replace('\\', "/")));
    let here = mounted.filter(|mounted| Path::new(mounted).is_dir()).unwrap_or_else(|| "DIR".to_owned());
    Error::failed(format!("the session's directory {own} is one of Windows"))
        .with_hint(format!("say where it is here: --map-path '{own}={here}', or --project {here}"))
}

/// A path of the source on this machine: the first pair whose OLD holds it replaces that part. OLD counts
/// by whole names: `/home/a` does not hold `/home/ab`.
pub(in crate::agents) fn mapped(path: &str, map: &[(String, PathBuf)]) -> PathBuf {
    mapped_to(path, map).unwrap_or_else(|| PathBuf::from(path))
}

fn mapped_to(path: &str, map: &[(String, PathBuf)]) -> Option<PathBuf> {
    map.iter().find_map(|(old, new)| {
        let rest = match path::is_absolute(old) {
            true => path::inside(path, old)?,
            // a placeholder stands for the beginning of a path
            false => Path::new(path).strip_prefix(old).ok()?.to_owned(),
        };
        Some(if rest.as_os_str().is_empty() { new.clone() } else { new.join(rest) })
    })
}

/// Whether a session that ran in this directory is one of the project, which is free of links. Inside a WSL a
/// session of Windows is one of the same folder below `/mnt`.
pub(in crate::agents) fn is_of(directory: &Path, project: &Path) -> bool {
    let same = || path::same(directory.to_str()?, project.to_str()?).then_some(());
    directory == project
        || std::fs::canonicalize(directory).is_ok_and(|real| real == project)
        || same().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn resolved(own: Option<&str>, options: &WriteOptions, here: &Path) -> Result<PathBuf> {
        let world = World::new(BTreeMap::new(), here.to_owned()).unwrap();
        let session = Session { working_directory: own.map(str::to_owned), ..Session::default() };
        project(&session, options, &world)
    }

    #[test]
    fn the_sources_directory_unless_another_is_named() {
        let here = tempfile::tempdir().unwrap();
        let real = here.path().canonicalize().unwrap();
        std::fs::create_dir(here.path().join("p")).unwrap();
        let none = WriteOptions::default();
        assert_eq!(resolved(real.to_str(), &none, &real).unwrap(), real);
        let named = WriteOptions { project: Some("p".into()), ..WriteOptions::default() };
        assert_eq!(resolved(Some("/nowhere"), &named, &real).unwrap(), real.join("p"));
        let map = vec![("/Users/x".to_owned(), real.clone())];
        let mapped = WriteOptions { map_path: map, ..WriteOptions::default() };
        assert_eq!(resolved(Some("/Users/x/p"), &mapped, &real).unwrap(), real.join("p"));
        assert!(resolved(Some("/Users/xy/p"), &mapped, &real).is_err());
    }

    #[test]
    fn what_cannot_be_used_is_said_with_the_way_out() {
        let here = tempfile::tempdir().unwrap();
        let file = here.path().join("file");
        std::fs::write(&file, "").unwrap();
        for own in
            [None, Some("/no/such"), Some("relative"), Some("/home/<REDACTED:name:1>/p"), file.to_str()]
        {
            let e = resolved(own, &WriteOptions::default(), here.path()).unwrap_err();
            assert!(e.hint().unwrap().contains("--project") && e.exit_code() == 1, "{own:?}: {e}");
        }
    }
}
