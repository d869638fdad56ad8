//! What a line or a text is: the user's words, or the client's.

use super::line::Fields;
use crate::agents::speech;
use crate::json::Text;
use crate::record::Harness;

/// How the summary of a compaction begins; 1.0 and others write it into a line that does not say so.
const CONTINUED: &str = "This session is being continued from a previous conversation";

/// Kinds of `origin` that are not the human (2.1.332).
const OTHERS: &[&str] = &[
    "agent",
    "auto-continuation",
    "channel",
    "coordinator",
    "cross-session",
    "observer-activity",
    "peer",
    "plugin",
    "task-notification",
    "teammate",
    "tool",
];

/// The kind of harness text that a line is as a whole, whatever its texts are, by what it says of itself.
pub(super) fn of_line(line: &Fields<'_>) -> Option<Harness> {
    let among = |text: Option<Text<'_>>, words: &[&str]| {
        text.is_some_and(|text| words.iter().any(|word| text == *word))
    };
    if among(line.origin, OTHERS)
        || among(line.prompt_source, &["system"])
        || among(line.turn_origin, &["peer", "scheduled"])
    {
        return Some(Harness::Notice);
    }
    (line.meta || line.unspoken).then_some(Harness::Expansion)
}

/// The kind of a text in a line that is the client's as a whole.
pub(super) fn within(line: Harness, text: Text<'_>) -> Harness {
    let head = text.head(240);
    // the client names the place of a pasted image in a line of its own
    match head.trim_start().starts_with("[Image: source:") {
        true => Harness::Environment,
        false => speech::kind(&head).unwrap_or(line),
    }
}

/// Whether a text is the summary of a compaction.
pub(super) fn is_continued(text: Text<'_>) -> bool {
    text.starts_with(CONTINUED)
}

/// Whether a text is a time that can be compared and written: RFC 3339.
pub(super) fn is_time(text: Text<'_>) -> bool {
    is_utc_time(text.raw()) || text.decode().parse::<jiff::Timestamp>().is_ok()
}

/// Whether the bytes are `YYYY-MM-DDThh:mm:ss[.fff]Z`, the one form that clients write.
pub(super) fn is_utc_time(raw: &[u8]) -> bool {
    let Some((head, tail)) = raw.split_at_checked(19) else { return false };
    let shape = head.iter().enumerate().all(|(i, &b)| match i {
        4 | 7 => b == b'-',
        10 => b == b'T',
        13 | 16 => b == b':',
        _ => b.is_ascii_digit(),
    });
    let two = |at: usize| head.get(at..at + 2).and_then(|d| std::str::from_utf8(d).ok()?.parse::<u8>().ok());
    let range = matches!(two(5), Some(1..=12))
        && matches!(two(8), Some(1..=31))
        && matches!(two(11), Some(0..=23))
        && matches!(two(14), Some(0..=59))
        && matches!(two(17), Some(0..=59));
    let fraction = match tail {
        b"Z" => true,
        [b'.', digits @ .., b'Z'] => {
            !digits.is_empty() && digits.len() <= 9 && digits.iter().all(u8::is_ascii_digit)
        }
        _ => false,
    };
    shape && range && fraction
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Tape;

    fn with<T>(text: &str, look: impl FnOnce(Text<'_>) -> T) -> T {
        let mut line = Vec::new();
        crate::json::write_string(&mut line, text);
        let mut tape = Tape::new();
        look(tape.parse(&line).unwrap().text().unwrap())
    }

    #[test]
    fn a_line_of_the_client_says_so() {
        let kind = |line: &str| of_line(&Fields::of(Tape::new().parse(line.as_bytes()).unwrap()));
        for (line, expected) in [
            (r#"{"type":"user"}"#, None),
            (r#"{"origin":{"kind":"human"},"promptSource":"typed","turnOrigin":"sdk"}"#, None),
            (r#"{"origin":{"kind":"voice-call"},"isMeta":false}"#, None),
            (r#"{"origin":{"kind":"peer","from":"x"}}"#, Some(Harness::Notice)),
            (r#"{"origin":{"kind":"task-notification"},"isMeta":true}"#, Some(Harness::Notice)),
            (r#"{"promptSource":"system"}"#, Some(Harness::Notice)),
            (r#"{"turnOrigin":"scheduled"}"#, Some(Harness::Notice)),
            (r#"{"isMeta":true}"#, Some(Harness::Expansion)),
            (r#"{"isVisibleInTranscriptOnly":true}"#, Some(Harness::Expansion)),
            (r#"{"isSynthetic":true}"#, Some(Harness::Expansion)),
        ] {
            assert_eq!(kind(line), expected, "{line}");
        }
    }

    #[test]
    fn a_text_of_such_a_line_may_say_more() {
        let kind = |text: &str| with(text, |text| within(Harness::Expansion, text));
        assert_eq!(kind("Body of a skill"), Harness::Expansion);
        assert_eq!(kind("[Image: source: /tmp/1.png]"), Harness::Environment);
        assert_eq!(kind("<local-command-caveat>x</local-command-caveat>"), Harness::Command);
        assert!(with("This session is being continued from a previous conversation that x", is_continued));
        assert!(!with("This session is mine", is_continued));
    }

    #[test]
    fn times_of_the_client_are_known() {
        assert!(is_utc_time(b"2026-01-02T03:04:05Z") && is_utc_time(b"2026-01-02T03:04:05.123Z"));
        for bad in [
            "2026-01-02T03:04:05",
            "2026-13-02T03:04:05Z",
            "2026-01-02 03:04:05Z",
            "",
            "2026-01-02T03:04:05.Z",
        ] {
            assert!(!is_utc_time(bad.as_bytes()), "{bad}");
        }
    }
}
