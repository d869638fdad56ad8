//! One test a rule.
