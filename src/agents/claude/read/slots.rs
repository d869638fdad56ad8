//! Numbers by hash.

/// A number found by a 64-bit hash, 8 bytes a place. Half of the hash stands beside the number, which settles
/// nearly every question without a look at the row that holds the whole of it and may be far away.
#[derive(Debug, Default)]
pub(super) struct Slots {
    places: Vec<Place>,
    filled: usize,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    half: u32,
    /// [`FREE`] or the number.
    number: u32,
}

const FREE: u32 = u32::MAX;

impl Slots {
    /// The number that was inserted with this hash; `whole` gives the hash that belongs to a number.
    pub(super) fn find(&self, hash: u64, whole: impl Fn(u32) -> u64) -> Option<u32> {
        let half = hash as u32;
        self.from(half)
            .map_while(|at| self.places.get(at).filter(|place| place.number != FREE))
            .find(|place| place.half == half && whole(place.number) == hash)
            .map(|place| place.number)
    }

    /// Adds a number below `u32::MAX` under a hash that was not found.
    pub(super) fn insert(&mut self, hash: u64, number: u32) {
        if (self.filled + 1) * 5 > self.places.len() * 4 {
            let size = (self.places.len() * 2).max(1024);
            let old = std::mem::replace(&mut self.places, vec![Place { half: 0, number: FREE }; size]);
            for place in old.into_iter().filter(|place| place.number != FREE) {
                self.put(place);
            }
        }
        self.put(Place { half: hash as u32, number });
        self.filled += 1;
    }

    fn put(&mut self, place: Place) {
        let free = self.from(place.half).find(|&at| self.places.get(at).is_some_and(|p| p.number == FREE));
        if let Some(free) = free.and_then(|at| self.places.get_mut(at)) {
            *free = place;
        }
    }

    /// Every place in the order in which it is tried. The number of places is a power of two.
    fn from(&self, half: u32) -> impl Iterator<Item = usize> + use<> {
        let mask = self.places.len().wrapping_sub(1);
        (0..self.places.len()).map(move |n| (half as usize).wrapping_add(n) & mask)
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
