//! Observations -> pictures of 8-bit colours, and film strips of them. Whatever has no picture is refused with its shape.
//! Draws what is there: stacks are taken apart, values are brought to 0..255 by one rule for a whole strip.

use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::layout::Scalar;

/// Pixels between the pictures of a strip, and around them.
pub const BORDER: usize = 4;

/// Maximum number of pixels of a strip.
const MAX_PIXELS: usize = 1 << 28;

/// Colours of one frame of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colors {
    /// Three channels.
    Rgb,
    /// One channel.
    Gray,
}

/// Which frames of a stack are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stack {
    /// The newest, which is the last.
    #[default]
    Newest,
    /// All of them, the oldest on top.
    All,
}

/// Pixels, row by row, three bytes each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Pixels in a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Red, green, blue of each.
    pub rgb: Vec<u8>,
}

/// How an observation is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    channels: usize,
    height: usize,
    width: usize,
    /// Whether the channels are the last axis.
    last: bool,
    /// Channels of one frame of the stack.
    each: usize,
}

/// The strip of some observations of one type and shape: one column each, in it one picture or the whole stack.
///
/// Floats between 0 and 1 are stretched to 0..255; all other numbers have to lie within 0..255 and are rounded.
///
/// Errors: `Unsupported` for a shape that is no picture (axes (C, H, W), (H, W, C) or (H, W)), for channels that are no whole
/// number of frames, and for elements that are no numbers; `OutOfRange` for values that are no colours; `TooLarge`.
pub fn strip(
    observations: &[&[u8]],
    scalar: Scalar,
    shape: &[usize],
    colors: Option<Colors>,
    stack: Stack,
) -> Result<Picture> {
    let form = form(scalar, shape, colors)?;
    let scale = scale(observations, scalar)?;
    let frames = form.channels / form.each;
    let drawn: Vec<usize> = if stack == Stack::All { (0..frames).collect() } else { vec![frames - 1] };
    let (width, height) =
        (BORDER + observations.len() * (form.width + BORDER), BORDER + drawn.len() * (form.height + BORDER));
    if width.checked_mul(height).is_none_or(|pixels| pixels > MAX_PIXELS) {
        let detail = format!("a strip of {width} x {height} pixels; ask for fewer frames");
        return Err(Error::new(Kind::TooLarge, detail));
    }
    let mut out = Picture { width, height, rgb: vec![255; width * height * 3] };
    for (column, bytes) in observations.iter().enumerate() {
        for (row, frame) in drawn.iter().enumerate() {
            let corner = (BORDER + column * (form.width + BORDER), BORDER + row * (form.height + BORDER));
            draw(&mut out, corner, bytes, scalar, form, *frame, scale);
        }
    }
    Ok(out)
}

fn form(scalar: Scalar, shape: &[usize], colors: Option<Colors>) -> Result<Shape> {
    let refuse = |why: &str| {
        let detail = format!("{} {shape:?} is no picture: {why}", scalar.code());
        Err(Error::new(Kind::Unsupported, detail))
    };
    let (channels, height, width, last) = match *shape {
        [height, width] => (1, height, width, false),
        [channels, height, width] if channels < height && channels < width => (channels, height, width, false),
        [height, width, channels] if channels < height && channels < width => (channels, height, width, true),
        _ => return refuse("expected axes (C, H, W), (H, W, C) or (H, W), with fewer channels than pixels each way"),
    };
    if channels * height * width == 0 {
        return refuse("it is empty");
    }
    let each = match colors {
        Some(Colors::Rgb) => 3,
        Some(Colors::Gray) => 1,
        None if channels % 3 == 0 => 3,
        None => 1,
    };
    if channels % each != 0 {
        return refuse(&format!(
            "{channels} channels are no whole number of frames of 3 colours; draw them as gray ones"
        ));
    }
    Ok(Shape { channels, height, width, last, each })
}

/// What all values are multiplied by.
fn scale(observations: &[&[u8]], scalar: Scalar) -> Result<f64> {
    if scalar == Scalar::U8 {
        return Ok(1.0);
    }
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for one in observations.iter().flat_map(|bytes| bytes.chunks_exact(scalar.size().max(1))) {
        let Some(value) = scalar.number(one) else {
            return Err(Error::new(Kind::Unsupported, format!("elements of {} are no colours", scalar.code())));
        };
        // What is not a number is neither below nor above anything.
        if value.is_nan() {
            return Err(Error::new(Kind::OutOfRange, "a pixel is NaN; a picture needs numbers"));
        }
        (low, high) = (low.min(value), high.max(value));
    }
    let float = matches!(scalar, Scalar::F16 | Scalar::F32 | Scalar::F64);
    match (low, high) {
        _ if low < 0.0 || high > 255.0 => {
            let detail = format!("values from {low} to {high}; colours lie within 0 and 255, or as fractions 0 and 1");
            Err(Error::new(Kind::OutOfRange, detail))
        }
        (_, high) if float && high <= 1.0 || scalar == Scalar::Bool => Ok(255.0),
        _ => Ok(1.0),
    }
}

fn draw(
    out: &mut Picture,
    (left, top): (usize, usize),
    bytes: &[u8],
    scalar: Scalar,
    form: Shape,
    frame: usize,
    scale: f64,
) {
    let Shape { channels, height, width, last, each } = form;
    let size = scalar.size();
    for y in 0..height {
        for x in 0..width {
            for color in 0..3 {
                let channel = frame * each + if each == 3 { color } else { 0 };
                let at = if last { (y * width + x) * channels + channel } else { (channel * height + y) * width + x };
                let value = match scalar {
                    Scalar::U8 => bytes[at],
                    _ => scalar.number(&bytes[at * size..(at + 1) * size]).map_or(0, |n| (n * scale).round() as u8),
                };
                out.rgb[((top + y) * out.width + left + x) * 3 + color] = value;
            }
        }
    }
}

/// `n` numbers from 0 to `len - 1`, evenly spaced, the ends among them, halves rounded to even: which steps a strip shows.
/// Where there are fewer steps than `n`, all of them.
pub fn evenly_spaced(len: usize, n: usize) -> Vec<usize> {
    if n >= len {
        return (0..len).collect();
    }
    match n {
        0 => Vec::new(),
        1 => vec![0],
        n => (0..n).map(|i| (i as f64 * (len - 1) as f64 / (n - 1) as f64).round_ties_even() as usize).collect(),
    }
}

impl Picture {
    /// The picture in at most `width` pixels a row, shrunk by means of the squares that fall together.
    #[must_use]
    pub fn within(&self, width: usize) -> Picture {
        if self.width <= width || width == 0 {
            return self.clone();
        }
        let height = (self.height * width).div_ceil(self.width).max(1);
        let span = |i: usize, n: usize, of: usize| i * of / n..((i + 1) * of).div_ceil(n).min(of);
        let mut rgb = Vec::with_capacity(width * height * 3);
        for y in 0..height {
            for x in 0..width {
                let (rows, columns) = (span(y, height, self.height), span(x, width, self.width));
                let count = (rows.len() * columns.len()).max(1) as u32;
                for color in 0..3 {
                    let row =
                        |y: usize| columns.clone().map(move |x| u32::from(self.rgb[(y * self.width + x) * 3 + color]));
                    let sum: u32 = rows.clone().flat_map(row).sum();
                    rgb.push(((sum + count / 2) / count) as u8);
                }
            }
        }
        Picture { width, height, rgb }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strips_have_borders_and_take_stacks_apart() {
        // Two gray frames of 3 x 3 in one observation, channels first: 0 to 8 and 10 to 18.
        let stack: Vec<u8> = (0..9).chain(10..19).collect();
        let newest = strip(&[&stack, &stack], Scalar::U8, &[2, 3, 3], None, Stack::Newest).unwrap();
        assert_eq!((newest.width, newest.height), (4 + 2 * 7, 4 + 7));
        let pixel = |p: &Picture, x: usize, y: usize| p.rgb[(y * p.width + x) * 3..][..3].to_vec();
        assert_eq!(
            (pixel(&newest, 3, 4), pixel(&newest, 4, 4), pixel(&newest, 13, 6)),
            (vec![255; 3], vec![10; 3], vec![18; 3])
        );
        let all = strip(&[&stack], Scalar::U8, &[2, 3, 3], None, Stack::All).unwrap();
        assert_eq!((all.height, pixel(&all, 5, 4), pixel(&all, 5, 11)), (18, vec![1; 3], vec![11; 3]));
        // The same colours, whichever axis has the channels.
        let first: Vec<u8> = [[1; 16], [2; 16], [3; 16]].concat();
        let last: Vec<u8> = [1, 2, 3].repeat(16);
        let one = strip(&[&first], Scalar::U8, &[3, 4, 4], None, Stack::Newest).unwrap();
        assert_eq!(one, strip(&[&last], Scalar::U8, &[4, 4, 3], Some(Colors::Rgb), Stack::Newest).unwrap());
        assert_eq!(pixel(&one, 4, 4), [1, 2, 3]);
    }

    #[test]
    fn fractions_are_stretched_and_what_is_no_colour_is_refused() {
        let floats = |values: [f32; 4]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
        let draw = |values| strip(&[&floats(values)], Scalar::F32, &[2, 2], None, Stack::Newest);
        let pixel = |p: &Picture| p.rgb[(4 * p.width + 4) * 3];
        assert_eq!(pixel(&draw([0.5, 0.0, 1.0, 0.0]).unwrap()), 128);
        assert_eq!(pixel(&draw([2.4, 0.0, 255.0, 0.0]).unwrap()), 2);
        for values in [[-1.0, 0.0, 0.0, 0.0], [256.0, 0.0, 0.0, 0.0], [f32::NAN, 0.0, 0.0, 0.0]] {
            assert_eq!(draw(values).unwrap_err().kind(), Kind::OutOfRange);
        }
        for (shape, colors) in
            [(&[4][..], None), (&[0, 4, 4], None), (&[4, 4, 4], None), (&[5, 9, 9], Some(Colors::Rgb))]
        {
            let e = strip(&[&[0; 405]], Scalar::U8, shape, colors, Stack::Newest).unwrap_err();
            assert_eq!(e.kind(), Kind::Unsupported, "{shape:?}");
        }
        let e = strip(&[&[0; 64]], Scalar::C64, &[2, 4], None, Stack::Newest).unwrap_err();
        assert_eq!(e.kind(), Kind::Unsupported);
    }

    #[test]
    fn steps_are_evenly_spaced_and_pictures_shrink() {
        assert_eq!(evenly_spaced(40, 10), [0, 4, 9, 13, 17, 22, 26, 30, 35, 39]);
        assert_eq!(
            (evenly_spaced(3, 10), evenly_spaced(5, 1), evenly_spaced(4, 3)),
            (vec![0, 1, 2], vec![0], vec![0, 2, 3])
        );
        let picture =
            Picture { width: 4, height: 2, rgb: [10, 20, 30, 50].repeat(2).iter().flat_map(|v| [*v; 3]).collect() };
        let small = picture.within(2);
        assert_eq!((small.width, small.height, small.rgb), (2, 1, vec![15, 15, 15, 40, 40, 40]));
        assert_eq!(picture.within(9), picture);
    }
}
