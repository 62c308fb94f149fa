//! An inspection as text: the frame drawn, then what the data is, and where wanted its layout and the whole record. Prints nothing.

mod chess;
mod demo;
pub(super) mod g2048;
mod pack;
mod record;

use std::fmt::Write;

use gristmill_format::error::plain;
use gristmill_jobs::inspect::{DrawnView, FieldView, FramePlace, FrameView, Inspection};

/// What is shown, and how.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parts {
    /// Boards in letters.
    pub(crate) ascii: bool,
    /// The layout of the records.
    pub(crate) layout: bool,
    /// Every field of the record.
    pub(crate) record: bool,
    /// Boards in colours.
    pub(crate) color: bool,
}

/// The frame of `seen`, drawn; nothing where there is none. Colours are in it, and names are plain.
pub(crate) fn picture(seen: &Inspection, parts: &Parts) -> String {
    let Some(view) = &seen.frame else { return String::new() };
    let drawn = match view {
        FrameView::Chess(view) => chess::text(view, parts),
        FrameView::G2048(view) => g2048::text(view, parts.color),
        FrameView::Demo(view) => demo::text(view),
        FrameView::Drawn(view) => drawn(view),
    };
    head(view.place()) + &drawn + "\n"
}

/// What is said of `seen` below the picture.
pub(crate) fn text(seen: &Inspection, parts: &Parts) -> String {
    let mut out = format!("{}: {}, {}\n", plain(&seen.path), seen.format, super::bytes(seen.size));
    let _ = write!(out, "{} chunks, {} frames", seen.chunks, seen.frames);
    if seen.key.is_none() {
        let by_format: Vec<String> = seen.formats.iter().map(|(name, n)| format!("{n} {name}")).collect();
        let _ = write!(out, " in {} files ({})", seen.files, by_format.join(", "));
    }
    if seen.skipped > 0 {
        let _ = write!(out, ", {} other files", seen.skipped);
    }
    out.push('\n');
    if let Some(fault) = &seen.first_fault {
        let unread = match seen.unreadable {
            0 => String::new(),
            n => format!("{n} files or chunks could not be read; "),
        };
        let _ = writeln!(out, "{unread}{} bad chunks; the first fault: {fault}", seen.bad_chunks);
    }
    if let Some(pack) = &seen.pack {
        out.push_str(&pack::text(pack));
    }
    for (name, value) in &seen.about {
        let _ = writeln!(out, "{}: {}", plain(name), plain(value));
    }
    if let Some(layout) = seen.layout.as_ref().filter(|_| parts.layout) {
        let _ = writeln!(out, "\nrecord of {} bytes:", layout.size);
        layout.fields.iter().for_each(|f| out.push_str(&field(f)));
    }
    let place = seen.frame.as_ref().map(FrameView::place);
    if let Some(record) = place.and_then(|place| place.record.as_ref()).filter(|_| parts.record) {
        let _ = writeln!(out, "\nthe record in full:");
        out.push_str(&record::text(record));
    }
    out
}

/// A frame that its kind drew.
fn drawn(view: &DrawnView) -> String {
    let lines = view.picture.iter().map(|line| format!("\n{}", plain(line)));
    let facts = view.facts.iter().map(|(name, value)| format!("\n{}: {}", plain(name), plain(value)));
    lines.chain(facts).collect::<String>() + "\n"
}

fn field(field: &FieldView) -> String {
    let shape = field.shape.iter().map(usize::to_string).collect::<Vec<_>>().join("x");
    format!("{:>7}  {:<26} {:<4} {shape}", field.offset, field.name, field.dtype).trim_end().to_owned() + "\n"
}

fn head(place: &FramePlace) -> String {
    let member = place.member.as_ref().map_or(String::new(), |member| format!(", {}", plain(member)));
    format!("chunk {}, frame {} of {}{member}", place.chunk, place.frame, place.frames)
}
