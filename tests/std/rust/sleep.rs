// thread::sleep, yield_now and what there is of threads when there is only one.
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

fn main() {
    for millis in [0, 1, 20, 50] {
        let start = Instant::now();
        thread::sleep(Duration::from_millis(millis));
        println!("slept {} ms: {}", millis, start.elapsed() >= Duration::from_millis(millis));
    }
    let start = Instant::now();
    for _ in 0..5 {
        thread::sleep(Duration::from_micros(500));
        thread::yield_now();
    }
    println!("in pieces: {}", start.elapsed() >= Duration::from_micros(2500));
    println!("thread {:?}", thread::current().name());
    thread_local! { static COUNT: std::cell::Cell<u32> = std::cell::Cell::new(7); }
    COUNT.with(|count| count.set(count.get() + 1));
    println!("local {}", COUNT.with(|count| count.get()));
    let (sender, receiver) = mpsc::channel();
    for i in 0..3 {
        sender.send(i).unwrap();
    }
    drop(sender);
    println!("channel {:?} then {:?}", receiver.iter().collect::<Vec<i32>>(), receiver.try_recv());
}
