//! The end of a long text.

use memchr::memmem;

/// The end of an escaped text from some line's start on, decoded.
pub(super) fn tail(raw: &[u8], bytes: usize) -> String {
    let from = raw.len().saturating_sub(bytes);
    for at in memmem::find_iter(raw.get(from..).unwrap_or_default(), b"\\n").map(|at| from + at).take(64) {
        let slashes = raw.get(..at).unwrap_or_default().iter().rev().take_while(|b| **b == b'\\').count();
        if slashes % 2 == 0 {
            let body = [b"\"", raw.get(at + 2..).unwrap_or_default(), b"\""].concat();
            // the line was scanned, so this can only be a string
            return serde_json::from_slice(&body).unwrap_or_default();
        }
    }
    String::new()
}
