//! The eight images of a square frame: points, bits and moves as each of them has them.
//! Image `s`: rows in reverse where bit 0 of `s` is set, then columns where bit 1 is, then rows and columns exchanged where bit 2 is.

use super::form::MOST_EDGE;

/// How many images there are.
pub const IMAGES: usize = 8;

/// A point for each of a frame, and what fills the last byte of its bits.
pub type Cells = [u8; MOST_EDGE * MOST_EDGE + 8];

/// The bits of each byte as bytes, the highest first.
const SPREAD: [[u8; 8]; 256] = {
    let mut all = [[0; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut bit = 0;
        while bit < 8 {
            all[byte][bit] = (byte >> (7 - bit) & 1) as u8;
            bit += 1;
        }
        byte += 1;
    }
    all
};

/// Where each point of each image comes from.
#[derive(Debug)]
pub struct Turns {
    from: Vec<Vec<u16>>,
}

impl Turns {
    /// The images of a frame with this edge.
    pub fn new(edge: usize) -> Turns {
        let image = |s: usize| {
            let from = |at: usize| {
                let (y, x) = (at / edge, at % edge);
                let (y, x) = if s & 4 == 0 { (y, x) } else { (x, y) };
                let y = if s & 1 == 0 { y } else { edge - 1 - y };
                let x = if s & 2 == 0 { x } else { edge - 1 - x };
                (y * edge + x) as u16
            };
            (0..edge * edge).map(from).collect()
        };
        Turns { from: (0..IMAGES).map(image).collect() }
    }

    /// For each point of image `s`, in order, the point that it was.
    pub fn from(&self, s: usize) -> &[u16] {
        &self.from[s % IMAGES]
    }

    /// The bits of a plane in image `s`, a byte for each point.
    pub fn spread(&self, s: usize, bits: &[u8], out: &mut Cells) {
        let mut plain: Cells = [0; MOST_EDGE * MOST_EDGE + 8];
        for (eight, byte) in plain.as_chunks_mut::<8>().0.iter_mut().zip(bits) {
            *eight = SPREAD[usize::from(*byte)];
        }
        for (cell, from) in out.iter_mut().zip(self.from(s)) {
            *cell = plain[usize::from(*from)];
        }
    }

    /// The bits of a plane in image `s`.
    pub fn bits(&self, s: usize, bits: &[u8], out: &mut [u8]) {
        let mut cells: Cells = [0; MOST_EDGE * MOST_EDGE + 8];
        self.spread(s, bits, &mut cells);
        for (byte, eight) in out.iter_mut().zip(cells.as_chunks::<8>().0) {
            *byte = eight.iter().fold(0, |byte, bit| byte << 1 | bit);
        }
    }

    /// Elements of `unit` bytes, one for each point and then any others, in image `s`: those that have no point stay.
    pub fn elements(&self, s: usize, unit: usize, elements: &[u8], out: &mut [u8]) {
        let from = self.from(s);
        match unit {
            1 => moved::<1>(from, elements, out),
            2 => moved::<2>(from, elements, out),
            4 => moved::<4>(from, elements, out),
            8 => moved::<8>(from, elements, out),
            _ => moved::<16>(from, elements, out),
        }
    }
}

fn moved<const N: usize>(from: &[u16], elements: &[u8], out: &mut [u8]) {
    let (elements, out) = (elements.as_chunks::<N>().0, out.as_chunks_mut::<N>().0);
    let (points, others) = out.split_at_mut(from.len().min(out.len()));
    for (element, from) in points.iter_mut().zip(from) {
        *element = elements[usize::from(*from)];
    }
    others.copy_from_slice(&elements[points.len()..]);
}
