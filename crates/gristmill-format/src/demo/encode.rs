//! Records of demonstrations -> tensors of their fields, as they are: one for each field, or for those that are chosen.

use gristmill_bytes::encode::{Encoder, Row, TensorSpec};
use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::layout::{DType, Field, Layout, Order, Scalar};

/// Fields as tensors.
#[derive(Debug)]
pub struct FieldEncoder {
    layout: Layout,
    outputs: Vec<TensorSpec>,
    /// First byte of each in a record, and its bytes.
    places: Vec<(usize, usize)>,
}

impl FieldEncoder {
    /// The tensors of the fields called `names`, in that order; of all that are numbers where none is named.
    ///
    /// Errors: `Missing` naming the fields that there are; `Unsupported` for texts and records, which are no tensors;
    /// `Corrupt` for a name twice.
    pub fn new(layout: &Layout, names: &[String]) -> Result<Self> {
        let fields: Vec<&Field> = if names.is_empty() {
            layout.fields().iter().filter(|field| element(field).is_ok()).collect()
        } else {
            names.iter().map(|name| named(layout, name)).collect::<Result<_>>()?
        };
        if let Some(twice) = names.iter().enumerate().find(|(i, name)| names[..*i].contains(name)) {
            return Err(Error::new(Kind::Corrupt, format!("the field `{}` is named twice", twice.1)));
        }
        let spec = |field: &&Field| Ok(TensorSpec::new(&field.name, element(field)?, &field.shape));
        let outputs: Vec<TensorSpec> = fields.iter().map(spec).collect::<Result<_>>()?;
        if outputs.is_empty() {
            return Err(Error::new(Kind::Empty, "no field of these records is a tensor"));
        }
        let places = fields.iter().map(|field| (field.offset, field.bytes())).collect();
        Ok(FieldEncoder { layout: layout.clone(), outputs, places })
    }
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

    fn outputs(&self) -> &[TensorSpec] {
        &self.outputs
    }

    fn encode(&self, rows: &[Row<'_>], out: &mut [&mut [u8]]) -> Result<()> {
        for ((offset, bytes), out) in self.places.iter().zip(out) {
            for (i, row) in rows.iter().enumerate() {
                out[i * bytes..][..*bytes].copy_from_slice(&row.record[*offset..][..*bytes]);
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
        let row = |record| Row { record, provenance: Provenance::default(), bits: 0, sparse: None };
        let rows: Vec<Row<'_>> = records.iter().map(|record| row(&record[..])).collect();
        let chosen = FieldEncoder::new(&layout, &["acts".to_owned(), "obs".to_owned()]).unwrap();
        let (mut acts, mut obs) = ([0; 4], [0; 4]);
        chosen.encode(&rows, &mut [&mut acts[..], &mut obs[..]]).unwrap();
        assert_eq!((acts, obs), ([3, 4, 7, 8], [1, 2, 5, 6]));
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
