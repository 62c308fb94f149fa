//! Records of demonstrations -> tensors of their fields, as they are: one for each field, or for those that are chosen.
//! Where no record is there yet, as in a stream, the fields are declared: never guessed.

use gristmill_bytes::encode::{Encoder, Row, TensorSpec};
use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::layout::{DType, Declaration, Field, Layout, Order, Scalar};

use super::trajectory::layout as aligned;

/// The tensor of the random bits of a row, where no field has this name.
pub const DRAW: &str = "draw";

/// Fields as tensors.
#[derive(Debug)]
pub struct FieldEncoder {
    layout: Layout,
    outputs: Vec<TensorSpec>,
    /// First byte of each in a record, and its bytes; none for random bits.
    places: Vec<Option<(usize, usize)>>,
    /// The same, for [`Encoder::parts`]. `None` if a tensor is random bits.
    parts: Option<Vec<(usize, usize)>>,
}

impl FieldEncoder {
    /// The tensors of the fields called `names`, in that order; of all that are numbers where none is named. [`DRAW`] is the
    /// random bits of the row, where it is no field.
    ///
    /// Errors: `Missing` naming the fields that there are; `Unsupported` for texts and records, which are no tensors;
    /// `Corrupt` for a name twice.
    pub fn new(layout: &Layout, names: &[String]) -> Result<Self> {
        let drawn = |name: &str| name == DRAW && layout.field(DRAW).is_none();
        let fields: Vec<Option<&Field>> = if names.is_empty() {
            layout.fields().iter().filter(|field| element(field).is_ok()).map(Some).collect()
        } else {
            let field = |name: &String| if drawn(name) { Ok(None) } else { named(layout, name).map(Some) };
            names.iter().map(field).collect::<Result<_>>()?
        };
        if let Some(twice) = names.iter().enumerate().find(|(i, name)| names[..*i].contains(name)) {
            return Err(Error::new(Kind::Corrupt, format!("the field `{}` is named twice", twice.1)));
        }
        let spec = |field: &Option<&Field>| match field {
            Some(field) => Ok(TensorSpec::new(&field.name, element(field)?, &field.shape)),
            None => Ok(TensorSpec::new(DRAW, Scalar::U64, &[])),
        };
        let outputs: Vec<TensorSpec> = fields.iter().map(spec).collect::<Result<_>>()?;
        if outputs.is_empty() {
            return Err(Error::new(Kind::Empty, "no field of these records is a tensor"));
        }
        let place = |field: &Option<&Field>| field.map(|field| (field.offset, field.bytes()));
        let places: Vec<_> = fields.iter().map(place).collect();
        let parts = places.iter().copied().collect();
        Ok(FieldEncoder { layout: layout.clone(), outputs, places, parts })
    }

    /// The tensors of fields that are declared, such as `obs:u8[64,64,3]` and `acts:i64`, before there is a record.
    ///
    /// Errors: `Empty` without any; `Unsupported` for what is no declaration, with its form; as [`FieldEncoder::new`].
    pub fn declared(fields: &[String]) -> Result<Self> {
        let all = fields;
        let fields = fields.iter().filter(|field| *field != DRAW).map(|field| declaration(field));
        let fields = fields.collect::<Result<Vec<_>>>()?;
        if fields.is_empty() {
            return Err(Error::new(Kind::Empty, format!("a stream cannot know its fields before it reads: {FORM}")));
        }
        let names: Vec<String> =
            all.iter().map(|field| declaration(field).map_or(&**field, |(name, ..)| name).to_owned()).collect();
        let placed = fields.iter().map(|(name, scalar, shape)| (*name, *scalar, shape.as_slice()));
        FieldEncoder::new(&aligned(placed)?, &names)
    }
}

/// The declarations of all fields of `layout` that are numbers, such as `obs:u8[64,64,3]`: with them a stream has the tensors
/// that [`FieldEncoder::new`] makes of these records.
pub fn declarations(layout: &Layout) -> Vec<String> {
    let one = |field: &Field| Declaration::write(&field.name, element(field).ok()?, &field.shape);
    layout.fields().iter().filter_map(one).collect()
}

/// How a field is declared.
const FORM: &str = "name each with its type and the shape of one step, such as `obs:u8[64,64,3]`, `acts:i64` or `rews:f32`; \
                    `gristmill inspect` of a file shows them";

/// Name, type and shape of a declared field.
fn declaration(text: &str) -> Result<(&str, Scalar, Vec<usize>)> {
    let declared =
        Declaration::parse(text).and_then(|one| Some((one.name, one.scalar?, one.shape.unwrap_or_default())));
    declared.ok_or_else(|| {
        let detail = format!("`{}` declares no field: {FORM}", text.escape_debug());
        Error::new(Kind::Unsupported, detail)
    })
}

fn named<'a>(layout: &'a Layout, name: &str) -> Result<&'a Field> {
    let there = || {
        let names: Vec<&str> = layout.fields().iter().map(|field| &*field.name).collect();
        Error::new(Kind::Missing, format!("there is no field `{name}`; there are {}", names.join(", ")))
    };
    layout.field(name).ok_or_else(there)
}

fn element(field: &Field) -> Result<Scalar> {
    match field.dtype {
        DType::Scalar(Scalar::Bytes(_) | Scalar::Text(_) | Scalar::Void(_), _)
        | DType::Scalar(_, Order::Big)
        | DType::Record(_) => Err(Error::new(Kind::Unsupported, format!("the field `{}` is no tensor", field.name))),
        DType::Scalar(scalar, Order::Little) => Ok(scalar),
    }
}

impl Encoder for FieldEncoder {
    fn input(&self) -> &Layout {
        &self.layout
    }

    /// No field is made up, and none is converted.
    fn fits(&self, records: &Layout) -> Result<()> {
        let unfit = |detail: String| Error::new(Kind::Unfit, detail);
        for (spec, _) in self.outputs.iter().zip(&self.places).filter(|(_, place)| place.is_some()) {
            let found = named(records, &spec.name).map_err(|e| unfit(e.detail().to_owned()))?;
            if element(found).ok() != Some(spec.dtype) || found.shape != spec.row_shape {
                let code = match &found.dtype {
                    DType::Scalar(scalar, _) => scalar.code(),
                    DType::Record(_) => "a record".to_owned(),
                };
                let (wanted, shape) = (spec.dtype.code(), &spec.row_shape);
                return Err(unfit(format!(
                    "the field `{}` is {code} {:?} here, and declared as {wanted} {shape:?} (NumPy's codes)",
                    spec.name, found.shape
                )));
            }
        }
        Ok(())
    }

    fn draws(&self) -> bool {
        self.places.contains(&None)
    }

    fn parts(&self) -> Option<&[(usize, usize)]> {
        self.parts.as_deref()
    }

    fn outputs(&self) -> &[TensorSpec] {
        &self.outputs
    }

    fn encode(&self, rows: &[Row<'_>], out: &mut [&mut [u8]]) -> Result<()> {
        for (place, out) in self.places.iter().zip(out) {
            let rows = rows.iter().enumerate();
            match *place {
                Some((offset, bytes)) => rows.for_each(|(i, row)| {
                    out[i * bytes..][..bytes].copy_from_slice(&row.record[offset..][..bytes]);
                }),
                None => rows.for_each(|(i, row)| out[i * 8..][..8].copy_from_slice(&row.bits.bits.to_le_bytes())),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_bytes::encode::Provenance;

    #[test]
    fn fields_become_tensors_and_what_is_none_is_refused() {
        let fields: [(&str, Scalar, &[usize]); 3] =
            [("obs", Scalar::U8, &[2]), ("name", Scalar::Text(1), &[]), ("acts", Scalar::I16, &[])];
        let layout = Layout::packed(&fields).unwrap();
        let all = FieldEncoder::new(&layout, &[]).unwrap();
        assert_eq!(all.outputs().iter().map(|spec| &*spec.name).collect::<Vec<_>>(), ["obs", "acts"]);
        let records = [[1, 2, 0, 0, 0, 0, 3, 4], [5, 6, 0, 0, 0, 0, 7, 8]];
        let row = |record| Row { record, provenance: Provenance::default(), bits: Default::default(), sparse: None };
        let rows: Vec<Row<'_>> = records.iter().map(|record| row(&record[..])).collect();
        let chosen = FieldEncoder::new(&layout, &["acts".to_owned(), "obs".to_owned()]).unwrap();
        let (mut acts, mut obs) = ([0; 4], [0; 4]);
        chosen.encode(&rows, &mut [&mut acts[..], &mut obs[..]]).unwrap();
        assert_eq!((acts, obs), ([3, 4, 7, 8], [1, 2, 5, 6]));
        let drawing = FieldEncoder::new(&layout, &["draw".to_owned(), "acts".to_owned()]).unwrap();
        assert!(drawing.draws() && !chosen.draws());
        assert_eq!((chosen.parts(), drawing.parts()), (Some(&[(6, 2), (0, 2)][..]), None));
        let (mut draw, mut acts) = ([0; 16], [0; 4]);
        let rows = [Row { bits: u64::MAX.into(), ..rows[0] }, Row { bits: 5.into(), ..rows[1] }];
        drawing.encode(&rows, &mut [&mut draw[..], &mut acts[..]]).unwrap();
        assert_eq!(
            (draw[..8].to_vec(), draw[8..].to_vec(), acts),
            (vec![255; 8], 5u64.to_le_bytes().to_vec(), [3, 4, 7, 8])
        );
        let declared = FieldEncoder::declared(&["acts:i16".to_owned(), "draw".to_owned()]).unwrap();
        assert_eq!(declared.outputs().iter().map(|spec| &*spec.name).collect::<Vec<_>>(), ["acts", "draw"]);
        assert!(declared.fits(&layout).is_ok());
        assert_eq!(declarations(&layout), ["obs:u8[2]", "acts:i16"]);
        let all = FieldEncoder::declared(&declarations(&layout)).unwrap();
        assert!(all.fits(&layout).is_ok() && all.outputs() == FieldEncoder::new(&layout, &[]).unwrap().outputs());
        for (name, kind, says) in [("rews", Kind::Missing, "obs, name, acts"), ("name", Kind::Unsupported, "name")] {
            let e = FieldEncoder::new(&layout, &[name.to_owned()]).unwrap_err();
            assert!(e.kind() == kind && e.detail().contains(says), "{e}");
        }
        assert_eq!(
            FieldEncoder::new(&layout, &["obs".to_owned(), "obs".to_owned()]).unwrap_err().kind(),
            Kind::Corrupt
        );
    }
}
