//! One field of one frame of a demonstration -> a PNG picture. What is no picture, or a large one, is refused.

use gristmill_engine::sink::desk::Answer;
use gristmill_format::layout::{DType, Field};
use gristmill_jobs::inspect::field_png;

use super::{Fault, Result, Room, game};

/// Most bytes of a field, and fewest elements, of which a picture is drawn.
const LARGEST: usize = 16 << 20;
const SMALLEST: usize = 36;

/// Whether the elements of a field are numbers.
pub(super) fn is_number(field: &Field) -> bool {
    matches!(&field.dtype, DType::Scalar(scalar, _) if scalar.number(&vec![0; scalar.size()]).is_some())
}

/// Whether a field may be a picture: two or three axes of numbers.
pub(super) fn may_be(field: &Field) -> bool {
    is_number(field)
        && (2..=3).contains(&field.shape.len())
        && field.shape.iter().filter(|side| **side >= 6).count() >= 2
        && field.count() >= SMALLEST
        && field.bytes() <= LARGEST
}

/// A field of a record as a picture.
pub(super) fn of(field: &Field, record: &[u8]) -> Result<Vec<u8>> {
    let bytes = record.get(field.offset..field.offset + field.bytes());
    let bytes = bytes.ok_or_else(|| Fault::new(500, "a record that is shorter than its layout"))?;
    Ok(field_png(field, bytes)?)
}

/// The picture of a field of a frame.
pub(super) fn png(room: &Room<'_>, id: &str, at: &str, field: &str) -> Result<Answer> {
    let game = game::named(room, id)?;
    let frame = game::number(at)?;
    let layout = room.shelf.layout(&game)?;
    let name = field.strip_suffix(".png").unwrap_or(field);
    let found = layout.as_ref().and_then(|layout| layout.field(name)).filter(|field| may_be(field));
    let field = found.ok_or_else(|| Fault::new(404, format!("no field `{name}` of this game is a picture")))?;
    let body = of(field, &room.shelf.record(&game, frame)?)?;
    Ok(Answer { code: 200, kind: "image/png", lines: vec![("Cache-Control", "private, max-age=60".to_owned())], body })
}
