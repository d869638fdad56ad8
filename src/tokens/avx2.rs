//! The classifier for x86-64 processors with AVX2. Results are those of the portable one.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m256i, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_min_epu8, _mm256_movemask_epi8, _mm256_or_si256,
    _mm256_set1_epi8, _mm256_sub_epi8, _pext_u64,
};

use super::classes::{self, BLOCK, Classifier, Features, Masks};

/// Proof that this processor has the instructions used here: [`detect`] alone makes one.
#[derive(Clone, Copy)]
pub(super) struct Avx2(());

/// Looks at the processor; the standard library remembers the answer.
pub(super) fn detect() -> Option<Avx2> {
    (is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt"))
    .then_some(Avx2(()))
}

impl Avx2 {
    /// Counts the features of a text.
    pub(super) fn plain(self, text: &[u8]) -> Features {
        // SAFETY: an `Avx2` exists only where `detect` has found every feature that `plain` enables.
        unsafe { plain(self, text) }
    }

    /// Counts the features of the text that the body of a JSON string stands for.
    pub(super) fn escaped(self, body: &[u8]) -> Features {
        // SAFETY: an `Avx2` exists only where `detect` has found every feature that `escaped` enables.
        unsafe { escaped(self, body) }
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn plain(classifier: Avx2, text: &[u8]) -> Features {
    classes::plain(classifier, text)
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn escaped(classifier: Avx2, body: &[u8]) -> Features {
    classes::escaped(classifier, body)
}

impl Classifier for Avx2 {
    #[inline(always)]
    fn classify(self, block: &[u8; BLOCK]) -> Masks {
        // SAFETY: an `Avx2` exists only where `detect` has found every feature that `masks` enables.
        unsafe { masks(block) }
    }

    #[inline(always)]
    fn backslashes(self, block: &[u8; BLOCK]) -> u64 {
        // SAFETY: an `Avx2` exists only where `detect` has found every feature that `backslashes` enables.
        unsafe { backslashes(block) }
    }

    #[inline(always)]
    fn compress(self, mask: u64, keep: u64) -> u64 {
        // SAFETY: an `Avx2` exists only where `detect` has found BMI2.
        unsafe { extract(mask, keep) }
    }
}

/// The two halves of a block.
type Halves = [__m256i; 2];

#[inline]
#[target_feature(enable = "avx2")]
fn load(block: &[u8; BLOCK]) -> Halves {
    let start = block.as_ptr();
    // SAFETY: the block is 64 bytes long, so that both reads of 32 bytes lie inside it; unaligned reads are what `loadu` is for.
    unsafe { [_mm256_loadu_si256(start.cast()), _mm256_loadu_si256(start.add(32).cast())] }
}

#[inline]
#[target_feature(enable = "avx2")]
fn bits([low, high]: Halves) -> u64 {
    u64::from(_mm256_movemask_epi8(low) as u32) | u64::from(_mm256_movemask_epi8(high) as u32) << 32
}

/// Where the bytes equal `byte`.
#[inline]
#[target_feature(enable = "avx2")]
fn equal(halves: Halves, byte: u8) -> u64 {
    let wanted = _mm256_set1_epi8(byte as i8);
    bits(halves.map(|half| _mm256_cmpeq_epi8(half, wanted)))
}

/// Where the bytes lie in `first..=last`, as unsigned numbers.
#[inline]
#[target_feature(enable = "avx2")]
fn within(halves: Halves, first: u8, last: u8) -> u64 {
    let start = _mm256_set1_epi8(first as i8);
    let span = _mm256_set1_epi8((last - first) as i8);
    bits(halves.map(|half| {
        let distance = _mm256_sub_epi8(half, start);
        _mm256_cmpeq_epi8(_mm256_min_epu8(distance, span), distance)
    }))
}

#[inline]
#[target_feature(enable = "avx2")]
fn masks(block: &[u8; BLOCK]) -> Masks {
    let bytes = load(block);
    let lower = bytes.map(|half| _mm256_or_si256(half, _mm256_set1_epi8(0x20)));
    let mut masks = Masks {
        letter: within(lower, b'a', b'z'),
        upper: within(bytes, b'A', b'Z'),
        digit: within(bytes, b'0', b'9'),
        space: equal(bytes, b' '),
        line: within(bytes, 0x09, 0x0D),
        high: bits(bytes),
        ..Masks::default()
    };
    if masks.high != 0 {
        masks.two = within(bytes, 0xC0, 0xDF);
        masks.sign = equal(bytes, 0xE2);
        masks.wide = equal(bytes, 0xE3) | equal(bytes, 0xEF);
        masks.cjk = within(bytes, 0xE4, 0xED);
        masks.other = within(bytes, 0xE0, 0xE1) | equal(bytes, 0xEE);
        masks.four = within(bytes, 0xF0, 0xFF);
    }
    masks
}

#[inline]
#[target_feature(enable = "avx2")]
fn backslashes(block: &[u8; BLOCK]) -> u64 {
    equal(load(block), b'\\')
}

#[inline]
#[target_feature(enable = "bmi2")]
fn extract(mask: u64, keep: u64) -> u64 {
    _pext_u64(mask, keep)
}
