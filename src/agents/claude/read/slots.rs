//! Numbers by hash.

use hashbrown::HashTable;

/// A number found by a 64-bit hash, 8 bytes a place. Half of the hash stands beside the number, which settles
/// nearly every question without a look at the row that holds the whole of it and may be far away.
#[derive(Debug, Default)]
pub(super) struct Slots {
    places: HashTable<Place>,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    half: u32,
    number: u32,
}

impl Place {
    /// What the table sorts by. Ids of one client may be alike in half of their bits, so these are spread.
    fn spread(half: u32) -> u64 {
        u64::from(half).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

impl Slots {
    /// The number that was inserted with this hash; `whole` gives the hash that belongs to a number.
    pub(super) fn find(&self, hash: u64, whole: impl Fn(u32) -> u64) -> Option<u32> {
        let half = hash as u32;
        let same = |place: &Place| place.half == half && whole(place.number) == hash;
        self.places.find(Place::spread(half), same).map(|place| place.number)
    }

    /// Adds a number under a hash that was not found.
    pub(super) fn insert(&mut self, hash: u64, number: u32) {
        let place = Place { half: hash as u32, number };
        self.places.insert_unique(Place::spread(place.half), place, |place| Place::spread(place.half));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn hashes_that_share_a_half_are_told_apart() {
        let mut slots = Slots::default();
        let mut plain: HashMap<u64, u32> = HashMap::new();
        let mut hashes: Vec<u64> = Vec::new();
        for n in 0..5000u64 {
            // half of them differ in the upper half only
            let hash = ((n % 7) << 40) + (n / 2) * 0x9e37;
            let whole = |number: u32| hashes[number as usize];
            let found = slots.find(hash, whole);
            assert_eq!(found, plain.get(&hash).copied());
            if found.is_none() {
                slots.insert(hash, hashes.len() as u32);
                plain.insert(hash, hashes.len() as u32);
                hashes.push(hash);
            }
        }
        assert!(plain.len() > 2500);
        for (hash, number) in &plain {
            assert_eq!(slots.find(*hash, |n| hashes[n as usize]), Some(*number));
        }
        assert_eq!(slots.find(u64::MAX, |n| hashes[n as usize]), None);
    }
}
