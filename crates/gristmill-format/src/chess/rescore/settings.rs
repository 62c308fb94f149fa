//! What a rescorer is to do, and which quirks of the original it reproduces.
//! Values are checked where settings are made; the passes trust them.

use std::sync::Arc;

use gristmill_bytes::error::{Error, Kind, Result};

use super::substitute::PolicyBook;
use crate::chess::record::InputFormat;
use crate::chess::transform::PolicyMapping;

/// When a move counts as a blunder.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Deblunder {
    /// Loss of value from which on it counts.
    pub threshold: f32,
    /// Width around the threshold within which it counts in part; 0 for all or nothing.
    pub width: f32,
}

/// What a rescorer does besides the passes that always run. The default changes nothing but the version.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Temperature of the policy, above 0; 1 leaves it.
    pub temperature: f32,
    /// Added to each legal probability before the temperature, above -1 and at most 0.
    pub offset: f32,
    /// Shared out among the moves that win fastest by the tablebase, 0 to 1.
    pub boost: f32,
    /// Input format to convert to.
    pub input_format: Option<InputFormat>,
    /// When results and plies left are mended for blunders.
    pub deblunder: Option<Deblunder>,
    /// Decay of the short-term values per ply, 0 to 1.
    pub theta: f32,
    /// Policies that replace those of frames reached by the same moves.
    pub policies: Option<Arc<PolicyBook>>,
    /// V6 records stay V6.
    pub keep_v6: bool,
    /// Frames flagged for deletion (bit 6 of `invariance_info`) are left out.
    pub drop_flagged: bool,
    /// A missing or damaged table leaves a position as it is, and is counted; else the game is refused.
    pub allow_missing_tables: bool,
    /// Quirks to reproduce.
    pub compat: Compat,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            temperature: 1.0,
            offset: 0.0,
            boost: 0.0,
            input_format: None,
            deblunder: None,
            theta: 0.833_333_3,
            policies: None,
            keep_v6: false,
            drop_flagged: false,
            allow_missing_tables: false,
            compat: Compat::NONE,
        }
    }
}

impl Settings {
    /// Errors: the name of the field whose value is out of range, and what was expected.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        let between = |name, value: f32, least: f32, most: f32| {
            let good = (least..=most).contains(&value);
            if good { Ok(()) } else { Err((name, format!("{value}; expected {least} to {most}"))) }
        };
        between("dist_temp", self.temperature, 0.001, 100.0)?;
        between("dist_offset", self.offset, -0.999, 0.0)?;
        between("dtz_boost", self.boost, 0.0, 1.0)?;
        between("st_q_theta", self.theta, 0.0, 1.0)?;
        if let Some(Deblunder { threshold, width }) = self.deblunder {
            between("deblunder_threshold", threshold, 0.0, 100.0)?;
            between("deblunder_width", width, 0.0, 100.0)?;
        }
        Ok(())
    }

    /// Whether policies are reshaped.
    pub(super) fn reshapes(&self) -> bool {
        self.temperature != 1.0 || self.offset != 0.0 || self.boost != 0.0
    }
}

macro_rules! quirks {
    ($($(#[doc = $doc:literal])* $quirk:ident = $name:literal,)*) => {
        /// A quirk of the original rescorer.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Quirk {
            $($(#[doc = $doc])* $quirk,)*
        }

        impl Quirk {
            /// All of them.
            pub const ALL: &[Quirk] = &[$(Quirk::$quirk,)*];

            /// Its name in configurations.
            pub fn name(self) -> &'static str {
                match self {
                    $(Quirk::$quirk => $name,)*
                }
            }

            /// What it does, in a sentence.
            pub fn says(self) -> &'static str {
                match self {
                    $(Quirk::$quirk => concat!($($doc),*).trim_ascii(),)*
                }
            }
        }
    };
}

quirks! {
    /// Formats with hectoplies start from a fifty-move counter one too low where it is 53 or 59.
    Hectoplies = "hectoplies_rounding",
    /// Games in canonical formats are taken to begin with White to move, whatever bit 7 says.
    CanonicalWhite = "canonical_white",
    /// Formats 1 and 2 start with an en-passant square after any double step, also where no pawn can take there.
    FirstEnPassant = "first_en_passant",
    /// A policy index of 1858, one past the end, is let through: in frames without visits always, in others as the best
    /// move's, and as the played move's of the last frame, where no own pawn stands on a4.
    IndexPastEnd = "index_past_end",
    /// A policy whose sum is 0 after offset and temperature, or infinite, is divided by it all the same: it becomes NaN.
    ZeroSum = "zero_sum",
    /// Deblundering starts from the result as the last frame sees it, also where it starts at an earlier frame.
    DeblunderStart = "deblunder_start",
    /// Under a transposed board, policy indices are written as the planes are, as lc0 did up to March 2025; not among `all`.
    AsPlanes = "planes_policy",
}

impl Quirk {
    /// Those of today's lc0, in order.
    pub const TODAY: &[Quirk] = Quirk::ALL.split_at(Quirk::AsPlanes as usize).0;
}

/// The name that was a quirk's while policy indices were written as the planes are.
pub const HALF_TURN: &str = "half_turn_policy";

/// A set of quirks; none by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Compat(u8);

impl Compat {
    /// No quirk.
    pub const NONE: Compat = Compat(0);

    /// This set and `quirk`.
    #[must_use]
    pub const fn with(self, quirk: Quirk) -> Self {
        Compat(self.0 | 1 << quirk as u8)
    }

    /// Whether `quirk` is in the set.
    pub const fn has(self, quirk: Quirk) -> bool {
        self.0 >> quirk as u8 & 1 != 0
    }

    /// How policy indices are written under a transposed board, and read where nothing in the game tells how.
    pub const fn mapping(self) -> PolicyMapping {
        if self.has(Quirk::AsPlanes) { PolicyMapping::AsPlanes } else { PolicyMapping::HalfTurn }
    }

    /// Reads names. `all` stands for every quirk of today's lc0, and so not for [`Quirk::AsPlanes`]; [`HALF_TURN`] is known,
    /// and names what is done without a quirk.
    ///
    /// Errors: `OutOfRange` for a name that is not known, or for two that contradict each other.
    pub fn parse<S: AsRef<str>>(names: &[S]) -> Result<Self> {
        let refused = |text: String| Err(Error::new(Kind::OutOfRange, text));
        let mut set = Compat::NONE;
        for name in names.iter().map(AsRef::as_ref) {
            match Quirk::ALL.iter().find(|quirk| quirk.name() == name) {
                Some(quirk) => set = set.with(*quirk),
                None if name == "all" => set = Quirk::TODAY.iter().copied().fold(set, Compat::with),
                None if name == HALF_TURN => {}
                None => {
                    let known: Vec<_> = Quirk::ALL.iter().map(|quirk| quirk.name()).collect();
                    return refused(format!("no quirk is called `{name}`; known are {} and all", known.join(", ")));
                }
            }
        }
        if set.has(Quirk::AsPlanes) && names.iter().any(|name| name.as_ref() == HALF_TURN) {
            return refused(format!("{} and {HALF_TURN} contradict each other; name one", Quirk::AsPlanes.name()));
        }
        Ok(set)
    }

    /// The names of its quirks.
    pub fn names(self) -> Vec<&'static str> {
        Quirk::ALL.iter().filter(|quirk| self.has(**quirk)).map(|quirk| quirk.name()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quirks_are_switched_on_by_name() {
        let set = Compat::parse(&["planes_policy", "hectoplies_rounding"]).unwrap();
        assert!(set.has(Quirk::AsPlanes) && set.has(Quirk::Hectoplies) && !set.has(Quirk::CanonicalWhite));
        assert_eq!(set.names(), ["hectoplies_rounding", "planes_policy"]);
        assert_eq!(Compat::parse::<&str>(&[]).unwrap(), Compat::NONE);
        assert!(Compat::parse(&["planespolicy"]).unwrap_err().detail().contains("planes_policy"));
        assert!(Quirk::ALL.iter().all(|quirk| quirk.says().ends_with('.')));
    }

    #[test]
    fn all_is_what_todays_lc0_does() {
        let all = Compat::parse(&["all"]).unwrap();
        assert_eq!(all.names().len(), Quirk::ALL.len() - 1);
        assert_eq!((all.mapping(), Compat::NONE.mapping()), (PolicyMapping::HalfTurn, PolicyMapping::HalfTurn));
        assert_eq!(Compat::parse(&["all", "planes_policy"]).unwrap().mapping(), PolicyMapping::AsPlanes);
        assert_eq!(Compat::parse(&[HALF_TURN]).unwrap(), Compat::NONE, "what was a quirk is how it is");
        assert!(Compat::parse(&["planes_policy", HALF_TURN]).unwrap_err().detail().contains("contradict"));
    }

    #[test]
    fn values_out_of_range_are_refused_by_name() {
        assert_eq!(Settings::default().check(), Ok(()));
        for (settings, name) in [
            (Settings { temperature: 0.0, ..Settings::default() }, "dist_temp"),
            (Settings { temperature: f32::NAN, ..Settings::default() }, "dist_temp"),
            (Settings { offset: 0.5, ..Settings::default() }, "dist_offset"),
            (Settings { boost: -0.1, ..Settings::default() }, "dtz_boost"),
            (Settings { theta: 1.5, ..Settings::default() }, "st_q_theta"),
        ] {
            assert_eq!(settings.check().unwrap_err().0, name);
        }
    }
}
