//! JSON text that is written.

/// Appends `text` as a JSON string, quotes included.
pub fn write_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    write_escaped(out, text);
    out.push(b'"');
}

/// Appends `text` as the body of a JSON string, without quotes.
pub fn write_escaped(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    let mut from = 0;
    for (i, &b) in bytes.iter().enumerate() {
        let short = match b {
            b'"' => b"\\\"",
            b'\\' => b"\\\\",
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            b'\t' => b"\\t",
            0..=0x1f => {
                out.extend_from_slice(bytes.get(from..i).unwrap_or_default());
                out.extend_from_slice(format!("\\u{b:04x}").as_bytes());
                from = i + 1;
                continue;
            }
            _ => continue,
        };
        out.extend_from_slice(bytes.get(from..i).unwrap_or_default());
        out.extend_from_slice(short);
        from = i + 1;
    }
    out.extend_from_slice(bytes.get(from..).unwrap_or_default());
}
