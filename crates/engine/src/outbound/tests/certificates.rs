//! Certificates and TLS that must not be trusted. There is no way to switch verification off.

use taskbell_core::tls::TlsFault;

use super::*;

async fn attempt_with(authority: &Authority, identity: Identity) -> AttemptResult {
    let world = World::default().answer(&["1.1.1.1"]);
    let (seen, requests) = std::sync::mpsc::channel();
    let receiver = over_tls(identity, move |_stream, request| {
        seen.send(request).unwrap();
        async {}
    });
    let result = outbound(&world, authority, receiver).send(callback(URL)).await.result;
    assert!(requests.try_recv().is_err(), "nothing may be sent before the receiver is known");
    result
}

#[tokio::test]
async fn each_certificate_that_is_wrong_has_its_own_code_and_is_sent_nothing() {
    let authority = Authority::new();
    let name = "hooks.example.com";
    let expired = authority.sign(name, |params| params.not_after = rcgen::date_time_ymd(2020, 1, 1));
    let early = authority.sign(name, |params| {
        params.not_before = rcgen::date_time_ymd(2090, 1, 1);
        params.not_after = rcgen::date_time_ymd(2091, 1, 1);
    });
    let self_signed = {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (params.self_signed(&key).unwrap().der().clone(), key)
    };
    for (identity, fault) in [
        (expired, TlsFault::Expired),
        (early, TlsFault::NotYetValid),
        (authority.sign("other.example.com", |_| {}), TlsFault::WrongName),
        (authority.sign("example.com", |_| {}), TlsFault::WrongName),
        (self_signed, TlsFault::UnknownIssuer),
        (Authority::new().sign(name, |_| {}), TlsFault::UnknownIssuer),
    ] {
        assert_eq!(attempt_with(&authority, identity).await, failed(Failure::Tls(fault)));
    }
}

#[tokio::test]
async fn a_receiver_with_old_tls_only_or_none_is_told_apart() {
    let authority = Authority::new();
    let world = World::default().answer(&["1.1.1.1"]);
    // The alert `protocol_version` (RFC 8446 §6), as a server of TLS 1.1 answers.
    for (octets, failure) in [
        (&[0x15, 0x03, 0x01, 0x00, 0x02, 0x02, 0x46][..], Failure::Tls(TlsFault::Version)),
        (&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], Failure::Tls(TlsFault::Handshake)),
        (&b""[..], Failure::Closed),
    ] {
        let receiver = move |mut stream: DuplexStream| {
            async move {
                let mut hello = [0; 1024];
                let _ = stream.read(&mut hello).await;
                let _ = stream.write_all(octets).await;
            }
            .boxed()
        };
        let attempted = outbound(&world, &authority, receiver).send(callback(URL)).await;
        assert_eq!(attempted.result, failed(failure));
    }
}

#[tokio::test(start_paused = true)]
async fn a_handshake_that_hangs_is_given_up_after_five_seconds() {
    let authority = Authority::new();
    let world = World::default().answer(&["1.1.1.1"]);
    let receiver = |stream: DuplexStream| {
        async move {
            let _held = stream;
            std::future::pending().await
        }
        .boxed()
    };
    let began = tokio::time::Instant::now();
    let attempted = outbound(&world, &authority, receiver).send(callback(URL)).await;
    assert_eq!(attempted.result, failed(Failure::TlsTimeout));
    assert_eq!(began.elapsed().as_secs(), 5);
}
