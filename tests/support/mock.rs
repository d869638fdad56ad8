//! Model servers that listen on 127.0.0.1 only, give one scripted answer, and keep every request, so that a test can
//! see what a real client made of a session file.
//!
//! They also answer as the client's HTTPS proxy: whatever else a client tries to reach is refused here and kept too.
//! Nothing leaves the machine.
//!
//! What the clients ask was observed with Codex CLI 0.171.0 and 0.142.0 and Claude Code 2.1.332 and 2.0.77.
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};

use super::api;

/// Which model service a [`Mock`] stands in for.
#[derive(Clone, Copy)]
enum Service {
    /// The Responses API: Codex CLI.
    OpenAi,
    /// The Messages API: Claude Code.
    Anthropic,
}

/// One request, as it came.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// Without the query.
    pub(crate) path: String,
    /// Null when there was none, or none that is JSON.
    pub(crate) body: Value,
    /// Length of the decoded body in bytes.
    pub(crate) length: usize,
}

/// A model server; it stops, and its threads end, when dropped.
pub(crate) struct Mock {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

struct Shared {
    service: Service,
    reply: String,
    stopping: AtomicBool,
    /// Whether it refuses what the real service refuses.
    strict: AtomicBool,
    requests: Mutex<Vec<Request>>,
    refused: Mutex<Vec<String>>,
    connections: Mutex<Vec<(TcpStream, JoinHandle<()>)>>,
}

impl Mock {
    /// Speaks the OpenAI Responses API at `/v1/responses`; every turn is answered with this text.
    pub(crate) fn openai(reply: &str) -> Self {
        Self::start(Service::OpenAi, reply)
    }

    /// Speaks the Anthropic Messages API at `/v1/messages`; every turn is answered with this text.
    pub(crate) fn anthropic(reply: &str) -> Self {
        Self::start(Service::Anthropic, reply)
    }

    /// From now on it answers with status 400 to what the real service refuses, as [`super::api`] tells.
    pub(crate) fn refuse_what_the_api_refuses(&self) {
        self.shared.strict.store(true, Ordering::SeqCst);
    }

    /// Why requests were refused.
    pub(crate) fn refused(&self) -> Vec<String> {
        self.shared.refused.lock().unwrap().clone()
    }

    fn start(service: Service, reply: &str) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            service,
            reply: reply.to_owned(),
            stopping: AtomicBool::new(false),
            strict: AtomicBool::new(false),
            requests: Mutex::default(),
            refused: Mutex::default(),
            connections: Mutex::default(),
        });
        let accepting = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || accept(&listener, &shared))
        };
        Mock { address, shared, accepting: Some(accepting) }
    }

    /// `http://127.0.0.1:PORT`
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every request so far, in the order they were complete.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().unwrap().clone()
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        // Wakes the accepting thread. Should it fail, that thread has ended already.
        let _ = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
        let connections = std::mem::take(&mut *self.shared.connections.lock().unwrap());
        for (stream, thread) in connections {
            // An error means that the client closed it first.
            let _ = stream.shutdown(Shutdown::Both);
            let _ = thread.join();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.stopping.load(Ordering::SeqCst) {
            break;
        }
        // A client may be gone before it is let in.
        let Ok(stream) = stream else { continue };
        let Ok(second) = stream.try_clone() else { continue };
        let answering = Arc::clone(shared);
        let thread = thread::spawn(move || {
            // A client that leaves in the middle of a request or an answer is no matter of the server: what a test
            // needs to have arrived, it asks of `requests`.
            let _ = serve(&stream, &answering);
            let _ = stream.shutdown(Shutdown::Both);
        });
        shared.connections.lock().unwrap().push((second, thread));
    }
}

/// Answers one request and lets the connection end: clients open another for the next.
fn serve(stream: &TcpStream, shared: &Shared) -> std::io::Result<()> {
    let Some(request) = read_request(&mut BufReader::new(stream))? else { return Ok(()) };
    let faults =
        if shared.strict.load(Ordering::SeqCst) { faults(shared.service, &request) } else { Vec::new() };
    let answer = match shared.service {
        _ if !faults.is_empty() => Answer::refused(&faults),
        Service::OpenAi => answer_openai(&request, &shared.reply),
        Service::Anthropic => answer_anthropic(&request, &shared.reply),
    };
    shared.refused.lock().unwrap().extend(faults);
    let head_only = request.method == "HEAD";
    shared.requests.lock().unwrap().push(request);
    let mut bytes = format!(
        "HTTP/1.1 {}\r\ncontent-type: {}\r\ncontent-length: {}\r\nrequest-id: req_mock\r\nconnection: close\r\n\r\n",
        answer.status,
        answer.kind,
        answer.body.len()
    )
    .into_bytes();
    if !head_only {
        bytes.extend_from_slice(answer.body.as_bytes());
    }
    let mut writer = stream;
    writer.write_all(&bytes)?;
    writer.flush()
}

fn faults(service: Service, request: &Request) -> Vec<String> {
    match (service, request.method.as_str(), request.path.as_str()) {
        (Service::OpenAi, "POST", "/v1/responses") => api::openai(&request.body, request.length),
        (Service::Anthropic, "POST", "/v1/messages") => api::anthropic(&request.body, request.length),
        _ => Vec::new(),
    }
}

/// `None` when the client closed the connection without a word.
fn read_request(reader: &mut impl BufRead) -> std::io::Result<Option<Request>> {
    let first = read_line(reader)?;
    let mut words = first.split(' ');
    let (Some(method), Some(target)) = (words.next(), words.next()) else { return Ok(None) };
    let (mut length, mut chunked, mut encoding) = (0_u64, false, String::new());
    loop {
        let line = read_line(reader)?;
        if line.is_empty() {
            break;
        }
        let Some((name, value)) = line.split_once(':') else { continue };
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().map_err(std::io::Error::other)?,
            "transfer-encoding" => chunked = value.eq_ignore_ascii_case("chunked"),
            "content-encoding" => encoding = value.to_ascii_lowercase(),
            _ => (),
        }
    }
    let mut raw = Vec::new();
    if chunked {
        loop {
            let size = read_line(reader)?;
            let size = size.split(';').next().unwrap_or_default().trim();
            let size = u64::from_str_radix(size, 16).map_err(std::io::Error::other)?;
            reader.by_ref().take(size).read_to_end(&mut raw)?;
            // The end of the chunk; after the last one, the end of the (absent) trailers.
            read_line(reader)?;
            if size == 0 {
                break;
            }
        }
    } else {
        reader.by_ref().take(length).read_to_end(&mut raw)?;
        if (raw.len() as u64) < length {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
    let raw = match encoding.as_str() {
        "zstd" => zstd::decode_all(raw.as_slice())?,
        "gzip" => {
            let mut decoded = Vec::new();
            flate2::read::GzDecoder::new(raw.as_slice()).read_to_end(&mut decoded)?;
            decoded
        }
        _ => raw,
    };
    Ok(Some(Request {
        method: method.to_owned(),
        path: target.split('?').next().unwrap_or_default().to_owned(),
        body: serde_json::from_slice(&raw).unwrap_or(Value::Null),
        length: raw.len(),
    }))
}

fn read_line(reader: &mut impl BufRead) -> std::io::Result<String> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    line.truncate(line.trim_end_matches(['\r', '\n']).len());
    Ok(line)
}

struct Answer {
    status: &'static str,
    kind: &'static str,
    body: String,
}

impl Answer {
    fn json(body: &Value) -> Self {
        Answer { status: "200 OK", kind: "application/json", body: body.to_string() }
    }

    /// Server-sent events, each named by the `type` of its data, as both services do.
    fn events(events: &[Value]) -> Self {
        let body = events
            .iter()
            .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()))
            .collect();
        Answer { status: "200 OK", kind: "text/event-stream", body }
    }

    fn refused(faults: &[String]) -> Self {
        let error = json!({"type": "invalid_request_error", "message": faults.join("; ")});
        let body = json!({"type": "error", "error": error}).to_string();
        Answer { status: "400 Bad Request", kind: "application/json", body }
    }

    fn not_found() -> Self {
        let error = json!({"type": "not_found_error", "message": "the mock has nothing here"});
        let body = json!({"type": "error", "error": error}).to_string();
        Answer { status: "404 Not Found", kind: "application/json", body }
    }

    /// To a client that asks for a tunnel to somewhere else.
    fn no_way_out() -> Self {
        Answer {
            status: "403 Forbidden",
            kind: "text/plain",
            body: "the mock is the whole network\n".to_owned(),
        }
    }
}

fn answer_openai(request: &Request, reply: &str) -> Answer {
    match (request.method.as_str(), request.path.as_str()) {
        ("CONNECT", _) => Answer::no_way_out(),
        ("GET", "/v1/models") => Answer::json(&json!({"object": "list", "data": [], "models": []})),
        ("POST", "/v1/responses") => {
            let content = json!([{"type": "output_text", "text": reply, "annotations": []}]);
            let message = json!({
                "type": "message", "id": "msg_mock", "status": "completed", "role": "assistant", "content": content
            });
            let usage = json!({
                "input_tokens": 900, "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": 9, "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": 909
            });
            Answer::events(&[
                json!({"type": "response.created", "sequence_number": 0,
                    "response": {"id": "resp_mock", "status": "in_progress"}}),
                json!({"type": "response.output_item.done", "sequence_number": 1, "output_index": 0, "item": message}),
                json!({"type": "response.completed", "sequence_number": 2,
                    "response": {"id": "resp_mock", "status": "completed", "output": [message], "usage": usage}}),
            ])
        }
        _ => Answer::not_found(),
    }
}

fn answer_anthropic(request: &Request, reply: &str) -> Answer {
    match (request.method.as_str(), request.path.as_str()) {
        ("CONNECT", _) => Answer::no_way_out(),
        // The client's way to see whether the service is up.
        ("HEAD", _) => Answer::json(&json!({})),
        ("GET", "/v1/models") => Answer::json(&json!({"data": [], "has_more": false})),
        ("POST", "/v1/messages/count_tokens") => {
            Answer::json(&json!({"input_tokens": request.length / 4 + 1}))
        }
        ("POST", "/v1/messages") => {
            let usage = json!({
                "input_tokens": 900, "output_tokens": 9,
                "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0
            });
            let message = |content: Value, stop_reason: Value| {
                json!({
                    "id": "msg_mock", "type": "message", "role": "assistant",
                    "model": request.body["model"], "content": content,
                    "stop_reason": stop_reason, "stop_sequence": null, "usage": usage
                })
            };
            if request.body["stream"] != json!(true) {
                let content = json!([{"type": "text", "text": reply}]);
                return Answer::json(&message(content, json!("end_turn")));
            }
            Answer::events(&[
                json!({"type": "message_start", "message": message(json!([]), Value::Null)}),
                json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
                json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": reply}}),
                json!({"type": "content_block_stop", "index": 0}),
                json!({"type": "message_delta", "usage": usage,
                    "delta": {"stop_reason": "end_turn", "stop_sequence": null}}),
                json!({"type": "message_stop"}),
            ])
        }
        _ => Answer::not_found(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends raw bytes and returns all that comes back.
    fn exchange(mock: &Mock, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(mock.address).unwrap();
        stream.write_all(bytes).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn post(mock: &Mock, path: &str, header: &str, body: &[u8]) -> String {
        let mut bytes =
            format!("POST {path} HTTP/1.1\r\nhost: mock\r\n{header}content-length: {}\r\n\r\n", body.len())
                .into_bytes();
        bytes.extend_from_slice(body);
        exchange(mock, &bytes)
    }

    #[test]
    fn bodies_are_kept_however_they_are_sent() {
        let mock = Mock::openai("fine");
        let body = br#"{"input":["asked"]}"#;
        post(&mock, "/v1/responses?a=b", "", body);
        post(
            &mock,
            "/v1/responses",
            "Content-Encoding: zstd\r\n",
            &zstd::encode_all(body.as_slice(), 1).unwrap(),
        );
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(body).unwrap();
        post(&mock, "/v1/responses", "content-encoding: gzip\r\n", &gzip.finish().unwrap());
        exchange(
            &mock,
            b"POST /v1/responses HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n{\"input\"\r\nb\r\n:[\"asked\"]}\r\n0\r\n\r\n",
        );
        let requests = mock.requests();
        assert_eq!(requests.len(), 4);
        for request in requests {
            assert_eq!((request.path.as_str(), request.length), ("/v1/responses", body.len()));
            assert_eq!(request.body, json!({"input": ["asked"]}));
        }
    }

    #[test]
    fn both_services_answer_a_turn_with_the_reply() {
        let openai = Mock::openai("the reply");
        let answer = post(&openai, "/v1/responses", "", b"{}");
        assert!(
            answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("event: response.completed\n"),
            "{answer}"
        );
        assert!(answer.contains("the reply"));

        let anthropic = Mock::anthropic("the reply");
        let streamed = post(&anthropic, "/v1/messages", "", br#"{"stream":true}"#);
        assert!(streamed.contains("event: message_stop\n") && streamed.contains("the reply"), "{streamed}");
        let whole = post(&anthropic, "/v1/messages", "", b"{}");
        let body: Value = serde_json::from_str(whole.split_once("\r\n\r\n").unwrap().1).unwrap();
        assert_eq!(body["content"], json!([{"type": "text", "text": "the reply"}]));
        let counted = post(&anthropic, "/v1/messages/count_tokens", "", b"{\"a\":1}");
        assert!(counted.ends_with("{\"input_tokens\":2}"), "{counted}");
    }

    #[test]
    fn what_the_real_service_refuses_is_refused_when_asked() {
        let call = br#"{"input":[{"type":"function_call","name":"x","arguments":"{}","call_id":"a"}]}"#;
        let mock = Mock::openai("fine");
        assert!(post(&mock, "/v1/responses", "", call).starts_with("HTTP/1.1 200"));
        mock.refuse_what_the_api_refuses();
        let answer = post(&mock, "/v1/responses", "", call);
        assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("no tool output found"), "{answer}");
        assert_eq!(mock.refused(), ["input: no tool output found for a"]);
        let mock = Mock::anthropic("fine");
        mock.refuse_what_the_api_refuses();
        let body = br#"{"messages":[{"role":"assistant","content":"x"}]}"#;
        assert!(post(&mock, "/v1/messages", "", body).starts_with("HTTP/1.1 400"));
    }

    #[test]
    fn nothing_else_is_there_and_the_try_is_kept() {
        let mock = Mock::anthropic("fine");
        assert!(exchange(&mock, b"GET /elsewhere HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
        assert!(exchange(&mock, b"CONNECT example.com:443 HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 403"));
        let kept: Vec<_> =
            mock.requests().into_iter().map(|request| (request.method, request.path)).collect();
        assert_eq!(kept, [("GET".into(), "/elsewhere".into()), ("CONNECT".into(), "example.com:443".into())]);
    }

    #[test]
    fn an_unfinished_request_is_not_kept() {
        let mock = Mock::openai("fine");
        let mut stream = TcpStream::connect(mock.address).unwrap();
        stream.write_all(b"POST /v1/responses HTTP/1.1\r\ncontent-length: 99\r\n\r\n{\"input\":").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "");
        assert!(mock.requests().is_empty());
    }

    #[test]
    fn drop_stops_the_server_even_with_a_silent_client() {
        let mock = Mock::openai("fine");
        let address = mock.address;
        let mut silent = TcpStream::connect(address).unwrap();
        // Another exchange after it: the silent one has been let in by then.
        post(&mock, "/v1/responses", "", b"{}");
        drop(mock);
        assert_eq!(silent.read(&mut [0; 8]).unwrap(), 0);
        assert!(TcpStream::connect(address).is_err());
    }
}
