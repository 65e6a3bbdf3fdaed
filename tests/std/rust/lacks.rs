// What the target itself lacks answers with an error instead of doing anything: threads, other
// programs, the network. On a machine that has them this prints something else.
use std::io::ErrorKind;
use std::process::Command;

fn main() {
    let thread = std::thread::Builder::new().spawn(|| ());
    println!("thread {:?}", thread.map(|_| ()).map_err(|error| error.kind()));
    println!("command {:?}", Command::new("true").status().map(|_| ()).map_err(|error| error.kind()));
    println!("listen {}", std::net::TcpListener::bind("127.0.0.1:0").is_err());
    println!("connect {}", std::net::TcpStream::connect("127.0.0.1:9").is_err());
    println!("udp {}", std::net::UdpSocket::bind("127.0.0.1:0").is_err());
    println!("parallelism {:?}", std::thread::available_parallelism().map(|n| n.get() == 1).unwrap_or(true));
    println!("{:?}", ErrorKind::Unsupported);
}
