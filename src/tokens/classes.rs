//! Byte classes: blocks of up to 64 bytes become bit masks, masks become counts of features.
//!
//! A classifier ([`classify`] here, or one written for a processor) gives one [`Masks`] a block; everything after that is the same code,
//! so results are equal whatever the classifier. Escapes of a JSON string are resolved on the masks: the bit of the backslash is
//! taken out, so that the features are those of the decoded text.

use crate::json;

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
    /// Changes every mask that can have a bit set. Without a `high` bit, those of other scripts have none.
    #[inline(always)]
    fn each(&mut self, change: impl Fn(u64) -> u64) {
        self.letter = change(self.letter);
        self.upper = change(self.upper);
        self.digit = change(self.digit);
        self.space = change(self.space);
        self.line = change(self.line);
        if self.high != 0 {
            self.high = change(self.high);
            self.two = change(self.two);
            self.cjk = change(self.cjk);
            self.wide = change(self.wide);
            self.sign = change(self.sign);
            self.other = change(self.other);
            self.four = change(self.four);
        }
    }
}

/// Where the letters stand that give an escape its meaning. After a backslash, any other character stands for itself.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(super) struct Escapes {
    /// n, t, r, f: a character of the class `line`.
    pub line: u64,
    /// u: a character by its number.
    pub unicode: u64,
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
pub(super) const FEATURES: usize = 24;

/// Counts of the features of a text, in the order of [`Position::step`].
pub(super) type Features = [u64; FEATURES];

/// What the blocks before have left: for each mask its last 64 characters, the newest in the top bit.
#[derive(Default)]
struct Position {
    letter: u64,
    humps: u64,
    tail: u64,
    tail2: u64,
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
    fn step(&mut self, classifier: impl Classifier, masks: &Masks, length: u32, features: &mut Features) {
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
        let digit3 = digit & after_digit & later(digit, 2, self.digit);
        let digit4 = digit & later(digit3, 1, self.digit3);
        let digit6 = digit3 & later(digit3, 3, self.digit3);
        let punct2 = punct & after_punct;
        let after_punct2 = later(punct2, 1, self.punct2);
        let space2 = space & after_space;
        let spaces = space2 & !later(space2, 1, self.space2);
        let line_start = line & !after_line;
        let single = later(humps, 1, self.humps) & !tail & valid;

        let mut add = |feature: usize, mask: u64| {
            if let Some(count) = features.get_mut(feature) {
                *count += classifier.ones(mask);
            }
        };
        add(0, start);
        add(1, hump);
        add(2, tail4);
        add(3, start & after_punct & !after_punct2);
        add(4, start & after_digit);
        add(5, single);
        add(6, digit & !after_digit);
        add(7, digit4);
        add(8, digit6);
        add(9, digit & after_letter);
        add(10, digit & after_space);
        add(11, punct);
        add(12, punct & !after_punct);
        add(13, punct & after_space);
        add(14, line_start);
        add(15, line_start & after_punct);
        add(16, spaces);
        if high != 0 {
            add(17, high & !after_high);
            add(18, masks.cjk & valid);
            add(19, masks.wide & valid);
            add(20, masks.two & valid);
            add(21, masks.sign & valid);
            add(22, masks.other & valid);
            add(23, masks.four & valid);
        }

        let keep = |mask: u64| mask << (64 - length);
        // In two steps, because all 64 may go.
        let join = |mask: u64, before: u64| keep(mask) | before >> 1 >> (length - 1);
        self.letter = keep(letter);
        self.humps = keep(humps);
        self.tail = keep(tail);
        self.tail2 = join(tail2, self.tail2);
        self.upper = keep(upper);
        self.digit = join(digit, self.digit);
        self.digit3 = join(digit3, self.digit3);
        self.punct = keep(punct);
        self.punct2 = keep(punct2);
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
    /// Where the letters of escapes are.
    fn escapes(self, block: &[u8; BLOCK]) -> Escapes;
    /// How many bits of `mask` are set.
    fn ones(self, mask: u64) -> u64;
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

    fn escapes(self, block: &[u8; BLOCK]) -> Escapes {
        let mut escapes = Escapes::default();
        for &byte in block.iter().rev() {
            escapes.line = escapes.line << 1 | u64::from(b"ntrf".contains(&byte));
            escapes.unicode = escapes.unicode << 1 | u64::from(byte == b'u');
        }
        escapes
    }

    fn ones(self, mask: u64) -> u64 {
        u64::from(mask.count_ones())
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
        position.step(classifier, &classifier.classify(block), 64, &mut features);
    }
    if !rest.is_empty() {
        let mut block = [0; BLOCK];
        let length = pad(rest, &mut block);
        position.step(classifier, &classifier.classify(&block), length, &mut features);
    }
    features
}

/// Puts the first bytes of `rest`, up to a block, into `block`, and gives how many they are.
// Not inlined, here and in `numbers`: the block would be taken apart into 64 variables, which costs more than the call.
#[inline(never)]
fn pad(rest: &[u8], block: &mut [u8; BLOCK]) -> u32 {
    let length = rest.len().min(BLOCK);
    if let (Some(to), Some(from)) = (block.get_mut(..length), rest.get(..length)) {
        to.copy_from_slice(from);
    }
    length as u32
}

/// Counts the features of the text that the body of a JSON string stands for.
#[inline(always)]
pub(super) fn escaped(classifier: impl Classifier, body: &[u8]) -> Features {
    let mut features = [0; FEATURES];
    let mut position = Position::default();
    let mut rest = body;
    let mut numbered = false;
    let mut made = [0; BLOCK];
    // The first byte of the block ends an escape that the block before has begun.
    let mut inside = 0;
    while !rest.is_empty() {
        let (block, length) = if numbered {
            let length = numbers(&mut rest, &mut made);
            (&made, length)
        } else if let Some(block) = rest.first_chunk::<BLOCK>() {
            (block, 64)
        } else {
            let length = pad(rest, &mut made);
            (&made, length)
        };
        let mut masks = classifier.classify(block);
        let mut kept = length;
        if numbered {
            numbered = false;
        } else {
            let mut taken = length;
            let backslash = classifier.backslashes(block) & u64::MAX >> (64 - length) & !inside;
            if backslash | inside != 0 {
                let found = classifier.escapes(block);
                // Of an escape that stands astride two blocks, the second byte is looked at here and counted with the next block.
                let next = rest.get(length as usize);
                let last = length - 1;
                let starters = escape_starters(backslash) & !(u64::from(next.is_none()) << last);
                let numbers = found.unicode >> 1 | u64::from(next == Some(&b'u')) << last;
                let mut removed = starters;
                if let Some(at) = first_number(starters & numbers, rest) {
                    // The block ends before an escape by number; the next one is made of what such escapes stand for.
                    taken = at;
                    numbered = true;
                    removed &= !(u64::MAX << at);
                }
                let second = removed << 1 | inside;
                inside = removed >> 63;
                masks.line |= second & found.line;
                masks.letter &= !second;
                masks.each(|mask| classifier.compress(mask, !removed));
                kept = taken - removed.count_ones();
            }
            rest = rest.get(taken as usize..).unwrap_or_default();
        }
        if kept != 0 {
            position.step(classifier, &masks, kept, &mut features);
        }
    }
    features
}

/// Where the first escape by number begins, of those that look like one.
#[inline(always)]
fn first_number(mut starters: u64, rest: &[u8]) -> Option<u32> {
    while starters != 0 {
        let at = starters.trailing_zeros();
        if rest.get(at as usize..).and_then(json::unicode).is_some() {
            return Some(at);
        }
        starters &= starters - 1;
    }
    None
}

/// Which of the backslashes of a block begin an escape: the first of a run, the third, and so on. The block begins outside an escape.
#[inline(always)]
fn escape_starters(backslash: u64) -> u64 {
    const EVEN: u64 = 0x5555_5555_5555_5555;
    let first = backslash & !(backslash << 1);
    // Adding the first bit of a run carries to the end of the run: runs from an even place and from an odd one in turn.
    let from_even = backslash & !backslash.wrapping_add(first & EVEN);
    let from_odd = backslash & !from_even;
    from_even & EVEN | from_odd & !EVEN
}

/// Takes a run of escapes by number from the start of `rest`, at most as many as fill a block, and puts the text they stand for into
/// `text`. Gives the length of the text.
#[inline(never)]
fn numbers(rest: &mut &[u8], text: &mut [u8; BLOCK]) -> u32 {
    let mut filled = 0;
    while let Some((character, length)) = json::unicode(rest) {
        let Some(room) = text.get_mut(filled..).filter(|room| room.len() >= character.len_utf8()) else {
            break;
        };
        filled += character.encode_utf8(room).len();
        *rest = rest.get(length..).unwrap_or_default();
    }
    filled as u32
}
