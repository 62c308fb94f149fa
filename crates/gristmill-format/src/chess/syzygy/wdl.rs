//! The value of a position by a tablebase, and why there may be none.
//! Words only.

use std::fmt;

use gristmill_bytes::error::{Error, Kind};

use super::material::Material;
use super::table::TableKind;

/// The value of a position for the side to move. Cursed wins and blessed losses are draws by the fifty-move rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wdl {
    /// Lost.
    Loss = -2,
    /// Lost, but the fifty-move rule saves it.
    BlessedLoss = -1,
    /// Drawn.
    Draw = 0,
    /// Won, but the fifty-move rule spoils it.
    CursedWin = 1,
    /// Won.
    Win = 2,
}

impl Wdl {
    /// All values, from loss to win.
    pub const ALL: [Wdl; 5] = [Wdl::Loss, Wdl::BlessedLoss, Wdl::Draw, Wdl::CursedWin, Wdl::Win];

    pub(super) fn stored(value: u16) -> Option<Self> {
        Wdl::ALL.get(usize::from(value)).copied()
    }

    /// -2 for a loss to 2 for a win.
    pub fn number(self) -> i32 {
        self as i32
    }

    /// 1 for a win, -1 for a loss, 0 for all else: what counts by the fifty-move rule.
    pub fn score(self) -> i8 {
        match self {
            Wdl::Win => 1,
            Wdl::Loss => -1,
            _ => 0,
        }
    }

    /// Plies to the next capture or pawn move when that is the very next one; the sign is the winner's.
    pub(super) fn plies_when_zeroing(self) -> i32 {
        [-1, -101, 0, 101, 1][(self.number() + 2) as usize]
    }
}

impl std::ops::Neg for Wdl {
    type Output = Wdl;

    fn neg(self) -> Wdl {
        Wdl::ALL[(2 - self.number()) as usize]
    }
}

/// Why a position has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unprobed {
    /// The kings stand side by side.
    Illegal,
    /// A side may castle; tables know no such positions.
    Castling,
    /// More men than any table that is there has.
    TooManyMen {
        /// Men on the board.
        men: usize,
        /// Men of the largest tables.
        most: usize,
    },
    /// A table that is needed to answer for the position is not there: its own, or that of what some move leads to.
    Missing(Material, TableKind),
    /// A table contradicts itself.
    Corrupt(Error),
}

impl Unprobed {
    /// A short stable word for counters and errors.
    pub fn name(&self) -> &'static str {
        match self {
            Unprobed::Illegal => "illegal_position",
            Unprobed::Castling => "castling_at_probe",
            Unprobed::TooManyMen { .. } => "too_many_men",
            Unprobed::Missing(..) => "missing_table",
            Unprobed::Corrupt(_) => "corrupt_table",
        }
    }
}

impl From<Unprobed> for Error {
    /// `Refused` by the name of the reason.
    fn from(unprobed: Unprobed) -> Self {
        Error::new(Kind::Refused(unprobed.name()), unprobed.to_string())
    }
}

impl fmt::Display for Unprobed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unprobed::Illegal => write!(f, "the kings stand side by side; no game can reach such a position"),
            Unprobed::Castling => write!(f, "a side may castle; tablebases know no such positions"),
            Unprobed::TooManyMen { men, most } => write!(f, "{men} men on the board; the largest tables have {most}"),
            Unprobed::Missing(material, kind) => write!(f, "there is no table {material}.{}", kind.extension()),
            Unprobed::Corrupt(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for Unprobed {}
