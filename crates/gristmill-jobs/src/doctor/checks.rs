//! The table of the doctor's checks: what each is called, which faults and signs it takes, what causes it, what to do.
//! Data only; every finding is a row of it.

use crate::work::findings::Nature;

/// One check.
#[derive(Debug)]
pub struct Check {
    /// Its name, in reports and on the page of the guide.
    pub name: &'static str,
    /// What a finding of it says.
    pub says: &'static str,
    /// What causes it, most often.
    pub cause: &'static str,
    /// What to do.
    pub remedy: &'static str,
    /// The rules whose breaches it takes, and the kinds of damage.
    pub(super) rules: &'static [&'static str],
}

const fn check(
    name: &'static str,
    says: &'static str,
    cause: &'static str,
    remedy: &'static str,
    rules: &'static [&'static str],
) -> Check {
    Check { name, says, cause, remedy, rules }
}

/// What could not be read, and what is damaged; the rules that no other row takes.
const UNREADABLE: &str = "unreadable";
const DAMAGED: &str = "damaged";
const FOREIGN: &str = "foreign";
const RULES: &str = "rules";

/// All checks, in the order of reports.
pub const CHECKS: [Check; 21] = [
    check(
        UNREADABLE,
        "the system refused to read",
        "permissions, a disk or mount that fails, a link to nothing",
        "make it readable and ask again: what it holds is unknown",
        &[],
    ),
    check(
        DAMAGED,
        "files or chunks whose bytes are no data",
        "a writer that was killed, an upload that was cut, a disk that fails",
        "fetch or write them again; `gristmill verify` lists all, and how many whole records can be had from each",
        &[],
    ),
    check(
        "nothing",
        "places and files without data",
        "another folder than was meant, or a writer that made nothing",
        "name the right place, and see what the writer said",
        &["empty"],
    ),
    check(
        FOREIGN,
        "files of a form that is not read as it is",
        "rows or records of another program or version",
        "`gristmill convert` brings known forms to one that is read; the detail says which",
        &["unsupported", "unknown_format", "unknown_version", "unfit"],
    ),
    check(
        "illegal_policy",
        "policies that give moves which are illegal, or do not sum to 1",
        "another order of moves, a mask that was not applied, a converter that lost the side to move",
        "write the policy again by the documented move index; `gristmill filter` keeps the games that break no rule",
        &["policy_values", "policy_sum", "policy_moves", "ev_legal", "evs"],
    ),
    check(
        "illegal_move",
        "moves or actions that are not possible where they are played",
        "another numbering of moves or actions, or steps of two games that were mixed up",
        "check the numbering against the format's page; leave the games out with `gristmill filter`",
        &["moves", "played_idx", "best_idx", "next_moves", "move", "action_space"],
    ),
    check(
        "result",
        "results that contradict the boards or each other",
        "a result seen from the wrong side, or games that were adjudicated after the fact",
        "find out whose view the writer took; `gristmill rescore` writes results from tablebases",
        &["result", "outcome", "plies_left", "highest_tile"],
    ),
    check(
        "numbers",
        "numbers that are not finite, or out of their range",
        "a training run that diverged, or bytes read in another layout",
        "leave these games out with `gristmill filter`, and look for the network or writer that made them",
        &["nan", "values", "finite", "out_of_range"],
    ),
    check(
        "order",
        "steps that do not follow from those before",
        "steps were lost, written twice, shuffled, or joined from several episodes",
        "write the episodes again in order of time; `gristmill convert` sorts demonstrations by `frame`",
        &["continuity", "step_index", "steps", "frame", "next_obs", "history", "side_to_move", "rule50", "repetition"],
    ),
    check(
        "spaces",
        "fields that are missing, or unlike what the data say of themselves",
        "a wrapper that changed observations or actions after the spaces were written",
        "record the data with the spaces of the wrapped environment, or convert them with the right ones",
        &["fields", "observation_space"],
    ),
    check(
        RULES,
        "other rules of the game or of the format that are broken",
        "a writer of another version, or data that were changed by hand",
        "`gristmill verify` lists each breach with its place; the format's page says what each rule expects",
        &[],
    ),
    check(
        "no_end",
        "episodes or games that stop without an end",
        "a run that was stopped, a limit of steps that was not recorded, a shard that ends within an episode",
        "record `truncated` where episodes are cut, and keep whole episodes in a file; values at such ends are guesses",
        &["no_end", "truncated"],
    ),
    check(
        "black",
        "pictures that are black from the first step to the last",
        "rendering without a display, or a frame buffer that was read before it was drawn",
        "record with a renderer that works off screen, and look at a strip: `gristmill inspect FILE --png DIR`",
        &["black"],
    ),
    check(
        "frozen_frames",
        "observations that never change within an episode",
        "a stuck environment, or one buffer that was stored again and again instead of copies",
        "copy each observation before the next step, and record again",
        &["frozen_frames"],
    ),
    check(
        "frozen_values",
        "values that are the same in every frame",
        "a field that was never filled, a network that gives one answer, a stuck agent",
        "train on no target that says nothing: find what should write it",
        &["frozen_values"],
    ),
    check(
        "one_result",
        "games that all have the same result",
        "a result that was never written, or games that were filtered by it",
        "look at `gristmill stats`; values that are trained on them learn a constant",
        &["one_result"],
    ),
    check(
        "drift_fields",
        "files whose records have other fields, types or shapes than those before",
        "a recorder that changed its version or wrapper between shards",
        "convert all of them to one layout, or feed them as data sets of their own",
        &["drift_fields"],
    ),
    check(
        "drift_scale",
        "files whose observations are of another scale than those before",
        "some shards were divided by 255, or normalized, and others were not",
        "bring all shards to one scale before they are mixed",
        &["drift_scale"],
    ),
    check(
        "duplicates",
        "games that are there more than once",
        "folders copied into each other, an uploader that tried again, one seed used twice",
        "`gristmill dedup PACK` marks all but the first in a pack; for files leave the copies out",
        &["duplicates"],
    ),
    check(
        "mirrors",
        "games that are images of others under a symmetry of the game",
        "augmentation that was written to disk",
        "`gristmill dedup PACK` marks them; encoders make images by themselves",
        &["mirrors"],
    ),
    check(
        "leakage",
        "games of the held-out data that are in the data, too",
        "a split by position or by file instead of by game, or copies on both sides",
        "split by game: `gristmill split`, `feed --split`, or `.split()` of a selection",
        &["leakage"],
    ),
];

/// The check that takes a fault of this nature and name. A reader may refuse a game by a rule; `truncated` names two things.
pub(super) fn of(nature: Nature, name: &str) -> &'static Check {
    let named = CHECKS.iter().find(|check| check.rules.contains(&name));
    let other = match nature {
        Nature::Unread => UNREADABLE,
        Nature::Damage if name == "truncated" => DAMAGED,
        Nature::Damage => named.map_or(DAMAGED, |check| check.name),
        Nature::Rule => named.map_or(RULES, |check| check.name),
    };
    CHECKS.iter().find(|check| check.name == other).unwrap_or(&CHECKS[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_has_a_check_and_every_check_says_what_to_do() {
        for check in &CHECKS {
            assert!(!check.says.is_empty() && !check.cause.is_empty() && !check.remedy.is_empty());
            assert_eq!(CHECKS.iter().filter(|other| other.name == check.name).count(), 1);
            for rule in check.rules {
                assert_eq!(of(Nature::Rule, rule).name, check.name);
            }
        }
        assert_eq!(of(Nature::Damage, "truncated").name, DAMAGED);
        assert_eq!(of(Nature::Rule, "truncated").name, "no_end");
        assert_eq!(of(Nature::Damage, "result").name, "result");
        assert_eq!(of(Nature::Unread, "io").name, UNREADABLE);
        assert_eq!(of(Nature::Rule, "castling").name, RULES);
    }
}
