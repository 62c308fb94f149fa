//! A run -> runs that are one thing smaller, for what shrinks a failing one. Knows nothing of runs.

/// Runs that are one thing smaller than a run.
pub struct Less<'a, C> {
    of: &'a C,
    found: Vec<C>,
}

impl<'a, C: Clone + PartialEq> Less<'a, C> {
    /// None yet.
    pub fn of(of: &'a C) -> Self {
        Less { of, found: Vec::new() }
    }

    /// Takes the run as it is after a change, unless it is the same.
    pub fn push(&mut self, change: impl FnOnce(&mut C)) {
        let mut other = self.of.clone();
        change(&mut other);
        if other != *self.of {
            self.found.push(other);
        }
    }

    /// All of them.
    pub fn found(self) -> Vec<C> {
        self.found
    }
}
