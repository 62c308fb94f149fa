//! Names of tensors that users chose -> for each, whether the kind of position makes it or NNUE does.
//! Names and shapes alone; refuses what there is not, and names what there is.

use gristmill_bytes::encode::TensorSpec;
use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::layout::Scalar;

use super::tensor::Tensor;

/// A tensor that users chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// One that the kind makes itself, by its number.
    Own(usize),
    /// One of NNUE.
    Nnue(Tensor),
}

/// The tensors of a kind of position.
#[derive(Debug, Clone, Copy)]
pub struct Tensors {
    /// What its records are, in the plural, such as `boards`.
    pub of: &'static str,
    /// Those that it makes itself: name, element and shape of a row.
    pub own: &'static [(&'static str, Scalar, &'static [usize])],
    /// How many of these there are where none is named.
    pub usual: usize,
    /// Whether its records say who is White.
    pub colours: bool,
}

impl Tensors {
    /// Those called `names`, in that order, with their shapes; the usual ones where none is named.
    ///
    /// Errors: `Missing` naming the tensors that there are, or what to take; `Corrupt` for a name twice.
    pub fn chosen(&self, names: &[String]) -> Result<(Vec<Wanted>, Vec<TensorSpec>)> {
        let wanted: Vec<Wanted> = match names {
            [] => (0..self.usual).map(Wanted::Own).collect(),
            names => names.iter().map(|name| self.named(name)).collect::<Result<_>>()?,
        };
        if let Some(i) = (0..wanted.len()).find(|i| wanted[..*i].contains(&wanted[*i])) {
            return Err(Error::new(Kind::Corrupt, format!("the tensor `{}` is named twice", names[i])));
        }
        let spec = |wanted: &Wanted| match wanted {
            Wanted::Own(number) => {
                let (name, dtype, shape) = self.own[*number];
                TensorSpec::new(name, dtype, shape)
            }
            Wanted::Nnue(tensor) => tensor.spec(),
        };
        let specs = wanted.iter().map(spec).collect();
        Ok((wanted, specs))
    }

    fn named(&self, name: &str) -> Result<Wanted> {
        if let Some(number) = self.own.iter().position(|(own, ..)| *own == name) {
            return Ok(Wanted::Own(number));
        }
        let fits = |tensor: Tensor| self.colours || !tensor.needs_colours();
        let detail = match Tensor::named(name) {
            Some(tensor) if fits(tensor) => return Ok(Wanted::Nnue(tensor)),
            Some(_) => {
                format!(
                    "{} do not say who is White, as `{name}` needs; take tensors that end in _stm and _nstm",
                    self.of
                )
            }
            None => {
                let nnue = Tensor::ALL.iter().filter(|(_, tensor)| fits(*tensor)).map(|(name, _)| *name);
                let all: Vec<&str> = self.own.iter().map(|(own, ..)| *own).chain(nnue).collect();
                format!("there is no tensor `{name}` of {}; there are {}", self.of, all.join(", "))
            }
        };
        Err(Error::new(Kind::Missing, detail))
    }
}
