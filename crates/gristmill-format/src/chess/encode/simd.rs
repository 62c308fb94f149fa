//! Stored plane words -> one element per square, and copies past the cache: AVX-512, AVX2 or portable, the same bytes.
//! The one file of the encoder with `unsafe`: vector stores into slices whose lengths are checked here.
#![allow(unsafe_code)]

use super::output::Element;

/// Which instructions to use. A value other than `Portable` exists only where the processor has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Path(Kind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Path {
    /// Every path that this processor can take, best first.
    pub(super) fn available() -> Vec<Path> {
        let mut paths = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw") {
                paths.push(Path(Kind::Avx512));
            }
            if is_x86_feature_detected!("avx2") {
                paths.push(Path(Kind::Avx2));
            }
        }
        paths.push(Path(Kind::Portable));
        paths
    }

    /// The fastest of them.
    pub(super) fn best() -> Path {
        Path::available()[0]
    }
}

/// Bytes of a cache line: what a streaming row must be aligned to.
const LINE: usize = 64;

/// How rows are written: by which instructions, and whether past the cache.
///
/// Past the cache is faster for what would not stay in it anyway: no line is read before it is overwritten.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stores {
    /// The instructions.
    pub(super) path: Path,
    /// Whether rows that start on a cache line, and whole lines of copies, go past the cache.
    /// [`finish`] must follow before another thread reads them.
    pub(super) past_cache: bool,
}

impl Stores {
    fn streams(self, out: &[u8]) -> bool {
        self.past_cache && out.as_ptr().addr().is_multiple_of(LINE)
    }
}

/// Writes on the squares of each word its value (the bits of one element), zero elsewhere; 64 elements a word.
///
/// Square `s` is bit `s ^ 7`. `out` must have exactly 64 elements per word.
pub(super) fn expand(stores: Stores, element: Element, words: &[u64], values: &[u32], out: &mut [u8]) {
    assert!(words.len() == values.len(), "a value per word");
    assert!(out.len() == words.len() * 64 * element.scalar().size(), "64 elements per word");
    match stores.path.0 {
        Kind::Portable => portable::expand(element, words, values, out),
        #[cfg(target_arch = "x86_64")]
        Kind::Avx2 => {
            // SAFETY: `Path(Avx2)` is made only where AVX2 was detected.
            unsafe {
                match stores.streams(out) {
                    true => avx2::expand::<true>(element, words, values, out),
                    false => avx2::expand::<false>(element, words, values, out),
                }
            }
        }
        #[cfg(target_arch = "x86_64")]
        Kind::Avx512 => {
            // SAFETY: `Path(Avx512)` is made only where AVX-512 F and BW were detected.
            unsafe {
                match stores.streams(out) {
                    true => avx512::expand::<true>(element, words, values, out),
                    false => avx512::expand::<false>(element, words, values, out),
                }
            }
        }
    }
}

/// Copies `from` to `to`, of the same length.
pub(super) fn copy(stores: Stores, from: &[u8], to: &mut [u8]) {
    assert!(from.len() == to.len(), "a copy of equal lengths");
    match stores.path.0 {
        #[cfg(target_arch = "x86_64")]
        Kind::Avx2 | Kind::Avx512 if stores.past_cache => {
            let head = to.as_ptr().align_offset(LINE).min(to.len());
            let body = (to.len() - head) / LINE * LINE;
            let (first, rest) = to.split_at_mut(head);
            let (lines, last) = rest.split_at_mut(body);
            first.copy_from_slice(&from[..head]);
            // SAFETY: both paths were made where AVX2 was detected (AVX-512 F implies it).
            unsafe { avx2::copy_lines(&from[head..head + body], lines) };
            last.copy_from_slice(&from[head + body..]);
        }
        _ => to.copy_from_slice(from),
    }
}

/// Makes what `expand` and `copy` wrote past the cache visible to other threads, before it is handed on.
pub(super) fn finish(stores: Stores) {
    match stores.path.0 {
        Kind::Portable => {}
        #[cfg(target_arch = "x86_64")]
        // SAFETY: SSE is part of every x86-64 processor.
        Kind::Avx2 | Kind::Avx512 => unsafe { std::arch::x86_64::_mm_sfence() },
    }
}

/// Asks for the lines of `bytes`, which are read next.
pub(super) fn prefetch(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    for line in bytes.chunks(LINE) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch never faults, and the address lies in `bytes`.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}

mod portable {
    use super::Element;

    /// Per byte, eight 0/255 bytes in order of squares.
    static SPREAD: [[u8; 8]; 256] = {
        let mut table = [[0; 8]; 256];
        let mut byte = 0;
        while byte < 256 {
            let mut file = 0;
            while file < 8 {
                table[byte][file] = if byte >> (7 - file) & 1 == 1 { 0xff } else { 0 };
                file += 1;
            }
            byte += 1;
        }
        table
    };

    pub(super) fn expand(element: Element, words: &[u64], values: &[u32], out: &mut [u8]) {
        match element {
            Element::F32 => spread(words, values, out, u32::to_le_bytes),
            Element::F16 | Element::Bf16 => spread(words, values, out, |value| (value as u16).to_le_bytes()),
            Element::U8 => spread(words, values, out, |value| [value as u8]),
        }
    }

    fn spread<const N: usize>(words: &[u64], values: &[u32], out: &mut [u8], bytes: impl Fn(u32) -> [u8; N]) {
        for ((word, value), plane) in words.iter().zip(values).zip(out.chunks_exact_mut(64 * N)) {
            let value = bytes(*value);
            for (byte, rank) in word.to_le_bytes().into_iter().zip(plane.chunks_exact_mut(8 * N)) {
                for (on, square) in SPREAD[usize::from(byte)].iter().zip(rank.as_chunks_mut::<N>().0) {
                    *square = value.map(|v| v & on);
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::Element;
    use std::arch::x86_64::*;

    /// Writes half a line; with `STREAM` past the cache, and then `out` must be 32-byte aligned.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn store<const STREAM: bool>(out: &mut [u8; 32], value: __m256i) {
        // SAFETY: `out` is 32 bytes; streaming is used only for rows that start on a 64-byte line, in steps of 32.
        unsafe {
            match STREAM {
                true => _mm256_stream_si256(out.as_mut_ptr().cast(), value),
                false => _mm256_storeu_si256(out.as_mut_ptr().cast(), value),
            }
        }
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn expand<const STREAM: bool>(element: Element, words: &[u64], values: &[u32], out: &mut [u8]) {
        match element {
            Element::F32 => expand_f32::<STREAM>(words, values, out),
            Element::F16 | Element::Bf16 => expand_f16::<STREAM>(words, values, out),
            Element::U8 => expand_u8::<STREAM>(words, values, out),
        }
    }

    #[target_feature(enable = "avx2")]
    fn expand_f32<const STREAM: bool>(words: &[u64], values: &[u32], out: &mut [u8]) {
        let first = _mm256_setr_epi32(0x80, 0x40, 0x20, 0x10, 0x08, 0x04, 0x02, 0x01);
        let ranks =
            [first, _mm256_slli_epi32::<8>(first), _mm256_slli_epi32::<16>(first), _mm256_slli_epi32::<24>(first)];
        for ((word, value), plane) in words.iter().zip(values).zip(out.as_chunks_mut::<256>().0) {
            let on = _mm256_set1_epi32(value.cast_signed());
            let halves = [*word as i32, (*word >> 32) as i32].map(|half| _mm256_set1_epi32(half));
            for (i, rank) in plane.as_chunks_mut::<32>().0.iter_mut().enumerate() {
                let bit = ranks[i % 4];
                let is_set = _mm256_cmpeq_epi32(_mm256_and_si256(halves[i / 4], bit), bit);
                store::<STREAM>(rank, _mm256_and_si256(is_set, on));
            }
        }
    }

    #[target_feature(enable = "avx2")]
    fn expand_f16<const STREAM: bool>(words: &[u64], values: &[u32], out: &mut [u8]) {
        let bit = _mm256_setr_epi16(
            0x80, 0x40, 0x20, 0x10, 0x08, 0x04, 0x02, 0x01, -0x8000, 0x4000, 0x2000, 0x1000, 0x800, 0x400, 0x200, 0x100,
        );
        for ((word, value), plane) in words.iter().zip(values).zip(out.as_chunks_mut::<128>().0) {
            let on = _mm256_set1_epi16(*value as i16);
            for (i, ranks) in plane.as_chunks_mut::<32>().0.iter_mut().enumerate() {
                let pair = _mm256_set1_epi16((*word >> (16 * i)) as i16);
                let is_set = _mm256_cmpeq_epi16(_mm256_and_si256(pair, bit), bit);
                store::<STREAM>(ranks, _mm256_and_si256(is_set, on));
            }
        }
    }

    #[target_feature(enable = "avx2")]
    fn expand_u8<const STREAM: bool>(words: &[u64], values: &[u32], out: &mut [u8]) {
        let bit = _mm256_set1_epi64x(0x0102_0408_1020_4080);
        // Byte k of a half word, eight times over; the shuffle works within each 16-byte lane.
        let spread = _mm256_setr_epi64x(0, 0x0101_0101_0101_0101, 0x0202_0202_0202_0202, 0x0303_0303_0303_0303);
        for ((word, value), plane) in words.iter().zip(values).zip(out.as_chunks_mut::<64>().0) {
            let on = _mm256_set1_epi8(*value as i8);
            for (i, ranks) in plane.as_chunks_mut::<32>().0.iter_mut().enumerate() {
                let half = _mm256_set1_epi32((*word >> (32 * i)) as i32);
                let bytes = _mm256_shuffle_epi8(half, spread);
                let is_set = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit), bit);
                store::<STREAM>(ranks, _mm256_and_si256(is_set, on));
            }
        }
    }

    /// Copies whole lines to a destination that starts on one.
    #[target_feature(enable = "avx2")]
    pub(super) fn copy_lines(from: &[u8], to: &mut [u8]) {
        for (from, to) in from.as_chunks::<32>().0.iter().zip(to.as_chunks_mut::<32>().0) {
            // SAFETY: `from` is 32 bytes, and the load needs no alignment.
            let value = unsafe { _mm256_loadu_si256(from.as_ptr().cast()) };
            store::<true>(to, value);
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use super::Element;
    use crate::chess::transform::flip;
    use std::arch::x86_64::*;

    /// Writes one line; with `STREAM` past the cache, and then `out` must be 64-byte aligned.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn store<const STREAM: bool>(out: &mut [u8; 64], value: __m512i) {
        // SAFETY: `out` is 64 bytes; streaming is used only for rows that start on a 64-byte line, in steps of 64.
        unsafe {
            match STREAM {
                true => _mm512_stream_si512(out.as_mut_ptr().cast(), value),
                false => _mm512_storeu_si512(out.as_mut_ptr().cast(), value),
            }
        }
    }

    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) fn expand<const STREAM: bool>(element: Element, words: &[u64], values: &[u32], out: &mut [u8]) {
        match element {
            Element::F32 => expand_f32::<STREAM>(words, values, out),
            Element::F16 | Element::Bf16 => expand_f16::<STREAM>(words, values, out),
            Element::U8 => expand_u8::<STREAM>(words, values, out),
        }
    }

    #[target_feature(enable = "avx512f,avx512bw")]
    fn expand_f32<const STREAM: bool>(words: &[u64], values: &[u32], out: &mut [u8]) {
        for ((word, value), plane) in words.iter().zip(values).zip(out.as_chunks_mut::<256>().0) {
            let on = _mm512_set1_epi32(value.cast_signed());
            let squares = flip(*word);
            for (i, ranks) in plane.as_chunks_mut::<64>().0.iter_mut().enumerate() {
                store::<STREAM>(ranks, _mm512_maskz_mov_epi32((squares >> (16 * i)) as u16, on));
            }
        }
    }

    #[target_feature(enable = "avx512f,avx512bw")]
    fn expand_f16<const STREAM: bool>(words: &[u64], values: &[u32], out: &mut [u8]) {
        for ((word, value), plane) in words.iter().zip(values).zip(out.as_chunks_mut::<128>().0) {
            let on = _mm512_set1_epi16(*value as i16);
            let squares = flip(*word);
            for (i, ranks) in plane.as_chunks_mut::<64>().0.iter_mut().enumerate() {
                store::<STREAM>(ranks, _mm512_maskz_mov_epi16((squares >> (32 * i)) as u32, on));
            }
        }
    }

    #[target_feature(enable = "avx512f,avx512bw")]
    fn expand_u8<const STREAM: bool>(words: &[u64], values: &[u32], out: &mut [u8]) {
        for ((word, value), squares) in words.iter().zip(values).zip(out.as_chunks_mut::<64>().0) {
            let on = _mm512_set1_epi8(*value as i8);
            store::<STREAM>(squares, _mm512_maskz_mov_epi8(flip(*word), on));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition: square `s` of a word is bit `s ^ 7`.
    fn bit_loop(element: Element, words: &[u64], values: &[u32]) -> Vec<u8> {
        let size = element.scalar().size();
        let mut out = Vec::new();
        for (word, value) in words.iter().zip(values) {
            for s in 0..64 {
                let element = if word >> (s ^ 7) & 1 == 1 { *value } else { 0 };
                out.extend_from_slice(&element.to_le_bytes()[..size]);
            }
        }
        out
    }

    fn every_way() -> impl Iterator<Item = Stores> {
        // The interpreter Miri, which runs the paths that a processor lacks, has no streaming stores.
        let ways = |path| [!cfg!(miri), false].map(|past_cache| Stores { path, past_cache });
        Path::available().into_iter().flat_map(ways)
    }

    proptest! {
        #[test]
        fn every_path_and_alignment_gives_the_bytes_of_the_bit_loop(
            planes in prop::collection::vec((any::<u64>(), any::<u32>()), 0..9),
            shift in prop_oneof![Just(0usize), Just(32), 0..64usize],
        ) {
            let (words, values): (Vec<u64>, Vec<u32>) = planes.into_iter().unzip();
            for element in [Element::F32, Element::F16, Element::Bf16, Element::U8] {
                let expected = bit_loop(element, &words, &values);
                for stores in every_way() {
                    let mut room = vec![0xAA; expected.len() + 256];
                    let start = room.as_ptr().align_offset(LINE) + shift;
                    expand(stores, element, &words, &values, &mut room[start..start + expected.len()]);
                    finish(stores);
                    prop_assert_eq!(&room[start..start + expected.len()], &expected[..], "{:?} {:?}", stores, element);
                    prop_assert!(room[..start].iter().chain(&room[start + expected.len()..]).all(|&b| b == 0xAA));
                }
            }
        }

        #[test]
        fn every_path_copies(from in prop::collection::vec(any::<u8>(), 0..700), shift in 0..64usize) {
            for stores in every_way() {
                let mut room = vec![0xAA; from.len() + 256];
                copy(stores, &from, &mut room[shift..shift + from.len()]);
                finish(stores);
                prop_assert_eq!(&room[shift..shift + from.len()], &from[..]);
                prop_assert!(room[..shift].iter().chain(&room[shift + from.len()..]).all(|&b| b == 0xAA));
            }
        }
    }
}
