//! Names of valuations -> small ids, in order of first sight; the three that every pack has come first.
//! Ids of other names are a game's own until a packer unifies them by name.

use gristmill_bytes::error::{Error, Kind, Result};

/// The names whose ids are the same everywhere: 0, 1 and 2.
pub const KNOWN_VALUATIONS: [&str; 3] = ["search", "tuple11", "tuple10"];

/// Most names: an id is one byte.
pub const MAX_VALUATIONS: usize = 256;

/// A table of names; the index of a name is its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Valuations(Vec<String>);

impl Default for Valuations {
    fn default() -> Self {
        Valuations(KNOWN_VALUATIONS.map(str::to_owned).to_vec())
    }
}

impl Valuations {
    /// The names, by id; the three known ones first.
    pub fn names(&self) -> &[String] {
        &self.0
    }

    /// The id of `name`, which is added when it is new.
    ///
    /// Errors: `OutOfRange` for an empty name and for the 257th.
    pub fn id(&mut self, name: &str) -> Result<u8> {
        if let Some(id) = self.0.iter().position(|known| known == name) {
            return Ok(id as u8);
        }
        if name.is_empty() {
            return Err(Error::new(Kind::OutOfRange, "valuation_type is empty; expected a name such as `search`"));
        }
        if self.0.len() == MAX_VALUATIONS {
            let detail = format!("`{name}` is valuation type {MAX_VALUATIONS} and more; ids have one byte");
            return Err(Error::new(Kind::OutOfRange, detail));
        }
        self.0.push(name.to_owned());
        Ok((self.0.len() - 1) as u8)
    }

    /// Adds the names of `other`: what each of its ids becomes here. The same as it was for names known everywhere.
    ///
    /// Errors: as [`Valuations::id`].
    pub fn unify(&mut self, other: &Valuations) -> Result<[u8; MAX_VALUATIONS]> {
        let mut ids = [0; MAX_VALUATIONS];
        for (name, id) in other.0.iter().zip(&mut ids) {
            *id = self.id(name)?;
        }
        Ok(ids)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_names_keep_their_ids_and_others_follow_in_order() {
        let (mut one, mut two) = (Valuations::default(), Valuations::default());
        assert_eq!(["tuple10", "line_plan", "search", "line_plan"].map(|n| one.id(n).unwrap()), [2, 3, 0, 3]);
        assert_eq!(["block_plan", "line_plan"].map(|n| two.id(n).unwrap()), [3, 4]);
        assert_eq!(one.unify(&two).unwrap()[..5], [0, 1, 2, 4, 3]);
        assert_eq!(one.names()[3..], ["line_plan", "block_plan"]);
    }

    #[test]
    fn empty_names_and_too_many_are_refused() {
        let mut names = Valuations::default();
        assert!(names.id("").is_err());
        for i in 3..256 {
            assert_eq!(names.id(&format!("v{i}")).unwrap(), i as u8);
        }
        assert!(names.id("one too many").unwrap_err().detail().contains("one too many"));
        assert_eq!(names.id("v255").unwrap(), 255);
    }
}
