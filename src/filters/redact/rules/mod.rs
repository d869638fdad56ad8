//! The table of rules.
