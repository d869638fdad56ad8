//! Times as the client writes them.

use crate::json::Text;
use std::borrow::Cow;

/// Whether a text is what every client writes: `2026-01-02T03:04:05.678Z`.
fn is_usual(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() <= 30
        && bytes.len() >= 20
        && bytes.last() == Some(&b'Z')
        && bytes
            .iter()
            .zip(b"0000-00-00T00:00:00")
            .all(|(b, m)| if *m == b'0' { b.is_ascii_digit() } else { b == m })
        && match bytes.get(19..bytes.len() - 1) {
            Some([]) => true,
            Some([b'.', digits @ ..]) => !digits.is_empty() && digits.iter().all(u8::is_ascii_digit),
            _ => false,
        }
}

/// Whether a text is a time with a zone.
pub(super) fn is_time(text: &str) -> bool {
    is_usual(text) || text.parse::<jiff::Timestamp>().is_ok()
}

/// The time as RFC 3339 in UTC, when it is one.
pub(super) fn utc(raw: Text<'_>) -> Option<Cow<'_, str>> {
    let text = raw.decode();
    if is_usual(&text) {
        return Some(text);
    }
    Some(Cow::Owned(text.parse::<jiff::Timestamp>().ok()?.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_from_other_texts() {
        for good in ["2026-01-02T03:04:05.678Z", "2026-01-02T03:04:05Z", "2026-01-02T03:04:05+02:00"] {
            assert!(is_time(good), "{good}");
        }
        for bad in ["", "soon", "2026-01-02T03:04:05", "2026-01-02T03:04:05.Z", "2026-01-02"] {
            assert!(!is_time(bad), "{bad}");
        }
    }
}
