//! Ledgers that a crash or a full disk cut off anywhere: a run that saved nothing begins again in them, another resumes.

use std::path::{Path, PathBuf};

use gristmill_engine::config::{EncoderConfig, IndexConfig};
use gristmill_engine::{Error, IndexLoader, Next};
use gristmill_plans::verify_run::{Against, RunVerification, VerifyRunOptions, verify_run};

use crate::fixture::{Form, open, write_pack};

struct Run(tempfile::TempDir);

impl Run {
    fn new() -> Self {
        let run = Run(tempfile::tempdir().unwrap());
        std::fs::create_dir(run.at("pack")).unwrap();
        write_pack(&run.at("pack"), 6, &Form::default());
        run
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn rank(&self, rank: u64, world_size: u64) -> IndexLoader {
        let (epochs, ledger) = (Some(2), Some(self.at("ledger")));
        let encoder = EncoderConfig::G2048(Default::default());
        let config =
            IndexConfig { encoder, batch_size: 24, epochs, rank, world_size, ledger, ..IndexConfig::default() };
        IndexLoader::new(open(&self.at("pack")).unwrap().input(), config).unwrap()
    }

    fn verify(&self) -> RunVerification {
        let against = Against::Pack(self.at("pack"));
        verify_run(&VerifyRunOptions { ledgers: vec![self.at("ledger")], against, max_rows: 9 }, &mut |_, _| ())
            .unwrap()
    }
}

fn take(loader: &IndexLoader, batches: usize) -> usize {
    (0..batches).take_while(|_| matches!(loader.next("", None).unwrap(), Next::Batch(_))).count()
}

fn refused(loader: &IndexLoader) -> String {
    loader.start().unwrap_err().to_string()
}

fn cut(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_run_that_died_before_its_first_save_begins_again_at_every_cut() {
    let run = Run::new();
    let first = run.rank(0, 1);
    assert_eq!(take(&first, 4), 4);
    let seed = first.config().seed;
    // What a stop writes, a crash may have written before any save.
    first.stop();
    drop(first);
    let bytes = std::fs::read(run.at("ledger")).unwrap();
    assert!(bytes.len() > 400, "{}", bytes.len());
    let begun = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for at in 0..=bytes.len() {
        cut(&run.at("ledger"), &bytes[..at]);
        let again = run.rank(0, 1);
        again.start().unwrap_or_else(|e| panic!("cut at {at}: {e}"));
        assert_eq!(at >= begun, again.config().seed == seed, "the seed that was drawn first, cut at {at}");
        if at % 50 == 0 || at == bytes.len() {
            take(&again, 1000);
            drop(again);
            let found = run.verify();
            assert!(found.ok && found.outputs[0].complete, "cut at {at}: {found:#?}");
            assert_eq!(found.starts, if at >= begun { 2 } else { 1 });
        }
    }
    let ended = refused(&run.rank(0, 1));
    assert!(ended.contains("has ended") && ended.contains("name another file"), "{ended}");
}

#[test]
fn a_run_that_saved_is_resumed_at_every_cut_and_never_begun_again() {
    let run = Run::new();
    let first = run.rank(0, 1);
    assert_eq!(take(&first, 2), 2);
    let state = first.state().unwrap();
    let saved = std::fs::read(run.at("ledger")).unwrap().len();
    take(&first, 2);
    first.stop();
    drop(first);
    let bytes = std::fs::read(run.at("ledger")).unwrap();
    assert!(bytes.len() > saved);
    for at in saved..=bytes.len() {
        cut(&run.at("ledger"), &bytes[..at]);
        let new = refused(&run.rank(0, 1));
        assert!(new.contains("resume from its state"), "cut at {at}: {new}");
        let again = run.rank(0, 1);
        again.restore(&state).unwrap();
        if at % 20 == 0 {
            take(&again, 1000);
        } else {
            again.start().unwrap();
        }
        drop(again);
        let found = run.verify();
        assert!(found.ok && found.outputs[0].complete == (at % 20 == 0), "cut at {at}: {found:#?}");
    }
}

#[test]
fn ranks_begin_again_together_and_a_ledger_has_one_writer() {
    let run = Run::new();
    let ranks = [0, 1].map(|rank| run.rank(rank, 2));
    // Ranks without a seed of their own take the one that is noted.
    assert_eq!(take(&ranks[0], 2) + take(&ranks[1], 3), 5);
    let busy = run.rank(0, 2).start().unwrap_err();
    assert!(matches!(&busy, Error::Path { kind: std::io::ErrorKind::ResourceBusy, .. }), "{busy}");
    assert!(busy.to_string().contains("ledger.0-of-2: another loader"), "{busy}");
    drop(ranks);
    for _ in 0..2 {
        let ranks = [0, 1].map(|rank| run.rank(rank, 2));
        ranks.iter().for_each(|rank| assert_eq!(take(rank, 2), 2));
    }
    let alone = run.rank(0, 1);
    take(&alone, 1000);
    alone.stop();
    alone.state().unwrap();
    let found = run.verify();
    assert!(found.ok && found.outputs[0].complete && found.outputs[0].discarded_batches > 0, "{found:#?}");
}
