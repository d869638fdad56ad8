//! The detector on texts of its own: contexts, overlaps, choices, hostile texts.

use super::*;

fn detector(choice: Choice) -> Detector {
    Detector::new(&choice).unwrap()
}

fn letters(seed: u64, count: usize) -> String {
    let mut state = seed;
    (0..count)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"[(state >> 33) as usize % 62]
                as char
        })
        .collect()
}

fn found(detector: &mut Detector, name: Option<&str>, text: &str) -> Vec<(&'static str, String)> {
    let mut hits = Vec::new();
    detector.find(name.map(str::as_bytes), text.as_bytes(), &mut hits);
    hits.iter().map(|hit| (hit.rule.name(), text[hit.start..hit.end].to_owned())).collect()
}

#[test]
fn a_text_under_a_name_is_the_value_of_that_name() {
    let mut detector = detector(Choice::default());
    let secret = letters(5, 40);
    for name in ["api_key", "apiKey", "client_secret", "X-Api-Key", "Authorization", "AUTH_TOKEN"] {
        let hits = found(&mut detector, Some(name), &secret);
        assert_eq!(hits.len(), 1, "{name}: {hits:?}");
        assert_eq!(hits[0].1, secret, "{name}");
    }
    for name in ["cacheKey", "public_key", "content", "description", "monkey", "next_page_token"] {
        assert!(found(&mut detector, Some(name), &secret).is_empty(), "{name}");
    }
    assert!(found(&mut detector, None, &secret).is_empty());
    let cookie = format!("theme=dark; sessionid={secret}");
    assert_eq!(found(&mut detector, Some("Cookie"), &cookie), [("cookie-session", secret)]);
}

#[test]
fn a_token_is_found_in_every_context() {
    let mut detector = detector(Choice::default());
    let token = format!("gsk_{}", letters(11, 52));
    let contexts = [
        "@",
        "x\n@\ny",
        "\\n@\\n",
        "\\\\t@\\\\n",
        "\u{1b}[32m@\u{1b}[0m",
        "\\u001b[1m@\\u001b[0m",
        "密钥是@，请更换。",
        "\\u662f@\\uff0c",
        "?token=@&page=2",
        "%20@%20",
        "'@'",
        "\\\"@\\\"",
        "`@`",
        "|@|",
        "@.",
        "(@)",
        "<@>",
        "     7→X=@",
        "+@",
        "{\"a\":\"@\"}",
    ];
    for context in contexts {
        let text = context.replace('@', &token);
        assert_eq!(found(&mut detector, None, &text), [("groq", token.clone())], "{context:?}");
    }
    for context in ["x@", "_@", "9@"] {
        assert!(found(&mut detector, None, &context.replace('@', &token)).is_empty(), "{context:?}");
    }
}

#[test]
fn overlapping_hits_are_one_and_named_by_the_first_rule() {
    let mut detector = detector(Choice::default());
    let token = format!("ghp_{}", letters(3, 36));
    let text = format!("GITHUB_TOKEN={token}\nAuthorization: Bearer {token}");
    assert_eq!(found(&mut detector, None, &text), [("github-pat", token.clone()), ("github-pat", token)]);
}

#[test]
fn hits_rise_and_never_overlap_and_bytes_of_any_kind_are_no_panic() {
    let mut detector =
        detector(Choice { classes: Class::ALL.to_vec(), confidence: Confidence::Low, ..Choice::default() });
    let pieces = [
        "key",
        "=",
        "\"",
        "\\",
        "password",
        ": ",
        "://",
        "@",
        "-----BEGIN ",
        "PRIVATE KEY-----",
        "-----END",
        "eyJ",
        ".",
        "Cookie:",
        "sess=",
        "é",
        "\u{1b}[3",
        "m",
        "/home/",
        "\\Users\\",
        "4539578763621486",
        "10.0.0.1",
        "::",
        "kind: Secret",
        "data:",
        "mnemonic",
        " ",
        "\n",
        "sig=",
        "T3BlbkFJ",
        "8Q~",
        "-us1",
        ":AA",
        ".atlasv1.",
        "iscord",
        " -u ",
        "mysql",
        " -p",
        ":5432:",
        "$2b$",
        "Bearer ",
        "Basic ",
        "machine ",
        "login ",
        "--token",
        "+1",
        "a4:83:e7:1b:2c:3d",
        "sk-",
        "(",
        ")",
        "是",
        "==",
        "${",
        "}",
        "0123456789abcdef0123456789abcdef",
    ];
    let mut state = 9u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    let mut hits = Vec::new();
    for _ in 0..4000 {
        let mut text = Vec::new();
        for _ in 0..next() % 24 {
            match next() % 5 {
                0 => text.extend(letters(next() as u64, next() % 70).bytes()),
                1 => text.push((next() % 256) as u8),
                _ => text.extend(pieces[next() % pieces.len()].bytes()),
            }
        }
        hits.clear();
        detector.find(Some(&text[..text.len() / 2]), &text, &mut hits);
        let mut last = 0;
        for hit in &hits {
            assert!(hit.start >= last && hit.end > hit.start && hit.end <= text.len(), "{hit:?} in {text:?}");
            last = hit.end;
        }
        assert!(hits.is_empty() || detector.may_hit(&text) || !hits.is_empty());
    }
}

#[test]
fn what_is_found_without_a_name_is_never_ruled_out_before() {
    let mut detector = detector(Choice::default());
    for seed in 0..200 {
        let text = format!("x = 1\npassword = '{}#{}'\n", letters(seed, 9), letters(seed + 1, 6));
        if !found(&mut detector, None, &text).is_empty() {
            assert!(detector.may_hit(text.as_bytes()));
        }
    }
    assert!(!detector.may_hit(b"the quick brown fox and its tokens, keys and passwords"));
}

#[test]
fn rules_and_classes_are_chosen() {
    let token = format!("gsk_{}", letters(11, 52));
    let text = format!("{token} jane.roe@corp.example.net /home/jroe/x");
    let names = |choice: Choice| -> Vec<&str> {
        found(&mut detector(choice), None, &text).iter().map(|hit| hit.0).collect()
    };
    assert_eq!(names(Choice::default()), ["groq"]);
    let classes = vec![Class::Secret, Class::Home, Class::Email];
    assert_eq!(names(Choice { classes: classes.clone(), ..Choice::default() }), ["groq", "email", "home"]);
    assert_eq!(
        names(Choice { classes: classes.clone(), only: vec!["email".into()], ..Choice::default() }),
        ["email"]
    );
    assert_eq!(
        names(Choice { classes, skip: vec!["secret".into()], ..Choice::default() }),
        ["email", "home"]
    );
    let unknown = Detector::new(&Choice { skip: vec!["grok".into()], ..Choice::default() }).unwrap_err();
    assert!(unknown.to_string().contains("grok") && unknown.exit_code() == 2);
}

#[test]
fn rules_of_the_user_run_beside_the_others() {
    let rules = "[[rules]]\nid = 'ticket'\nregex = 'TCK-[0-9]{6}'\nkeywords = ['tck-']\n".to_owned();
    let mut detector = detector(Choice { rules: Some(rules), ..Choice::default() });
    assert!(detector.may_hit(b"TCK-"));
    assert_eq!(found(&mut detector, None, "see TCK-123456"), [("ticket", "TCK-123456".to_owned())]);
}

#[test]
fn personal_data_is_not_searched_for_elsewhere() {
    let mut detector = detector(Choice { classes: Class::ALL.to_vec(), ..Choice::default() });
    let mut hits = Vec::new();
    let text = format!("jane.roe@corp.example.net gsk_{}", letters(11, 52));
    detector.find(None, text.as_bytes(), &mut hits);
    let propagate: Vec<bool> = hits.iter().map(|hit| hit.propagate).collect();
    assert_eq!(propagate, [false, true]);
}

/// Keywords from end to end. A matcher that looks at all of the text at each of them would not end here.
#[test]
fn a_hostile_text_costs_what_its_bytes_cost() {
    let mut detector = detector(Choice::default());
    for piece in [
        "password ",
        "password | ",
        "| password |\n",
        "password,\n",
        "\"password\": ",
        "-----END PRIVATE KEY-----",
        "recovery codes: ",
        " BY '",
        "sudo -S ",
        "zip -P ",
        "\u{1b}[",
        "ghp_abcdefgh\n",
        "…",
        "@tcp(",
        "WIFI:",
        "パスワード",
    ] {
        let text = piece.repeat((1 << 20) / piece.len());
        let mut hits = Vec::new();
        detector.find(None, text.as_bytes(), &mut hits);
        assert!(hits.len() <= text.len() / 8, "{piece:?}");
    }
}
