//! Just enough HTTP/1.1 to find the ends of messages.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

/// First line and headers, as received and taken apart.
pub struct Head {
    /// The octets, with the empty line.
    pub raw: Vec<u8>,
    pub first_line: String,
    headers: Vec<(String, String)>,
}

/// How the end of a body is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    Chunked,
    Length(usize),
    /// Up to the end of the connection.
    Close,
}

impl Head {
    /// Reads one, or none at the end of the connection.
    pub async fn read(from: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<Self>> {
        let mut raw = Vec::new();
        loop {
            let start = raw.len();
            if from.read_until(b'\n', &mut raw).await? == 0 {
                return Ok(None);
            }
            let line = raw.get(start..).unwrap_or_default();
            if line == b"\r\n" || line == b"\n" {
                break;
            }
        }
        let text = String::from_utf8_lossy(&raw).into_owned();
        let mut lines = text.lines();
        let first_line = lines.next().unwrap_or_default().to_owned();
        let headers = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
            .collect();
        Ok(Some(Self { raw, first_line, headers }))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// The framing of this message's body, `otherwise` when it does not say.
    pub fn framing(&self, otherwise: Framing) -> Framing {
        if self.header("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
            return Framing::Chunked;
        }
        match self.header("content-length").and_then(|length| length.parse().ok()) {
            Some(length) => Framing::Length(length),
            None => otherwise,
        }
    }
}

/// The next piece of a body: none at its end.
pub async fn read_piece(
    from: &mut (impl AsyncBufRead + Unpin),
    left: &mut Framing,
) -> io::Result<Option<Vec<u8>>> {
    match left {
        Framing::Chunked => read_chunk(from).await,
        Framing::Length(0) => Ok(None),
        Framing::Length(length) => {
            let piece = read_some(from, *length).await?;
            if piece.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            *length -= piece.len();
            Ok(Some(piece))
        }
        Framing::Close => {
            let piece = read_some(from, usize::MAX).await?;
            Ok((!piece.is_empty()).then_some(piece))
        }
    }
}

/// A whole body.
pub async fn read_body(from: &mut (impl AsyncBufRead + Unpin), mut framing: Framing) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    while let Some(piece) = read_piece(from, &mut framing).await? {
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

async fn read_some(from: &mut (impl AsyncBufRead + Unpin), most: usize) -> io::Result<Vec<u8>> {
    let buffer = from.fill_buf().await?;
    let piece = buffer.get(..buffer.len().min(most)).unwrap_or_default().to_vec();
    from.consume(piece.len());
    Ok(piece)
}

async fn read_chunk(from: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<Vec<u8>>> {
    let mut line = String::new();
    if from.read_line(&mut line).await? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let digits = line.split(';').next().unwrap_or_default().trim();
    let size = usize::from_str_radix(digits, 16).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
    let mut chunk = vec![0; size];
    from.read_exact(&mut chunk).await?;
    // Past the line end of the chunk, or past trailers and the empty line.
    loop {
        line.clear();
        if from.read_line(&mut line).await? == 0 || line.trim().is_empty() {
            return Ok((size > 0).then_some(chunk));
        }
    }
}
