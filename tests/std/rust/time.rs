// Clocks and durations. What a clock says is compared, never printed.
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

fn main() {
    let start = Instant::now();
    let mut last = start;
    let mut backwards = 0;
    for _ in 0..200 {
        let now = Instant::now();
        if now < last {
            backwards += 1;
        }
        last = now;
    }
    println!("monotonic: {} steps back", backwards);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    println!("after 2020: {}, before 2100: {}", now.as_secs() > 1_577_836_800, now.as_secs() < 4_102_444_800);

    // Two clocks that tell the same time, roughly, while something happens.
    let (a, b) = (Instant::now(), SystemTime::now());
    let mut x = 1u64;
    for i in 0..100_000u64 {
        x = x.wrapping_mul(6364136223846793005).wrapping_add(i);
    }
    let (took, also) = (a.elapsed(), b.elapsed().unwrap());
    println!("worked: {} {}", x, took <= Duration::from_secs(60) && also <= Duration::from_secs(60));

    let d = Duration::new(3, 250_000_000);
    println!("{:?} {:?} {:?} {:?}", d, d * 3, d / 4, d + Duration::from_millis(750));
    println!("{} {} {} {}", d.as_secs_f64(), d.as_millis(), d.subsec_micros(), Duration::from_secs_f64(0.1).as_nanos());
    println!("{:?} {:?}", d.checked_sub(Duration::from_secs(4)), d.saturating_sub(Duration::from_secs(4)));
    println!("{:?} {:?} {:?}", Duration::from_nanos(1_500), Duration::from_micros(999), Duration::MAX);
    println!("{:?}", start.checked_add(Duration::from_secs(5)).map(|later| later - start));
    println!("{:?}", UNIX_EPOCH.checked_add(Duration::from_secs(86_400)).and_then(|t| t.duration_since(UNIX_EPOCH).ok()));
    println!("{:?}", UNIX_EPOCH.duration_since(SystemTime::now()).is_err());
    println!("{:?}", Instant::now().saturating_duration_since(Instant::now() + Duration::from_secs(100)));
}
