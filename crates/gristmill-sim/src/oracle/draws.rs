//! Keys, words and permutations of docs/format/order.md: a key and a number -> what is drawn. Calls nothing of gristmill.

use xxhash_rust::xxh3::xxh3_64;

/// 32-bit words of `key.at(n)`.
#[derive(Clone)]
pub(super) struct Draws {
    key: [u32; 2],
    n: u64,
    block: u64,
    words: [u32; 4],
    /// How many words of the block were drawn.
    drawn: usize,
}

impl Draws {
    fn word(&mut self) -> u32 {
        if self.drawn == 4 {
            let halves = |x: u64| [x as u32, (x >> 32) as u32];
            let ([a, b], [c, d]) = (halves(self.n), halves(self.block));
            self.words = philox([a, b, c, d], self.key);
            (self.block, self.drawn) = (self.block + 1, 0);
        }
        self.drawn += 1;
        self.words[self.drawn - 1]
    }

    fn bits(&mut self) -> u64 {
        let low = u64::from(self.word());
        low + (u64::from(self.word()) << 32)
    }

    pub(super) fn below(&mut self, m: u64) -> u64 {
        loop {
            let product = u128::from(self.bits()) * u128::from(m);
            if product as u64 >= m.wrapping_neg() % m {
                return (product >> 64) as u64;
            }
        }
    }

    pub(super) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * 2f64.powi(-53)
    }

    pub(super) fn choice(&mut self, [a, b]: [f64; 2]) -> Option<usize> {
        let second = self.unit() * (a + b) >= a && b > 0.0;
        (a + b > 0.0).then_some(usize::from(second))
    }
}

fn philox(mut c: [u32; 4], mut k: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let (p, q) = (u64::from(c[0]) * 0xD251_1F53, u64::from(c[2]) * 0xCD9E_8D57);
        c = [(q >> 32) as u32 ^ c[1] ^ k[0], q as u32, (p >> 32) as u32 ^ c[3] ^ k[1], p as u32];
        k = [k[0].wrapping_add(0x9E37_79B9), k[1].wrapping_add(0xBB67_AE85)];
    }
    c
}

pub(super) fn key(seed: u64, domain: &str) -> u64 {
    xxh3_64(&[&seed.to_le_bytes(), domain.as_bytes()].concat())
}

pub(super) fn of(key: u64, name: &str, number: u64) -> u64 {
    xxh3_64(&[&key.to_le_bytes()[..], &number.to_le_bytes(), name.as_bytes()].concat())
}

pub(super) fn at(key: u64, n: u64) -> Draws {
    Draws { key: [key as u32, (key >> 32) as u32], n, block: 0, words: [0; 4], drawn: 4 }
}

/// What stands at each place of a permutation of `n` numbers.
pub(super) fn perm(key: u64, n: u64) -> impl Fn(u64) -> u64 {
    let bits = 64 - (n - 1).leading_zeros();
    let half = bits.div_ceil(2).max(1);
    let mut draws = at(key, n);
    let keys: [u64; 8] = std::array::from_fn(|_| draws.bits());
    move |mut x| loop {
        for k in keys {
            let (left, right) = (x >> half, x & ((1 << half) - 1));
            let mut m = (right ^ k).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            m = (m ^ m >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93);
            x = (right << half) + ((left ^ m >> 29) & ((1 << half) - 1));
        }
        if x < n {
            return x;
        }
    }
}
