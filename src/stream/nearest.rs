//! Did you mean …?

/// The candidate that a mistyped word most likely means, or `None` when nothing is near.
pub fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let most = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(steps, _)| *steps <= most)
        .min_by_key(|(steps, _)| *steps)
        .map(|(_, candidate)| candidate)
}

/// Letters to add, remove, change or swap with their neighbour to get from one word to the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    let mut previous = None;
    for (i, x) in a.chars().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let at = |row: &[usize], n: usize| row.get(n).copied().unwrap_or(usize::MAX - 1);
            let change = at(&last, j) + usize::from(x != *y);
            let mut best = change.min(at(&last, j + 1) + 1).min(at(&row, j) + 1);
            if j > 0 && previous == Some(*y) && b.get(j - 1) == Some(&x) {
                best = best.min(at(&before_last, j - 1) + 1);
            }
            row.push(best);
        }
        before_last = std::mem::replace(&mut last, row);
        previous = Some(x);
    }
    last.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_mistakes_find_their_word() {
        let words = ["session_root", "context_window", "reserved_tokens"];
        assert_eq!(nearest("sesion_root", words), Some("session_root"));
        assert_eq!(nearest("context_widnow", words), Some("context_window"));
        assert_eq!(nearest("colour", words), None);
        assert_eq!(nearest("", words), None);
        assert_eq!(nearest("cluade", ["claude", "codex"]), Some("claude"));
    }
}
