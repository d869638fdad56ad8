//! The pixel size of an image, read from the first bytes of its base64 text without decoding the rest.

/// Width and height in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Size {
    /// Pixels across.
    pub width: u32,
    /// Pixels down.
    pub height: u32,
}

impl Size {
    /// This size made smaller, keeping its shape, until the long edge is at most `long` and the short edge at most `short` pixels.
    pub(super) fn scaled_to(self, long: u32, short: u32) -> Self {
        let shrink = |size: Self, edge: u32, limit: u32| {
            if edge <= limit {
                return size;
            }
            let part = |length: u32| {
                let scaled = (u64::from(length) * u64::from(limit)).div_ceil(u64::from(edge));
                u32::try_from(scaled).unwrap_or(limit).max(1)
            };
            Self { width: part(size.width), height: part(size.height) }
        };
        let inside = shrink(self, self.width.max(self.height), long);
        shrink(inside, inside.width.min(inside.height), short)
    }
}

/// Segments of a JPEG looked at before giving up: a real one has a few dozen before its frame header.
const MOST_SEGMENTS: usize = 1024;

/// The size of a PNG, JPEG, GIF or WebP image in base64, with or without a `data:…;base64,` in front.
///
/// Reads some ten bytes (of a JPEG, those of the heads of its segments). `None` if it is none of these or is cut short.
pub fn size(base64: &[u8]) -> Option<Size> {
    let data = match base64.strip_prefix(b"data:") {
        Some(url) => {
            let comma = memchr::memchr(b',', url.get(..url.len().min(256))?)?;
            url.get(comma + 1..)?
        }
        None => base64,
    };
    let image = Base64(data);
    let size = match image.byte(0)? {
        0x89 => image.png(),
        0xFF => image.jpeg(),
        b'G' => image.gif(),
        b'R' => image.webp(),
        _ => None,
    }?;
    (size.width != 0 && size.height != 0).then_some(size)
}

/// Base64 text, of either alphabet, that gives single bytes of what it stands for.
#[derive(Clone, Copy, Debug)]
pub struct Base64<'data>(pub &'data [u8]);

impl Base64<'_> {
    /// The byte at this place; `None` behind the end, and where the text is no base64.
    pub fn byte(&self, at: usize) -> Option<u8> {
        let bit = at.checked_mul(8)?;
        let sextet = |place: usize| {
            Some(match *self.0.get(place)? {
                letter @ b'A'..=b'Z' => letter - b'A',
                letter @ b'a'..=b'z' => letter - b'a' + 26,
                digit @ b'0'..=b'9' => digit - b'0' + 52,
                b'+' | b'-' => 62,
                b'/' | b'_' => 63,
                _ => return None,
            })
        };
        let first = u16::from(sextet(bit / 6)?);
        let second = u16::from(sextet(bit / 6 + 1)?);
        // Twelve bits hold the byte; it begins `bit % 6` bits into them.
        Some((first << 6 | second).wrapping_shr(4 - (bit % 6) as u32) as u8)
    }

    /// So many bytes from this place on.
    pub fn bytes<const COUNT: usize>(&self, at: usize) -> Option<[u8; COUNT]> {
        let mut bytes = [0; COUNT];
        for (place, byte) in bytes.iter_mut().enumerate() {
            *byte = self.byte(at.checked_add(place)?)?;
        }
        Some(bytes)
    }

    fn png(&self) -> Option<Size> {
        (self.bytes(0)? == *b"\x89PNG\r\n\x1a\n" && self.bytes(12)? == *b"IHDR").then_some(())?;
        Some(Size { width: u32::from_be_bytes(self.bytes(16)?), height: u32::from_be_bytes(self.bytes(20)?) })
    }

    fn gif(&self) -> Option<Size> {
        matches!(&self.bytes(0)?, b"GIF87a" | b"GIF89a").then_some(())?;
        let edge = |at| Some(u32::from(u16::from_le_bytes(self.bytes(at)?)));
        Some(Size { width: edge(6)?, height: edge(8)? })
    }

    fn webp(&self) -> Option<Size> {
        (self.bytes(0)? == *b"RIFF" && self.bytes(8)? == *b"WEBP").then_some(())?;
        match &self.bytes(12)? {
            // Lossy: a key frame, whose start code stands before two numbers of 14 bits.
            b"VP8 " => {
                (self.bytes(23)? == [0x9D, 0x01, 0x2A]).then_some(())?;
                let edge = |at| Some(u32::from(u16::from_le_bytes(self.bytes(at)?) & 0x3FFF));
                Some(Size { width: edge(26)?, height: edge(28)? })
            }
            // Lossless: two numbers of 14 bits, less one.
            b"VP8L" => {
                (self.byte(20)? == 0x2F).then_some(())?;
                let bits = u32::from_le_bytes(self.bytes(21)?);
                Some(Size { width: (bits & 0x3FFF) + 1, height: (bits >> 14 & 0x3FFF) + 1 })
            }
            // Extended: two numbers of 24 bits, less one.
            b"VP8X" => {
                let edge = |at| {
                    let [low, middle, high] = self.bytes(at)?;
                    Some(u32::from_le_bytes([low, middle, high, 0]) + 1)
                };
                Some(Size { width: edge(24)?, height: edge(27)? })
            }
            _ => None,
        }
    }

    fn jpeg(&self) -> Option<Size> {
        (self.bytes(0)? == [0xFF, 0xD8]).then_some(())?;
        let mut at: usize = 2;
        for _ in 0..MOST_SEGMENTS {
            let [0xFF, kind] = self.bytes(at)? else {
                return None;
            };
            match kind {
                // A fill byte, or a marker that stands alone.
                0xFF => at += 1,
                0x01 | 0xD0..=0xD7 => at += 2,
                // A frame header; C4, C8 and CC are none.
                0xC0..=0xCF if !matches!(kind, 0xC4 | 0xC8 | 0xCC) => {
                    let edge = |at| Some(u32::from(u16::from_be_bytes(self.bytes(at)?)));
                    return Some(Size { width: edge(at + 7)?, height: edge(at + 5)? });
                }
                // The picture itself, or its end, and no frame header before it.
                0xD9 | 0xDA => return None,
                _ => {
                    at = at
                        .checked_add(2)?
                        .checked_add(usize::from(u16::from_be_bytes(self.bytes(at + 2)?)))?
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn base64(bytes: &[u8]) -> Vec<u8> {
        const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut text = Vec::new();
        for group in bytes.chunks(3) {
            let mut three = [0; 3];
            three[..group.len()].copy_from_slice(group);
            let bits = u32::from_be_bytes([0, three[0], three[1], three[2]]);
            for place in 0..4 {
                let padding = place > group.len();
                text.push(if padding { b'=' } else { ALPHABET[(bits >> (18 - 6 * place) & 63) as usize] });
            }
        }
        text
    }

    fn png(width: u32, height: u32) -> Vec<u8> {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
        bytes.extend(width.to_be_bytes());
        bytes.extend(height.to_be_bytes());
        bytes.extend([8, 6, 0, 0, 0]);
        bytes
    }

    #[test]
    fn each_format_gives_its_size() {
        let wanted = Some(Size { width: 640, height: 400 });
        assert_eq!(size(&base64(&png(640, 400))), wanted);
        let url = [b"data:image/png;base64,".to_vec(), base64(&png(640, 400))].concat();
        assert_eq!(size(&url), wanted);
        assert_eq!(size(&base64(b"GIF89a\x80\x02\x90\x01\xf7")), wanted);
        let riff = |chunk: &[u8]| base64(&[b"RIFF\x24\0\0\0WEBP", chunk].concat());
        assert_eq!(size(&riff(b"VP8 \x18\0\0\0\x30\x01\0\x9d\x01\x2a\x80\x02\x90\x01")), wanted);
        let bits = (640 - 1) | (400_u32 - 1) << 14;
        assert_eq!(size(&riff(&[b"VP8L\x18\0\0\0\x2f".as_slice(), &bits.to_le_bytes()].concat())), wanted);
        assert_eq!(size(&riff(b"VP8X\x0a\0\0\0\0\0\0\0\x7f\x02\0\x8f\x01\0")), wanted);
        let jpeg = [
            b"\xff\xd8\xff\xe1\x13\x88".as_slice(),
            &vec![0x55; 4998],
            b"\xff\xff\xc4\0\x03\0\xff\xc2\0\x11\x08\x01\x90\x02\x80\x03",
        ]
        .concat();
        assert_eq!(size(&base64(&jpeg)), wanted);
    }

    #[test]
    fn what_is_no_image_has_no_size() {
        for bytes in
            [b"".as_slice(), b"hello world, no image", b"\xff\xd8\xff\xd9", b"\x89PNG", b"RIFF\0\0\0\0WAVE"]
        {
            assert_eq!(size(&base64(bytes)), None);
        }
        assert_eq!(size(b"data:image/png"), None);
        assert_eq!(size(b"!!!!"), None);
        assert_eq!(size(&base64(&png(0, 400))), None);
        // Segments of no length do not run for ever.
        assert_eq!(
            size(&base64(&[b"\xff\xd8".as_slice(), &b"\xff\xe0\0\0\xff\xe0".repeat(5000)].concat())),
            None
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(start in 0..4_usize, bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let heads: [&[u8]; 4] = [b"", b"\xff\xd8\xff", b"RIFF\0\0\0\0WEBPVP8", b"GIF89a"];
            size(&base64(&[heads[start], &bytes].concat()));
            size(&bytes);
        }
    }
}
