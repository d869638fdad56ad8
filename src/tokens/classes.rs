//! Byte classes: blocks of up to 64 bytes become bit masks, masks become counts of features.
//!
//! A classifier ([`classify`] here, or one written for a processor) gives one [`Masks`] a block; everything after that is the same code,
//! so results are equal whatever the classifier. Escapes of a JSON string are resolved on the masks: the bit of the backslash is
//! taken out, so that the features are those of the decoded text.

use super::escape;

/// Bytes in a full block: one bit of a mask each.
pub(super) const BLOCK: usize = 64;

/// Which bytes of a block belong to which class. Bits past the end of the block may hold anything.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(super) struct Masks {
    /// ASCII letters.
    pub letter: u64,
    /// ASCII capitals.
    pub upper: u64,
    /// ASCII digits.
    pub digit: u64,
    /// The space.
    pub space: u64,
    /// Tab, line feed, vertical tab, form feed, carriage return.
    pub line: u64,
    /// Not ASCII.
    pub high: u64,
    /// First bytes of two-byte characters: Latin, Greek, Cyrillic, Hebrew, Arabic.
    pub two: u64,
    /// First bytes E4 to ED: ideographs, Hangul.
    pub cjk: u64,
    /// First bytes E3, EF: CJK punctuation, kana, full-width forms.
    pub wide: u64,
    /// First byte E2: dashes, quotes, arrows, box drawing, symbols.
    pub sign: u64,
    /// First bytes E0, E1, EE: Indic, Thai and other scripts.
    pub other: u64,
    /// First bytes of four-byte characters: emoji.
    pub four: u64,
}

impl Masks {
    fn each(&mut self, change: impl Fn(u64) -> u64) {
        for mask in [
            &mut self.letter,
            &mut self.upper,
            &mut self.digit,
            &mut self.space,
            &mut self.line,
            &mut self.high,
            &mut self.two,
            &mut self.cjk,
            &mut self.wide,
            &mut self.sign,
            &mut self.other,
            &mut self.four,
        ] {
            *mask = change(*mask);
        }
    }
}

const LETTER: u16 = 1;
const UPPER: u16 = 1 << 1;
const DIGIT: u16 = 1 << 2;
const SPACE: u16 = 1 << 3;
const LINE: u16 = 1 << 4;
const HIGH: u16 = 1 << 5;
const TWO: u16 = 1 << 6;
const CJK: u16 = 1 << 7;
const WIDE: u16 = 1 << 8;
const SIGN: u16 = 1 << 9;
const OTHER: u16 = 1 << 10;
const FOUR: u16 = 1 << 11;

const fn class(byte: u8) -> u16 {
    match byte {
        b'a'..=b'z' => LETTER,
        b'A'..=b'Z' => LETTER | UPPER,
        b'0'..=b'9' => DIGIT,
        b' ' => SPACE,
        0x09..=0x0D => LINE,
        0x00..=0x7F => 0,
        0x80..=0xBF => HIGH,
        0xC0..=0xDF => HIGH | TWO,
        0xE2 => HIGH | SIGN,
        0xE3 | 0xEF => HIGH | WIDE,
        0xE4..=0xED => HIGH | CJK,
        0xE0 | 0xE1 | 0xEE => HIGH | OTHER,
        0xF0..=0xFF => HIGH | FOUR,
    }
}

static CLASSES: [u16; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = class(byte as u8);
        byte += 1;
    }
    table
};

/// The portable classifier.
pub(super) fn classify(block: &[u8; BLOCK]) -> Masks {
    let mut masks = Masks::default();
    for &byte in block.iter().rev() {
        let class = CLASSES.get(usize::from(byte)).copied().unwrap_or_default();
        let bit = |flag: u16| u64::from(class & flag != 0);
        masks.letter = masks.letter << 1 | bit(LETTER);
        masks.upper = masks.upper << 1 | bit(UPPER);
        masks.digit = masks.digit << 1 | bit(DIGIT);
        masks.space = masks.space << 1 | bit(SPACE);
        masks.line = masks.line << 1 | bit(LINE);
        masks.high = masks.high << 1 | bit(HIGH);
        masks.two = masks.two << 1 | bit(TWO);
        masks.cjk = masks.cjk << 1 | bit(CJK);
        masks.wide = masks.wide << 1 | bit(WIDE);
        masks.sign = masks.sign << 1 | bit(SIGN);
        masks.four = masks.four << 1 | bit(FOUR);
        masks.other = masks.other << 1 | bit(OTHER);
    }
    masks
}

/// How many features are counted.
pub(super) const FEATURES: usize = 28;

/// Counts of the features of a text, in the order of [`Position::step`].
pub(super) type Features = [u64; FEATURES];

/// What the blocks before have left: for each mask its last 64 characters, the newest in the top bit.
#[derive(Default)]
struct Position {
    letter: u64,
    humps: u64,
    tail: u64,
    tail2: u64,
    tail4: u64,
    upper: u64,
    digit: u64,
    digit3: u64,
    punct: u64,
    punct2: u64,
    space: u64,
    space2: u64,
    line: u64,
    high: u64,
}

/// `mask` moved by `by` characters (1 to 63) to later places, filled from the characters before, which become those of `mask`.
#[inline(always)]
fn later(mask: u64, by: u32, before: u64) -> u64 {
    mask << by | before >> (64 - by)
}

impl Position {
    /// Counts one block of `length` characters, 1 to 64.
    #[inline(always)]
    fn step(&mut self, masks: &Masks, length: u32, features: &mut Features) {
        let valid = u64::MAX >> (64 - length);
        let letter = masks.letter & valid;
        let upper = masks.upper & valid;
        let digit = masks.digit & valid;
        let space = masks.space & valid;
        let line = masks.line & valid;
        let high = masks.high & valid;
        let punct = valid & !(letter | digit | space | line | high);

        let after_letter = later(letter, 1, self.letter);
        let after_upper = later(upper, 1, self.upper);
        let after_digit = later(digit, 1, self.digit);
        let after_punct = later(punct, 1, self.punct);
        let after_space = later(space, 1, self.space);
        let after_line = later(line, 1, self.line);
        let after_high = later(high, 1, self.high);

        let start = letter & !after_letter;
        let hump = upper & after_letter & !after_upper;
        let humps = start | hump;
        let tail = letter & !humps;
        let tail2 = tail & later(tail, 1, self.tail);
        let tail4 = tail2 & later(tail2, 2, self.tail2);
        let tail7 = tail4 & later(tail4, 3, self.tail4);
        let digit3 = digit & after_digit & later(digit, 2, self.digit);
        let digit4 = digit & later(digit3, 1, self.digit3);
        let digit6 = digit3 & later(digit3, 3, self.digit3);
        let punct2 = punct & after_punct;
        let punct4 = punct2 & later(punct2, 2, self.punct2);
        let after_punct2 = later(punct2, 1, self.punct2);
        let space2 = space & after_space;
        let spaces = space2 & !later(space2, 1, self.space2);
        let line_start = line & !after_line;
        let single = later(humps, 1, self.humps) & !tail & valid;

        let mut add = |feature: usize, mask: u64| {
            if let Some(count) = features.get_mut(feature) {
                *count += u64::from(mask.count_ones());
            }
        };
        add(0, start);
        add(1, hump);
        add(2, upper & after_upper);
        add(3, tail4);
        add(4, tail7);
        add(5, start & !after_space);
        add(6, start & after_punct & !after_punct2);
        add(7, start & after_digit);
        add(8, single);
        add(9, digit & !after_digit);
        add(10, digit4);
        add(11, digit6);
        add(12, digit & after_letter);
        add(13, digit & after_space);
        add(14, punct);
        add(15, punct & !after_punct);
        add(16, punct4);
        add(17, punct & after_space);
        add(18, line_start);
        add(19, line_start & after_punct);
        add(20, spaces);
        if high != 0 {
            add(21, high & !after_high);
            add(22, masks.cjk & valid);
            add(23, masks.wide & valid);
            add(24, masks.two & valid);
            add(25, masks.sign & valid);
            add(26, masks.other & valid);
            add(27, masks.four & valid);
        }

        let keep = |mask: u64| mask << (64 - length);
        let join = |mask: u64, before: u64| if length == 64 { mask } else { keep(mask) | before >> length };
        self.letter = keep(letter);
        self.humps = keep(humps);
        self.tail = keep(tail);
        self.tail2 = join(tail2, self.tail2);
        self.tail4 = join(tail4, self.tail4);
        self.upper = keep(upper);
        self.digit = join(digit, self.digit);
        self.digit3 = join(digit3, self.digit3);
        self.punct = keep(punct);
        self.punct2 = join(punct2, self.punct2);
        self.space = keep(space);
        self.space2 = keep(space2);
        self.line = keep(line);
        self.high = keep(high);
    }
}

/// A way to tell the classes of 64 bytes, and to take characters out of a mask.
pub(super) trait Classifier: Copy {
    /// The classes of a block.
    fn classify(self, block: &[u8; BLOCK]) -> Masks;
    /// Where the backslashes are.
    fn backslashes(self, block: &[u8; BLOCK]) -> u64;
    /// `mask` without the places that are not in `keep`, the rest moved together.
    fn compress(self, mask: u64, keep: u64) -> u64;
}

/// The classifier for any processor.
#[derive(Clone, Copy)]
pub(super) struct Portable;

impl Classifier for Portable {
    fn classify(self, block: &[u8; BLOCK]) -> Masks {
        classify(block)
    }

    fn backslashes(self, block: &[u8; BLOCK]) -> u64 {
        block.iter().rev().fold(0, |mask, &byte| mask << 1 | u64::from(byte == b'\\'))
    }

    fn compress(self, mut mask: u64, keep: u64) -> u64 {
        let mut gone = !keep;
        while gone != 0 {
            let top = 1 << (63 - gone.leading_zeros());
            let below = top - 1;
            mask = mask & below | mask >> 1 & !below;
            gone ^= top;
        }
        mask
    }
}

/// Counts the features of a text.
#[inline(always)]
pub(super) fn plain(classifier: impl Classifier, text: &[u8]) -> Features {
    let mut features = [0; FEATURES];
    let mut position = Position::default();
    let (blocks, rest) = text.as_chunks::<BLOCK>();
    for block in blocks {
        position.step(&classifier.classify(block), 64, &mut features);
    }
    if !rest.is_empty() {
        let (block, length) = padded(rest);
        position.step(&classifier.classify(&block), length, &mut features);
    }
    features
}

/// The first bytes of `rest`, up to a block, and how many they are.
#[inline(always)]
fn padded(rest: &[u8]) -> ([u8; BLOCK], u32) {
    let mut block = [0; BLOCK];
    let length = rest.len().min(BLOCK);
    if let (Some(to), Some(from)) = (block.get_mut(..length), rest.get(..length)) {
        to.copy_from_slice(from);
    }
    (block, length as u32)
}

/// Counts the features of the text that the body of a JSON string stands for.
#[inline(always)]
pub(super) fn escaped(classifier: impl Classifier, body: &[u8]) -> Features {
    let mut features = [0; FEATURES];
    let mut position = Position::default();
    let mut rest = body;
    while !rest.is_empty() {
        let short;
        let (block, length) = match rest.first_chunk::<BLOCK>() {
            Some(block) => (block, 64),
            None => {
                let (block, length) = padded(rest);
                short = block;
                (&short, length)
            }
        };
        let backslashes = classifier.backslashes(block);
        if backslashes == 0 {
            position.step(&classifier.classify(block), length, &mut features);
            rest = rest.get(length as usize..).unwrap_or_default();
            continue;
        }
        let mut masks = classifier.classify(block);
        let resolved = resolve(&mut masks, backslashes, rest, length);
        if resolved.removed != 0 {
            let keep = !resolved.removed;
            masks.each(|mask| classifier.compress(mask, keep));
        }
        let kept = resolved.taken - resolved.removed.count_ones();
        if kept != 0 {
            position.step(&masks, kept, &mut features);
        }
        rest = rest.get(resolved.taken as usize..).unwrap_or_default();
        if resolved.unicode {
            rest = unicode_run(classifier, rest, &mut position, &mut features);
        }
    }
    features
}

/// What became of the backslashes of one block.
struct Resolved {
    /// Bytes of the block that are dealt with.
    taken: u32,
    /// Backslashes that are not characters of their own.
    removed: u64,
    /// Whether a `\u` escape follows what was taken.
    unicode: bool,
}

/// Gives the byte after each backslash the class of the character it stands for. The block ends early where a `\u` escape begins,
/// or where its last byte is a backslash with more to follow.
#[inline(always)]
fn resolve(masks: &mut Masks, mut backslashes: u64, rest: &[u8], length: u32) -> Resolved {
    let mut removed = 0;
    let mut newlines = 0;
    let mut controls = 0;
    let mut taken = length;
    let mut unicode = false;
    while backslashes != 0 {
        let at = backslashes.trailing_zeros();
        if at >= length {
            break;
        }
        let next = rest.get(at as usize + 1).copied();
        if at + 1 == length && next.is_some() {
            // The escape stands astride two blocks: this one ends before it.
            taken = at;
            break;
        }
        let here = 1_u64 << at;
        match next {
            Some(b'n' | b't' | b'r' | b'f') => {
                newlines |= here << 1;
                removed |= here;
            }
            Some(b'b') => {
                controls |= here << 1;
                removed |= here;
            }
            Some(b'"' | b'\\' | b'/') => {
                removed |= here;
                backslashes &= !(here << 1);
            }
            Some(b'u') if rest.get(at as usize..).and_then(escape::unicode).is_some() => {
                taken = at;
                unicode = true;
                break;
            }
            _ => {}
        }
        backslashes &= !here;
    }
    masks.line |= newlines;
    masks.letter &= !(newlines | controls);
    Resolved { taken, removed, unicode }
}

/// Counts a run of `\u` escapes, at most as many as fill a block, and gives what follows.
#[cold]
fn unicode_run<'body>(
    classifier: impl Classifier,
    mut rest: &'body [u8],
    position: &mut Position,
    features: &mut Features,
) -> &'body [u8] {
    let mut text = [0; BLOCK];
    let mut filled = 0;
    while let Some((character, length)) = escape::unicode(rest) {
        let Some(room) = text.get_mut(filled..).filter(|room| room.len() >= character.len_utf8()) else {
            break;
        };
        filled += character.encode_utf8(room).len();
        rest = rest.get(length..).unwrap_or_default();
    }
    if filled != 0 {
        position.step(&classifier.classify(&text), filled as u32, features);
    }
    rest
}
