//! The scanner against general parsers, on lines of a generated Claude Code session.
//!
//! `cargo bench --bench scan`. The lines come from `scripts/gen-session claude`, so this needs `python3`.
//! Every parser keeps its buffers from line to line where its interface allows. simd-json unescapes in
//! place and so ruins the line; relay still needs it to splice from, hence the copy before each of its
//! parses. `copy` is the price of that copy alone, to be taken off by whoever thinks it unfair.

use std::hint::black_box;
use std::path::Path;
use std::process::Command;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use relay::json::Tape;
use serde::de::IgnoredAny;
use simd_json::Buffers;

const MEGABYTES: &str = "16";
const SEED: &str = "1";

/// The generated session, made anew by every run: it takes less than a second.
fn session() -> Vec<u8> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/gen-session");
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("scan.jsonl");
    let made =
        Command::new(script).arg("claude").arg(&path).args(["--mb", MEGABYTES, "--seed", SEED]).status();
    match made {
        Ok(status) if status.success() => {}
        Ok(status) => unreachable!("scripts/gen-session: {status}"),
        Err(error) => unreachable!("scripts/gen-session: {error}"),
    }
    std::fs::read(&path).unwrap_or_else(|error| unreachable!("{}: {error}", path.display()))
}

/// Counts what parsed, so that no parser is quick by giving up.
fn parsed(lines: &[&[u8]], mut parse: impl FnMut(&[u8]) -> bool) {
    let count = lines.iter().filter(|line| parse(black_box(line))).count();
    assert_eq!(count, lines.len(), "every line is JSON");
}

fn compare(criterion: &mut Criterion) {
    let session = session();
    let lines: Vec<&[u8]> = session.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
    let mut group = criterion.benchmark_group("scan");
    group.sample_size(20);
    group.throughput(Throughput::Bytes(session.len() as u64));

    let mut copy: Vec<u8> = Vec::new();
    group.bench_function(BenchmarkId::from_parameter("copy"), |bencher| {
        bencher.iter(|| {
            parsed(&lines, |line| {
                copy.clear();
                copy.extend_from_slice(line);
                !black_box(&copy).is_empty()
            });
        });
    });

    let mut tape = Tape::new();
    group.bench_function(BenchmarkId::from_parameter("relay Tape::parse"), |bencher| {
        bencher.iter(|| parsed(&lines, |line| black_box(tape.parse(line)).is_ok()));
    });
    group.bench_function(BenchmarkId::from_parameter("relay Tape::parse_opaque"), |bencher| {
        let opaque = ["toolUseResult"];
        bencher.iter(|| parsed(&lines, |line| black_box(tape.parse_opaque(line, &opaque)).is_ok()));
    });

    let mut buffers = Buffers::new(1 << 20);
    group.bench_function(BenchmarkId::from_parameter("simd-json tape"), |bencher| {
        bencher.iter(|| {
            parsed(&lines, |line| {
                copy.clear();
                copy.extend_from_slice(line);
                black_box(simd_json::to_tape_with_buffers(&mut copy, &mut buffers)).is_ok()
            });
        });
    });
    group.bench_function(BenchmarkId::from_parameter("simd-json owned"), |bencher| {
        bencher.iter(|| {
            parsed(&lines, |line| {
                copy.clear();
                copy.extend_from_slice(line);
                black_box(simd_json::value::owned::to_value_with_buffers(&mut copy, &mut buffers)).is_ok()
            });
        });
    });

    group.bench_function(BenchmarkId::from_parameter("serde_json IgnoredAny"), |bencher| {
        bencher.iter(|| parsed(&lines, |line| black_box(serde_json::from_slice::<IgnoredAny>(line)).is_ok()));
    });
    group.bench_function(BenchmarkId::from_parameter("serde_json Value"), |bencher| {
        bencher.iter(|| {
            parsed(&lines, |line| black_box(serde_json::from_slice::<serde_json::Value>(line)).is_ok());
        });
    });
    group.finish();
}

criterion_group!(benches, compare);
criterion_main!(benches);
