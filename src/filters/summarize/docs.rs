//! What documents say that the model wrote: decisions with their reasons, what was rejected, limits and scope.

use super::calls::Call;
use super::findings::plain;
use super::prompts::clipped;
use super::work::one_line;
use crate::record::shell::Effect;

/// Longest line that is told of a document, in bytes.
const SHOWN: usize = 360;

/// Points that are told of one headed list.
const POINTS: usize = 4;

/// Words at the beginning of a point that is told.
const LABELS: [&str; 24] = [
    "decision",
    "decided",
    "rationale",
    "alternative",
    "rejected",
    "non-goal",
    "out of scope",
    "scope",
    "constraint",
    "limit",
    "assumption",
    "must not",
    "must ",
    "never ",
    "do not",
    "trade-off",
    "决定",
    "理由",
    "原因",
    "备选",
    "否决",
    "不做",
    "约束",
    "限制",
];

/// Words of a heading whose points are told.
const HEADINGS: [&str; 16] = [
    "decision",
    "non-goal",
    "out of scope",
    "constraint",
    "limitation",
    "rejected",
    "alternatives",
    "assumption",
    "not in scope",
    "trade-off",
    "决定",
    "约束",
    "限制",
    "范围外",
    "不做",
    "假设",
];

/// The documents that a call writes, each with what it says.
pub(super) fn written(call: &Call) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    let whole = call.texts.get(call.new_text..).unwrap_or("");
    for (n, (path, effect)) in call.files.iter().enumerate() {
        let written = matches!(effect, Effect::Write | Effect::Create | Effect::Edit);
        let lower = path.to_ascii_lowercase();
        if !written || ![".md", ".mdx", ".txt", ".rst", ".adoc"].iter().any(|end| lower.ends_with(end)) {
            continue;
        }
        let text = match (&call.command, call.added.get(n)) {
            (Some(command), _) => here_document(command).unwrap_or(""),
            (None, Some(added)) => added,
            (None, None) => whole,
        };
        let lines = says(text);
        if !lines.is_empty() {
            found.push((path.clone(), lines));
        }
    }
    if let Some(plan) = call.approved.as_deref() {
        found.push((String::new(), says(plan)));
    }
    found
}

/// The text of the first here-document of a command.
pub(super) fn here_document(command: &str) -> Option<&str> {
    let (_, rest) = command.split_once("<<")?;
    let rest = rest.trim_start_matches(['-', ' ']);
    let word = rest.split(|c: char| c.is_whitespace() || matches!(c, '>' | ';' | '|' | ')')).next()?;
    let mark = word.trim_matches(['\'', '"']);
    let (_, body) = rest.split_once('\n')?;
    let end = body.find(&format!("\n{mark}")).map_or(body.len(), |at| at + 1);
    (!mark.is_empty()).then(|| body.get(..end)).flatten()
}

/// What a document says under its headings, a line a topic.
fn says(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let (mut heading, mut listed, mut points) = (String::new(), false, 0);
    let mut open = false;
    let mut code = false;
    for line in text.lines() {
        let bare = line.trim();
        code ^= bare.starts_with("```");
        if code || bare.is_empty() || bare.starts_with("```") {
            continue;
        }
        if bare.starts_with('#') {
            heading = plain(bare.trim_start_matches('#'));
            let lower = heading.to_lowercase();
            listed = HEADINGS.iter().any(|word| lower.contains(word)) && heading.len() < 60;
            (open, points) = (false, 0);
            continue;
        }
        let point = plain(bare);
        let lower = point.to_lowercase();
        let labelled = LABELS.iter().any(|label| lower.starts_with(label)) && point.len() > 24;
        let told =
            labelled || (listed && points < POINTS && bare.starts_with(['-', '*']) && point.len() > 24);
        if !told || point.ends_with([':', '：', '?', '？']) {
            continue;
        }
        points += 1;
        let point = one_line(&point);
        match found.last_mut() {
            Some(last) if open && last.len() + point.len() < SHOWN + 80 => {
                last.push_str("; ");
                last.push_str(&point);
            }
            _ => {
                let lead = if heading.is_empty() || lower.contains(&heading.to_lowercase()) {
                    String::new()
                } else {
                    format!("{}: ", clipped(&heading, 80, 0))
                };
                found.push(format!("{lead}{}", clipped(&point, SHOWN, 0)));
                open = true;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_of_a_document_are_told_with_their_reasons() {
        let text = "# Research\n\n## Port of the pond\n- **Decision**: try port 4100 first, then 4101 to 4109.\n- **Rationale**: the client must find it.\n- **Alternatives considered**: a random port (rejected).\n\n## Out of scope\n- Ponds of other machines are not looked at.\n\n## Steps\n- Write the parser of the ponds now.\n";
        assert_eq!(
            says(text),
            [
                "Port of the pond: Decision: try port 4100 first, then 4101 to 4109.; Rationale: the client must find it.; Alternatives considered: a random port (rejected).",
                "Out of scope: Ponds of other machines are not looked at."
            ]
        );
        assert_eq!(
            says("## 决定\n- 决定：缓存只放在内存里，不写磁盘。"),
            ["决定：缓存只放在内存里，不写磁盘。"]
        );
    }

    #[test]
    fn a_here_document_is_read() {
        assert_eq!(here_document("cat <<'EOF' > a.md\n# A\nb\nEOF\nls"), Some("# A\nb\n"));
        assert_eq!(here_document("cat > a.md <<EOF\nb\nEOF"), Some("b\n"));
        assert_eq!(here_document("ls"), None);
    }
}
