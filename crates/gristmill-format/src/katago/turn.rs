//! Points, bits and moves of a square frame -> those of one of its eight images. Image `s`: bit 0 of `s` reverses rows, then
//! bit 1 reverses columns, then bit 2 exchanges rows and columns.

use super::form::MOST_EDGE;

/// The number of images.
pub const IMAGES: usize = 8;

/// A byte for each point of a frame, and for each bit that fills its last byte.
type Cells = [u8; MOST_EDGE * MOST_EDGE + 8];

/// Memory for a plane, reused for the next plane.
#[derive(Debug)]
pub struct Room {
    plain: Cells,
    turned: Cells,
}

impl Default for Room {
    fn default() -> Self {
        Room { plain: [0; MOST_EDGE * MOST_EDGE + 8], turned: [0; MOST_EDGE * MOST_EDGE + 8] }
    }
}

/// The bits of each byte as bytes, the highest bit first.
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

/// For each image, the point of the frame from which each of its points comes.
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

    /// For each point of image `s`, in order, its point in the frame.
    pub fn from(&self, s: usize) -> &[u16] {
        &self.from[s % IMAGES]
    }

    /// The bits of a plane in image `s`, a byte for each point.
    pub fn spread<'a>(&self, s: usize, bits: &[u8], room: &'a mut Room) -> &'a [u8] {
        for (eight, byte) in room.plain.as_chunks_mut::<8>().0.iter_mut().zip(bits) {
            *eight = SPREAD[usize::from(*byte)];
        }
        let from = self.from(s);
        for (cell, from) in room.turned.iter_mut().zip(from) {
            *cell = room.plain[usize::from(*from)];
        }
        &room.turned[..from.len()]
    }

    /// The bits of a plane in image `s`.
    pub fn bits(&self, s: usize, bits: &[u8], room: &mut Room, out: &mut [u8]) {
        let points = self.spread(s, bits, room).len();
        room.turned[points..points.next_multiple_of(8)].fill(0);
        for (byte, eight) in out.iter_mut().zip(room.turned.as_chunks::<8>().0) {
            // The product moves each of the eight bytes to its own bit of the highest byte.
            *byte = (u64::from_be_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8;
        }
    }

    /// Elements of `unit` bytes in image `s`: one for each point, then others, which keep their places.
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
