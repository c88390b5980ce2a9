//! Token streams against matchers of known grammars, with everything that can come before a text.

use std::sync::Arc;

use ffwd_engine::matcher::{Beginning, Close, Opening};

use crate::driver::Driver;
use crate::engine::{engine, NAMED, OTHER};
use crate::known;
use crate::session::{Session, Stopped};

pub fn run(data: &[u8]) {
    let mut driver = Driver::new(data);
    let engine = engine();
    let number = driver.below(known::COUNT);
    let mut compiled = known::compile(number, &engine);
    if driver.once_in(4) {
        // So little that nothing is kept for long.
        compiled = compiled.limited_to(driver.below(5) << 12);
    }
    let compiled = Arc::new(compiled);
    let session = match driver.below(3) {
        0 => {
            let beginning = beginning(&mut driver);
            Session::beginning(compiled, beginning, driver)
        }
        _ => Session::new(compiled, driver),
    };
    if let Ok(session) = session {
        let _ = follow(session, data.len());
    }
}

fn beginning(driver: &mut Driver<'_>) -> Beginning {
    const TEXTS: [&[u8]; 8] = [b"", b"{", b"{\"a", b"a", b"\"x", b"\n", b"\xC3", b"  ab"];
    let opening = match driver.below(6) {
        0 => Some(Close::Tokens([OTHER].into())),
        1 => Some(Close::Tokens([OTHER, NAMED].into())),
        2 => Some(Close::Text(b"</a>".as_slice().into())),
        3 => Some(Close::Text(b"aab".as_slice().into())),
        _ => None,
    };
    Beginning {
        recent: Vec::new(),
        prefix: driver.pick(&TEXTS).to_vec(),
        prefill: driver.pick(&TEXTS).to_vec(),
        opening: opening.map(|close| Opening { close, controls: vec![NAMED] }),
        canonical: false,
        max_tokens: driver.flag().then(|| driver.below(40)),
    }
}

fn follow(mut session: Session<'_>, length: usize) -> Result<(), Stopped> {
    session.check_by_brute_force()?;
    session.steps(8 + length.min(64))?;
    session.check_by_brute_force()?;
    session.replay()?;
    session.complete()?;
    Ok(())
}
