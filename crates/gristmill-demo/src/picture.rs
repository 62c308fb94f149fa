//! PNG and JPEG bytes -> arrays of height, width and, beyond grey, channels; pictures -> PNG. Bounded before anything is
//! allocated.

use std::borrow::Cow;
use std::io::Cursor;

use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::layout::Scalar;
use image::codecs::png::PngEncoder;
use image::{DynamicImage, ExtendedColorType, ImageEncoder, ImageReader, Limits};

use super::strip::Picture;
use super::value::Value;

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

/// A picture as PNG.
///
/// Errors: `WrongSize` where its bytes are not those of its sides, `TooLarge` for sides beyond 32 bits.
pub fn png(picture: &Picture) -> Result<Vec<u8>> {
    let side = |n: usize| u32::try_from(n).map_err(|_| Error::new(Kind::TooLarge, format!("{n} pixels in a row")));
    let (width, height) = (side(picture.width)?, side(picture.height)?);
    if picture.rgb.len() != picture.width * picture.height * 3 {
        let detail = format!("{} bytes for {width} x {height} pixels", picture.rgb.len());
        return Err(Error::new(Kind::WrongSize, detail));
    }
    let mut out = Vec::new();
    let written = PngEncoder::new(&mut out).write_image(&picture.rgb, width, height, ExtendedColorType::Rgb8);
    written.map_err(|e| Error::new(Kind::Unsupported, format!("PNG: {e}")))?;
    Ok(out)
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
    fn what_is_written_reads_back() {
        let rgb: Vec<u8> = (0..18).collect();
        let bytes = super::png(&Picture { width: 3, height: 2, rgb: rgb.clone() }).unwrap();
        let Value::Array { shape, bytes, .. } = picture(&bytes, 1 << 20).unwrap() else { panic!("an array") };
        assert_eq!((shape, bytes.into_owned()), (vec![2, 3, 3], rgb));
        assert!(super::png(&Picture { width: 3, height: 2, rgb: vec![0; 17] }).is_err());
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
