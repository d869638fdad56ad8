//! Token counting on generated session text, against a copy of the same bytes.
//!
//! `cargo bench --bench tokens`. The floor is what any filter must do: read blocks of 1 MiB, find the
//! ends of the lines and copy them out.
//! Aim: both estimates at 0.3 of the floor or more, in one run.

use std::fs::File;
use std::hint::black_box;
use std::io::{self, Read, Seek, SeekFrom, Write};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use relay::tokens::{Counter, Simple, Tokenizer, estimate, estimate_escaped};

/// Texts of one kind, as a session holds them and as its lines write them.
struct Sample {
    texts: Vec<String>,
    bodies: Vec<Vec<u8>>,
    lines: Vec<u8>,
}

/// A small generator, so that every run sees the same text.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % limit.max(1) as u64) as usize
    }

    fn pick<'item>(&mut self, items: &[&'item str]) -> &'item str {
        let place = self.below(items.len());
        items.get(place).copied().unwrap_or_default()
    }
}

const WORDS: [&str; 24] = [
    "the",
    "parser",
    "fails",
    "when",
    "cache",
    "holds",
    "an",
    "old",
    "schema",
    "entry",
    "and",
    "retry",
    "count",
    "is",
    "request",
    "configuration",
    "buffer",
    "test",
    "passed",
    "because",
    "returned",
    "session",
    "of",
    "implementation",
];
const NAMES: [&str; 10] = [
    "find_slot",
    "StoreError",
    "maxEntries",
    "self.table",
    "HttpClient",
    "parse_line",
    "buf",
    "i",
    "Option<Entry>",
    "read_to_string",
];
const CHINESE: [&str; 12] = [
    "解析器",
    "失败",
    "，",
    "因为",
    "缓存",
    "里",
    "保留着",
    "旧的结构",
    "。",
    "测试",
    "通过了",
    "请不要修改接口",
];

fn sentence(random: &mut Random) -> String {
    let words: Vec<&str> = (0..6 + random.below(12)).map(|_| random.pick(&WORDS)).collect();
    words.join(" ") + ".\n"
}

fn statement(random: &mut Random) -> String {
    let indent = " ".repeat(4 * random.below(4));
    let (left, right, argument) = (random.pick(&NAMES), random.pick(&NAMES), random.pick(&NAMES));
    format!("{indent}let {left} = {right}({argument}, \"{}\")?;\n", random.pick(&WORDS))
}

fn entry(random: &mut Random) -> String {
    format!(
        "2026-03-{:02}T10:{:02}:31.{:03}Z  INFO worker-{} http: GET /api/v2/{}?page={} 200 in {}ms\n",
        1 + random.below(28),
        random.below(60),
        random.below(1000),
        random.below(8),
        random.pick(&WORDS),
        random.below(500),
        random.below(90)
    )
}

fn chinese(random: &mut Random) -> String {
    (0..8 + random.below(8)).map(|_| random.pick(&CHINESE)).collect::<String>() + "\n"
}

fn sample(bytes: usize, line: impl Fn(&mut Random) -> String) -> Sample {
    let mut random = Random(7);
    let mut sample = Sample { texts: Vec::new(), bodies: Vec::new(), lines: Vec::new() };
    while sample.lines.len() < bytes {
        // Lines of a session: about 1 KB in the middle, 30 KB at the long end.
        let wanted = if random.below(30) == 0 { 30_000 } else { 200 + random.below(1800) };
        let mut text = String::new();
        while text.len() < wanted {
            text.push_str(&line(&mut random));
        }
        let json = serde_json::to_string(&text).unwrap_or_default().into_bytes();
        sample.lines.extend_from_slice(&json);
        sample.lines.push(b'\n');
        sample.bodies.push(json.get(1..json.len() - 1).unwrap_or_default().to_vec());
        sample.texts.push(text);
    }
    sample
}

/// Reads a file in blocks of 1 MiB, finds the ends of the lines and copies them out.
fn floor(mut file: &File, block: &mut [u8], out: &mut Vec<u8>) -> io::Result<u64> {
    let mut copied = 0;
    file.seek(SeekFrom::Start(0))?;
    loop {
        let length = file.read(block)?;
        let bytes = block.get(..length).unwrap_or_default();
        if bytes.is_empty() {
            return Ok(copied);
        }
        out.clear();
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', bytes) {
            out.extend_from_slice(bytes.get(start..=end).unwrap_or_default());
            start = end + 1;
        }
        out.extend_from_slice(bytes.get(start..).unwrap_or_default());
        copied += black_box(&out).len() as u64;
    }
}

fn on_disk(lines: &[u8]) -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    file.write_all(lines)?;
    Ok(file)
}

fn compare(criterion: &mut Criterion) {
    const BYTES: usize = 4 << 20;
    let kinds = [
        ("english", sample(BYTES, sentence)),
        ("code", sample(BYTES, statement)),
        ("log", sample(BYTES, entry)),
        ("chinese", sample(BYTES, chinese)),
        (
            "mixed",
            sample(BYTES, |random| match random.below(8) {
                0 => chinese(random),
                1 | 2 => sentence(random),
                3 | 4 => entry(random),
                _ => statement(random),
            }),
        ),
    ];
    let mut group = criterion.benchmark_group("tokens");
    for (kind, sample) in &kinds {
        let mut out = Vec::with_capacity(1 << 20);
        let mut block = vec![0; 1 << 20];
        let file = on_disk(&sample.lines).unwrap_or_else(|error| unreachable!("a temporary file: {error}"));
        group.throughput(Throughput::Bytes(sample.lines.len() as u64));
        group.bench_function(BenchmarkId::new("floor", kind), |bencher| {
            bencher.iter(|| floor(&file, &mut block, &mut out));
        });
        group.throughput(Throughput::Bytes(sample.bodies.iter().map(|body| body.len() as u64).sum()));
        group.bench_function(BenchmarkId::new("estimate_escaped", kind), |bencher| {
            bencher.iter(|| sample.bodies.iter().map(|body| estimate_escaped(black_box(body))).sum::<u64>());
        });
        group.throughput(Throughput::Bytes(sample.texts.iter().map(|text| text.len() as u64).sum()));
        group.bench_function(BenchmarkId::new("estimate", kind), |bencher| {
            bencher.iter(|| sample.texts.iter().map(|text| estimate(black_box(text))).sum::<u64>());
        });
    }
    group.sample_size(10);
    if let Some((kind, sample)) = kinds.last() {
        let few = sample.texts.get(..sample.texts.len() / 8).unwrap_or_default();
        group.throughput(Throughput::Bytes(few.iter().map(|text| text.len() as u64).sum()));
        group.bench_function(BenchmarkId::new("simple", kind), |bencher| {
            bencher.iter(|| few.iter().map(|text| Simple.count(black_box(text))).sum::<u64>());
        });
        match Tokenizer::O200k.counter() {
            Ok(exact) => {
                group.bench_function(BenchmarkId::new("o200k", kind), |bencher| {
                    bencher.iter(|| few.iter().map(|text| exact.count(black_box(text))).sum::<u64>());
                });
            }
            Err(error) => unreachable!("{error}"),
        }
    }
    group.finish();
}

criterion_group!(benches, compare);
criterion_main!(benches);
