//! Finding the end of a JSON string fast. Unsafe code stands here and in `tokens/avx2.rs` alone.
//!
//! Session lines are mostly long escaped strings, so this loop decides what reading costs: 32 bytes at a
//! time where the CPU has AVX2 (asked once, at run time), 8 at a time everywhere else.

use super::escape::hex4;

/// The string holds escapes.
pub(super) const ESCAPED: u8 = 1;
/// The string holds an escape of a lone surrogate.
pub(super) const LONE: u8 = 2;

/// Index of the closing quote of a string whose first byte is at `from`, and its flags.
/// `Err` names the offending byte.
#[inline]
pub(crate) fn string_end(bytes: &[u8], from: usize) -> Result<(usize, u8), usize> {
    // Most keys and ids end within 16 bytes, where a call for the wide loop would cost more than it saves.
    match first_special(bytes, from) {
        Some(at) if bytes.get(at) == Some(&b'"') => Ok((at, 0)),
        Some(at) => long_string_end(bytes, at),
        None => long_string_end(bytes, (from + 16).min(bytes.len())),
    }
}

/// The first quote, backslash or control character among the 16 bytes from `from` on.
#[cfg(target_arch = "x86_64")]
#[inline]
fn first_special(bytes: &[u8], from: usize) -> Option<usize> {
    use std::arch::x86_64::{
        __m128i, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128,
        _mm_set1_epi8,
    };
    let Some(chunk) = bytes.get(from..from + 16) else { return first_special_slow(bytes, from) };
    // SAFETY: the chunk is 16 bytes long and the load needs no alignment; SSE2 is part of x86-64.
    #[allow(unsafe_code)]
    let mask = unsafe {
        let v = _mm_loadu_si128(chunk.as_ptr().cast::<__m128i>());
        let quote = _mm_cmpeq_epi8(v, _mm_set1_epi8(b'"' as i8));
        let backslash = _mm_cmpeq_epi8(v, _mm_set1_epi8(b'\\' as i8));
        let control = _mm_cmpeq_epi8(_mm_min_epu8(v, _mm_set1_epi8(0x1f)), v);
        _mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quote, backslash), control))
    };
    (mask != 0).then(|| from + mask.trailing_zeros() as usize)
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn first_special(bytes: &[u8], from: usize) -> Option<usize> {
    first_special_slow(bytes, from)
}

fn first_special_slow(bytes: &[u8], from: usize) -> Option<usize> {
    let chunk = bytes.get(from..)?;
    chunk.iter().take(16).position(|&b| b == b'"' || b == b'\\' || b < 0x20).map(|n| from + n)
}

#[cfg(target_arch = "x86_64")]
fn long_string_end(bytes: &[u8], from: usize) -> Result<(usize, u8), usize> {
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: AVX2 was just found on this CPU.
        #[allow(unsafe_code)]
        return unsafe { avx2::string_end(bytes, from) };
    }
    portable_string_end(bytes, from)
}

#[cfg(not(target_arch = "x86_64"))]
fn long_string_end(bytes: &[u8], from: usize) -> Result<(usize, u8), usize> {
    portable_string_end(bytes, from)
}

/// Whether one of eight bytes is a quote, a backslash or a control character: the usual bit tricks on a
/// word. False positives are possible behind a true one only, so the caller looks at the bytes.
fn special(word: u64) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let zero = |x: u64| x.wrapping_sub(ONES) & !x & HIGH;
    let control = word.wrapping_sub(ONES * 0x20) & !word & HIGH;
    zero(word ^ (ONES * u64::from(b'"'))) | zero(word ^ (ONES * u64::from(b'\\'))) | control != 0
}

/// The same for every CPU.
pub(super) fn portable_string_end(bytes: &[u8], from: usize) -> Result<(usize, u8), usize> {
    let mut i = from;
    let mut flags = 0;
    loop {
        while let Some(chunk) = bytes.get(i..i + 8).and_then(|c| <[u8; 8]>::try_from(c).ok()) {
            if special(u64::from_le_bytes(chunk)) {
                break;
            }
            i += 8;
        }
        let word_end = (i + 8).min(bytes.len());
        while i < word_end {
            match bytes.get(i) {
                None => return Err(i),
                Some(b'"') => return Ok((i, flags)),
                Some(b'\\') => {
                    let (next, found) = escape(bytes, i)?;
                    flags |= found;
                    i = next;
                }
                Some(0..=0x1f) => return Err(i),
                Some(_) => i += 1,
            }
        }
        if i >= bytes.len() {
            return Err(bytes.len());
        }
    }
}

/// Checks the escape at `at` and gives the index behind it.
#[inline]
fn escape(bytes: &[u8], at: usize) -> Result<(usize, u8), usize> {
    match bytes.get(at + 1) {
        Some(b'n' | b'"' | b'\\' | b't' | b'r' | b'/' | b'b' | b'f') => Ok((at + 2, ESCAPED)),
        Some(b'u') => {
            let unit = hex4(bytes, at + 2).ok_or(at)?;
            match unit {
                0xd800..=0xdbff => {
                    let pair = bytes.get(at + 6) == Some(&b'\\')
                        && bytes.get(at + 7) == Some(&b'u')
                        && matches!(hex4(bytes, at + 8), Some(0xdc00..=0xdfff));
                    if pair { Ok((at + 12, ESCAPED)) } else { Ok((at + 6, ESCAPED | LONE)) }
                }
                0xdc00..=0xdfff => Ok((at + 6, ESCAPED | LONE)),
                _ => Ok((at + 6, ESCAPED)),
            }
        }
        _ => Err(at),
    }
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx2 {
    use super::escape;
    use std::arch::x86_64::{
        __m256i, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_min_epu8, _mm256_movemask_epi8,
        _mm256_or_si256, _mm256_set1_epi8,
    };

    /// # Safety
    /// The CPU must have AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn string_end(bytes: &[u8], from: usize) -> Result<(usize, u8), usize> {
        let quote = _mm256_set1_epi8(b'"' as i8);
        let backslash = _mm256_set1_epi8(b'\\' as i8);
        let control = _mm256_set1_epi8(0x1f);
        let mut i = from;
        let mut flags = 0;
        while i + 32 <= bytes.len() {
            // SAFETY: the 32 bytes at `i` lie inside the slice; the load needs no alignment.
            let v = unsafe { _mm256_loadu_si256(bytes.as_ptr().add(i).cast::<__m256i>()) };
            let hits = _mm256_or_si256(
                _mm256_or_si256(_mm256_cmpeq_epi8(v, quote), _mm256_cmpeq_epi8(v, backslash)),
                _mm256_cmpeq_epi8(_mm256_min_epu8(v, control), v),
            );
            let mut mask = _mm256_movemask_epi8(hits).cast_unsigned();
            let mut next = i + 32;
            while mask != 0 {
                let at = i + mask.trailing_zeros() as usize;
                match bytes[at] {
                    b'"' => return Ok((at, flags)),
                    b'\\' => {
                        let behind = match bytes.get(at + 1) {
                            Some(b'n' | b'"' | b'\\' | b't') => {
                                flags |= super::ESCAPED;
                                at + 2
                            }
                            _ => {
                                let (behind, found) = escape(bytes, at)?;
                                flags |= found;
                                behind
                            }
                        };
                        if behind >= i + 32 {
                            next = behind;
                            break;
                        }
                        // the escaped character is no end of the string
                        mask &= u32::MAX << (behind - i);
                    }
                    _ => return Err(at),
                }
            }
            i = next;
        }
        let (end, found) = super::portable_string_end(bytes, i)?;
        Ok((end, flags | found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn both_ways_agree(text in "([a-z]|\\\\[nu\"x]|\\\\u[d0][89ac0][0-9]{2}|\"|\u{1}|é){0,60}", from in 0usize..4) {
            let bytes = text.as_bytes();
            let from = from.min(bytes.len());
            prop_assert_eq!(string_end(bytes, from), portable_string_end(bytes, from));
        }
    }

    #[test]
    fn escapes_hide_quotes_at_every_offset() {
        for pad in 0..70 {
            let text = format!("{}\\\\\\\"x\\ud83d\\ude00\"", "a".repeat(pad));
            assert_eq!(string_end(text.as_bytes(), 0), Ok((text.len() - 1, ESCAPED)), "pad {pad}");
            let lone = format!("{}\\ud83d x\"", "a".repeat(pad));
            assert_eq!(string_end(lone.as_bytes(), 0), Ok((lone.len() - 1, ESCAPED | LONE)), "pad {pad}");
        }
    }
}
