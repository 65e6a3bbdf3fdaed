// Arguments, environment and exit codes: env [--exit CODE] WORDS...
use std::env;

fn main() {
    let args: Vec<String> = env::args().collect();
    println!("{} arguments", args.len());
    for (i, arg) in args.iter().enumerate() {
        println!("{} {:?}", i, arg);
    }
    println!("as OsString {:?}", env::args_os().nth(1));
    let mut vars: Vec<_> = env::vars().collect();
    vars.sort();
    for (key, value) in &vars {
        println!("{}={:?}", key, value);
    }
    println!("{:?} {:?}", env::var("NAME"), env::var("NOT_SET"));
    println!("{:?} {:?}", env::var_os("EMPTY"), option_env!("NOT_SET_AT_ALL"));
    env_changes();
    if let Some(at) = args.iter().position(|arg| arg == "--exit") {
        std::process::exit(args[at + 1].parse().unwrap());
    }
}

// Later editions call these unsafe, because of other threads; there are none.
#[allow(unused_unsafe)]
fn env_changes() {
    unsafe {
        env::set_var("NEW", "one two=three");
        env::set_var("NAME", "changed");
        env::remove_var("EMPTY");
    }
    println!("{:?} {:?} {:?}", env::var("NEW"), env::var("NAME"), env::var_os("EMPTY"));
    println!("{} variables", env::vars().count());
}
