//! A small judge of JSON Schema (2020-12): the keywords that our schema uses and no others.
//!
//! A library for it would bring forty packages along. A keyword that is not judged here is an error, so that
//! no part of the schema can go unheld.

use serde_json::{Map, Value};

/// Keywords that tell a reader something and judge nothing.
const NOTES: &[&str] = &["$schema", "$defs", "title", "description", "format", "contentEncoding"];

/// What is wrong with a value, with the place of each; nothing when it fits.
pub(crate) fn faults(schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    Judge { root: schema }.judge(schema, value, "", &mut found);
    found
}

struct Judge<'a> {
    root: &'a Value,
}

impl Judge<'_> {
    fn fits(&self, schema: &Value, value: &Value) -> bool {
        let mut found = Vec::new();
        self.judge(schema, value, "", &mut found);
        found.is_empty()
    }

    fn judge(&self, schema: &Value, value: &Value, place: &str, found: &mut Vec<String>) {
        let rules = schema.as_object().unwrap_or_else(|| panic!("{place}: a schema must be an object"));
        for (keyword, rule) in rules {
            self.rule(rules, keyword, rule, value, place, found);
        }
    }

    fn rule(
        &self,
        rules: &Map<String, Value>,
        keyword: &str,
        rule: &Value,
        value: &Value,
        place: &str,
        found: &mut Vec<String>,
    ) {
        let list = || rule.as_array().unwrap_or_else(|| panic!("`{keyword}` must be a list"));
        let mut wrong = |what: String| found.push(format!("{place}: {what}"));
        match keyword {
            "$ref" => {
                let target =
                    rule.as_str().and_then(|r| r.strip_prefix('#')).and_then(|p| self.root.pointer(p));
                let target = target.unwrap_or_else(|| panic!("{rule} leads nowhere"));
                self.judge(target, value, place, found);
            }
            "type" => {
                let one = std::slice::from_ref(rule);
                let names = rule.as_array().map_or(one, Vec::as_slice);
                if !names.iter().any(|n| is_a(value, n.as_str().unwrap_or_default())) {
                    wrong(format!("{value} is no {rule}"));
                }
            }
            "const" if value != rule => wrong(format!("{value} is not {rule}")),
            "enum" if !list().contains(value) => wrong(format!("{value} is none of {rule}")),
            "const" | "enum" => {}
            "minimum" => {
                let least = rule.as_i64().expect("`minimum` must be a number");
                if value.as_i64().is_some_and(|n| n < least) {
                    wrong(format!("{value} is less than {least}"));
                }
            }
            "maxItems" => {
                let most = rule.as_u64().expect("`maxItems` must be a number") as usize;
                if value.as_array().is_some_and(|a| a.len() > most) {
                    wrong(format!("more than {most} items"));
                }
            }
            "required" => {
                for key in list().iter().filter_map(Value::as_str) {
                    if value.as_object().is_some_and(|o| !o.contains_key(key)) {
                        wrong(format!("`{key}` is missing"));
                    }
                }
            }
            "properties" => {
                for (key, of_key) in rule.as_object().expect("`properties` must be an object") {
                    if let Some(inner) = value.get(key) {
                        self.judge(of_key, inner, &format!("{place}/{key}"), found);
                    }
                }
            }
            "items" => {
                for (n, inner) in value.as_array().into_iter().flatten().enumerate() {
                    self.judge(rule, inner, &format!("{place}/{n}"), found);
                }
            }
            "allOf" => list().iter().for_each(|s| self.judge(s, value, place, found)),
            "anyOf" if !list().iter().any(|s| self.fits(s, value)) => wrong("fits none of `anyOf`".into()),
            "anyOf" => {}
            "oneOf" => {
                let fitting = list().iter().filter(|s| self.fits(s, value)).count();
                if fitting != 1 {
                    wrong(format!("fits {fitting} of `oneOf`"));
                    // the branch of this `type` says what is wrong
                    let kind = value.get("type").and_then(Value::as_str).unwrap_or_default();
                    if let Some(branch) = self.root.pointer(&format!("/$defs/{kind}")) {
                        self.judge(branch, value, place, found);
                    }
                }
            }
            "not" if self.fits(rule, value) => wrong(format!("{value} must not fit {rule}")),
            "not" => {}
            "if" => {
                let branch = if self.fits(rule, value) { "then" } else { "else" };
                if let Some(branch) = rules.get(branch) {
                    self.judge(branch, value, place, found);
                }
            }
            "then" | "else" => assert!(rules.contains_key("if"), "`{keyword}` without `if`"),
            note => assert!(NOTES.contains(&note), "the keyword {note:?} is not judged here"),
        }
    }
}

fn is_a(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "integer" => value.is_i64() || value.is_u64(),
        other => panic!("the type {other:?} is not judged here"),
    }
}
