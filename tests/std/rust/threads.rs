// std::thread and std::sync where threads are real. What threads do in any order is added up before it is printed.
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{channel, sync_channel, RecvTimeoutError, TryRecvError, TrySendError};
use std::sync::{Arc, Barrier, Condvar, Mutex, Once, RwLock};
use std::thread;
use std::time::{Duration, Instant};

fn joining() {
    let handles: Vec<_> = (0..8u64).map(|i| thread::spawn(move || (i, i * i))).collect();
    let squares: Vec<_> = handles.into_iter().map(|handle| handle.join().unwrap()).collect();
    println!("squares {:?}", squares);
    let named = thread::Builder::new().name("worker".to_string()).stack_size(256 * 1024);
    let handle = named.spawn(|| thread::current().name().map(str::to_string)).unwrap();
    println!("named {:?}", handle.join().unwrap());
    let other = thread::spawn(|| thread::current().id()).join().unwrap();
    println!("its own id {}", other != thread::current().id());
    let mut total = 0;
    for i in 0..100u64 {
        total += thread::spawn(move || i).join().unwrap();
    }
    println!("one after another {}", total);
    let handle = thread::spawn(|| thread::sleep(Duration::from_millis(20)));
    let start = Instant::now();
    handle.join().unwrap();
    println!("slept {}", start.elapsed() < Duration::from_secs(20));
}

fn channels() {
    let (sender, receiver) = channel();
    for id in 0..4u64 {
        let sender = sender.clone();
        thread::spawn(move || {
            for i in 0..100 {
                sender.send((id, i)).unwrap();
            }
        });
    }
    drop(sender);
    let mut seen: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for (id, i) in receiver {
        seen.entry(id).or_default().push(i);
    }
    for (id, items) in &seen {
        let in_order = items.windows(2).all(|pair| pair[0] < pair[1]);
        println!("from {}: {} items, in order {}", id, items.len(), in_order);
    }

    let (sender, receiver) = sync_channel::<u64>(2);
    let producer = thread::spawn(move || (0..200).map(|i| sender.send(i).unwrap()).count());
    println!("bounded {}", receiver.iter().sum::<u64>());
    println!("sent {}", producer.join().unwrap());

    let (sender, receiver) = sync_channel::<i32>(0);
    println!("nobody takes {:?}", sender.try_send(1) == Err(TrySendError::Full(1)));
    let meeting = thread::spawn(move || receiver.recv());
    sender.send(42).unwrap();
    println!("they met {:?}", meeting.join().unwrap());

    let (sender, receiver) = channel::<i32>();
    println!("empty {:?}", receiver.try_recv() == Err(TryRecvError::Empty));
    let start = Instant::now();
    let result = receiver.recv_timeout(Duration::from_millis(20));
    println!("too late {} {}", result == Err(RecvTimeoutError::Timeout), start.elapsed() >= Duration::from_millis(20));
    drop(sender);
    println!("gone {:?} {:?}", receiver.recv().is_err(), receiver.try_recv() == Err(TryRecvError::Disconnected));

    // A pipeline of three, each with a thread.
    let (numbers, from_numbers) = channel::<u64>();
    let (squares, from_squares) = channel::<u64>();
    thread::spawn(move || (1..=50).for_each(|i| numbers.send(i).unwrap()));
    thread::spawn(move || from_numbers.iter().for_each(|i| squares.send(i * i).unwrap()));
    println!("pipeline {}", from_squares.iter().sum::<u64>());
}

fn locks() {
    let count = Arc::new(Mutex::new(0u64));
    let handles: Vec<_> = (0..8)
        .map(|_| {
            let count = Arc::clone(&count);
            thread::spawn(move || {
                for i in 0..200 {
                    let mut held = count.lock().unwrap();
                    let seen = *held;
                    if i % 50 == 0 {
                        thread::yield_now();
                    }
                    *held = seen + 1;
                }
            })
        })
        .collect();
    for handle in handles {
        handle.join().unwrap();
    }
    println!("counted {}", count.lock().unwrap());

    let held = count.lock().unwrap();
    let other = Arc::clone(&count);
    println!("held elsewhere {}", thread::spawn(move || other.try_lock().is_err()).join().unwrap());
    drop(held);

    let pair = RwLock::new((0u64, 0u64));
    let torn = AtomicUsize::new(0);
    thread::scope(|scope| {
        for writer in 0..8 {
            let (pair, torn) = (&pair, &torn);
            scope.spawn(move || {
                for i in 0..50 {
                    if (i + writer) % 4 == 0 {
                        let mut pair = pair.write().unwrap();
                        pair.0 += 1;
                        thread::yield_now();
                        pair.1 += 1;
                    } else {
                        let pair = pair.read().unwrap();
                        torn.fetch_add((pair.0 != pair.1) as usize, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    println!("written {:?}, torn {}", pair.into_inner().unwrap(), torn.into_inner());
}

fn conditions() {
    let game = Arc::new((Mutex::new((0u64, 0u64)), Condvar::new()));
    let players: Vec<_> = (0..3u64)
        .map(|player| {
            let game = Arc::clone(&game);
            thread::spawn(move || {
                let (state, turn_changes) = &*game;
                for _ in 0..60 {
                    let mut state = turn_changes.wait_while(state.lock().unwrap(), |state| state.0 % 3 != player).unwrap();
                    state.0 += 1;
                    state.1 = (state.1 * 7 + player) % 1_000_003;
                    turn_changes.notify_all();
                }
            })
        })
        .collect();
    for player in players {
        player.join().unwrap();
    }
    println!("in turn {:?}", game.0.lock().unwrap());
    let start = Instant::now();
    let held = game.0.lock().unwrap();
    let (_held, result) = game.1.wait_timeout_while(held, Duration::from_millis(20), |_| true).unwrap();
    println!("timed out {} {}", result.timed_out(), start.elapsed() >= Duration::from_millis(20));

    let barrier = Barrier::new(6);
    let (leaders, arrived, behind) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                for round in 1..=4 {
                    arrived.fetch_add(1, Ordering::SeqCst);
                    leaders.fetch_add(barrier.wait().is_leader() as usize, Ordering::SeqCst);
                    behind.fetch_add((arrived.load(Ordering::SeqCst) < 6 * round) as usize, Ordering::SeqCst);
                    barrier.wait();
                }
            });
        }
    });
    println!("barrier: {} leaders, {} behind", leaders.into_inner(), behind.into_inner());

    let ready = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&ready);
    let parked = thread::spawn(move || {
        while !seen.load(Ordering::Acquire) {
            thread::park();
        }
        "woken"
    });
    thread::sleep(Duration::from_millis(5));
    ready.store(true, Ordering::Release);
    parked.thread().unpark();
    println!("{}", parked.join().unwrap());
    thread::park_timeout(Duration::from_millis(5));
}

fn scopes() {
    let words = "the quick brown fox jumps over the lazy dog and the cat".split(' ').collect::<Vec<_>>();
    let lengths: Vec<usize> = thread::scope(|scope| {
        let parts: Vec<_> = words.chunks(3).map(|part| scope.spawn(move || part.iter().map(|word| word.len()).sum())).collect();
        parts.into_iter().map(|part| part.join().unwrap()).collect()
    });
    println!("lengths {:?}", lengths);
    let mut numbers = (0..1000u64).rev().collect::<Vec<_>>();
    sort(&mut numbers, 3);
    println!("sorted {}", numbers.iter().enumerate().all(|(i, n)| i as u64 == *n));
    let total = AtomicU64::new(0);
    thread::scope(|scope| {
        for i in 0..8 {
            let total = &total;
            scope.spawn(move || (0..1000).for_each(|j| {
                total.fetch_add(i * j, Ordering::Relaxed);
            }));
        }
    });
    println!("total {}", total.into_inner());
}

// Merge sort whose halves are threads, down to some depth.
fn sort(items: &mut [u64], depth: u32) {
    if items.len() < 2 {
        return;
    }
    let (left, right) = items.split_at_mut(items.len() / 2);
    if depth > 0 {
        thread::scope(|scope| {
            scope.spawn(|| sort(left, depth - 1));
            sort(right, depth - 1);
        });
    } else {
        sort(left, 0);
        sort(right, 0);
    }
    let mut merged = Vec::with_capacity(items.len());
    let (mut l, mut r) = (0, items.len() / 2);
    while merged.len() < items.len() {
        let from_left = r == items.len() || (l < items.len() / 2 && items[l] <= items[r]);
        merged.push(items[if from_left { l } else { r }]);
        *(if from_left { &mut l } else { &mut r }) += 1;
    }
    items.copy_from_slice(&merged);
}

static DROPPED: AtomicUsize = AtomicUsize::new(0);

struct Counted(usize);

impl Drop for Counted {
    fn drop(&mut self) {
        DROPPED.fetch_add(self.0, Ordering::SeqCst);
    }
}

thread_local! {
    static OWN: Cell<u64> = Cell::new(100);
    static LIST: RefCell<Vec<u64>> = RefCell::new(Vec::new());
    static COUNTED: RefCell<Option<Counted>> = RefCell::new(None);
}

fn locals() {
    OWN.with(|own| own.set(1));
    let sums: Vec<u64> = (0..6u64)
        .map(|id| {
            thread::spawn(move || {
                COUNTED.with(|counted| *counted.borrow_mut() = Some(Counted(id as usize)));
                for i in 0..20 {
                    OWN.with(|own| own.set(own.get() + id));
                    LIST.with(|list| list.borrow_mut().push(i * id));
                    thread::yield_now();
                }
                OWN.with(Cell::get) + LIST.with(|list| list.borrow().iter().sum::<u64>())
            })
        })
        .collect::<Vec<_>>()
        .into_iter()
        .map(|handle| handle.join().unwrap())
        .collect();
    println!("sums {:?}, mine {}, dropped {}", sums, OWN.with(Cell::get), DROPPED.load(Ordering::SeqCst));
    static ONCE: Once = Once::new();
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| ONCE.call_once(|| {
                RUNS.fetch_add(1, Ordering::SeqCst);
            }));
        }
    });
    println!("once {}", RUNS.load(Ordering::SeqCst));
}

// One thread ends the process while others wait, run or sleep.
fn end(how: &str) {
    println!("before");
    let (_sender, receiver) = channel::<()>();
    let waiting = thread::spawn(move || receiver.recv());
    thread::spawn(|| loop {
        std::hint::spin_loop();
    });
    thread::spawn(|| thread::sleep(Duration::from_secs(3600)));
    let how = how.to_string();
    thread::spawn(move || {
        thread::sleep(Duration::from_millis(10));
        match how.as_str() {
            "exit" => std::process::exit(7),
            "abort" => std::process::abort(),
            _ => panic!("a thread panics"),
        }
    });
    let _ = waiting.join();
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["joining"] => joining(),
        ["channels"] => channels(),
        ["locks"] => locks(),
        ["conditions"] => conditions(),
        ["scopes"] => scopes(),
        ["locals"] => locals(),
        ["end", how] => end(how),
        _ => {
            eprintln!("usage: threads AREA, or threads end exit|abort|panic");
            std::process::exit(2);
        }
    }
}
