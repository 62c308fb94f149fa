//! Pictures and other observations one after another: stacking, turning channels first, shrinking. Plain loops over bytes.
//! Works on whole trajectories that are already known to fit their shape; allocates what it returns and nothing else.

use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::layout::Scalar;

/// Observations of one type and shape, back to back.
#[derive(Debug, Clone, PartialEq)]
pub struct Frames {
    /// Element type.
    pub scalar: Scalar,
    /// Shape of one.
    pub shape: Vec<usize>,
    /// All of them.
    pub bytes: Vec<u8>,
}

impl Frames {
    /// Frames over `bytes`, an array whose first axis is time.
    ///
    /// Errors: `WrongSize` for an array without a first axis.
    pub fn new(scalar: Scalar, shape: &[usize], bytes: Vec<u8>) -> Result<Frames> {
        let Some((_, shape)) = shape.split_first() else {
            return Err(Error::new(Kind::WrongSize, "a single observation; expected one for each step"));
        };
        Ok(Frames { scalar, shape: shape.to_vec(), bytes })
    }

    /// Bytes of one.
    pub fn size(&self) -> usize {
        self.scalar.size() * self.shape.iter().product::<usize>()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.bytes.len().checked_div(self.size()).unwrap_or(0)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One of them.
    pub fn get(&self, i: usize) -> &[u8] {
        &self.bytes[i * self.size()..(i + 1) * self.size()]
    }

    /// Height, width, channels -> channels, height, width.
    ///
    /// Errors: `WrongSize` for what has not three axes of bytes.
    pub fn channels_first(&self) -> Result<Frames> {
        let &[height, width, channels] = self.shape.as_slice() else {
            return Err(self.no_picture());
        };
        if self.scalar != Scalar::U8 {
            return Err(self.no_picture());
        }
        let mut bytes = vec![0; self.bytes.len()];
        let area = height * width;
        for (from, to) in self.bytes.chunks_exact(self.size().max(1)).zip(bytes.chunks_exact_mut(self.size().max(1))) {
            for (i, pixel) in from.chunks_exact(channels).enumerate() {
                for (c, value) in pixel.iter().enumerate() {
                    to[c * area + i] = *value;
                }
            }
        }
        Ok(Frames { scalar: Scalar::U8, shape: vec![channels, height, width], bytes })
    }

    fn no_picture(&self) -> Error {
        let detail = format!("observations of {} {:?}; expected uint8 (H, W, C)", self.scalar.code(), self.shape);
        Error::new(Kind::WrongSize, detail)
    }

    /// Whether their stacks, as they are and a step later, are within `max` bytes.
    ///
    /// Errors: `TooLarge`.
    pub fn fits_stacked(&self, n: usize, max: usize) -> Result<()> {
        match self.bytes.len().saturating_mul(n) / 2 <= max {
            true => Ok(()),
            false => {
                let detail =
                    format!("stacks of {n} frames take more than {max} bytes; raise the bound if they are real");
                Err(Error::new(Kind::TooLarge, detail))
            }
        }
    }

    /// Each frame with the `n - 1` before it, oldest first, on the first axis; those before the start are zeros, or
    /// copies of the first frame (`repeat`).
    ///
    /// Errors: `WrongSize` for frames without axes, `OutOfRange` for `n` of 0.
    pub fn stacked(&self, n: usize, repeat: bool) -> Result<Frames> {
        if n == 0 {
            return Err(Error::new(Kind::OutOfRange, "a stack of 0 frames; expected at least 1"));
        }
        let Some((first, rest)) = self.shape.split_first() else {
            return Err(Error::new(Kind::WrongSize, "single numbers cannot be stacked"));
        };
        let shape: Vec<usize> = std::iter::once(first * n).chain(rest.iter().copied()).collect();
        let size = self.size();
        let mut bytes = vec![0; self.bytes.len() * n];
        for t in 0..self.len() {
            for k in 0..n {
                let from = (t + k + 1).checked_sub(n).or(repeat.then_some(0));
                if let Some(from) = from {
                    bytes[(t * n + k) * size..][..size].copy_from_slice(self.get(from));
                }
            }
        }
        Ok(Frames { scalar: self.scalar, shape, bytes })
    }

    /// The frames from `start` on, `count` of them.
    pub fn slice(&self, start: usize, count: usize) -> Frames {
        let bytes = self.bytes[start * self.size()..(start + count) * self.size()].to_vec();
        Frames { bytes, ..self.clone() }
    }
}

/// Shrinks one picture `(side, side, channels)` to `(to, to, channels)`: the mean of each square of pixels, halves rounded to
/// even, as area interpolation does where the factor is whole.
///
/// Errors: `Unsupported` where the factor is not whole.
pub fn shrink(pixels: &[u8], side: usize, channels: usize, to: usize, out: &mut Vec<u8>) -> Result<()> {
    if to == 0 || !side.is_multiple_of(to) || pixels.len() != side * side * channels {
        let detail = format!("a picture of {} bytes, {side} wide, to {to}: expected a whole factor", pixels.len());
        return Err(Error::new(Kind::Unsupported, detail));
    }
    let factor = side / to;
    let row = side * channels;
    let start = out.len();
    out.resize(start + to * to * channels, 0);
    let lines = pixels.chunks_exact(row * factor).zip(out[start..].chunks_exact_mut(to * channels));
    if factor <= MOST_IN_16_BITS {
        // Sums of columns first, whole rows at a time, in the narrowest numbers that hold them.
        let mut sums = vec![0u16; row];
        for (rows, means) in lines {
            add_lines(rows, &mut sums, u16::from);
            match (channels, factor) {
                // MAGICAL's own pictures: what is known beforehand makes it several times faster.
                (3, 4) => take_means(&sums, 3, 4, means),
                _ => take_means(&sums, channels, factor, means),
            }
        }
    } else {
        let mut sums = vec![0u32; row];
        for (rows, means) in lines {
            add_lines(rows, &mut sums, u32::from);
            take_means(&sums, channels, factor, means);
        }
    }
    Ok(())
}

/// Lines whose sum of bytes is sure to fit into 16 bits.
const MOST_IN_16_BITS: usize = (u16::MAX / 255) as usize;

/// The sums of columns over all lines.
#[inline(always)]
fn add_lines<T: Copy + Default + std::ops::AddAssign>(rows: &[u8], sums: &mut [T], wide: impl Fn(u8) -> T) {
    sums.fill(T::default());
    for line in rows.chunks_exact(sums.len()) {
        sums.iter_mut().zip(line).for_each(|(sum, value)| *sum += wide(*value));
    }
}

/// The means of `factor` columns of pixels, halves rounded to even.
#[inline(always)]
fn take_means<T: Copy + Into<u32>>(sums: &[T], channels: usize, factor: usize, means: &mut [u8]) {
    let area = (factor * factor) as u32;
    for (square, means) in sums.chunks_exact(channels * factor).zip(means.chunks_exact_mut(channels)) {
        for (channel, to) in means.iter_mut().enumerate() {
            let sum: u32 = (0..factor).map(|i| -> u32 { square[i * channels + channel].into() }).sum();
            let (mean, rest) = (sum / area, sum % area);
            *to = (mean + u32::from(2 * rest > area || (2 * rest == area && mean % 2 == 1))) as u8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_are_oldest_first_and_start_as_asked() {
        let frames = Frames::new(Scalar::U8, &[3, 1, 2], vec![1, 2, 3, 4, 5, 6]).unwrap();
        let zero = frames.stacked(2, false).unwrap();
        assert_eq!((zero.shape.as_slice(), zero.len()), (&[2, 2][..], 3));
        assert_eq!(zero.bytes, [0, 0, 1, 2, 1, 2, 3, 4, 3, 4, 5, 6]);
        assert_eq!(frames.stacked(3, true).unwrap().get(1), [1, 2, 1, 2, 3, 4]);
        assert!(frames.stacked(0, true).is_err());
    }

    #[test]
    fn channels_come_first() {
        let frames = Frames::new(Scalar::U8, &[1, 2, 1, 3], vec![1, 2, 3, 4, 5, 6]).unwrap();
        let turned = frames.channels_first().unwrap();
        assert_eq!((turned.shape, turned.bytes), (vec![3, 2, 1], vec![1, 4, 2, 5, 3, 6]));
    }

    #[test]
    fn means_round_halves_to_even() {
        let mut out = Vec::new();
        // Squares of 2 x 2 with sums 2, 6, 3 and 5: means 0.5, 1.5, 0.75, 1.25.
        let pixels = [1, 1, 2, 2, 0, 0, 1, 1, 1, 1, 2, 1, 1, 0, 1, 1];
        shrink(&pixels, 4, 1, 2, &mut out).unwrap();
        assert_eq!(out, [0, 2, 1, 1]);
        assert!(shrink(&pixels, 4, 1, 3, &mut out).is_err());
        assert!(shrink(&pixels[1..], 4, 1, 2, &mut out).is_err());
        for side in [256, 257, 258] {
            out.clear();
            shrink(&vec![255; side * side], side, 1, 1, &mut out).unwrap();
            assert_eq!(out, [255], "{side} wide");
        }
    }
}
