//! Step rows, read several times, or the counts that shares made of them -> a tokenizer whose bins hold equal numbers of differences.
//! The edges are those of sorting all differences at once, in memory that does not grow with the rows.

use gristmill_bytes::error::{Error, Kind, Result};
use serde_json::{Map, Value, json};

use super::found::Found;
use super::quantile::Quantiles;
use super::tokenizer::{MAX_BINS, Tokenizer, Valuation, ZERO_TOLERANCE};
use crate::g2048::row::StepRow;

/// The difference that equal edges are moved apart by.
const APART: f64 = 1e-9;

/// The options of a fit.
#[derive(Debug, Clone, PartialEq)]
pub struct FitOptions {
    /// Bins of each kind of valuation.
    pub num_bins: usize,
    /// Search branches below this advantage over `board_eval` are failures.
    pub failure_cutoff: i64,
    /// Tuple values at most so large are failures, differences at most so large are ties.
    pub zero_tolerance: f64,
    /// The kinds of valuation to fit bins for; rows of others are left out.
    pub kinds: Vec<Valuation>,
}

impl FitOptions {
    /// The kinds of these names, as [`FitOptions::kinds`].
    ///
    /// Errors: `OutOfRange` for a name that is none, with those that there are.
    pub fn kinds_named<S: AsRef<str>>(names: &[S]) -> Result<Vec<Valuation>> {
        let kind = |name: &S| {
            Valuation::named(name.as_ref()).ok_or_else(|| {
                let known = Valuation::ALL.map(Valuation::name).join(", ");
                let detail = format!("`{}` is no valuation that tokenizers know: {known}", name.as_ref());
                Error::new(Kind::OutOfRange, detail)
            })
        };
        names.iter().map(kind).collect()
    }

    /// Errors: `OutOfRange` for a number of bins that is not 1 to [`MAX_BINS`], a tolerance that is negative, and no kinds.
    pub fn check(&self) -> Result<()> {
        if !(1..=MAX_BINS).contains(&self.num_bins) {
            let detail = format!("{} bins, expected 1 to {MAX_BINS}", self.num_bins);
            return Err(Error::new(Kind::OutOfRange, detail));
        }
        if self.kinds.is_empty() {
            return Err(Error::new(Kind::OutOfRange, "no valuations to fit bins for; name one at least"));
        }
        if !(self.zero_tolerance >= 0.0 && self.zero_tolerance.is_finite()) {
            let detail = format!("zero tolerance {}, expected 0 or more", self.zero_tolerance);
            return Err(Error::new(Kind::OutOfRange, detail));
        }
        Ok(())
    }
}

impl Default for FitOptions {
    fn default() -> Self {
        FitOptions {
            num_bins: 32,
            failure_cutoff: -1500,
            zero_tolerance: ZERO_TOLERANCE,
            kinds: Valuation::ALL.to_vec(),
        }
    }
}

/// A fit under way.
#[derive(Debug, Clone)]
pub struct Fit {
    options: FitOptions,
    /// By [`Valuation`].
    quantiles: [Quantiles; 3],
    /// In the first pass.
    found: Found,
    first: bool,
}

impl Fit {
    /// A fit before its first pass.
    ///
    /// Errors: as [`FitOptions::check`].
    pub fn new(options: FitOptions) -> Result<Self> {
        options.check()?;
        let quantiles = [(); 3].map(|()| Quantiles::new(options.num_bins + 1));
        Ok(Fit { options, quantiles, found: Found::default(), first: true })
    }

    /// Takes in a row of the current pass; `kind` is what its valuation id stands for, if the tokenizer knows it.
    pub fn add(&mut self, kind: Option<Valuation>, row: &StepRow) {
        let mut again = Found::default();
        let found = if self.first { &mut self.found } else { &mut again };
        found.add(&self.options, kind, row, &mut |kind, difference| self.quantiles[kind as usize].add(difference, 1));
    }

    /// Adds the counts of some rows. Passes after the first ignore the call. [`Fit::add_difference`] adds the differences of the rows.
    pub fn join(&mut self, found: &Found) {
        if self.first {
            self.found.join(found);
        }
    }

    /// Takes in a difference that [`Found::add`] found `times` times in the rows of the current pass.
    pub fn add_difference(&mut self, kind: Valuation, difference: f64, times: u64) {
        self.quantiles[kind as usize].add(difference, times);
    }

    /// Ends a pass; whether another one over the same rows is needed.
    pub fn end_pass(&mut self) -> bool {
        self.first = false;
        let mut more = false;
        for quantiles in &mut self.quantiles {
            more |= quantiles.end_pass();
        }
        more
    }

    /// The counts of all rows, after the first pass.
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// The tokenizer, when no further pass is needed; `metadata` is kept in it beside what was counted.
    ///
    /// Errors: `Missing` for a kind of valuation with fewer differences than bins.
    pub fn finish(self, mut metadata: Map<String, Value>) -> Result<Tokenizer> {
        let mut edges = [vec![], vec![], vec![]];
        let mut counted = Map::new();
        for kind in Valuation::ALL.into_iter().filter(|kind| self.options.kinds.contains(kind)) {
            let found = self.found.counts(kind);
            if found.used < self.options.num_bins as u64 {
                let detail = format!(
                    "{} losing branches of `{}` for {} bins; each kind needs at least one for each bin: take more games, \
                     fewer bins, or only the valuations that the rows have (`--valuations`)",
                    found.used,
                    kind.name(),
                    self.options.num_bins
                );
                return Err(Error::new(Kind::Missing, detail));
            }
            let Some(quantiles) = self.quantiles[kind as usize].values() else {
                return Err(Error::new(Kind::Missing, "a pass over the rows is missing"));
            };
            edges[kind as usize] = apart(quantiles);
            counted.insert(kind.name().to_owned(), found.used.into());
        }
        metadata.insert("counts".into(), counted.into());
        metadata.insert("search_value_scale".into(), json!(1000));
        Tokenizer::new(edges, self.options.failure_cutoff, metadata)
    }
}

/// Quantiles as edges: the last raised to 0, equal ones moved apart.
fn apart(mut edges: Vec<f64>) -> Vec<f64> {
    if let Some(last) = edges.last_mut() {
        *last = last.max(0.0);
    }
    for i in 1..edges.len() {
        if edges[i] <= edges[i - 1] {
            edges[i] = (edges[i - 1] + APART).max(edges[i - 1].next_up());
        }
    }
    edges
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(values: [f32; 4], chosen: u8, legal: u8) -> StepRow {
        StepRow { branch_evs: values, move_dir: chosen, ev_legal: legal, board_eval: 500, ..StepRow::default() }
    }

    fn fit(options: FitOptions, rows: &[(Option<Valuation>, StepRow)]) -> Result<(Tokenizer, Fit)> {
        let mut fit = Fit::new(options)?;
        loop {
            rows.iter().for_each(|(kind, row)| fit.add(*kind, row));
            if !fit.end_pass() {
                break;
            }
        }
        Ok((fit.clone().finish(Map::new())?, fit))
    }

    fn rows() -> Vec<(Option<Valuation>, StepRow)> {
        let mut rows = Vec::new();
        for kind in Valuation::ALL {
            rows.push((Some(kind), row([0.9, 0.8, 0.6, 0.0], 0, 0b0111)));
            rows.push((Some(kind), row([0.5, 0.7, 0.7, 0.1], 1, 0b1111)));
        }
        rows
    }

    /// Acceptance case 13 of spec 7: increasing edges, one more than bins, the last 0.
    #[test]
    fn a_handful_of_rows_gives_increasing_edges_that_end_at_zero() {
        let mut more = rows();
        more.push((None, row([0.5; 4], 0, 15)));
        more.push((Some(Valuation::Search), row([0.5; 4], 4, 15)));
        more.push((Some(Valuation::Search), row([0.5; 4], 3, 7)));
        more.push((Some(Valuation::Search), row([0.5, f32::NAN, 0.5, 0.5], 3, 15)));
        let options = FitOptions { num_bins: 4, ..FitOptions::default() };
        let (tokenizer, fit) = fit(options, &more).unwrap();
        for kind in Valuation::ALL {
            let edges = tokenizer.bins(kind).unwrap().edges();
            assert!(edges.len() == 5 && edges.windows(2).all(|pair| pair[0] < pair[1]) && edges[4] == 0.0, "{edges:?}");
            let counts = fit.found().counts(kind);
            assert_eq!((counts.rows, counts.branches, counts.ties, counts.used), (2, 5, 1, 4), "{kind:?}");
        }
        let search = tokenizer.bins(Valuation::Search).unwrap().edges();
        assert_eq!((search[0], search[1]), (-600.0, -375.0));
        assert_eq!((fit.found().other, fit.found().unusable), (1, 3));
    }

    #[test]
    fn too_few_differences_and_senseless_options_are_refused() {
        let five = FitOptions { num_bins: 5, ..FitOptions::default() };
        let error = fit(five, &rows()).unwrap_err();
        assert!(error.kind() == Kind::Missing && error.detail().contains("4 losing branches of `search`"), "{error}");
        for options in [
            FitOptions { num_bins: 0, ..FitOptions::default() },
            FitOptions { num_bins: MAX_BINS + 1, ..FitOptions::default() },
            FitOptions { zero_tolerance: f64::NAN, ..FitOptions::default() },
            FitOptions { kinds: vec![], ..FitOptions::default() },
        ] {
            assert!(Fit::new(options).is_err());
        }
    }

    #[test]
    fn chosen_valuations_are_fitted_as_if_the_others_were_not_there() {
        let options = FitOptions { num_bins: 4, ..FitOptions::default() };
        let (all, _) = fit(options.clone(), &rows()).unwrap();
        let only = FitOptions { kinds: FitOptions::kinds_named(&["search"]).unwrap(), ..options };
        let (some, counted) = fit(only, &rows()).unwrap();
        assert_eq!(some.bins(Valuation::Search), all.bins(Valuation::Search));
        assert_eq!((some.bins(Valuation::Tuple10), counted.found().other, counted.found().unusable), (None, 4, 0));
        let e = FitOptions::kinds_named(&["search", "tuple12"]).unwrap_err();
        assert!(e.detail().contains("`tuple12`") && e.detail().contains("tuple10"), "{e}");
    }

    #[test]
    fn equal_edges_are_moved_apart_at_any_size() {
        let edges = apart(vec![-1e12, -1e12, -1e12, -0.5, -0.5]);
        assert!(edges.windows(2).all(|pair| pair[0] < pair[1]), "{edges:?}");
        assert_eq!(edges[4], 0.0);
    }
}
