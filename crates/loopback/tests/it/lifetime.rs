//! Many at once, and the end.

use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use proctor_loopback::{Script, Server, ServerError};

use crate::client::{Client, prompt, serve};

const MANY: usize = 64;

#[test]
fn many_sessions_at_once_get_each_their_own_answers() {
    let server = serve("[[default.turn]]\ntext = 'you said {{prompt}}'\nchunk-delay-ms = 2\nfail = { status = 529, times = 1 }");
    let address = server.address();

    let sessions = (0..MANY).map(|number| {
        thread::spawn(move || {
            let mut client = Client::connect(address);
            let body = prompt(&format!("number {number}"));
            let session = number.to_string();
            assert_eq!(client.ask(&session, &body).unwrap().status, 529);
            client.ask(&session, &body).unwrap().blocks()[0]["text"].as_str().unwrap().to_owned()
        })
    });
    let said: Vec<String> = sessions.collect::<Vec<_>>().into_iter().map(|session| session.join().unwrap()).collect();

    assert_eq!(said, (0..MANY).map(|number| format!("you said number {number}")).collect::<Vec<_>>());
    assert_eq!(server.requests().len(), 2 * MANY);
}

#[test]
fn stopping_ends_delays_hangs_and_idle_connections_and_frees_the_port() {
    let server = serve(
        "[[scenario]]\nmatch = 'slow'\n[[scenario.turn]]\ndelay-ms = 3600000\n[[scenario]]\nmatch = 'hang'\n[[scenario.turn]]\nhang = {}",
    );
    let address = server.address();
    let idle = Client::connect(address);
    let waiting = ["slow", "hang"].map(|text| thread::spawn(move || Client::connect(address).ask("s", &prompt(text))));
    let started = Instant::now();
    while server.requests().len() < 2 {
        assert!(started.elapsed() < Duration::from_secs(20), "the requests do not arrive");
        thread::yield_now();
    }

    server.stop();

    for client in waiting {
        assert!(client.join().unwrap().is_none_or(|answer| !answer.whole));
    }
    assert!(TcpStream::connect(address).is_err());
    drop(idle);
}

#[test]
fn a_port_that_is_taken_is_named() {
    let server = serve("");

    let error = Server::start(Script::parse("").unwrap(), server.address().port()).unwrap_err();

    assert!(matches!(&error, ServerError::Listen { port, .. } if *port == server.address().port()));
    assert!(error.to_string().starts_with("listen on 127.0.0.1, port "));
    assert_eq!(server.url(), format!("http://127.0.0.1:{}", server.address().port()));
}
