//! What receivers say, and how long they take.

use super::*;

type TlsStream = tokio_rustls::server::TlsStream<DuplexStream>;

#[tokio::test]
async fn one_request_leaves_with_the_urls_own_host_and_path_and_asks_to_close() {
    let (seen, requests) = std::sync::mpsc::channel();
    let result = attempt(move |mut stream: TlsStream, request| {
        let seen = seen.clone();
        async move {
            seen.send(request).unwrap();
            let _ = stream.write_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n").await;
        }
    });
    assert_eq!(result.await, status(202));
    let request = requests.try_recv().unwrap();
    assert!(request.starts_with("POST /a?b=c HTTP/1.1\r\n"), "{request}");
    for field in ["host: hooks.example.com\r\n", "content-length: 2\r\n", "connection: close\r\n"] {
        assert!(request.contains(field), "{request}");
    }
    assert!(!request.contains("proxy") && !request.contains("referer"), "{request}");
    assert!(requests.try_recv().is_err(), "one request, and no other");
}

#[tokio::test]
async fn a_status_is_taken_with_what_the_receiver_asks_for() {
    let answer = attempt(saying("HTTP/1.1 429 x\r\nretry-after: 3600\r\ncontent-length: 0\r\n\r\n"));
    let hour = Some(Duration::from_secs(3_600));
    assert_eq!(answer.await, AttemptResult::Done(Outcome::Status { status: 429, retry_after: hour }));
    let answer = attempt(saying("HTTP/1.1 503 x\r\nretry-after: -1\r\ncontent-length: 0\r\n\r\n"));
    assert_eq!(answer.await, status(503));
}

#[tokio::test]
async fn redirects_are_statuses_and_lead_nowhere() {
    for code in [301, 302, 303, 307, 308] {
        let answer =
            format!("HTTP/1.1 {code} x\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n");
        let result = attempt(saying(answer)).await;
        assert_eq!(result, status(code));
        let AttemptResult::Done(outcome) = result else { panic!() };
        assert_eq!(outcome.code(), Some("redirect_not_followed"));
    }
}

#[tokio::test]
async fn sixteen_interim_answers_are_read_and_no_more() {
    let interim = |count| {
        format!("{}HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", "HTTP/1.1 103 x\r\n\r\n".repeat(count))
    };
    assert_eq!(attempt(saying(interim(16))).await, status(200));
    assert_eq!(attempt(saying(interim(1_000))).await, failed(Failure::TooManyInterim));
}

#[tokio::test]
async fn what_is_no_answer_is_told_by_how_it_fails() {
    assert_eq!(attempt(saying("")).await, failed(Failure::Closed));
    assert_eq!(attempt(saying("HTTP/1.1 200 OK\r\ncontent-le")).await, failed(Failure::Closed));
    assert_eq!(attempt(saying("SSH-2.0-OpenSSH_9.2\r\n")).await, failed(Failure::NotHttp));
    let endless = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(1 << 20));
    assert_eq!(attempt(saying(endless)).await, failed(Failure::NotHttp));
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: y\r\n".repeat(1_000));
    assert_eq!(attempt(saying(many)).await, failed(Failure::NotHttp));
}

/// Writes until the client goes away; how much it took.
async fn pour(mut stream: TlsStream, poured: Arc<AtomicUsize>) {
    let chunk = [b'x'; 8192];
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 1073741824\r\n\r\n";
    if stream.write_all(head).await.is_err() {
        return;
    }
    while poured.load(Ordering::SeqCst) < 1 << 30 && stream.write_all(&chunk).await.is_ok() {
        poured.fetch_add(chunk.len(), Ordering::SeqCst);
    }
}

#[tokio::test]
async fn of_a_body_of_a_gigabyte_next_to_nothing_is_read() {
    let poured = Arc::new(AtomicUsize::new(0));
    let pouring = Arc::clone(&poured);
    let result = attempt(move |stream, _| pour(stream, Arc::clone(&pouring))).await;
    assert_eq!(result, status(200));
    let poured = poured.load(Ordering::SeqCst);
    assert!(poured < 1 << 20, "{poured} octets were taken");
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_drips_is_given_up_after_fifteen_seconds_in_all() {
    let began = tokio::time::Instant::now();
    let result = attempt(|mut stream: TlsStream, _| async move {
        for octet in b"HTTP/1.1 200 OK\r\nx: a very long field that never comes to its end\r\n".iter() {
            let _ = stream.write_all(&[*octet]).await;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    });
    assert_eq!(result.await, failed(Failure::Timeout));
    assert_eq!(began.elapsed().as_secs(), 15);
}

#[tokio::test(start_paused = true)]
async fn a_status_in_time_counts_whatever_the_body_does() {
    let began = tokio::time::Instant::now();
    let result = attempt(|mut stream: TlsStream, _| async move {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n").await;
        std::future::pending().await
    });
    assert_eq!(result.await, status(200));
    assert!(began.elapsed() < Duration::from_secs(3));
}
