//! In which directory a session goes on.

use super::WriteOptions;
use crate::record::{Error, Result, Session};
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
        (None, Some(own)) if own.contains(REDACTED) => {
            return Err(wrong(format!("the session's directory {own:?} is redacted")));
        }
        (None, Some(own)) => {
            let mapped = mapped(own, &options.map_path);
            if !mapped.is_absolute() {
                return Err(wrong(format!("the session's directory {:?} is not absolute", mapped.display())));
            }
            mapped
        }
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

/// A path of the source on this machine: the first pair whose OLD holds it replaces that part. OLD counts
/// by whole names: `/home/a` does not hold `/home/ab`.
pub(in crate::agents) fn mapped(path: &str, map: &[(String, String)]) -> PathBuf {
    let path = Path::new(path);
    for (old, new) in map {
        if let Ok(rest) = path.strip_prefix(old) {
            return if rest.as_os_str().is_empty() { PathBuf::from(new) } else { Path::new(new).join(rest) };
        }
    }
    path.to_owned()
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
        let map = vec![("/Users/x".to_owned(), real.display().to_string())];
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
