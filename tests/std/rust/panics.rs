// Panics of every sort: panics KIND. A panic is a message on standard error and then, where there
// is no unwinding, a trap. What was printed before must come out.
use std::panic;

struct Loud(&'static str);

impl Drop for Loud {
    fn drop(&mut self) {
        // Not in a panic: nothing unwinds.
        if !std::thread::panicking() {
            println!("dropped {}", self.0);
        }
    }
}

#[inline(never)]
fn middle(kind: &str, numbers: &[i32]) -> i32 {
    let index = numbers.len() + 4;
    match kind {
        "message" => panic!("said {} and {:?}", 1, "two"),
        "index" => numbers[index],
        "divide" => 10 / (numbers.len() as i32 - 3),
        "overflow" => (numbers[0] + i32::MAX - 1).checked_add(1).expect("no room"),
        "unwrap" => None::<i32>.unwrap(),
        "result" => "x".parse::<i32>().unwrap(),
        "slice" => "héllo"[..2].len() as i32,
        "borrow" => {
            let cell = std::cell::RefCell::new(1);
            let _first = cell.borrow_mut();
            let second = *cell.borrow();
            second
        }
        "unreachable" => unreachable!("came to {}", kind),
        "assert" => {
            assert_eq!(numbers.len(), 4, "count of {:?}", numbers);
            0
        }
        "todo" => todo!(),
        "abort" => std::process::abort(),
        "capacity" => Vec::<u64>::with_capacity(usize::MAX / 4).capacity() as i32,
        "stack" => deep(0) as i32,
        "hook" => {
            panic::set_hook(Box::new(|info| {
                let text = info.payload().downcast_ref::<&str>().copied().unwrap_or("?");
                let at = info.location().unwrap();
                eprintln!("hook: {} in {}", text, at.file().rsplit('/').next().unwrap());
            }));
            panic!("hooked")
        }
        _ => 0,
    }
}

#[allow(unconditional_recursion)]
#[inline(never)]
fn deep(n: u64) -> u64 {
    let mut array = [n; 64];
    // Written so that no compiler makes a loop of it.
    let sum = deep(unsafe { std::ptr::read_volatile(&array[3]) } + 1);
    unsafe { std::ptr::write_volatile(&mut array[5], sum) };
    array[5] + array[6]
}

fn main() {
    let kind = std::env::args().nth(1).unwrap_or_default();
    let _loud = Loud("main's");
    println!("before {}", kind);
    eprintln!("before, on standard error");
    println!("after {}", middle(&kind, &[1, 2, 3]));
}
