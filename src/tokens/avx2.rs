//! The classifier for x86-64 processors with AVX2. Results are those of the portable one.
#![allow(unsafe_code)]

use std::arch::asm;
use std::arch::x86_64::{
    __m256i, _mm_setr_epi8, _mm256_broadcastsi128_si256, _mm256_cmpeq_epi8, _mm256_loadu_si256,
    _mm256_min_epu8, _mm256_movemask_epi8, _mm256_or_si256, _mm256_set1_epi8, _mm256_shuffle_epi8,
    _mm256_sub_epi8, _pext_u64,
};

use super::classes::{self, BLOCK, Classifier, Escapes, Features, Masks};

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
        // SAFETY: an `Avx2` exists only where `detect` has found AVX2.
        unsafe { masks(block) }
    }

    #[inline(always)]
    fn backslashes(self, block: &[u8; BLOCK]) -> u64 {
        // SAFETY: an `Avx2` exists only where `detect` has found AVX2.
        unsafe { equal(load(block), b'\\') }
    }

    #[inline(always)]
    fn escapes(self, block: &[u8; BLOCK]) -> Escapes {
        // SAFETY: an `Avx2` exists only where `detect` has found AVX2.
        unsafe {
            let bytes = load(block);
            Escapes { line: line_letters(bytes), unicode: equal(bytes, b'u') }
        }
    }

    #[inline(always)]
    fn ones(self, mask: u64) -> u64 {
        let count;
        // The plain `count_ones` of many masks is turned into a vector routine for lack of a vector instruction, and the masks are
        // carried into vectors and back for it: three times slower (rustc 1.95).
        // SAFETY: an `Avx2` exists only where `detect` has found POPCNT, which reads one register and writes another and the flags.
        unsafe { asm!("popcnt {}, {}", lateout(reg) count, in(reg) mask, options(pure, nomem, nostack)) };
        count
    }

    #[inline(always)]
    fn compress(self, mask: u64, keep: u64) -> u64 {
        // SAFETY: an `Avx2` exists only where `detect` has found BMI2.
        unsafe { _pext_u64(mask, keep) }
    }
}

// The functions below are inlined into `plain` and `escaped`, the only ones compiled for AVX2: a function that enables the features
// itself is inlined only if the compiler finds it small enough, and a call for each block costs more than the block.

/// The two halves of a block.
type Halves = [__m256i; 2];

/// # Safety
/// Needs AVX2.
#[inline(always)]
unsafe fn load(block: &[u8; BLOCK]) -> Halves {
    let start = block.as_ptr();
    // SAFETY: the block is 64 bytes long, so that both reads of 32 bytes lie inside it; unaligned reads are what `loadu` is for.
    unsafe { [_mm256_loadu_si256(start.cast()), _mm256_loadu_si256(start.add(32).cast())] }
}

/// # Safety
/// Needs AVX2.
#[inline(always)]
unsafe fn bits(halves: Halves) -> u64 {
    // SAFETY: the caller sees to it that there is AVX2.
    let [low, high] = unsafe { [_mm256_movemask_epi8(halves[0]), _mm256_movemask_epi8(halves[1])] };
    let mut bits = u64::from(low as u32) | u64::from(high as u32) << 32;
    // Without this the compiler (rustc 1.95) sees vectors of single bits in the arithmetic on masks and takes them apart bit by bit.
    // SAFETY: no instruction is emitted; the register keeps its value.
    unsafe { asm!("/* {0} */", inout(reg) bits, options(pure, nomem, nostack, preserves_flags)) };
    bits
}

/// Where the bytes equal `byte`.
///
/// # Safety
/// Needs AVX2.
#[inline(always)]
unsafe fn equal(halves: Halves, byte: u8) -> u64 {
    // SAFETY: the caller sees to it that there is AVX2.
    unsafe {
        let wanted = _mm256_set1_epi8(byte as i8);
        bits([_mm256_cmpeq_epi8(halves[0], wanted), _mm256_cmpeq_epi8(halves[1], wanted)])
    }
}

/// Where the bytes are one of n, t, r, f.
///
/// # Safety
/// Needs AVX2.
#[inline(always)]
unsafe fn line_letters(halves: Halves) -> u64 {
    // The low four bits of these letters differ, so each byte has one letter to be compared with. A byte below 80 is never FF, and one
    // from 80 on is looked up as 0.
    const NO: i8 = -1;
    const F: i8 = b'f' as i8;
    const N: i8 = b'n' as i8;
    const R: i8 = b'r' as i8;
    const T: i8 = b't' as i8;
    // SAFETY: the caller sees to it that there is AVX2.
    unsafe {
        let letters = _mm256_broadcastsi128_si256(_mm_setr_epi8(
            NO, NO, R, NO, T, NO, F, NO, NO, NO, NO, NO, NO, NO, N, NO,
        ));
        bits([
            _mm256_cmpeq_epi8(_mm256_shuffle_epi8(letters, halves[0]), halves[0]),
            _mm256_cmpeq_epi8(_mm256_shuffle_epi8(letters, halves[1]), halves[1]),
        ])
    }
}

/// Where the bytes lie in `first..=last`, as unsigned numbers.
///
/// # Safety
/// Needs AVX2.
#[inline(always)]
unsafe fn within(halves: Halves, first: u8, last: u8) -> u64 {
    // SAFETY: the caller sees to it that there is AVX2.
    unsafe {
        let start = _mm256_set1_epi8(first as i8);
        let span = _mm256_set1_epi8((last - first) as i8);
        let low = _mm256_sub_epi8(halves[0], start);
        let high = _mm256_sub_epi8(halves[1], start);
        bits([
            _mm256_cmpeq_epi8(_mm256_min_epu8(low, span), low),
            _mm256_cmpeq_epi8(_mm256_min_epu8(high, span), high),
        ])
    }
}

/// # Safety
/// Needs AVX2.
#[inline(always)]
unsafe fn masks(block: &[u8; BLOCK]) -> Masks {
    // SAFETY: the caller sees to it that there is AVX2.
    unsafe {
        let bytes = load(block);
        let bit = _mm256_set1_epi8(0x20);
        let lower = [_mm256_or_si256(bytes[0], bit), _mm256_or_si256(bytes[1], bit)];
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
}
