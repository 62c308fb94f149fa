//! Records of any layout -> records as an encoder takes them: which conversion fits a chunk, compiled once a layout.
//! A chunk whose fields cannot become the encoder's is refused as a whole, before any of its rows is planned.

use std::sync::{Arc, Mutex, PoisonError};

use gristmill_format::encode::Encoder;
use gristmill_format::layout::{Conform, Layout};
use gristmill_format::source::Chunk;
use gristmill_format::{Error, Kind, Result};

/// Conversions that are remembered; a stream of ever new layouts compiles some again.
const REMEMBERED: usize = 16;

/// The conversions of one chain.
#[derive(Debug)]
pub(in crate::pipeline) struct Conforms {
    encoder: Arc<dyn Encoder>,
    known: Mutex<Vec<(Arc<Layout>, Arc<Conform>)>>,
}

impl Conforms {
    /// Conversions to what `encoder` takes.
    pub(in crate::pipeline) fn new(encoder: Arc<dyn Encoder>) -> Self {
        Conforms { encoder, known: Mutex::default() }
    }

    /// The conversion of a decoded chunk's records.
    ///
    /// Errors: `Unfit` for records without what the encoder needs; `Unsupported` for a field of another type or shape, `Missing` where no field is shared: data of another
    /// task.
    pub(in crate::pipeline) fn of(&self, chunk: &Chunk) -> Result<Arc<Conform>> {
        let Some(layout) = &chunk.layout else {
            return Err(Error::new(Kind::Missing, "a chunk without a layout"));
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |other: &Arc<Layout>| Arc::ptr_eq(other, layout) || **other == **layout;
        if let Some((_, conform)) = known.iter().find(|(other, _)| same(other)) {
            return Ok(Arc::clone(conform));
        }
        self.encoder.fits(layout)?;
        let conform = Arc::new(Conform::new(layout, self.encoder.input())?);
        if known.len() == REMEMBERED {
            known.remove(0);
        }
        known.push((Arc::clone(layout), Arc::clone(&conform)));
        Ok(conform)
    }
}

#[cfg(test)]
mod tests {
    use gristmill_format::encode::{Row, TensorSpec};
    use gristmill_format::g2048::encode::{Augment, Element, StepEncoder, Target};

    use super::*;

    /// Takes records of one layout, and is content with fewer fields.
    #[derive(Debug)]
    struct Lenient(Layout);

    impl Encoder for Lenient {
        fn input(&self) -> &Layout {
            &self.0
        }

        fn outputs(&self) -> &[TensorSpec] {
            &[]
        }

        fn encode(&self, _: &[Row<'_>], _: &mut [&mut [u8]]) -> Result<()> {
            Ok(())
        }
    }

    fn chunk(descr: &str) -> Chunk {
        Chunk { layout: Some(Arc::new(Layout::parse_descr(descr).unwrap())), ..Chunk::default() }
    }

    #[test]
    fn each_layout_has_its_own_conversion_and_strangers_are_refused() {
        let to = Layout::parse_descr("[('a', '<u2'), ('b', '|u1')]").unwrap();
        let conforms = Conforms::new(Arc::new(Lenient(to)));
        let (narrow, wide) = (chunk("[('a', '<u2')]"), chunk("[('b', '|u1'), ('a', '>u2')]"));
        for _ in 0..2 {
            let mut out = [9; 3];
            conforms.of(&narrow).unwrap().record(&[1, 2], &mut out);
            assert_eq!(out, [1, 2, 0]);
            conforms.of(&wide).unwrap().record(&[7, 1, 2], &mut out);
            assert_eq!(out, [2, 1, 7]);
        }
        assert_eq!(conforms.of(&chunk("[('c', '<u2')]")).unwrap_err().kind(), Kind::Missing);
        assert_eq!(conforms.of(&chunk("[('a', '<f4')]")).unwrap_err().kind(), Kind::Unsupported);
        for i in 0..40 {
            conforms.of(&chunk(&format!("[('a', '<u2'), ('x{i}', '|u1')]"))).unwrap();
        }
        assert!(conforms.known.lock().unwrap().len() <= REMEMBERED);
    }

    #[test]
    fn missing_fields_are_not_made_up_where_the_encoder_needs_them() {
        let encoder = StepEncoder::new(Target::HardMove, Augment::default(), Element::I64).unwrap();
        let conforms = Conforms::new(Arc::new(encoder));
        let boards = chunk("[('board', '<u8'), ('tile_65536_mask', '<u2')]");
        for _ in 0..2 {
            let e = conforms.of(&boards).unwrap_err();
            assert_eq!(e.kind(), Kind::Unfit);
            assert!(e.detail().contains("what fits them: steps"), "{e}");
        }
    }
}
