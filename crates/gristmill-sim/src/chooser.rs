//! One number -> every choice that a simulated run makes. Draws nothing from clocks, addresses or the system.

/// A sequence of choices (splitmix64): the same for the same number, on every machine.
#[derive(Debug, Clone)]
pub struct Chooser(u64);

impl Chooser {
    /// The choices of a number.
    pub fn new(seed: u64) -> Self {
        Chooser(seed)
    }

    /// Choices apart from these, for a purpose of this number.
    pub fn apart(&self, purpose: u64) -> Self {
        let mut other = Chooser(self.0 ^ purpose.wrapping_mul(0xA24B_AED4_963E_E407));
        other.bits();
        other
    }

    /// 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `end`; 0 where that is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(end)) >> 64) as u64
    }

    /// A number from `first` to `last`.
    pub fn within(&mut self, first: u64, last: u64) -> u64 {
        first + self.below(last - first + 1)
    }

    /// True once in `n` times.
    pub fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of several.
    pub fn of<T: Copy>(&mut self, several: &[T]) -> T {
        several[self.below(several.len() as u64) as usize]
    }
}
