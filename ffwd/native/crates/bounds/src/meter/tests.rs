use super::*;
use crate::error::{Breach, CALL_SECONDS, CANCELLATION};

fn few(steps: u64) -> Limits {
    Limits { call_steps: steps, ..Limits::NONE }
}

/// How many charges of one step succeed.
fn charges(meter: &mut Meter, most: usize) -> Result<usize, LimitExceeded> {
    let mut done = 0;
    let ended = meter.run(|| {
        for _ in 0..most {
            charge(1)?;
            done += 1;
        }
        Ok(())
    });
    ended.map(|()| done)
}

#[test]
fn without_a_meter_nothing_is_limited() {
    for _ in 0..100 {
        assert_eq!(charge(usize::MAX / 64), Ok(()));
    }
    assert_eq!(check::states(usize::MAX - 1), Ok(()));
}

#[test]
fn steps_are_counted_exactly() {
    for limit in [0, 1, 2, QUANTUM - 1, QUANTUM, QUANTUM + 1, 3 * QUANTUM + 7] {
        let limits = few(limit);
        let n = limit as usize;
        assert_eq!(charges(&mut Meter::calling(&limits, None), n), Ok(n));
        let error = charges(&mut Meter::calling(&limits, None), n + 1).unwrap_err();
        assert_eq!((error.limit, error.maximum), (CALL_STEPS, limit));
        assert_eq!(error.breach(), Breach::Budget);
    }
}

#[test]
fn several_runs_share_a_budget() {
    let mut meter = Meter::calling(&few(10_000), None);
    for spent in [3000, 6000, 9000] {
        assert_eq!(charges(&mut meter, 3000), Ok(3000));
        assert_eq!(meter.spent(), spent);
    }
    assert!(charges(&mut meter, 3000).is_err());
    // An exhausted meter stays exhausted.
    assert!(charges(&mut meter, 1).is_err());
}

#[test]
fn a_breach_lasts_until_the_call_ends_and_is_told() {
    let limits = few(100);
    let mut meter = Meter::calling(&limits, None);
    let ended: Result<(), LimitExceeded> = meter.run(|| {
        assert!(charge(101).is_err());
        assert!(charge(1).is_err());
        // Also where the work takes it for an answer.
        Ok(())
    });
    assert_eq!(ended.unwrap_err().limit, CALL_STEPS);
    assert_eq!(charge(1 << 40), Ok(()));
    assert_eq!(charges(&mut Meter::calling(&limits, None), 100), Ok(100));
}

#[test]
fn work_that_was_charged_before_gives_its_steps_back() {
    for limit in [100, QUANTUM - 1, QUANTUM, QUANTUM + 1, 3 * QUANTUM + 7] {
        let n = limit as usize;
        let mut meter = Meter::calling(&few(limit), None);
        meter
            .run(|| {
                for _ in 0..50 {
                    given_back(|| (0..n).try_for_each(|_| charge(1)))?;
                }
                // All steps are still there, for the call itself.
                (0..n).try_for_each(|_| charge(1))
            })
            .unwrap();
        assert_eq!(meter.spent(), 51 * limit);
        assert!(charges(&mut meter, 1).is_err());
        // A part may not take more than a call.
        let mut meter = Meter::calling(&few(limit), None);
        let ended = meter.run(|| given_back(|| (0..=n).try_for_each(|_| charge(1))));
        assert_eq!(ended.unwrap_err().limit, CALL_STEPS);
    }
}

#[test]
fn work_that_was_charged_before_can_be_cancelled() {
    let cancellation = Cancellation::default();
    let mut meter = Meter::calling(&few(100), Some(cancellation.clone()));
    let ended: Result<(), LimitExceeded> = meter.run(|| {
        cancellation.cancel();
        loop {
            given_back(|| charge(50))?;
        }
    });
    assert_eq!(ended.unwrap_err().limit, CANCELLATION);
}

#[test]
fn an_inner_call_belongs_to_the_outer_one() {
    let mut outer = Meter::calling(&few(100), None);
    let error = outer.run(|| {
        charge(60)?;
        Meter::calling(&few(1000), None).run(|| charge(60))
    });
    assert_eq!(error.unwrap_err().maximum, 100);
}

#[test]
fn what_is_unmetered_costs_nothing() {
    let mut meter = Meter::calling(&Limits { states: 3, ..few(100) }, None);
    let done: Result<(), LimitExceeded> = meter.run(|| {
        charge(60)?;
        check::states(3)?;
        unmetered(|| {
            charge(1000)?;
            check::states(1000)
        })?;
        assert_eq!(check::states(4).unwrap_err().limit, "states");
        charge(40)
    });
    assert_eq!((done, meter.spent()), (Ok(()), 100));
}

#[test]
fn time_runs_out_and_a_flag_is_seen() {
    let limits = Limits { call_time: Duration::from_millis(5), ..Limits::NONE };
    let error = charges(&mut Meter::calling(&limits, None), usize::MAX).unwrap_err();
    assert_eq!((error.limit, error.breach()), (CALL_SECONDS, Breach::Deadline));
    assert!(error.to_string().contains("0.005 s"), "{error}");

    let flag = Cancellation::default();
    let other = flag.clone();
    let cancels = std::thread::spawn(move || other.cancel());
    let mut meter = Meter::calling(&Limits::NONE, Some(flag.clone()));
    let error = charges(&mut meter, usize::MAX).unwrap_err();
    cancels.join().unwrap();
    assert_eq!((error.limit, error.breach()), (CANCELLATION, Breach::Cancelled));
    // A call that begins under it does nothing.
    let error = charges(&mut Meter::calling(&Limits::NONE, Some(flag.clone())), 1).unwrap_err();
    assert_eq!(error.breach(), Breach::Cancelled);
    flag.reset();
    assert_eq!(charges(&mut Meter::calling(&Limits::NONE, Some(flag)), 1), Ok(1));
}

#[test]
fn a_panic_takes_the_meter_away() {
    let mut meter = Meter::calling(&few(10), None);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _: Result<(), LimitExceeded> = meter.run(|| panic!("as a test wants it"));
    }));
    assert!(panicked.is_err());
    assert_eq!(charge(1000), Ok(()));
}

#[test]
fn faults_come_at_the_charge_that_was_asked_for() {
    for at in [1u64, 2, 7, 5000] {
        faults::inject(Some(at));
        let mut done = 0;
        let ended: Result<(), LimitExceeded> = Meter::calling(&Limits::NONE, None).run(|| loop {
            charge(3)?;
            done += 1;
        });
        assert_eq!(ended.unwrap_err().limit, CALL_SECONDS);
        assert_eq!((done, faults::left()), (at - 1, None));
    }
    // Over several calls.
    faults::inject(Some(10));
    assert_eq!(charges(&mut Meter::calling(&Limits::NONE, None), 6), Ok(6));
    assert_eq!(faults::left(), Some(4));
    assert!(charges(&mut Meter::calling(&Limits::NONE, None), 6).is_err());
    faults::inject(None);
}
