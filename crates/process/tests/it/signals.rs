use proctor_process::{Signal, Signals, SignalsError};

use crate::world::{scene, until};

#[test]
fn signals_arrive_once_each_and_end_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let listener = scene("signals", folder.path(), &[]).spawn().unwrap();
    assert!(until(|| folder.path().join("listening").exists()));

    for signal in [Signal::Interrupt, Signal::Terminate, Signal::Hangup] {
        listener.signal(signal).unwrap();
    }

    let mut listener = listener;
    let status = listener.wait().unwrap();
    let mut printed = String::new();
    std::io::Read::read_to_string(&mut std::fs::File::from(listener.stdout.take().unwrap()), &mut printed).unwrap();
    assert!(status.is_success(), "{printed}");
    for name in ["Interrupt", "Terminate", "Hangup"] {
        assert_eq!(printed.matches(name).count(), 1, "{printed}");
    }
}

#[test]
fn a_signal_that_nobody_can_catch_is_refused() {
    for signal in [Signal::Kill, Signal::Stop] {
        assert!(matches!(Signals::listen(&[signal]), Err(SignalsError::Listen { .. })), "{signal:?}");
    }
}
