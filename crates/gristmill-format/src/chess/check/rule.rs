//! The rules by which a game is judged: their names, what each says, and sets of them.
//! Judges nothing itself.

use std::fmt;

use gristmill_bytes::error::{Error, Kind, Result};

macro_rules! rules {
    ($($(#[doc = $doc:literal])* $rule:ident = $name:literal,)*) => {
        /// One rule. A breach of it names the frame and the byte.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Rule {
            $($(#[doc = $doc])* $rule,)*
        }

        impl Rule {
            /// All of them, in order.
            pub const ALL: [Rule; NAMES.len()] = [$(Rule::$rule,)*];

            /// What it says, in a sentence.
            pub fn says(self) -> &'static str {
                match self {
                    $(Rule::$rule => concat!($($doc),*).trim_ascii(),)*
                }
            }
        }

        /// The name of each rule, in order of [`Rule::ALL`].
        pub const NAMES: &[&str] = &[$($name,)*];

        /// Names of counts of games that each rule refused, in the same order.
        pub const REFUSED_BY: &[&str] = &[$(concat!("refused_by_", $name),)*];
    };
}

rules! {
    /// The version fits the size of the record and is the same in the whole game.
    Version = "version",
    /// The input format is known and the same in the whole game.
    InputFormat = "input_format",
    /// Every number is finite, but for unknown `orig_*`, illegal moves of old data and the `q_st` of V6.
    Nan = "nan",
    /// Values are in range: q from -1 to 1, d from 0 to 1, neither chance of a win negative, m and divergence >= 0.
    Values = "values",
    /// Castling bytes have their form, kings and rooks stand where rights say, and rights go as the moves take them.
    Castling = "castling",
    /// The side to move has its form and alternates.
    SideToMove = "side_to_move",
    /// The en-passant byte of canonical formats names the pawn that an enemy pawn beside it may take.
    EnPassant = "en_passant",
    /// The fifty-move counter is at most 100, starts again at captures and pawn moves and else grows by one.
    Rule50 = "rule50",
    /// Transform and black bits stand in canonical formats only; how the game ended is the same in all frames.
    Flags = "flags",
    /// The transform of canonical formats is the one that the position asks for.
    Transform = "transform",
    /// One king a side, no two men on one square, no pawn on the outer ranks, no more men than a game can give.
    Men = "men",
    /// The side that just moved is not in check.
    Position = "position",
    /// The seven older boards are those of the frames before.
    History = "history",
    /// The repetition planes are all ones or zero, and tell what the game says.
    Repetition = "repetition",
    /// Each probability is from 0 to 1, or -1 (old data: NaN) for an illegal move, and some move is legal.
    PolicyValues = "policy_values",
    /// The probabilities of the legal moves sum to 1 within 0.01.
    PolicySum = "policy_sum",
    /// The moves that the policy marks as legal are the legal ones.
    PolicyMoves = "policy_moves",
    /// A legal move leads from each position to the next.
    Moves = "moves",
    /// The index of the move played is that of a legal move, and of the one that led to the next position.
    PlayedIdx = "played_idx",
    /// The index of the best move is that of a legal move.
    BestIdx = "best_idx",
    /// The next two moves of V7 are those that the following frames played.
    NextMoves = "next_moves",
    /// The result is a win, a draw or a loss, the same for both sides in the whole game; a rescorer's changes are
    /// taken where it may make them.
    Result = "result",
    /// The plies left never grow from one ply to the next.
    PliesLeft = "plies_left",
    /// Either all frames have visits or none has (data of old versions).
    Visits = "visits",
    /// Bytes without a meaning are zero.
    Reserved = "reserved",
}

impl Rule {
    /// Its name in configurations, counts and verdicts.
    pub fn name(self) -> &'static str {
        NAMES[self as usize]
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules(u32);

impl Rules {
    /// No rule.
    pub const NONE: Rules = Rules(0);

    /// Every rule.
    pub const ALL: Rules = Rules((1 << Rule::ALL.len()) - 1);

    /// All but `visits` and `reserved`, which sound data of other writers may break.
    pub const DEFAULT: Rules = Rules::ALL.without(Rule::Visits).without(Rule::Reserved);

    /// This set and `rule`.
    #[must_use]
    pub const fn with(self, rule: Rule) -> Self {
        Rules(self.0 | 1 << rule as u32)
    }

    /// This set without `rule`.
    #[must_use]
    pub const fn without(self, rule: Rule) -> Self {
        Rules(self.0 & !(1 << rule as u32))
    }

    /// Whether `rule` is in the set.
    pub const fn has(self, rule: Rule) -> bool {
        self.0 >> rule as u32 & 1 != 0
    }

    /// Its rules, in order.
    pub fn iter(self) -> impl Iterator<Item = Rule> {
        Rule::ALL.into_iter().filter(move |rule| self.has(*rule))
    }

    /// Reads names from left to right: a rule's name, `default` or `all` adds, the same after `-` takes away.
    /// A list that begins with `-` starts from `default`.
    ///
    /// Errors: `OutOfRange` for a name that is not known, and for a list that leaves no rule.
    pub fn parse<S: AsRef<str>>(names: &[S]) -> Result<Self> {
        let first = names.first().map_or("", AsRef::as_ref);
        let mut rules = if first.starts_with('-') { Rules::DEFAULT } else { Rules::NONE };
        for name in names {
            let name = name.as_ref();
            let (adds, bare) = name.strip_prefix('-').map_or((true, name), |bare| (false, bare));
            let some = match bare {
                "default" => Rules::DEFAULT,
                "all" => Rules::ALL,
                _ => match NAMES.iter().position(|known| *known == bare) {
                    Some(i) => Rules::NONE.with(Rule::ALL[i]),
                    None => {
                        let detail =
                            format!("no rule is called `{bare}`; known are default, all, {}", NAMES.join(", "));
                        return Err(Error::new(Kind::OutOfRange, detail));
                    }
                },
            };
            rules = Rules(if adds { rules.0 | some.0 } else { rules.0 & !some.0 });
        }
        match rules {
            Rules::NONE => Err(Error::new(Kind::OutOfRange, "no rule is left to judge by; name some, or `default`")),
            rules => Ok(rules),
        }
    }
}

impl Default for Rules {
    fn default() -> Self {
        Rules::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_add_and_take_away() {
        assert_eq!(Rules::parse(&["all"]).unwrap(), Rules::ALL);
        assert_eq!(Rules::parse(&["default", "visits", "reserved"]).unwrap(), Rules::ALL);
        assert_eq!(Rules::parse(&["-men"]).unwrap(), Rules::DEFAULT.without(Rule::Men));
        assert_eq!(Rules::parse(&["men", "result", "-men"]).unwrap(), Rules::NONE.with(Rule::Result));
        for wrong in [&["mne"][..], &["men", "-men"], &[], &["--men"], &[""]] {
            assert_eq!(Rules::parse(wrong).unwrap_err().kind(), Kind::OutOfRange, "{wrong:?}");
        }
    }

    #[test]
    fn each_rule_has_a_name_and_a_sentence_of_its_own() {
        for (i, rule) in Rule::ALL.into_iter().enumerate() {
            assert_eq!(rule.name(), NAMES[i]);
            assert_eq!(Rules::parse(&[rule.name()]).unwrap().iter().collect::<Vec<_>>(), [rule]);
            assert!(rule.says().ends_with('.') && !rule.says().contains("  "), "{}", rule.says());
        }
    }
}
