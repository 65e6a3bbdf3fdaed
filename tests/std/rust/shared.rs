// Shared ownership and locks, in one thread: Rc, Weak, RefCell, Cell, Arc, Mutex, RwLock, Condvar,
// Once, atomics. A lock that is taken twice is asked with try_lock: nobody would ever release it.
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, Once, RwLock};
use std::time::Duration;

struct Node {
    name: &'static str,
    parent: RefCell<Weak<Node>>,
    children: RefCell<Vec<Rc<Node>>>,
}

static DROPS: AtomicUsize = AtomicUsize::new(0);

impl Drop for Node {
    fn drop(&mut self) {
        DROPS.fetch_add(1, Ordering::Relaxed);
    }
}

fn node(name: &'static str, children: Vec<Rc<Node>>) -> Rc<Node> {
    let parent = Rc::new(Node { name, parent: RefCell::new(Weak::new()), children: RefCell::new(children) });
    for child in parent.children.borrow().iter() {
        *child.parent.borrow_mut() = Rc::downgrade(&parent);
    }
    parent
}

fn counted() {
    let leaf = node("leaf", vec![]);
    let path = |n: &Rc<Node>| {
        let mut names = vec![n.name];
        let mut up = n.parent.borrow().upgrade();
        while let Some(next) = up {
            names.push(next.name);
            up = next.parent.borrow().upgrade();
        }
        names.join(" < ")
    };
    println!("alone {} strong {} weak {}", path(&leaf), Rc::strong_count(&leaf), Rc::weak_count(&leaf));
    let root = node("root", vec![node("branch", vec![leaf.clone(), node("other", vec![])])]);
    println!("tree {} strong {} weak {}", path(&leaf), Rc::strong_count(&leaf), Rc::weak_count(&root));
    drop(root);
    println!("cut {} drops {}", path(&leaf), DROPS.load(Ordering::Relaxed));
    drop(leaf);
    println!("drops {}", DROPS.load(Ordering::Relaxed));
    let mut text: Rc<str> = Rc::from("shared text");
    let other = text.clone();
    println!("{} {}", Rc::ptr_eq(&text, &other), text);
    println!("{}", Rc::get_mut(&mut text).is_none());
    let mut number = Rc::new(5);
    *Rc::make_mut(&mut number) += 1;
    println!("{:?}", Rc::try_unwrap(number));
}

fn cells() {
    let cell = RefCell::new(vec![1]);
    {
        let first = cell.borrow();
        println!("shared {} exclusive {}", cell.try_borrow().is_ok(), cell.try_borrow_mut().is_err());
        drop(first);
    }
    cell.borrow_mut().push(2);
    println!("{:?} {:?}", cell, cell.replace(vec![]));
    let count = Cell::new(1);
    count.set(count.get() + 1);
    println!("{} {} {}", count.replace(9), count.take(), count.get());
}

fn locks() {
    let lock = Arc::new(Mutex::new(0));
    let same = lock.clone();
    for i in 0..10 {
        *same.lock().unwrap() += i;
    }
    let guard = lock.lock().unwrap();
    println!("mutex {} taken twice {}", *guard, same.try_lock().is_err());
    drop(guard);
    println!("{:?} {}", lock.try_lock().map(|g| *g).ok(), Arc::strong_count(&lock));
    let both = RwLock::new("text".to_string());
    {
        let a = both.read().unwrap();
        let b = both.read().unwrap();
        println!("readers {} {} writer {}", a, b.len(), both.try_write().is_err());
    }
    both.write().unwrap().push('!');
    println!("{:?}", both.into_inner().unwrap());
    static ONCE: Once = Once::new();
    let mut runs = 0;
    for _ in 0..3 {
        ONCE.call_once(|| runs += 1);
    }
    println!("once {} {}", runs, ONCE.is_completed());
}

fn conditions() {
    let pair = (Mutex::new(false), Condvar::new());
    pair.1.notify_one();
    pair.1.notify_all();
    *pair.0.lock().unwrap() = true;
    let ready = pair.1.wait_while(pair.0.lock().unwrap(), |ready| !*ready).unwrap();
    println!("did not wait {}", *ready);
}

fn timeout() {
    // Nobody can signal: the wait must end by its time. Rust 1.63 panics here: it does not have it.
    let pair = (Mutex::new(true), Condvar::new());
    let (guard, result) = pair.1.wait_timeout_while(pair.0.lock().unwrap(), Duration::from_millis(10), |r| *r).unwrap();
    println!("timed out {} {}", result.timed_out(), *guard);
}

fn atomics() {
    let n = AtomicU32::new(5);
    println!("{} {} {} {}", n.fetch_add(3, Ordering::SeqCst), n.fetch_xor(0xff, Ordering::AcqRel),
             n.swap(1, Ordering::Release), n.fetch_max(8, Ordering::Relaxed));
    println!("{:?} {:?} {}", n.compare_exchange(8, 2, Ordering::SeqCst, Ordering::Relaxed),
             n.compare_exchange(8, 3, Ordering::SeqCst, Ordering::Relaxed), n.into_inner());
    let flag = AtomicBool::new(false);
    println!("{} {}", flag.fetch_or(true, Ordering::SeqCst), flag.load(Ordering::SeqCst));
}

fn main() {
    counted();
    cells();
    locks();
    conditions();
    atomics();
    if std::env::args().any(|arg| arg == "timeout") {
        timeout();
    }
}
