//! Rows of KataGo -> tensors: members as they are, planes and policy as numbers; as stored, or in an image drawn for each row.
//! A stream has no row when its tensors are chosen: their shapes are those of 19 x 19 boards, or the declared ones.

use std::ops::Range;

use gristmill_bytes::encode::{Encoder, Row, TensorSpec};
use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::layout::{DType, Declaration, Field, Layout, Order, Scalar};

use super::form::{Axes, GLOBALS, MEMBERS, MOST_EDGE, MOST_ROW, PLANES, POLICY, SCORES, TARGETS, VALUES};
use super::turn::{IMAGES, Room, Turns};

/// The tensor with the image of each row; where a batch has it, the encoder draws an image for each row.
pub const SYMMETRY: &str = "symmetry";

/// The tensor from which a device draws the image of each row. The encoder then gives rows as they are stored.
pub const DRAWS: &str = "image_draws";

/// The tensors by default.
const USUAL: [&str; 6] = ["planes", GLOBALS, "policy", TARGETS, SCORES, VALUES];

/// How a tensor is made from a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Make {
    /// The member unchanged.
    Same,
    /// A number for each bit.
    Planes,
    /// The visits of each move, divided by those of all moves.
    Policy,
    /// The 8-bit integers of the member as f32.
    Values,
    /// The number of the image; needs no member.
    Symmetry,
    /// The words from which a device draws the image. Needs no member.
    Draws,
}

impl Make {
    /// Whether a member is needed.
    fn is_of_member(self) -> bool {
        !matches!(self, Make::Symmetry | Make::Draws)
    }
}

/// A tensor that the user chose.
#[derive(Debug)]
struct Wanted<'a> {
    name: &'a str,
    make: Make,
    /// The member it is made from.
    member: &'a str,
    /// The declared type and shape.
    scalar: Option<Scalar>,
    shape: Option<Vec<usize>>,
}

/// A tensor, and the place of its member in a record.
#[derive(Debug)]
struct Output {
    make: Make,
    axes: Axes,
    /// First byte of the member in a record, its bytes, and those of an element.
    at: Range<usize>,
    unit: usize,
    /// The number of planes or policies.
    many: usize,
}

/// Rows as tensors.
#[derive(Debug)]
pub struct RowEncoder {
    layout: Layout,
    specs: Vec<TensorSpec>,
    outputs: Vec<Output>,
    turns: Turns,
    draws: bool,
    /// Whether rows are shown in the images that are drawn.
    shows: bool,
}

impl RowEncoder {
    /// The tensors `names`, in that order, of rows with this layout; the default ones if `names` is empty.
    ///
    /// Errors: `Missing`, with the names of all tensors; `Unfit` for a declaration that the rows do not fit; `Corrupt` for a name
    /// twice.
    pub fn new(layout: &Layout, names: &[String]) -> Result<Self> {
        RowEncoder::made(layout.clone(), &wanted(names)?)
    }

    /// The tensors `names` of rows that are not read yet: of 19 x 19 boards, or of declared shapes such as `planes[22,9,9]`,
    /// `globalTargetsNC[80]` or `qValueTargetsNCMove:i16[3,362]`.
    ///
    /// Errors: as [`RowEncoder::new`]; `Unsupported` for a member whose shape must be declared.
    pub fn declared(names: &[String]) -> Result<Self> {
        let (wanted, mut fields) = (wanted(names)?, Vec::<(&str, Scalar, Vec<usize>)>::new());
        for one in wanted.iter().filter(|one| one.make.is_of_member()) {
            let usual = MEMBERS.iter().find(|(name, ..)| *name == one.member);
            let own = one.scalar.filter(|_| one.make == Make::Same);
            let Some(scalar) = usual.map(|(_, scalar, _)| *scalar).or(own) else {
                return Err(undeclared(one.name));
            };
            let shape = match (&one.shape, usual) {
                (Some(shape), _) => one.of_member(shape)?,
                (None, Some((.., shape))) => shape.to_vec(),
                (None, None) => return Err(undeclared(one.name)),
            };
            match fields.iter().find(|(name, ..)| *name == one.member) {
                Some((_, _, before)) if *before != shape => {
                    let detail = format!("`{}` is declared with rows of {before:?} and of {shape:?}", one.member);
                    return Err(Error::new(Kind::Unfit, detail));
                }
                Some(_) => {}
                None => fields.push((one.member, scalar, shape)),
            }
        }
        let bytes = |(_, scalar, shape): &(&str, Scalar, Vec<usize>)| {
            shape.iter().try_fold(scalar.size(), |n, dim| n.checked_mul(*dim)).filter(|bytes| *bytes <= MOST_ROW)
        };
        if let Some((name, ..)) = fields.iter().find(|field| bytes(field).is_none()) {
            return Err(Error::new(Kind::TooLarge, format!("rows of `{name}` with more than {MOST_ROW} bytes")));
        }
        if fields.is_empty() {
            return Err(Error::new(
                Kind::Empty,
                "`symmetry` and `image_draws` alone are of no row; name a member or a tensor made of one",
            ));
        }
        let fields: Vec<(&str, Scalar, &[usize])> =
            fields.iter().map(|(name, s, shape)| (*name, *s, &**shape)).collect();
        RowEncoder::made(Layout::packed(&fields)?, &wanted)
    }

    fn made(layout: Layout, wanted: &[Wanted<'_>]) -> Result<Self> {
        let (mut specs, mut outputs, mut edge) = (Vec::new(), Vec::new(), None);
        for one in wanted {
            let Some(field) = one.field(&layout)? else {
                specs.push(match one.make {
                    Make::Draws => TensorSpec::new(DRAWS, Scalar::I32, &[5]),
                    _ => TensorSpec::new(SYMMETRY, Scalar::U8, &[]),
                });
                outputs.push(Output { make: one.make, axes: Axes::Whole, at: 0..0, unit: 1, many: 0 });
                continue;
            };
            let (axes, scalar) = (Axes::of(&field.name), element(field)?);
            let elements = MEMBERS.iter().find(|(name, ..)| *name == one.member && one.make != Make::Same);
            if let Some((member, expected, _)) = elements.filter(|(_, expected, _)| *expected != scalar) {
                let (found, expected) = (scalar.code(), expected.code());
                let detail = format!("`{}` is made of `{member}` of {expected}, here it is of {found}", one.name);
                return Err(Error::new(Kind::Unfit, detail));
            }
            let own = axes.edge(&field.name, &field.shape)?;
            match (edge, own) {
                (Some(first), Some(own)) if first != own => {
                    let detail =
                        format!("`{}` is of {own} x {own} points, another tensor of {first} x {first}", one.name);
                    return Err(Error::new(Kind::Unfit, detail));
                }
                (None, Some(_)) => edge = own,
                _ => {}
            }
            let (made, shape) = match (one.make, field.shape.first(), own) {
                (Make::Planes, Some(planes), Some(edge)) => {
                    (one.scalar.unwrap_or(Scalar::F32), vec![*planes, edge, edge])
                }
                (Make::Policy | Make::Values, ..) => (Scalar::F32, field.shape.clone()),
                _ => (scalar, field.shape.clone()),
            };
            if one.shape.as_ref().is_some_and(|said| *said != shape) || one.scalar.is_some_and(|said| said != made) {
                let detail =
                    format!("the tensor `{}` is {} {shape:?} here, and declared otherwise", one.name, made.code());
                return Err(Error::new(Kind::Unfit, detail));
            }
            let many = if axes == Axes::Whole { 1 } else { field.shape.first().copied().unwrap_or(0) };
            let at = field.offset..field.offset + field.bytes();
            specs.push(TensorSpec::new(one.name, made, &shape));
            outputs.push(Output { make: one.make, axes, at, unit: scalar.size(), many });
        }
        let [shows, draws] = [Make::Symmetry, Make::Draws].map(|make| wanted.iter().any(|one| one.make == make));
        if shows && draws {
            let detail = "with `symmetry` the loader turns rows, with `image_draws` a device does; name one of them";
            return Err(Error::new(Kind::Unsupported, detail));
        }
        let turns = Turns::new(edge.unwrap_or(0));
        Ok(RowEncoder { layout, specs, outputs, turns, draws: shows || draws, shows })
    }
}

impl Wanted<'_> {
    /// The field of its member; none for a tensor without a member.
    fn field<'a>(&self, layout: &'a Layout) -> Result<Option<&'a Field>> {
        if !self.make.is_of_member() {
            return Ok(None);
        }
        layout.field(self.member).map(Some).ok_or_else(|| {
            let own = layout.fields().iter().map(|field| &*field.name);
            let all: Vec<&str> = ["planes", "policy", "values", SYMMETRY, DRAWS].into_iter().chain(own).collect();
            let detail = format!(
                "there is no tensor `{}` of these rows; there are {}",
                self.name.escape_debug(),
                all.join(", ")
            );
            Error::new(Kind::Missing, detail)
        })
    }

    /// The shape of its member, if the tensor has this shape.
    fn of_member(&self, shape: &[usize]) -> Result<Vec<usize>> {
        match (self.make, shape) {
            (Make::Planes, [planes, edge, width]) if edge == width && *edge <= MOST_EDGE => {
                Ok(vec![*planes, (edge * edge).div_ceil(8)])
            }
            (Make::Planes, _) => {
                Err(Error::new(Kind::Unsupported, format!("`planes` of {shape:?}, expected [planes, edge, edge]")))
            }
            _ => Ok(shape.to_vec()),
        }
    }
}

/// The chosen tensors.
fn wanted(names: &[String]) -> Result<Vec<Wanted<'_>>> {
    let all: Vec<Wanted<'_>> = match names {
        [] => USUAL.iter().map(|name| one(name)).collect::<Result<_>>()?,
        names => names.iter().map(|name| one(name)).collect::<Result<_>>()?,
    };
    match (0..all.len()).find(|i| all[..*i].iter().any(|before| before.name == all[*i].name)) {
        Some(i) => Err(Error::new(Kind::Corrupt, format!("the tensor `{}` is named twice", all[i].name))),
        None => Ok(all),
    }
}

/// One chosen tensor: `name`, `name:type`, `name[shape]` or `name:type[shape]`.
fn one(text: &str) -> Result<Wanted<'_>> {
    let parse = || {
        let Declaration { name, scalar, shape } =
            Declaration::parse(text).filter(|one| !one.name.contains(['[', ']']))?;
        let (make, member) = match name {
            "planes" => (Make::Planes, PLANES),
            "policy" => (Make::Policy, POLICY),
            "values" => (Make::Values, VALUES),
            SYMMETRY => (Make::Symmetry, SYMMETRY),
            DRAWS => (Make::Draws, DRAWS),
            name => (Make::Same, name),
        };
        let fits = make != Make::Planes || matches!(scalar, None | Some(Scalar::F32 | Scalar::U8));
        let alone = make.is_of_member() || scalar.is_none() && shape.is_none();
        (fits && alone).then_some(Wanted { name, make, member, scalar, shape })
    };
    parse().ok_or_else(|| {
        let detail = format!(
            "`{}` names no tensor of rows of KataGo: a member by its name, `planes`, `planes:u8`, `policy`, `values`, `symmetry` or \
             `image_draws`, with its shape where that is another one than of 19 x 19 boards, as in `planes[22,9,9]`",
            text.escape_debug()
        );
        Error::new(Kind::Unsupported, detail)
    })
}

fn undeclared(name: &str) -> Error {
    let detail = format!(
        "`{}` is a member that not every shard has: declare its type and the shape of a row, such as `{0}:i16[3,362]`",
        name.escape_debug()
    );
    Error::new(Kind::Unsupported, detail)
}

fn element(field: &Field) -> Result<Scalar> {
    match &field.dtype {
        DType::Scalar(scalar, order)
            if (*order == Order::Little || scalar.size() == 1)
                && !matches!(scalar, Scalar::Bytes(_) | Scalar::Text(_) | Scalar::Void(_)) =>
        {
            Ok(*scalar)
        }
        _ => Err(Error::new(Kind::Unfit, format!("the field `{}` is no little-endian number", field.name))),
    }
}

impl Encoder for RowEncoder {
    fn input(&self) -> &Layout {
        &self.layout
    }

    /// Members must be there, with their own types: the encoder neither invents nor converts one.
    fn fits(&self, records: &Layout) -> Result<()> {
        for field in self.layout.fields() {
            let Some(found) = records.field(&field.name) else {
                let detail = format!("no member `{}`: the encoder `katago` is of rows of KataGo's shards", field.name);
                return Err(Error::new(Kind::Unfit, detail));
            };
            if found.dtype != field.dtype || found.shape != field.shape {
                let (name, here, said) = (&field.name, &found.shape, &field.shape);
                let detail = format!(
                    "rows of `{name}` have the shape {here:?} here, and {said:?} as declared, or as 19 x 19 boards have it: name the \
                     tensors with the shapes of these rows, as in `planes[22,9,9]` or `globalTargetsNC[80]`"
                );
                return Err(Error::new(Kind::Unfit, detail));
            }
        }
        Ok(())
    }

    fn draws(&self) -> bool {
        self.draws
    }

    /// The planes and the inputs of the whole board: rows with equal ones are of one position, whatever their targets are.
    fn position(&self) -> Vec<Range<usize>> {
        let known = [PLANES, GLOBALS].iter().filter_map(|name| self.layout.field(name));
        let ranges: Vec<Range<usize>> = known.map(|field| field.offset..field.offset + field.bytes()).collect();
        if ranges.is_empty() { std::iter::once(0..self.layout.size()).collect() } else { ranges }
    }

    fn outputs(&self) -> &[TensorSpec] {
        &self.specs
    }

    fn encode(&self, rows: &[Row<'_>], out: &mut [&mut [u8]]) -> Result<()> {
        let mut room = Room::default();
        for ((output, spec), out) in self.outputs.iter().zip(&self.specs).zip(out.iter_mut()) {
            for (row, out) in rows.iter().zip(out.chunks_exact_mut(spec.row_bytes().max(1))) {
                if output.make == Make::Draws {
                    out.copy_from_slice(row.bits.origin().map(u32::to_le_bytes).as_flattened());
                    continue;
                }
                let s = if self.shows { (row.bits.bits % IMAGES as u64) as usize } else { 0 };
                let turn = (s, &self.turns);
                match row.record.get(output.at.clone()) {
                    Some(member) => output.row(turn, spec.dtype, member, out, &mut room),
                    None => {
                        let detail = format!("a record of {} bytes", row.record.len());
                        return Err(Error::new(Kind::WrongSize, detail).in_frame(row.provenance.frame as usize));
                    }
                }
            }
        }
        Ok(())
    }
}

impl Output {
    /// The numbers of a row in image `s`.
    fn row(&self, (s, turns): (usize, &Turns), dtype: Scalar, member: &[u8], out: &mut [u8], room: &mut Room) {
        let (size, made) = (member.len() / self.many.max(1), out.len() / self.many.max(1));
        let planes = member.chunks_exact(size.max(1)).zip(out.chunks_exact_mut(made.max(1)));
        match (self.make, self.axes) {
            (Make::Symmetry | Make::Draws, _) => out.fill(s as u8),
            (Make::Planes, _) => {
                for (plane, out) in planes {
                    let cells = turns.spread(s, plane, room);
                    if dtype == Scalar::U8 {
                        out.copy_from_slice(cells);
                    } else {
                        numbers(out, cells.iter().map(|cell| f32::from(*cell)));
                    }
                }
            }
            (Make::Policy, _) => {
                for (visits, out) in planes {
                    let visits = visits.as_chunks::<2>().0;
                    let of = |at: usize| visits.get(at).map_or(0, |visits| i16::from_le_bytes(*visits));
                    let sum: i64 = (0..visits.len()).map(|at| i64::from(of(at))).sum();
                    let all = sum.max(1) as f32;
                    let from =
                        turns.from(s).iter().map(|from| usize::from(*from)).chain(turns.from(s).len()..visits.len());
                    numbers(out, from.map(|from| f32::from(of(from)) / all));
                }
            }
            (Make::Values, _) => {
                for (values, out) in planes {
                    let from = turns.from(s).iter().map(|from| values.get(usize::from(*from)).copied().unwrap_or(0));
                    numbers(out, from.map(|value| f32::from(value as i8)));
                }
            }
            (Make::Same, Axes::Whole) => out.copy_from_slice(member),
            (Make::Same, _) if s == 0 => out.copy_from_slice(member),
            (Make::Same, Axes::Packed) => planes.for_each(|(bits, out)| turns.bits(s, bits, room, out)),
            (Make::Same, Axes::Points | Axes::Moves) => {
                planes.for_each(|(elements, out)| turns.elements(s, self.unit, elements, out));
            }
        }
    }
}

fn numbers(out: &mut [u8], numbers: impl Iterator<Item = f32>) {
    for (out, number) in out.as_chunks_mut::<4>().0.iter_mut().zip(numbers) {
        *out = number.to_le_bytes();
    }
}
