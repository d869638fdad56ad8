//! Did you mean …?

/// The candidate that a mistyped word most likely means, or `None` when nothing is near.
pub fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let most = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (strsim::osa_distance(word, candidate), candidate))
        .filter(|(steps, _)| *steps <= most)
        .min_by_key(|(steps, _)| *steps)
        .map(|(_, candidate)| candidate)
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
        assert_eq!(nearest("mallrad", ["mallard", "gander"]), Some("mallard"));
    }
}
