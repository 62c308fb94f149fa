//! The members of a shard -> fields of a record: the required ones, the axes of each by its name, the size of the frame.
//! Reads no row.

use std::sync::Arc;

use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::layout::{DType, Layout, Order, Scalar};

/// The packed planes: a bit for each point, the first point the highest bit of the first byte.
pub const PLANES: &str = "binaryInputNCHWPacked";
/// Inputs of the whole board.
pub const GLOBALS: &str = "globalInputNC";
/// Visits of each move, the pass last.
pub const POLICY: &str = "policyTargetsNCMove";
/// Targets and weights of the whole board.
pub const TARGETS: &str = "globalTargetsNC";
/// The distribution of the score.
pub const SCORES: &str = "scoreDistrN";
/// Targets of each point.
pub const VALUES: &str = "valueTargetsNCHW";

/// The members of every shard: name, element, and the shape of a row for a 19 x 19 frame.
pub const MEMBERS: [(&str, Scalar, &[usize]); 6] = [
    (PLANES, Scalar::U8, &[22, 46]),
    (GLOBALS, Scalar::F32, &[19]),
    (POLICY, Scalar::I16, &[2, 362]),
    (TARGETS, Scalar::F32, &[64]),
    (SCORES, Scalar::I8, &[842]),
    (VALUES, Scalar::I8, &[5, 19, 19]),
];

/// Points of the longest and of the shortest edge of a frame.
pub const MOST_EDGE: usize = 64;
/// See [`MOST_EDGE`].
pub const LEAST_EDGE: usize = 5;

/// Most members of a shard.
pub const MOST_MEMBERS: usize = 32;

/// Most bytes of a row.
pub const MOST_ROW: usize = 1 << 20;

/// The planes of the board and of the stones of both sides.
const LEAST_PLANES: usize = 3;

/// The axes of a row of a member; the end of its name says them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Axes {
    /// `NCHWPacked`: planes of points, a bit each.
    Packed,
    /// `NCHW`: planes of points.
    Points,
    /// `NCMove`: moves, the pass last.
    Moves,
    /// Values without a place on the board.
    Whole,
}

impl Axes {
    /// The axes by the name of a member.
    pub fn of(name: &str) -> Axes {
        let ends = [("NCHWPacked", Axes::Packed), ("NCHW", Axes::Points), ("NCMove", Axes::Moves)];
        ends.into_iter().find(|(end, _)| name.ends_with(end)).map_or(Axes::Whole, |(_, axes)| axes)
    }

    /// The edge of the frame of a row with this shape; none for axes without points.
    ///
    /// Errors: `WrongSize`, with the expected shape.
    pub fn edge(self, name: &str, shape: &[usize]) -> Result<Option<usize>> {
        let edges = LEAST_EDGE..=MOST_EDGE;
        let (expected, edge) = match (self, shape) {
            (Axes::Whole, _) => return Ok(None),
            (Axes::Packed, [planes, bytes]) if *planes > 0 => {
                ("[planes, bytes of a square of bits]", { edges }.find(|e| (e * e).div_ceil(8) == *bytes))
            }
            (Axes::Points, [planes, height, width]) if *planes > 0 => {
                ("[planes, edge, edge]", { edges }.find(|e| height == e && width == e))
            }
            (Axes::Moves, [policies, moves]) if *policies > 0 => {
                ("[moves, points and the pass]", { edges }.find(|e| e * e + 1 == *moves))
            }
            (Axes::Packed, _) => ("[planes, bytes]", None),
            (Axes::Points, _) => ("[planes, edge, edge]", None),
            (Axes::Moves, _) => ("[moves, points and the pass]", None),
        };
        if edge.is_some() {
            return Ok(edge);
        }
        let detail = format!(
            "rows of `{name}` have the shape {shape:?}, expected {expected} with an edge of {LEAST_EDGE} to {MOST_EDGE} points"
        );
        Err(Error::new(Kind::WrongSize, detail))
    }
}

/// A member: name, element, shape of a row.
pub type Member = (String, Scalar, Vec<usize>);

/// The fields of the rows of a shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Form {
    layout: Arc<Layout>,
    edge: usize,
}

impl Form {
    /// The form of rows with these members, given in any order: first the members of every shard, then the others by name.
    ///
    /// Errors, with the member: `Missing` for a required one; `WrongSize` for a shape that does not fit the others;
    /// `Unsupported` for another element; `TooLarge` for more than [`MOST_MEMBERS`] or [`MOST_ROW`].
    pub fn new(mut members: Vec<Member>) -> Result<Form> {
        if members.len() > MOST_MEMBERS {
            let detail = format!("{} members; the bound is {MOST_MEMBERS}", members.len());
            return Err(Error::new(Kind::TooLarge, detail));
        }
        for (name, scalar, shape) in MEMBERS {
            let Some((_, found, rows)) = members.iter().find(|(own, ..)| own == name) else {
                let there: Vec<&str> = members.iter().map(|(own, ..)| &**own).collect();
                let there = there.join("`, `").escape_debug().to_string();
                let detail = format!("no member `{name}`, which each shard of KataGo has; there are `{there}`");
                return Err(Error::new(Kind::Missing, detail).in_member(format!("{name}.npy")));
            };
            let refused = |kind, detail| Err(Error::new(kind, detail).in_member(format!("{name}.npy")));
            if *found != scalar {
                let detail = format!("elements {}, expected {} (NumPy's codes)", found.code(), scalar.code());
                return refused(Kind::Unsupported, detail);
            }
            if rows.len() != shape.len() {
                let detail = format!("rows of the shape {rows:?}, expected {} axes as in {shape:?}", shape.len());
                return refused(Kind::WrongSize, detail);
            }
            if name == PLANES && rows[0] < LEAST_PLANES {
                let detail = format!("{} planes; the first {LEAST_PLANES} are the board and its stones", rows[0]);
                return refused(Kind::WrongSize, detail);
            }
        }
        let edge = edge_of(&members)?;
        let place = |name: &str| MEMBERS.iter().position(|(own, ..)| *own == name).unwrap_or(MEMBERS.len());
        members.sort_by(|a, b| (place(&a.0), &a.0).cmp(&(place(&b.0), &b.0)));
        let bytes = members.iter().try_fold(0usize, |sum, (_, scalar, shape)| {
            shape.iter().try_fold(scalar.size(), |n, dim| n.checked_mul(*dim)).and_then(|n| n.checked_add(sum))
        });
        if bytes.is_none_or(|bytes| bytes > MOST_ROW) {
            return Err(Error::new(Kind::TooLarge, format!("rows of more than {MOST_ROW} bytes")));
        }
        let fields: Vec<(&str, Scalar, &[usize])> =
            members.iter().map(|(name, scalar, shape)| (&**name, *scalar, &**shape)).collect();
        Ok(Form { layout: Arc::new(Layout::packed(&fields)?), edge })
    }

    /// The form of records of this layout.
    ///
    /// Errors: as [`Form::new`]; `Corrupt` for fields in another order.
    pub fn of(layout: &Layout) -> Result<Form> {
        let field = |field: &gristmill_bytes::layout::Field| match &field.dtype {
            DType::Scalar(scalar, order) if *order == Order::Little || scalar.size() == 1 => {
                Ok((field.name.clone(), *scalar, field.shape.clone()))
            }
            _ => Err(Error::new(Kind::Unsupported, format!("the field `{}` is no little-endian number", field.name))),
        };
        let form = Form::new(layout.fields().iter().map(field).collect::<Result<_>>()?)?;
        if *form.layout != *layout {
            return Err(Error::new(Kind::Corrupt, "fields that do not lie as those of rows of KataGo"));
        }
        Ok(form)
    }

    /// The layout of its records.
    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// Points of an edge of the frame in which boards lie.
    pub fn edge(&self) -> usize {
        self.edge
    }

    /// The bytes of a field of a record; none where there is no such field.
    pub fn bytes<'a>(&self, name: &str, record: &'a [u8]) -> &'a [u8] {
        self.layout.field(name).and_then(|field| record.get(field.offset..)?.get(..field.bytes())).unwrap_or_default()
    }

    /// The bits of plane `i` of a record.
    pub fn plane<'a>(&self, i: usize, record: &'a [u8]) -> &'a [u8] {
        let len = self.points().div_ceil(8);
        self.bytes(PLANES, record).get(i * len..).and_then(|rest| rest.get(..len)).unwrap_or_default()
    }

    /// Points of the frame.
    pub fn points(&self) -> usize {
        self.edge * self.edge
    }
}

/// The edge of the frame, which must be the same in all members.
fn edge_of(members: &[Member]) -> Result<usize> {
    let mut known: Option<(usize, &str)> = None;
    // Only the shape of the values says it.
    let values = members.iter().filter(|(name, ..)| name == VALUES);
    for (name, scalar, shape) in values.chain(members.iter().filter(|(name, ..)| name != VALUES)) {
        let named = |e: Error| e.in_member(format!("{name}.npy"));
        let packed = Axes::of(name) == Axes::Packed;
        if matches!(scalar, Scalar::Bytes(_) | Scalar::Text(_) | Scalar::Void(_)) || packed && *scalar != Scalar::U8 {
            let detail = format!("elements {}, expected {}", scalar.code(), if packed { "u1" } else { "numbers" });
            return Err(named(Error::new(Kind::Unsupported, detail)));
        }
        let Some(edge) = Axes::of(name).edge(name, shape).map_err(named)? else { continue };
        match known {
            Some((first, of)) if first != edge => {
                let detail =
                    format!("rows of the shape {shape:?} are of {edge} x {edge} points, `{of}` of {first} x {first}");
                return Err(named(Error::new(Kind::WrongSize, detail)));
            }
            Some(_) => {}
            None => known = Some((edge, name)),
        }
    }
    known.map(|(edge, _)| edge).ok_or_else(|| Error::new(Kind::Missing, "no member of points"))
}
