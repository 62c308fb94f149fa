//! A value for each chunk of a sliding window, by the chunk's place in it: places only grow, old ones are forgotten.
//! A place that was never set has the value that stands for nothing; nothing is stored for those beyond the last.

use std::collections::VecDeque;

/// Values by place.
#[derive(Debug, Clone)]
pub(super) struct Places<T> {
    first: u64,
    values: VecDeque<T>,
    unset: T,
}

impl<T: Copy> Places<T> {
    /// No values; `unset` is what a place has that was never set.
    pub(crate) fn new(unset: T) -> Self {
        Places { first: 0, values: VecDeque::new(), unset }
    }

    /// The values of the places from `first` on.
    pub(super) fn from_parts(first: u64, values: Vec<T>, unset: T) -> Self {
        Places { first, values: values.into(), unset }
    }

    fn index(&self, place: u64) -> Option<usize> {
        usize::try_from(place.checked_sub(self.first)?).ok()
    }

    pub(super) fn get(&self, place: u64) -> T {
        self.index(place).and_then(|i| self.values.get(i)).copied().unwrap_or(self.unset)
    }

    /// Sets the value of a place; one that was forgotten stays so.
    pub(super) fn set(&mut self, place: u64, value: T) {
        let Some(i) = self.index(place) else { return };
        if self.values.len() <= i {
            self.values.resize(i + 1, self.unset);
        }
        self.values[i] = value;
    }

    /// Forgets the places below `first`.
    pub(super) fn forget_below(&mut self, first: u64) {
        while self.first < first && self.values.pop_front().is_some() {
            self.first += 1;
        }
        self.first = self.first.max(first);
    }

    /// The first place that is not forgotten, and the values from there on.
    pub(super) fn parts(&self) -> (u64, Vec<T>) {
        (self.first, self.values.iter().copied().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_with_their_places_while_the_window_slides() {
        let mut places = Places::new(0u16);
        places.set(4, 40);
        assert_eq!([3, 4, 5].map(|p| places.get(p)), [0, 40, 0]);
        places.forget_below(3);
        places.set(2, 20);
        places.set(6, 60);
        assert_eq!([2, 4, 6].map(|p| places.get(p)), [0, 40, 60]);
        assert_eq!(places.parts(), (3, vec![0, 40, 0, 60]));
        places.forget_below(100);
        places.set(100, 1);
        assert_eq!((places.get(6), places.get(100), places.parts().0), (0, 1, 100));
    }
}
