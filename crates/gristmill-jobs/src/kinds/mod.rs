//! What the jobs do with the chunks of each kind: check, draw, count. One table, a file for each game; the engine's `kinds`
//! says what else a kind is. A kind that is not in the table is refused by its name when a file of it is opened.

mod binpack;
mod bullet;
mod chess;
mod demo;
mod g2048;
mod katago;
mod records;

use gristmill_engine::error::{Error, Result};
use gristmill_format::{Error as FormatError, Kind as Cause, Result as FormatResult};

use crate::work::{Storing, Work};

/// What each kind's chunks are for the jobs.
const WORKS: [&dyn Work; 7] =
    [&chess::Chess, &g2048::G2048, &demo::Demo, &bullet::Bullet, &binpack::Binpack, &records::Records, &katago::KataGo];

/// The jobs on chunks of the kind of this name.
///
/// Errors: `Unsupported` with the name.
pub(crate) fn of(name: &str) -> FormatResult<&'static dyn Work> {
    let unknown = || {
        let detail = format!("frames of `{}`, which no job knows; a newer gristmill does", name.escape_debug());
        FormatError::new(Cause::Unsupported, detail)
    };
    gristmill_engine::kinds::of(name)?;
    WORKS.into_iter().find(|work| work.name() == name).ok_or_else(unknown)
}

/// The jobs on chunks of every kind.
pub(crate) fn all() -> impl Iterator<Item = &'static dyn Work> {
    WORKS.into_iter()
}

/// Refuses a codec that packs of the kind of this name do not offer.
///
/// Errors: `Config` in `codec`, with the kinds that offer it.
pub(crate) fn offers(name: &str, codec: Option<Storing>) -> Result<()> {
    let Some(codec) = codec else { return Ok(()) };
    if of(name)?.codecs().contains(&codec) {
        return Ok(());
    }
    let games = |name: &str| gristmill_engine::kinds::of(name).map(|kind| kind.games());
    let offer = all().filter(|work| work.codecs().contains(&codec));
    let offer = offer.map(|work| games(work.name())).collect::<FormatResult<Vec<_>>>()?;
    let text = format!("packs of {} have one codec; `{}` is for {}", games(name)?, codec.name(), offer.join(", "));
    Err(Error::config("codec", format!("{text}; leave it out")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_know_every_kind_and_refuse_others_by_name() {
        for name in gristmill_engine::kinds::names() {
            assert_eq!(of(name).map(Work::name).ok(), Some(name));
        }
        assert_eq!(gristmill_engine::kinds::names().count(), WORKS.len());
        let refused = of("checkers").map(Work::name).unwrap_err();
        assert!(refused.kind() == Cause::Unsupported && refused.detail().contains("`checkers`"), "{refused}");
    }
}
