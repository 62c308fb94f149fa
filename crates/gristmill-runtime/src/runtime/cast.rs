//! Elements of a row -> what they are in a batch: the same bytes, or floats of 32 bits.
//! Little-endian on both sides; it allocates nothing.

/// What is made of each element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cast {
    /// The same bytes.
    Same,
    /// u8 -> f32 from 0 to 1: divided by 255.
    Unit,
    /// u8 -> f32 of the same value.
    Float,
    /// f64 -> f32.
    Single,
}

impl Cast {
    /// Bytes that `bytes` bytes become.
    pub fn widened(self, bytes: usize) -> usize {
        match self {
            Cast::Same => bytes,
            Cast::Unit | Cast::Float => bytes.saturating_mul(4),
            Cast::Single => bytes / 2,
        }
    }

    /// Casts elements into as many bytes as [`Cast::widened`] says.
    pub fn copy(self, from: &[u8], to: &mut [u8]) {
        match self {
            Cast::Same => to.copy_from_slice(from),
            Cast::Unit => spread(from, to, |value| (f32::from(value) / 255.0).to_le_bytes()),
            Cast::Float => spread(from, to, |value| f32::from(value).to_le_bytes()),
            Cast::Single => {
                for (from, to) in from.as_chunks::<8>().0.iter().zip(to.as_chunks_mut::<4>().0) {
                    *to = (f64::from_le_bytes(*from) as f32).to_le_bytes();
                }
            }
        }
    }
}

fn spread(from: &[u8], to: &mut [u8], value: impl Fn(u8) -> [u8; 4]) {
    for (from, to) in from.iter().zip(to.as_chunks_mut::<4>().0) {
        *to = value(*from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_cast() {
        let cast = |cast: Cast, from: &[u8]| {
            let mut to = vec![9; cast.widened(from.len())];
            cast.copy(from, &mut to);
            to
        };
        let floats = |found: Vec<u8>| found.as_chunks().0.iter().map(|x| f32::from_le_bytes(*x)).collect::<Vec<f32>>();
        let all: Vec<u8> = (0..=255).collect();
        let unit: Vec<f32> = (0..=255u8).map(|x| f32::from(x) / 255.0).collect();
        assert_eq!(floats(cast(Cast::Unit, &all)), unit);
        assert_eq!(floats(cast(Cast::Float, &[7, 255])), [7.0, 255.0]);
        let wide: Vec<u8> = [0.1f64, -2.5e300].iter().flat_map(|x| x.to_le_bytes()).collect();
        assert_eq!(floats(cast(Cast::Single, &wide)), [0.1, f32::NEG_INFINITY]);
        assert_eq!(cast(Cast::Same, &[1, 2, 3]), [1, 2, 3]);
    }
}
