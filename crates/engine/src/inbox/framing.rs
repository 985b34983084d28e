//! Finds requests that state their length twice: in octets and by a transfer coding.
//!
//! A proxy before us may go by the other of the two, and what it takes for a body we would take for the next
//! request. hyper settles the matter and drops one of them, so the octets are looked at on their way to it.

use std::collections::VecDeque;

/// Octets of a line that are looked at: a name of interest, and a length.
const LINE: usize = 128;

/// Follows the requests of one connection by their heads. After a body in chunks it looks no further: such a
/// request is the last of its connection.
#[derive(Debug, Default)]
pub(super) struct Framing {
    state: State,
    line: Vec<u8>,
    head: Head,
    /// One for each head that was read to its end and not asked for.
    read: VecDeque<Framed>,
}

/// How a request is framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Framed {
    /// It states its length twice.
    pub ambiguous: bool,
    pub chunked: bool,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Head,
    Body {
        left: u64,
    },
    Done,
}

#[derive(Debug, Default, Clone, Copy)]
struct Head {
    lines: u32,
    length: Option<u64>,
    coding: bool,
}

impl Framing {
    /// Octets as they came.
    pub fn take(&mut self, mut octets: &[u8]) {
        while !octets.is_empty() {
            match &mut self.state {
                State::Done => return,
                State::Body { left } => {
                    let skipped = usize::try_from(*left).unwrap_or(usize::MAX).min(octets.len());
                    *left -= skipped as u64;
                    octets = &octets[skipped..];
                    if *left == 0 {
                        self.state = State::Head;
                    }
                }
                State::Head => {
                    let end = octets.iter().position(|octet| *octet == b'\n');
                    let (part, rest) = octets.split_at(end.map_or(octets.len(), |end| end + 1));
                    octets = rest;
                    let room = LINE.saturating_sub(self.line.len()).min(part.len());
                    self.line.extend_from_slice(&part[..room]);
                    if end.is_some() {
                        self.end_line();
                        self.line.clear();
                    }
                }
            }
        }
    }

    /// How the next request in order is framed.
    pub fn next(&mut self) -> Framed {
        self.read.pop_front().unwrap_or_default()
    }

    fn end_line(&mut self) {
        let line = self.line.trim_ascii_end();
        if !line.is_empty() {
            self.head.lines += 1;
            if self.head.lines > 1 {
                self.head.read(line);
            }
            return;
        }
        if self.head.lines == 0 {
            return; // Empty lines before a request are skipped.
        }
        let head = std::mem::take(&mut self.head);
        self.read.push_back(Framed { ambiguous: head.coding && head.length.is_some(), chunked: head.coding });
        self.state = match head.length {
            _ if head.coding => State::Done,
            Some(left) if left > 0 => State::Body { left },
            Some(_) | None => State::Head,
        };
    }
}

impl Head {
    fn read(&mut self, line: &[u8]) {
        let Some(colon) = line.iter().position(|octet| *octet == b':') else { return };
        let (name, value) = (line[..colon].trim_ascii(), line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"content-length") {
            // One that cannot be read is refused by the server, and the connection with it.
            let length = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
            self.length = Some(length.unwrap_or(0));
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            self.coding = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &[u8] = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\n{}\n";
    const CHUNKED: &[u8] = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n";

    /// The result must not depend on how the octets were cut.
    fn framed(octets: &[u8]) -> Vec<Framed> {
        let whole = {
            let mut framing = Framing::default();
            framing.take(octets);
            Vec::from(framing.read)
        };
        for cut in 0..=octets.len() {
            let mut framing = Framing::default();
            framing.take(&octets[..cut]);
            framing.take(&octets[cut..]);
            assert_eq!(Vec::from(framing.read), whole, "cut at {cut}");
        }
        whole
    }

    #[test]
    fn a_length_beside_a_coding_is_ambiguous_in_either_order() {
        let length_first =
            b"POST / HTTP/1.1\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG";
        let coding_first = b"POST / HTTP/1.1\ntransfer-encoding:chunked\nCONTENT-LENGTH:6\n\n0\r\n\r\nG";
        for octets in [&length_first[..], coding_first] {
            assert_eq!(framed(octets), [Framed { ambiguous: true, chunked: true }]);
        }
    }

    #[test]
    fn requests_one_after_another_are_told_apart() {
        let three = [PLAIN, PLAIN, CHUNKED].concat();
        let plain = Framed::default();
        assert_eq!(framed(&three), [plain, plain, Framed { ambiguous: false, chunked: true }]);
    }

    #[test]
    fn a_body_that_looks_like_a_head_is_none() {
        let body = "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n";
        let request = format!("POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        assert_eq!(framed(&[request.as_bytes(), PLAIN].concat()), [Framed::default(), Framed::default()]);
    }

    #[test]
    fn long_lines_take_no_memory() {
        let mut framing = Framing::default();
        framing.take(b"GET / HTTP/1.1\r\nX: ");
        for _ in 0..1_000 {
            framing.take(&[b'a'; 1_024]);
        }
        assert!(framing.line.capacity() <= 2 * LINE, "{}", framing.line.capacity());
    }
}
