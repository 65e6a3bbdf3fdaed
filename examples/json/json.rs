// Reads JSON from standard input and writes it indented: json [--indent N | --compact] [--sort]
// A mistake in the input is told with line and column, and the exit code is 1. The parser keeps
// numbers as they were written, so that nothing is lost by rounding.
use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::process::exit;

enum Value {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    List(Vec<Value>),
    Object(Vec<(String, Value)>),
}

// Nested deeper than this is refused: the parser recurses, and a guest's stack is small.
const MAX_DEPTH: usize = 500;

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    depth: usize,
}

type Parsed<T> = Result<T, (usize, String)>;

impl<'a> Parser<'a> {
    fn fail<T>(&self, message: impl Into<String>) -> Parsed<T> {
        Err((self.at, message.into()))
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn found(&self) -> String {
        // Whole characters: the input is known to be UTF-8.
        match std::str::from_utf8(&self.text[self.at..]).ok().and_then(|rest| rest.chars().next()) {
            Some(c) => format!("'{}'", c.escape_default()),
            None => "the end".to_string(),
        }
    }

    fn expect(&mut self, byte: u8) -> Parsed<()> {
        if self.peek() != Some(byte) {
            return self.fail(format!("expected '{}', found {}", byte as char, self.found()));
        }
        self.at += 1;
        Ok(())
    }

    fn value(&mut self) -> Parsed<Value> {
        self.skip_space();
        match self.peek() {
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::list),
            Some(b'"') => Ok(Value::Text(self.string()?)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Null),
            _ => self.fail(format!("expected a value, found {}", self.found())),
        }
    }

    fn nested(&mut self, parse: fn(&mut Self) -> Parsed<Value>) -> Parsed<Value> {
        if self.depth == MAX_DEPTH {
            return self.fail(format!("nested deeper than {}", MAX_DEPTH));
        }
        self.depth += 1;
        let value = parse(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn word(&mut self, word: &str, value: Value) -> Parsed<Value> {
        if !self.text[self.at..].starts_with(word.as_bytes()) {
            return self.fail(format!("expected {}", word));
        }
        self.at += word.len();
        Ok(value)
    }

    fn digits(&mut self) -> Parsed<()> {
        if !matches!(self.peek(), Some(b'0'..=b'9')) {
            return self.fail(format!("expected a digit, found {}", self.found()));
        }
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Parsed<Value> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(Value::Number(String::from_utf8_lossy(&self.text[start..self.at]).into_owned()))
    }

    fn hex4(&mut self) -> Parsed<u32> {
        let mut code = 0;
        for _ in 0..4 {
            match self.peek().and_then(|byte| (byte as char).to_digit(16)) {
                Some(digit) => code = code * 16 + digit,
                None => return self.fail(format!("expected a hexadecimal digit, found {}", self.found())),
            }
            self.at += 1;
        }
        Ok(code)
    }

    fn escape(&mut self) -> Parsed<char> {
        let letter = self.peek();
        self.at += 1;
        Ok(match letter {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let mut code = self.hex4()?;
                // A character beyond 16 bits is a pair of escapes.
                if (0xd800..0xdc00).contains(&code) && self.text[self.at..].starts_with(b"\\u") {
                    self.at += 2;
                    let low = self.hex4()?;
                    if !(0xdc00..0xe000).contains(&low) {
                        return self.fail("expected the second half of a surrogate pair");
                    }
                    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
                }
                match char::from_u32(code) {
                    Some(c) => c,
                    None => return self.fail("half of a surrogate pair"),
                }
            }
            _ => {
                self.at -= 1;
                return self.fail(format!("no such escape: {}", self.found()));
            }
        })
    }

    fn string(&mut self) -> Parsed<String> {
        self.expect(b'"')?;
        let mut bytes = Vec::new();
        loop {
            match self.peek() {
                None => return self.fail("a string without end"),
                Some(b'"') => break,
                Some(b'\\') => {
                    self.at += 1;
                    let mut room = [0; 4];
                    let c = self.escape()?;
                    bytes.extend_from_slice(c.encode_utf8(&mut room).as_bytes());
                }
                Some(0..=0x1f) => return self.fail("a control character in a string"),
                Some(byte) => {
                    bytes.push(byte);
                    self.at += 1;
                }
            }
        }
        self.at += 1;
        Ok(String::from_utf8(bytes).expect("checked before parsing"))
    }

    fn list(&mut self) -> Parsed<Value> {
        self.expect(b'[')?;
        let mut items = Vec::new();
        self.skip_space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Value::List(items));
        }
        loop {
            items.push(self.value()?);
            self.skip_space();
            if self.peek() != Some(b',') {
                break;
            }
            self.at += 1;
        }
        self.expect(b']')?;
        Ok(Value::List(items))
    }

    fn object(&mut self) -> Parsed<Value> {
        self.expect(b'{')?;
        let mut members = Vec::new();
        self.skip_space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Value::Object(members));
        }
        loop {
            self.skip_space();
            let key = self.string()?;
            self.skip_space();
            self.expect(b':')?;
            members.push((key, self.value()?));
            self.skip_space();
            if self.peek() != Some(b',') {
                break;
            }
            self.at += 1;
        }
        self.expect(b'}')?;
        Ok(Value::Object(members))
    }
}

struct Printer {
    out: String,
    indent: Option<usize>,
}

impl Printer {
    fn new_line(&mut self, depth: usize) {
        if let Some(width) = self.indent {
            self.out.push('\n');
            self.out.extend(std::iter::repeat(' ').take(width * depth));
        }
    }

    fn string(&mut self, text: &str) {
        self.out.push('"');
        for c in text.chars() {
            match c {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                c if (c as u32) < 0x20 => write!(self.out, "\\u{:04x}", c as u32).unwrap(),
                c => self.out.push(c),
            }
        }
        self.out.push('"');
    }

    fn items<T>(&mut self, ends: [char; 2], items: &[T], depth: usize, print: fn(&mut Self, &T, usize)) {
        self.out.push(ends[0]);
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                self.out.push(',');
            }
            self.new_line(depth + 1);
            print(self, item, depth + 1);
        }
        if !items.is_empty() {
            self.new_line(depth);
        }
        self.out.push(ends[1]);
    }

    fn value(&mut self, value: &Value, depth: usize) {
        match value {
            Value::Null => self.out.push_str("null"),
            Value::Bool(yes) => self.out.push_str(if *yes { "true" } else { "false" }),
            Value::Number(digits) => self.out.push_str(digits),
            Value::Text(text) => self.string(text),
            Value::List(items) => self.items(['[', ']'], items, depth, Self::value),
            Value::Object(members) => self.items(['{', '}'], members, depth, |p, (key, value), depth| {
                p.string(key);
                p.out.push_str(if p.indent.is_some() { ": " } else { ":" });
                p.value(value, depth);
            }),
        }
    }
}

fn sort(value: &mut Value) {
    match value {
        Value::List(items) => items.iter_mut().for_each(sort),
        Value::Object(members) => {
            members.sort_by(|a, b| a.0.cmp(&b.0));
            members.iter_mut().for_each(|member| sort(&mut member.1));
        }
        _ => {}
    }
}

fn parse(text: &str) -> Parsed<Value> {
    let mut parser = Parser { text: text.as_bytes(), at: 0, depth: 0 };
    let value = parser.value()?;
    parser.skip_space();
    if parser.at != text.len() {
        return parser.fail(format!("expected the end, found {}", parser.found()));
    }
    Ok(value)
}

fn main() {
    let (mut indent, mut sorted) = (Some(2), false);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--compact" => indent = None,
            "--sort" => sorted = true,
            "--indent" => match args.next().and_then(|n| n.parse().ok()).filter(|n| *n <= 16) {
                Some(width) => indent = Some(width),
                None => {
                    eprintln!("json: --indent needs a number up to 16");
                    exit(2);
                }
            },
            other => {
                eprintln!("json: no option {}", other);
                exit(2);
            }
        }
    }
    let mut text = String::new();
    if let Err(error) = io::stdin().read_to_string(&mut text) {
        eprintln!("json: standard input: {:?}", error.kind());
        exit(1);
    }
    match parse(&text) {
        Ok(mut value) => {
            if sorted {
                sort(&mut value);
            }
            let mut printer = Printer { out: String::new(), indent };
            printer.value(&value, 0);
            printer.out.push('\n');
            io::stdout().write_all(printer.out.as_bytes()).unwrap();
        }
        Err((at, message)) => {
            let before = &text.as_bytes()[..at.min(text.len())];
            let line = before.iter().filter(|b| **b == b'\n').count() + 1;
            let start = before.iter().rposition(|b| *b == b'\n').map_or(0, |i| i + 1);
            let column = String::from_utf8_lossy(&before[start..]).chars().count() + 1;
            eprintln!("json: {}:{}: {}", line, column, message);
            exit(1);
        }
    }
}
