//! The identity of runs of 2048: turned and mirrored runs are found, marked, and on one side of a split by content.

use std::sync::Arc;

use gristmill_engine::pack::metadata::Run;
use gristmill_engine::pack_table::PackTable;
use gristmill_format::g2048::StepRow;
use gristmill_format::g2048::encode::Symmetry;
use gristmill_jobs::content::split_keys;
use gristmill_jobs::dedup::{Relation, dedup};
use gristmill_jobs::mark::MarkOptions;

use crate::fixture::{forms, open, row, steps, write_rows, write_runs};

/// A run, turned, under another id and of another seed.
fn image(run: u32, id: u32, symmetry: Symmetry) -> Vec<StepRow> {
    let turned = |step| {
        let was = row(run, step);
        StepRow {
            run_id: id,
            seed: 5000 + id,
            board: symmetry.board(was.board),
            tile_65536_mask: symmetry.cells(was.tile_65536_mask),
            move_dir: symmetry.direction(was.move_dir),
            ev_legal: symmetry.directions(was.ev_legal),
            branch_evs: symmetry.branches(was.branch_evs),
            ..was
        }
    };
    (0..steps(run)).map(turned).collect()
}

#[test]
fn the_images_of_a_run_are_one_in_every_form_of_rows() {
    for form in forms() {
        let folder = tempfile::tempdir().unwrap();
        // Runs 0 to 2, then run 0 in all eight images, run 1 again, and run 3, which has no row.
        let mut runs: Vec<Vec<StepRow>> = (0..3).map(|run| image(run, run, Symmetry::IDENTITY)).collect();
        for symmetry in Symmetry::ALL {
            runs.push(image(0, runs.len() as u32, symmetry));
        }
        runs.push(image(1, 11, Symmetry::IDENTITY));
        runs.push(Vec::new());
        write_rows(folder.path(), &runs.concat(), &form);
        let listed: Vec<Run> = (0u64..)
            .zip(&runs)
            .map(|(id, rows)| Run {
                id,
                seed: Some(5000 + id),
                steps: rows.len() as u64,
                max_score: 0,
                highest_tile: 0,
            })
            .collect();
        write_runs(folder.path(), &listed);
        let all = open(folder.path()).unwrap();
        let pack: Arc<dyn PackTable> = Arc::clone(all.pack());
        let found = dedup(&pack, &MarkOptions::new("again"), &mut |_, _| {}).unwrap();
        assert_eq!((found.games, found.different), (12, 3));
        let groups: Vec<Vec<(u64, Relation)>> = found
            .groups
            .iter()
            .map(|group| group.games.iter().map(|game| (game.id, game.relation)).collect())
            .collect();
        let mut first = vec![(0, Relation::First), (3, Relation::Same)];
        first.extend((4..11).map(|id| (id, Relation::Mirrored)));
        assert_eq!(groups, [first, vec![(1, Relation::First), (11, Relation::Same)]]);
        let different = all.without("again").unwrap();
        assert_eq!(different.rows().len(), (0..3).map(|run| u64::from(steps(run))).sum::<u64>());
        let keys = split_keys(&pack, &Arc::default(), &mut |_, _| {}).unwrap();
        let mut sides = [0; 2];
        for seed in 0..20 {
            let Ok((train, _)) = all.split_by_keys(0.5, seed, &keys) else { continue };
            let is_in: Vec<bool> = (0..12).map(|id| train.games().contains(&id)).collect();
            assert!((3..11).all(|id| is_in[id] == is_in[0]) && is_in[11] == is_in[1], "seed {seed}");
            sides[usize::from(is_in[0])] += 1;
        }
        assert!(sides.iter().all(|seeds| *seeds > 0), "{sides:?}");
    }
}
