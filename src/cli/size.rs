//! Sizes as people write them: `150000`, `150_000`, `150k`, `1.5m`, `1e5`.

/// A number with an optional `k`, `m` or `g` (thousands, millions, billions; also `kb`, `mb`, `gb`).
///
/// # Errors
/// It is no such number, not whole, or below 0. The text shows what one looks like.
pub fn size(text: &str) -> Result<u64, String> {
    let wrong = || "expected a number such as 150000, 150_000, 150k, 1.5m or 1e5".to_owned();
    let plain = text.trim().to_ascii_lowercase();
    let mut digits = plain.as_str();
    let mut factor = 1.0;
    for (ending, times) in [("k", 1e3), ("m", 1e6), ("g", 1e9)] {
        let cut = plain.strip_suffix('b').unwrap_or(&plain);
        if let Some(rest) = cut.strip_suffix(ending) {
            (digits, factor) = (rest, times);
        }
    }
    let digits = digits.trim_end().replace('_', "");
    if factor == 1.0 && digits.bytes().all(|b| b.is_ascii_digit()) {
        return digits.parse().map_err(|_| wrong());
    }
    let good = |b: u8| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'+');
    let number: f64 = match digits.bytes().all(good) && digits.bytes().any(|b| b.is_ascii_digit()) {
        true => digits.parse().map_err(|_| wrong())?,
        false => return Err(wrong()),
    };
    let whole = (number * factor).round();
    if !whole.is_finite() || whole > 1e15 || (whole - number * factor).abs() > 1e-6 * factor.max(1.0) {
        return Err(wrong());
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and 1e15, and whole"
    )]
    Ok(whole as u64)
}

/// The same, 1 or more.
///
/// # Errors
/// See [`size`].
pub fn positive(text: &str) -> Result<u64, String> {
    match size(text)? {
        0 => Err("expected 1 or more, such as 150k".to_owned()),
        size => Ok(size),
    }
}

/// So many tokens, or a share of a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Amount {
    /// Tokens.
    Tokens(u64),
    /// More than 0, at most 1.
    Share(f64),
}

/// A size, or a share such as `80%`.
///
/// # Errors
/// See [`size`].
pub fn amount(text: &str) -> Result<Amount, String> {
    let Some(percent) = text.trim().strip_suffix('%') else { return positive(text).map(Amount::Tokens) };
    match percent.trim().parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent <= 100.0 => Ok(Amount::Share(percent / 100.0)),
        _ => Err("expected a share of more than 0 and at most 100%, such as 80%".to_owned()),
    }
}

/// A number of seconds: `120`, `120s`, `2m`, `1h`.
///
/// # Errors
/// It is no such time.
pub fn seconds(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let units = [("s", 1), ("m", 60), ("h", 3600), ("d", 86_400)];
    let found = units.iter().find_map(|(unit, times)| Some((text.strip_suffix(unit)?, *times)));
    let (digits, times) = found.unwrap_or((text, 1));
    let number: Option<u64> = digits.trim().parse().ok();
    number
        .and_then(|n| n.checked_mul(times))
        .filter(|n| *n < 1 << 32)
        .ok_or_else(|| "expected a time such as 120, 120s or 2m".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, number) in [
            ("0", 0),
            ("150000", 150_000),
            ("150_000", 150_000),
            ("150k", 150_000),
            ("150K", 150_000),
            ("1.5m", 1_500_000),
            ("1.5M", 1_500_000),
            ("0.2m", 200_000),
            ("1e5", 100_000),
            ("1E5", 100_000),
            ("1.5e3", 1_500),
            ("512m", 512_000_000),
            ("512MB", 512_000_000),
            ("2g", 2_000_000_000),
            ("1.005k", 1_005),
        ] {
            assert_eq!(size(text), Ok(number), "{text}");
        }
        for text in
            ["", "k", "-1", "1.5", "1.0005k", "1x", "1e99", "inf", "NaN", "1 0", "0x10", "1,5m", "80%", "."]
        {
            assert!(size(text).unwrap_err().contains("150k"), "{text}");
        }
        assert!(positive("0").is_err());
    }

    #[test]
    fn shares_and_times() {
        assert_eq!(amount("80%"), Ok(Amount::Share(0.8)));
        assert_eq!(amount("12.5 %"), Ok(Amount::Share(0.125)));
        assert_eq!(amount("150k"), Ok(Amount::Tokens(150_000)));
        for text in ["0%", "101%", "%", "x%", "NaN%", "0", "-5%"] {
            assert!(amount(text).is_err(), "{text}");
        }
        assert_eq!(
            (seconds("120"), seconds("2m"), seconds("90s"), seconds("1h")),
            (Ok(120), Ok(120), Ok(90), Ok(3600))
        );
        assert_eq!(seconds("1d"), Ok(86_400));
        for text in ["", "x", "-1", "1y", "1.5m"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
