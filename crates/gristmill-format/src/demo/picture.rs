//! PNG and JPEG bytes -> arrays of height, width and, beyond grey, channels. Bounded before anything is allocated.

use std::borrow::Cow;
use std::io::Cursor;

use image::{DynamicImage, ImageReader, Limits};

use super::value::Value;
use crate::error::{Error, Kind, Result};
use crate::layout::Scalar;

/// The pixels of a picture: uint8 or uint16, shape `(H, W)` for grey, `(H, W, C)` else.
///
/// Errors: `Corrupt` for what is no picture, `TooLarge` beyond `max` bytes of pixels.
pub fn picture(bytes: &[u8], max: usize) -> Result<Value<'static>> {
    let mut reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format()?;
    let mut limits = Limits::default();
    limits.max_alloc = Some(max as u64);
    reader.limits(limits);
    let picture = reader.decode().map_err(|e| {
        let kind = match &e {
            image::ImageError::Limits(_) => Kind::TooLarge,
            image::ImageError::Unsupported(_) => Kind::Unsupported,
            _ => Kind::Corrupt,
        };
        Error::new(kind, format!("picture: {e}")).at_byte(0)
    })?;
    let (height, width) = (picture.height() as usize, picture.width() as usize);
    let channels = usize::from(picture.color().channel_count());
    let shape = if channels == 1 { vec![height, width] } else { vec![height, width, channels] };
    let scalar = match picture {
        DynamicImage::ImageLuma16(_) | DynamicImage::ImageLumaA16(_) => Scalar::U16,
        DynamicImage::ImageRgb16(_) | DynamicImage::ImageRgba16(_) => Scalar::U16,
        DynamicImage::ImageRgb32F(_) | DynamicImage::ImageRgba32F(_) => Scalar::F32,
        _ => Scalar::U8,
    };
    Ok(Value::Array { scalar, shape, bytes: Cow::Owned(picture.into_bytes()) })
}

#[cfg(test)]
mod tests {
    use image::{ImageFormat, RgbImage};

    use super::*;

    fn png(width: u32, height: u32) -> Vec<u8> {
        let pixels = RgbImage::from_fn(width, height, |x, y| image::Rgb([x as u8, y as u8, 7]));
        let mut out = Cursor::new(Vec::new());
        pixels.write_to(&mut out, ImageFormat::Png).unwrap();
        out.into_inner()
    }

    #[test]
    fn pixels_come_row_by_row() {
        let Value::Array { scalar, shape, bytes } = picture(&png(3, 2), 1 << 20).unwrap() else { panic!("an array") };
        assert_eq!((scalar, shape), (Scalar::U8, vec![2, 3, 3]));
        assert_eq!(bytes[3 * 3..][..6], [0, 1, 7, 1, 1, 7]);
    }

    #[test]
    fn damage_and_giants_are_refused() {
        let whole = png(64, 64);
        assert_eq!(picture(&whole, 100).unwrap_err().kind(), Kind::TooLarge);
        for cut in [0, 10, 40, whole.len() / 2] {
            assert!(picture(&whole[..cut], 1 << 20).is_err());
        }
    }
}
