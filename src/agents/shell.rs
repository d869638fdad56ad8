//! Command lines for a POSIX shell.

use crate::record::{Error, Result, is_hidden};

/// A word that the shell reads back as this very text.
///
/// # Errors
/// The text holds characters that a terminal would act on or that would hide what the line does: see [`is_hidden`].
pub fn quoted(text: &str) -> Result<String> {
    if let Some(c) = text.chars().find(|&c| is_hidden(c)) {
        return Err(Error::Failed {
            what: format!("{:?} holds the character U+{:04X}", text, u32::from(c)),
            hint: Some(
                "no safe command line can be printed for it: use --project with another name".to_owned(),
            ),
        });
    }
    Ok(format!("'{}'", text.replace('\'', r"'\''")))
}

/// The line that goes to a directory and runs a command there; `command` is shell text already.
///
/// # Errors
/// See [`quoted`].
pub(in crate::agents) fn in_directory(directory: &str, command: &str) -> Result<String> {
    Ok(format!("cd -- {} && {command}", quoted(directory)?))
}

/// Text on one line without characters that a terminal would act on; each becomes a space.
pub(in crate::agents) fn one_line(text: &str) -> String {
    text.chars().map(|c| if is_hidden(c) { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shell_reads_back_what_was_quoted() {
        for text in ["", "a b", "$(touch x)", "it's", "''", "-n", "`x`\\", "*?[a]~", "é漢", "\"$HOME\"!"] {
            let line = format!("printf %s {}", quoted(text).unwrap());
            let out = std::process::Command::new("sh").arg("-c").arg(&line).output().unwrap();
            assert_eq!(String::from_utf8(out.stdout).unwrap(), text);
        }
    }

    #[test]
    fn what_a_terminal_would_act_on_is_refused() {
        for text in ["a\nb", "\u{1b}[2J", "\u{7f}", "\u{9b}", "\u{202e}gpj", "a\u{200b}b", "x\u{e0041}"] {
            assert!(quoted(text).is_err(), "{text:?}");
        }
        assert_eq!(one_line("a\n\u{202e}b"), "a  b");
    }

    #[test]
    fn a_leading_dash_is_no_option() {
        assert_eq!(in_directory("-x", "quack resume 1").unwrap(), "cd -- '-x' && quack resume 1");
    }
}
