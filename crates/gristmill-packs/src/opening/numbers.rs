//! Numbers <-> few bytes. Each group of 128 stores its least number, and for each number the difference from it. All differences of a
//! group take the same number of bits. The reader makes no more numbers than the bytes can hold.

/// Numbers of a group.
const GROUP: usize = 128;

/// Reads numbers from bytes, one after the other. Each method gives `None` at the end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl<'a> Bytes<'a> {
    /// The next `n` bytes.
    pub(crate) fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(taken)
    }

    /// A number of 8 bytes.
    pub(crate) fn word(&mut self) -> Option<u64> {
        self.take(8)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
    }

    /// Bytes whose length stands before them.
    pub(crate) fn block(&mut self) -> Option<&'a [u8]> {
        let len = usize::try_from(self.word()?).ok()?;
        self.take(len)
    }

    /// The same as text.
    pub(crate) fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.block()?).ok()
    }

    /// `count` numbers that [`put`] wrote.
    pub(crate) fn numbers(&mut self, count: u64) -> Option<Vec<u64>> {
        let count = usize::try_from(count).ok()?;
        // Each group takes 9 bytes at least.
        if count.div_ceil(GROUP).checked_mul(9)? > self.0.len() {
            return None;
        }
        let mut numbers = Vec::with_capacity(count);
        while numbers.len() < count {
            let (least, width) = (self.word()?, u32::from(self.take(1)?[0]));
            let of_group = GROUP.min(count - numbers.len());
            if width > 64 {
                return None;
            }
            let bits = self.take((of_group * width as usize).div_ceil(8))?;
            for i in 0..of_group {
                numbers.push(least.checked_add(bits_at(bits, i * width as usize, width))?);
            }
        }
        Some(numbers)
    }
}

/// Appends a block of bytes, after its length.
pub(crate) fn put_block(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Appends numbers.
pub(crate) fn put(out: &mut Vec<u8>, numbers: &[u64]) {
    for group in numbers.chunks(GROUP) {
        let least = group.iter().copied().min().unwrap_or(0);
        let most = group.iter().map(|number| number - least).max().unwrap_or(0);
        let width = (u64::BITS - most.leading_zeros()) as usize;
        out.extend_from_slice(&least.to_le_bytes());
        out.push(width as u8);
        let start = out.len();
        out.resize(start + (group.len() * width).div_ceil(8), 0);
        for (i, number) in group.iter().enumerate() {
            put_bits(&mut out[start..], i * width, number - least);
        }
    }
}

/// The number in `width` bits from bit `at` on, the lowest first.
fn bits_at(bytes: &[u8], at: usize, width: u32) -> u64 {
    let mut window = [0; 16];
    let from = &bytes[(at / 8).min(bytes.len())..];
    let len = from.len().min(9);
    window[..len].copy_from_slice(&from[..len]);
    let shifted = u128::from_le_bytes(window) >> (at % 8);
    (shifted & ((1 << width) - 1)) as u64
}

fn put_bits(bytes: &mut [u8], at: usize, number: u64) {
    let shifted = u128::from(number) << (at % 8);
    for (byte, bits) in bytes[at / 8..].iter_mut().zip(shifted.to_le_bytes()) {
        *byte |= bits;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_any_size_come_back_and_small_ones_take_few_bits() {
        let small: Vec<u64> = (0..1000).map(|i| 60 + i * 7 % 64).collect();
        let any: Vec<u64> = (0..300u64).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (i % 64)).collect();
        for numbers in [vec![], vec![7], vec![u64::MAX, 0], vec![5; 129], small.clone(), any] {
            let mut out = Vec::new();
            put(&mut out, &numbers);
            let mut read = Bytes(&out);
            assert_eq!(read.numbers(numbers.len() as u64).unwrap(), numbers);
            assert!(read.0.is_empty());
            for end in 0..out.len() {
                assert!(Bytes(&out[..end]).numbers(numbers.len() as u64).is_none(), "{end}");
            }
        }
        let mut out = Vec::new();
        put(&mut out, &small);
        assert_eq!(out.len(), 8 * 9 + (1000 * 6usize).div_ceil(8), "six bits each");
        assert!(Bytes(&out).numbers(u64::MAX).is_none() && Bytes(&[0xFF; 40]).numbers(128).is_none());
    }
}
