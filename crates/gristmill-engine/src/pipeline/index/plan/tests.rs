//! Plans of a few rows: every batch, place and digest against the order that the plan says.

use std::ops::Range;

use gristmill_format::encode::RandomBits;
use gristmill_stages::config::MixConfig;

use super::*;

fn plan(config: IndexConfig, rows: u64) -> Plan {
    let mut selected = Intervals::default();
    selected.push(100, 100 + rows / 2);
    selected.push(1000, 1000 + rows - rows / 2);
    Plan::new(&config, 7, Arc::new(selected)).unwrap()
}

fn batch(plan: &Plan, number: u64) -> Vec<Pick> {
    let mut picks = Vec::new();
    plan.picks(number, 0, plan.share(number).rows, &mut picks, true).unwrap();
    let mut rows = vec![7];
    plan.numbers(number, 0, plan.share(number).rows, &mut rows);
    assert!(picks.iter().map(|pick| pick.row).eq(rows), "batch {number}");
    picks
}

#[test]
fn ranks_together_fill_the_same_batches_however_many_they_are() {
    for shuffle in [Shuffle::Off, Shuffle::Rows, Shuffle::Blocks { rows: 16, blocks: 3 }] {
        let config = |rank, world_size| IndexConfig {
            batch_size: 12,
            epochs: Some(3),
            shuffle,
            rank,
            world_size,
            ..IndexConfig::default()
        };
        let alone = plan(config(0, 1), 101);
        assert_eq!(alone.batches(), Some(26));
        for number in 0..26 {
            let mut expected = batch(&alone, number);
            expected.sort_unstable_by_key(|pick| (pick.row, pick.bits));
            for world in [2, 3, 4, 6, 12] {
                let mut union: Vec<Pick> =
                    (0..world).flat_map(|rank| batch(&plan(config(rank, world), 101), number)).collect();
                union.sort_unstable_by_key(|pick| (pick.row, pick.bits));
                assert_eq!(union, expected, "batch {number} of {world} ranks, {shuffle:?}");
            }
        }
    }
}

#[test]
fn epochs_have_every_row_once_and_bits_of_their_own() {
    let config = IndexConfig { batch_size: 7, epochs: Some(2), ..IndexConfig::default() };
    let plan = plan(config, 20);
    let all: Vec<Pick> = (0..plan.batches().unwrap()).flat_map(|number| batch(&plan, number)).collect();
    let sorted = |picks: &[Pick]| {
        let mut rows: Vec<u64> = picks.iter().map(|pick| pick.row).collect();
        rows.sort_unstable();
        rows
    };
    let expected: Vec<u64> = (100..110).chain(1000..1010).collect();
    assert_eq!((sorted(&all[..20]), sorted(&all[20..])), (expected.clone(), expected));
    let of = |row: u64, picks: &[Pick]| picks.iter().find(|pick| pick.row == row).unwrap().bits;
    assert_ne!(of(105, &all[..20]), of(105, &all[20..]));
}

#[test]
fn what_is_left_over_is_kept_dropped_or_padded() {
    for (last_batch, batches, last) in [
        (LastBatch::Keep, 3, Share { rows: 2, shown: 2 }),
        (LastBatch::Drop, 2, Share { rows: 4, shown: 4 }),
        (LastBatch::Pad, 3, Share { rows: 2, shown: 4 }),
    ] {
        let config = IndexConfig { batch_size: 8, world_size: 2, last_batch, ..IndexConfig::default() };
        let plan = plan(config, 20);
        assert_eq!((plan.batches(), plan.share(plan.batches().unwrap() - 1)), (Some(batches), last));
    }
    let endless = plan(IndexConfig { epochs: None, ..IndexConfig::default() }, 5);
    assert_eq!((endless.batches(), endless.share(1 << 40)), (None, Share { rows: 1024, shown: 1024 }));
}

#[test]
fn passes_that_are_apart_end_with_their_rows() {
    for (last_batch, sizes) in
        [(LastBatch::Keep, vec![8, 8, 4]), (LastBatch::Drop, vec![8, 8]), (LastBatch::Pad, vec![8, 8, 4])]
    {
        let config = IndexConfig { batch_size: 8, epochs: Some(3), apart: true, last_batch, ..IndexConfig::default() };
        let apart = plan(config.clone(), 20);
        let joined = plan(IndexConfig { apart: false, epochs: None, ..config }, 20);
        let per_pass = sizes.len() as u64;
        assert_eq!((apart.per_pass(), apart.batches()), (Some(per_pass), Some(3 * per_pass)));
        for pass in 0..3 {
            let of = |i: u64| batch(&apart, pass * per_pass + i);
            assert_eq!((0..per_pass).map(|i| of(i).len()).collect::<Vec<_>>(), sizes, "{last_batch:?}");
            let rows: Vec<Pick> = (0..per_pass).flat_map(of).collect();
            let all: Vec<Pick> = (0..8).flat_map(|number| batch(&joined, number)).collect();
            assert_eq!(rows, all[20 * pass as usize..][..rows.len()], "the same order, other borders");
            assert!((0..per_pass).all(|i| apart.epoch(pass * per_pass + i, 0) == pass));
        }
    }
}

#[test]
fn what_cannot_be_is_refused_with_its_field() {
    let rows = Arc::new(Intervals::all(10));
    for (config, word) in [
        (IndexConfig { batch_size: 0, ..IndexConfig::default() }, "batch_size"),
        (IndexConfig { batch_size: 9, world_size: 2, ..IndexConfig::default() }, "batch_size"),
        (IndexConfig { rank: 2, world_size: 2, ..IndexConfig::default() }, "rank"),
        (IndexConfig { world_size: 0, ..IndexConfig::default() }, "rank"),
        (IndexConfig { epochs: Some(0), ..IndexConfig::default() }, "epochs"),
        (IndexConfig { apart: true, last_batch: LastBatch::Drop, ..IndexConfig::default() }, "last_batch"),
        (IndexConfig { epochs: Some(u64::MAX), ..IndexConfig::default() }, "epochs"),
        (IndexConfig { shuffle: Shuffle::Blocks { rows: 0, blocks: 1 }, ..IndexConfig::default() }, "shuffle"),
    ] {
        let error = Plan::new(&config, 0, Arc::clone(&rows)).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
    let none = Plan::new(&IndexConfig::default(), 0, Arc::default()).unwrap_err().to_string();
    assert!(none.contains("no rows"), "{none}");
}

/// The rows of the table that the order has, pass after pass: those of batches of one row.
fn order(config: &IndexConfig, rows: u64, passes: u64) -> Vec<Pick> {
    let one = IndexConfig {
        batch_size: 1,
        rank: 0,
        world_size: 1,
        apart: false,
        epochs: Some(passes),
        skip: Vec::new(),
        last_batch: LastBatch::Keep,
        ..config.clone()
    };
    let one = plan(one, rows);
    let mut picks = Vec::new();
    let pick = |number| {
        one.picks(number, 0, 1, &mut picks, true).unwrap();
        picks[0]
    };
    (0..one.batches().unwrap()).map(pick).collect()
}

#[test]
fn a_pass_that_begins_late_ends_with_the_others() {
    for (last_batch, next, sizes) in [
        (LastBatch::Keep, vec![0, 1, 2, 3, 4, 6, 6, 7, 8], vec![(2, 4), (3, 8), (4, 7), (6, 8)]),
        (LastBatch::Drop, vec![0, 1, 2, 4, 4, 5], vec![(1, 8), (2, 8), (4, 8)]),
    ] {
        let config = IndexConfig { batch_size: 8, epochs: Some(3), apart: true, last_batch, ..IndexConfig::default() };
        let whole = plan(config.clone(), 20);
        assert!(!whole.is_late() && !whole.clone().late(1, 0).is_late());
        assert!((0..9).all(|number| whole.beyond(number) == number));
        let late = whole.late(1, 5);
        assert!(late.is_late());
        assert_eq!(
            (0..next.len() as u64).map(|number| late.beyond(number)).collect::<Vec<_>>(),
            next,
            "{last_batch:?}"
        );
        let all = order(&config, 20, 3);
        for (number, size) in sizes {
            let (pass, within) = (number / late.per_pass().unwrap(), number % late.per_pass().unwrap());
            let first = (20 * pass + 8 * within + if pass == 1 { 5 } else { 0 }) as usize;
            assert_eq!(batch(&late, number), all[first..first + size], "{last_batch:?}, batch {number}");
        }
    }
    let skip = vec!["6..7".parse().unwrap()];
    let config = IndexConfig { batch_size: 8, epochs: Some(3), apart: true, skip, ..IndexConfig::default() };
    assert_eq!(plan(config, 20).late(1, 5).beyond(5), 7, "the next pass begins with a batch that is left out");
}

#[test]
fn batches_that_are_left_out_are_passed_over() {
    let skipping = |text: &str| IndexConfig { skip: vec![text.parse().unwrap()], ..IndexConfig::default() };
    let plan = plan(skipping("2..4"), 20);
    assert_eq!([1, 2, 3, 4].map(|number| plan.beyond(number)), [1, 4, 4, 4]);
    assert_eq!(plan.skips().before(3), [(2, 3)]);
    let e = skips(&skipping("train:2..4")).unwrap_err().to_string();
    assert!(e.contains("names no output"), "{e}");
    let e = skips(&skipping("2..18446744073709551615")).unwrap_err().to_string();
    assert!(e.contains("further than 64 bits count"), "{e}");
}

#[test]
fn a_plan_ends_where_its_passes_do() {
    let config = |epochs| IndexConfig { batch_size: 8, epochs, ..IndexConfig::default() };
    let (three, endless) = (plan(config(Some(3)), 20), plan(config(None), 20));
    assert_eq!(([7, 8].map(|number| three.reaches(number)), three.passes()), ([true, false], Some(3)));
    assert_eq!(([1 << 40, u64::MAX].map(|number| endless.reaches(number)), endless.passes()), ([true, false], None));
    let rank = IndexConfig { rank: 1, world_size: 2, ..config(Some(3)) };
    assert_eq!((0..4).map(|i| plan(rank.clone(), 20).epoch(2, i)).collect::<Vec<_>>(), [0, 0, 1, 1]);
    assert_eq!((2..6).map(|i| three.epoch(2, i)).collect::<Vec<_>>(), [0, 0, 1, 1]);
}

#[test]
fn groups_of_batches_have_all_of_their_rows() {
    let config =
        |shuffle, apart| IndexConfig { batch_size: 5, epochs: Some(2), shuffle, apart, ..IndexConfig::default() };
    for (rows, apart) in [(47, true), (47, false), (60, false), (9, true)] {
        let plan = plan(config(Shuffle::Blocks { rows: 4, blocks: 3 }, apart), rows);
        let last = plan.batches().unwrap();
        for (first, last) in (0..last).flat_map(|first| (first..last).map(move |last| (first, last))) {
            let is_one = plan.epoch(first, 0) == plan.epoch(last, plan.share(last).rows - 1);
            let groups = plan.groups_of(first, last);
            assert_eq!(groups.is_some(), is_one, "{rows}: {first}..={last}");
            let Some(groups) = groups else { continue };
            let all = plan.groups(first).into_iter();
            let theirs = all.filter(|group| group.batches.start <= last && first < group.batches.end);
            let theirs: Vec<Range<u64>> = theirs.flat_map(|group| group.rows).map(|(start, end)| start..end).collect();
            assert_eq!(groups, theirs, "{rows}: {first}..={last}");
            let read = (first..=last).flat_map(|number| batch(&plan, number));
            assert!(
                { read }.all(|pick| groups.iter().any(|rows| rows.contains(&pick.row))),
                "{rows}: {first}..={last}"
            );
        }
    }
    let late = plan(config(Shuffle::Blocks { rows: 4, blocks: 3 }, true), 45).late(1, 40);
    assert!((9..18).all(|number| late.groups_of(number, number).is_some() == (late.beyond(number) == number)));
    assert!(plan(config(Shuffle::Rows, true), 47).groups_of(0, 1).is_none());
}

/// Of each row, and of what is no row of the plan, the batches that it is in.
fn are_found(plan: &Plan, passes: u64) {
    let last = plan.batches().unwrap();
    let mut places: Vec<(u64, u64, u64, u64)> = Vec::new();
    for number in 0..last {
        let rows = batch(plan, number);
        places.extend(rows.iter().zip(0..).map(|(pick, i)| (plan.epoch(number, i as usize), pick.row, number, i)));
    }
    for row in [0, 99, 110, 999, 1010, 5000].into_iter().chain(100..110).chain(1000..1010) {
        for epoch in 0..passes {
            let found: Vec<(u64, u64)> = plan.found(row, epoch).filter(|(number, _)| *number < last).collect();
            let there = places.iter().filter(|(pass, its, _, _)| (*pass, *its) == (epoch, row));
            assert_eq!(found, there.map(|(_, _, number, i)| (*number, *i)).collect::<Vec<_>>(), "{row}, {epoch}");
            assert!(found.len() as u64 <= plan.often(row, epoch), "{row}, {epoch}");
        }
    }
}

#[test]
fn rows_are_found_in_the_batches_that_have_them() {
    for shuffle in [Shuffle::Off, Shuffle::Rows] {
        for (apart, last_batch) in [(false, LastBatch::Keep), (true, LastBatch::Keep), (true, LastBatch::Drop)] {
            let config =
                IndexConfig { batch_size: 8, epochs: Some(3), apart, last_batch, shuffle, ..IndexConfig::default() };
            let plan = plan(config, 20);
            assert!(plan.is_one_order() && !plan.is_mixed());
            are_found(&plan, 3);
            assert!((100..110).chain(1000..1010).all(|row| plan.found(row, 2).count() == 1 && plan.often(row, 2) == 1));
        }
    }
}

/// Two sources, the one of the first 10 rows and the other of the last 10.
fn mixed(packs: bool, rank: u64, world_size: u64) -> Plan {
    let mix =
        MixConfig { sizes: vec![10, 10], weights: vec![3.0, 1.0], length: Some(30), packs, ..MixConfig::default() };
    let mix = Some(mix);
    plan(IndexConfig { batch_size: 12, epochs: Some(3), mix, rank, world_size, ..IndexConfig::default() }, 20)
}

fn picked(plan: &Plan, number: u64, from: usize, to: usize) -> Vec<Pick> {
    let mut picks = Vec::new();
    plan.picks(number, from, to, &mut picks, true).unwrap();
    picks
}

#[test]
fn mixed_sources_give_the_same_rows_however_they_are_asked_for() {
    let alone = mixed(true, 0, 1);
    assert!(alone.is_mixed() && !alone.is_one_order());
    assert_eq!((alone.selected(), alone.batches(), alone.passes()), (30, Some(8), Some(3)));
    let mut bits = std::collections::BTreeMap::<(u64, RandomBits), u64>::new();
    for number in 0..8 {
        let all = picked(&alone, number, 0, alone.share(number).rows);
        assert!(all.iter().all(|pick| (100..110).contains(&pick.row) || (1000..1010).contains(&pick.row)));
        let pieces = [picked(&alone, number, 0, 5), picked(&alone, number, 5, all.len())].concat();
        assert_eq!(pieces, all);
        let halves =
            [0, 1].map(|rank| mixed(true, rank, 2)).map(|plan| picked(&plan, number, 0, plan.share(number).rows));
        let together: Vec<Pick> = all.iter().step_by(2).chain(all.iter().skip(1).step_by(2)).copied().collect();
        assert_eq!(halves.concat(), together);
        all.iter().for_each(|pick| *bits.entry((pick.row, pick.bits)).or_default() += 1);
    }
    assert!(bits.values().all(|times| *times == 1), "a row that comes again has bits of its own");
    // Rows of other tables have no augmentation, and their bits are the pass of their source.
    let tables = mixed(false, 0, 1);
    let rows = |plan: &Plan| picked(plan, 3, 0, 12).iter().map(|pick| pick.bits.bits).collect::<Vec<_>>();
    assert!(rows(&tables).iter().all(|pass| *pass < 10) && rows(&alone).iter().any(|bits| *bits >= 10));
}

#[test]
fn rows_of_mixed_sources_are_found_as_often_as_they_come() {
    let plan = mixed(true, 0, 1);
    let mut times = 0;
    for row in (100..110).chain(1000..1010) {
        let found: Vec<(u64, u64)> = plan.found(row, 1).collect();
        assert!(found.len() as u64 <= plan.often(row, 1));
        times += found.len();
        for (number, i) in found {
            assert_eq!(picked(&plan, number, i as usize, i as usize + 1)[0].row, row);
        }
    }
    assert_eq!((times, plan.found(110, 1).count(), plan.found(5000, 1).count()), (30, 0, 0));
    assert!(plan.often(100, 1) > plan.often(1000, 1), "three of four rows are of the first source");
}

#[test]
fn digests_are_those_of_each_pass_however_a_batch_is_cut() {
    let config = IndexConfig { batch_size: 24, epochs: Some(3), ..IndexConfig::default() };
    let all = order(&config, 20, 3);
    for (rank, world_size) in [(0, 1), (1, 2)] {
        let plan = plan(IndexConfig { rank, world_size, ..config.clone() }, 20);
        for number in 0..plan.batches().unwrap() {
            let rows = batch(&plan, number);
            let mut expected = Digests::default();
            for i in 0..rows.len() as u64 {
                let position = number * 24 + i * world_size + rank;
                expected.rows(position / 20, std::iter::once(all[position as usize].row));
            }
            for cut in [0, 1, rows.len() / 2, rows.len()] {
                let mut digests = Digests::default();
                plan.digest(number, 0, &rows[..cut], &mut digests);
                plan.digest(number, cut, &rows[cut..], &mut digests);
                assert_eq!(digests, expected, "batch {number}, cut at {cut}");
            }
        }
    }
}
