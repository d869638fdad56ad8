//! Base64 (RFC 4648, standard alphabet, padded) for lines that are no UTF-8.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Appends the bytes in base64.
pub(super) fn encode(out: &mut Vec<u8>, bytes: &[u8]) {
    for chunk in bytes.chunks(3) {
        let byte = |n: usize| u32::from(chunk.get(n).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for n in 0..4 {
            let index = (bits >> (18 - 6 * n)) as usize & 63;
            let digit = ALPHABET.get(index).copied().unwrap_or(b'=');
            out.push(if n <= chunk.len() { digit } else { b'=' });
        }
    }
}

/// The bytes of a base64 text, or `None` when it is none.
pub(super) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    for chunk in text.chunks(4) {
        let digits = chunk.iter().take_while(|b| **b != b'=').count();
        if chunk.len() != 4 || digits < 2 || chunk.iter().skip(digits).any(|b| *b != b'=') {
            return None;
        }
        let mut bits = 0u32;
        for byte in chunk {
            let value = if *byte == b'=' { 0 } else { ALPHABET.iter().position(|a| a == byte)? };
            bits = bits << 6 | u32::try_from(value).ok()?;
        }
        let bytes = bits.to_be_bytes();
        out.extend_from_slice(bytes.get(1..digits)?);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back() {
        for (bytes, text) in [
            (&b""[..], ""),
            (b"f", "Zg=="),
            (b"fo", "Zm8="),
            (b"foo", "Zm9v"),
            (b"\xff\xfe\x00\x10", "//4AEA=="),
        ] {
            let mut out = Vec::new();
            encode(&mut out, bytes);
            assert_eq!(out, text.as_bytes());
            assert_eq!(decode(text.as_bytes()).unwrap(), bytes);
        }
        for text in ["Z", "Zg=", "Z===", "Zg=a", "Z*=="] {
            assert!(decode(text.as_bytes()).is_none(), "{text}");
        }
    }
}
