//! Filters as commands, and several filters in one process.

use super::via::Signed;
use crate::filters::Filter;
use crate::json::Tape;
use crate::record::{Error, Record, Result, Via};
use crate::stream::{Report, Sink, Source};
use std::io::Read;

/// Runs a whole stream through a filter. With `via`, every session says that this filter touched it.
///
/// `out` is not finished here: that stays the last thing the command does.
///
/// # Errors
/// What the source, the filter or the sink says; an error of form names its place in the source. An `abort`
/// of an earlier stage is [`Error::Aborted`], for the command to pass on.
pub fn run<R: Read>(
    source: &mut Source<R>,
    filter: &mut dyn Filter,
    via: Option<Via>,
    out: &mut dyn Sink,
    report: &mut dyn Report,
) -> Result<()> {
    let mut out = Signed::new(out, via.as_ref());
    let mut records = 0;
    while let Some(record) = source.next_record()? {
        match filter.record(&record, &mut out) {
            Ok(()) => {}
            Err(Error::Shape { what }) => return Err(Error::input(source.place(), what)),
            Err(other) => return Err(other),
        }
        records += 1;
        report.passed(records);
    }
    filter.end(&mut out)?;
    if source.sessions() == 0 {
        report.say("the input is empty: nothing to do");
    }
    Ok(())
}

/// A sink that is a filter: what is put in here comes out of `out` filtered. So a reader, or a filter before
/// this one, can be followed by a filter in the same process.
pub struct Through<'a> {
    filter: &'a mut dyn Filter,
    out: &'a mut dyn Sink,
    tape: Tape,
}

impl<'a> Through<'a> {
    /// Puts `filter` before `out`.
    pub fn new(filter: &'a mut dyn Filter, out: &'a mut dyn Sink) -> Through<'a> {
        Through { filter, out, tape: Tape::new() }
    }

    /// Says that nothing more comes; what the filter holds goes out.
    pub fn end(self) -> Result<()> {
        self.filter.end(self.out)
    }
}

impl Sink for Through<'_> {
    fn put(&mut self, line: &[u8]) -> Result<()> {
        self.filter.record(&Record::new(line, &mut self.tape)?, self.out)
    }
}

/// A filter that says in every session that it was there, as the command does.
pub struct Signing {
    filter: Box<dyn Filter>,
    via: Option<Via>,
}

impl Signing {
    /// `via` is what the filter notes; `None` notes nothing.
    pub fn new(filter: Box<dyn Filter>, via: Option<Via>) -> Signing {
        Signing { filter, via }
    }
}

impl Filter for Signing {
    fn record(&mut self, record: &Record<'_>, out: &mut dyn Sink) -> Result<()> {
        self.filter.record(record, &mut Signed::new(out, self.via.as_ref()))
    }

    fn end(&mut self, out: &mut dyn Sink) -> Result<()> {
        self.filter.end(&mut Signed::new(out, self.via.as_ref()))
    }
}

/// Several filters as one, with the same bytes as the filters in a shell pipe.
#[derive(Default)]
pub struct Chain {
    stages: Vec<Box<dyn Filter>>,
}

impl Chain {
    /// The filters in the order in which records pass them.
    pub fn new(stages: Vec<Box<dyn Filter>>) -> Chain {
        Chain { stages }
    }
}

/// Hands a line to the first of the stages, or to the sink when there is none.
struct Rest<'a> {
    stages: &'a mut [Box<dyn Filter>],
    out: &'a mut dyn Sink,
}

impl Sink for Rest<'_> {
    fn put(&mut self, line: &[u8]) -> Result<()> {
        let Some((first, stages)) = self.stages.split_first_mut() else { return self.out.put(line) };
        // an empty tape owns no memory, and most lines do not need one
        let mut tape = Tape::new();
        first.record(&Record::new(line, &mut tape)?, &mut Rest { stages, out: self.out })
    }
}

impl Filter for Chain {
    fn record(&mut self, record: &Record<'_>, out: &mut dyn Sink) -> Result<()> {
        let Some((first, stages)) = self.stages.split_first_mut() else { return out.put(record.line()) };
        first.record(record, &mut Rest { stages, out })
    }

    fn end(&mut self, out: &mut dyn Sink) -> Result<()> {
        let mut stages = self.stages.as_mut_slice();
        while let Some((first, rest)) = stages.split_first_mut() {
            first.end(&mut Rest { stages: rest, out })?;
            stages = rest;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filters::pair::{Options, Orphans, Pair};
    use crate::stream::Gathered;
    use proptest::prelude::*;

    fn piped(input: &[u8], filter: &mut dyn Filter, via: Option<Via>) -> Result<Vec<u8>> {
        let mut out: Vec<Vec<u8>> = Vec::new();
        run(&mut Source::new(input, "stdin"), filter, via, &mut out, &mut Gathered::default())?;
        Ok(out
            .into_iter()
            .flat_map(|mut line| {
                line.push(b'\n');
                line
            })
            .collect())
    }

    fn via() -> Via {
        Via { name: "relay-pair".into(), version: "1".into(), options: vec!["--orphans".into()] }
    }

    const TWO: &str = r#"{"type":"session","relay":1,"session_id":"a","source_agent":"one"}
{"type":"message","role":"tool_call","tool_call_id":"t","tool_name":"Bash","input":{}}
{"type":"end"}
{"type":"session","relay":1,"session_id":"b","source_agent":"two","via":[{"name":"x","version":"0"}],"extra":{"via":1}}
{"type":"message","role":"tool_result","tool_call_id":"u","content":"x"}
{"type":"end"}
"#;

    #[test]
    fn every_session_names_the_filter() {
        let out = piped(TWO.as_bytes(), &mut Pair::new(Options::default()), Some(via())).unwrap();
        let out = String::from_utf8(out).unwrap();
        let entry = r#"{"name":"relay-pair","version":"1","options":["--orphans"]}"#;
        assert!(out.contains(&format!(r#""source_agent":"one","via":[{entry}]}}"#)), "{out}");
        assert!(
            out.contains(&format!(r#""via":[{{"name":"x","version":"0"}},{entry}],"extra":{{"via":1}}}}"#))
        );
        let same = piped(TWO.as_bytes(), &mut Chain::default(), None).unwrap();
        assert_eq!(String::from_utf8(same).unwrap(), TWO);
    }

    fn pair(orphans: Orphans) -> Pair {
        Pair::new(Options { orphans, check: false })
    }

    proptest! {
        #[test]
        fn in_process_gives_the_bytes_of_the_pipe(words in prop::collection::vec((0u8..5, 0u8..4), 0..30)) {
            let mut input = String::new();
            for session in words.chunks(12) {
                input += "{\"type\":\"session\",\"relay\":1,\"session_id\":\"s\"}\n";
                for (kind, id) in session {
                    input += &match kind {
                        0 => format!(r#"{{"type":"message","role":"tool_call","tool_call_id":"{id}","tool_name":"x","input":{{}}}}"#),
                        1 => format!(r#"{{"tool_call_id":"{id}","content":"{id}","role":"tool_result","type":"message"}}"#),
                        2 => r#"{"type":"message","role":"user","content":"u"}"#.to_owned(),
                        3 => r#"{"type":"message","role":"assistant","content":"a"}"#.to_owned(),
                        _ => r#"{"type":"native","source_agent":"x","value":1}"#.to_owned(),
                    };
                    input.push('\n');
                }
                input += "{\"type\":\"end\"}\n";
            }
            for (first, second) in [(Orphans::Drop, Orphans::Text), (Orphans::Stub, Orphans::Stub)] {
                let between = piped(input.as_bytes(), &mut pair(first), None).unwrap();
                let pipe = piped(&between, &mut pair(second), None).unwrap();
                let mut chain = Chain::new(vec![Box::new(pair(first)), Box::new(pair(second))]);
                prop_assert_eq!(&piped(input.as_bytes(), &mut chain, None).unwrap(), &pipe);
                // and behind a sink, as a reader sees it
                let mut out: Vec<Vec<u8>> = Vec::new();
                let mut filter = pair(first);
                let mut through = Through::new(&mut filter, &mut out);
                for line in input.lines() {
                    through.put(line.as_bytes()).unwrap();
                }
                through.end().unwrap();
                prop_assert_eq!(out, between.split(|b| *b == b'\n').filter(|l| !l.is_empty()).map(<[u8]>::to_vec).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn a_wrong_record_is_named_with_its_place() {
        // the short cut does not look for required fields; the filter does
        let line = r#"{"type":"message","role":"tool_call","dropped":null,"origin":null,"seq":1,"turn":1,"line":1,"part":null,"group":null,"tool_call_id":null,"tool_name":"x","timestamp":null,"input":{}}"#;
        let input = format!(
            "{{\"type\":\"session\",\"relay\":1,\"session_id\":\"a\"}}\n{line}\n{{\"type\":\"end\"}}\n"
        );
        let error = piped(input.as_bytes(), &mut Pair::new(Options::default()), None).unwrap_err();
        assert_eq!(error.to_string(), "stdin:2: a tool_call message needs `tool_call_id`");
        assert_eq!(error.exit_code(), 3);
    }

    #[test]
    fn a_stream_that_was_cut_or_aborted_is_an_error() {
        let cut = TWO.rsplit_once("{\"type\":\"end\"}").unwrap().0;
        assert_eq!(piped(cut.as_bytes(), &mut Chain::default(), None).unwrap_err().exit_code(), 3);
        let abort = format!("{cut}{{\"type\":\"abort\",\"by\":\"relay-read\",\"reason\":\"disk\"}}\n");
        let error = piped(abort.as_bytes(), &mut Pair::new(Options::default()), None).unwrap_err();
        assert!(matches!(error, Error::Aborted(a) if a.by == "relay-read"));
    }

    #[test]
    fn an_empty_stream_is_one_and_is_said() {
        let (mut out, mut heard) = (Vec::new(), Gathered::default());
        run(&mut Source::new(&b""[..], "x"), &mut Chain::default(), None, &mut out, &mut heard).unwrap();
        assert_eq!((out.len(), heard.said.len()), (0, 1));
        let mut source = Source::new(TWO.as_bytes(), "x");
        run(&mut source, &mut Chain::default(), None, &mut out, &mut heard).unwrap();
        assert_eq!((out.len(), heard.said.len()), (6, 1));
    }
}
