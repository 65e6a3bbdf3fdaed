// async and await with an executor of our own: tasks, wakers, timers, a channel, a join.
use std::cell::RefCell;
use std::collections::{BinaryHeap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

// Tasks that were woken, by number; wakers may be sent anywhere, so it is locked.
type Ready = Arc<Mutex<VecDeque<usize>>>;

struct TaskWaker { task: usize, ready: Ready }

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.ready.lock().unwrap().push_back(self.task);
    }
}

struct Timer { at: Instant, waker: Waker }

impl PartialEq for Timer { fn eq(&self, other: &Self) -> bool { self.at == other.at } }
impl Eq for Timer {}
impl PartialOrd for Timer { fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> { Some(self.cmp(other)) } }
impl Ord for Timer { fn cmp(&self, other: &Self) -> std::cmp::Ordering { other.at.cmp(&self.at) } }

type Task = Pin<Box<dyn Future<Output = ()>>>;

#[derive(Default, Clone)]
struct Executor {
    tasks: Rc<RefCell<Vec<Option<Task>>>>,
    ready: Ready,
    timers: Rc<RefCell<BinaryHeap<Timer>>>,
}

impl Executor {
    fn spawn(&self, future: impl Future<Output = ()> + 'static) {
        let mut tasks = self.tasks.borrow_mut();
        tasks.push(Some(Box::pin(future)));
        self.ready.lock().unwrap().push_back(tasks.len() - 1);
    }

    // Until no task can go on. Returns how many never ended.
    fn run(&self) -> usize {
        loop {
            let next = self.ready.lock().unwrap().pop_front();
            if let Some(number) = next {
                let task = self.tasks.borrow_mut()[number].take();
                if let Some(mut task) = task {
                    let waker = Waker::from(Arc::new(TaskWaker { task: number, ready: self.ready.clone() }));
                    if task.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
                        self.tasks.borrow_mut()[number] = Some(task);
                    }
                }
                continue;
            }
            let timer = match self.timers.borrow_mut().pop() {
                Some(timer) => timer,
                None => break,
            };
            std::thread::sleep(timer.at.saturating_duration_since(Instant::now()));
            timer.waker.wake();
        }
        self.tasks.borrow().iter().flatten().count()
    }

    fn sleep(&self, millis: u64) -> Sleep {
        Sleep { at: Instant::now() + Duration::from_millis(millis), timers: self.timers.clone() }
    }
}

struct Sleep { at: Instant, timers: Rc<RefCell<BinaryHeap<Timer>>> }

impl Future for Sleep {
    type Output = ();
    fn poll(self: Pin<&mut Self>, context: &mut Context) -> Poll<()> {
        if Instant::now() >= self.at {
            return Poll::Ready(());
        }
        self.timers.borrow_mut().push(Timer { at: self.at, waker: context.waker().clone() });
        Poll::Pending
    }
}

// Gives the others a turn.
struct Yield(bool);

impl Future for Yield {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

struct Channel<T> { items: VecDeque<T>, closed: bool, waiting: Option<Waker> }

fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let shared = Rc::new(RefCell::new(Channel { items: VecDeque::new(), closed: false, waiting: None }));
    (Sender(shared.clone()), Receiver(shared))
}

struct Sender<T>(Rc<RefCell<Channel<T>>>);
struct Receiver<T>(Rc<RefCell<Channel<T>>>);

impl<T> Sender<T> {
    fn send(&self, item: T) {
        let mut channel = self.0.borrow_mut();
        channel.items.push_back(item);
        if let Some(waker) = channel.waiting.take() { waker.wake() }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut channel = self.0.borrow_mut();
        channel.closed = true;
        if let Some(waker) = channel.waiting.take() { waker.wake() }
    }
}

impl<T> Future for &Receiver<T> {
    type Output = Option<T>;
    fn poll(self: Pin<&mut Self>, context: &mut Context) -> Poll<Option<T>> {
        let mut channel = self.0.borrow_mut();
        match channel.items.pop_front() {
            Some(item) => Poll::Ready(Some(item)),
            None if channel.closed => Poll::Ready(None),
            None => {
                channel.waiting = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

async fn double(x: u32) -> Result<u32, String> {
    Yield(false).await;
    if x > 1000 { Err(format!("{} is too much", x)) } else { Ok(x * 2) }
}

async fn grow(mut x: u32) -> Result<u32, String> {
    let mut steps = 0;
    while steps < 20 {
        x = double(x).await?;
        steps += 1;
    }
    Ok(x)
}

fn factorial(n: u64) -> Pin<Box<dyn Future<Output = u64>>> {
    Box::pin(async move { if n == 0 { 1 } else { Yield(false).await; n * factorial(n - 1).await } })
}

fn main() {
    let executor = Executor::default();
    for name in ["a", "b"] {
        executor.spawn(async move {
            for i in 0..3 {
                println!("{}{}", name, i);
                Yield(false).await;
            }
        });
    }
    println!("unfinished {}", executor.run());

    let (sender, receiver) = channel();
    executor.spawn(async move {
        let mut sum = 0;
        while let Some(item) = (&receiver).await {
            sum += item;
        }
        println!("received {}", sum);
    });
    let inner = executor.clone();
    executor.spawn(async move {
        for i in 1..=4 {
            inner.sleep(3).await;
            sender.send(i);
        }
        println!("sent");
    });
    println!("unfinished {}", executor.run());

    // The shortest first, whatever the order they began in.
    for millis in [60, 5, 30] {
        let inner = executor.clone();
        executor.spawn(async move {
            inner.sleep(millis).await;
            println!("after {}", millis);
        });
    }
    println!("unfinished {}", executor.run());

    executor.spawn(async {
        println!("{:?} {}", grow(3).await, factorial(12).await);
    });
    let (never, waits) = channel::<()>();
    executor.spawn(async move { (&waits).await; });
    println!("unfinished {}", executor.run());
    drop(never);
    println!("unfinished {}", executor.run());
    let many = Rc::new(RefCell::new(0u64));
    for i in 0..1000u64 {
        let many = many.clone();
        executor.spawn(async move {
            for _ in 0..i % 5 { Yield(false).await; }
            *many.borrow_mut() += i;
        });
    }
    println!("unfinished {} sum {}", executor.run(), many.borrow());
}
