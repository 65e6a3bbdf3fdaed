"""Random modules with what other generators make rarely: every instruction that computes, from the
table of instructions, with operands at the edges; accesses that are unaligned or at the end of a
memory, several memories with 32-bit and 64-bit addresses, atomics, tables of functions, indirect calls
that fail. Control flow is random_programs.py's.

Overlapping makes modules whose accesses overlap: they have all widths and types and go through several
pointers into a window of some bytes. The pointers are equal or near each other at run time, which a
compiler cannot know. Far makes functions with more locals than an instruction can name.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/wat"))
import random_programs  # noqa: E402
from random_programs import BURN, signature, write_handlers  # noqa: E402

LETTERS = {"i": "i32", "I": "i64", "f": "f32", "F": "f64", "V": "v128"}
TYPES = {"i32": 8, "i64": 6, "f32": 4, "f64": 4, "v128": 4, "externref": 1, "funcref": 1}
INTEGERS = {bits: [0, 1, -1, 7, 31, 63, 255, 32767, -32768, 65535, 2**31 - 1, -2**31, *([] if bits == 32 else [
    2**31, 2**32 - 1, 2**53 + 1, 2**63 - 1, -2**63, 2**62 + 1])] for bits in (32, 64)}
FLOATS = ["0", "-0", "1", "-1.5", "0.5", "inf", "-inf", "nan", "-nan", "nan:0x200000", "-nan:0x1",
          "0x1p-149", "0x1.fffffep-127", "0x1p-126", "-0x1p-1022", "0x1p-1074", "0x1.fffffep127", "0x1p31", "-0x1p31",
          "0x1.fffffep30", "0x1p32", "0x1p63", "-0x1p63", "0x1.fffffep62", "0x1p64", "4294967295.5", "-2147483648.9",
          "16777217", "2.5", "-3.5", "0x1.000001p0", "1e300"]
SINGLE = {"0x1p-1074": "0x1p-148", "-0x1p-1022": "-0x1p-127", "1e300": "1e30"}  # where an f32 has no such value
AS_I64 = {
    "i32": "local.get {} i64.extend_i32_s", "i64": "local.get {}",
    "f32": "local.get {} i32.reinterpret_f32 i64.extend_i32_u", "f64": "local.get {} i64.reinterpret_f64",
    "v128": "local.get {0} i64x2.extract_lane 0 local.get {0} i64x2.extract_lane 1 i64.xor",
    "externref": "local.get {} ref.is_null i64.extend_i32_u", "funcref": "local.get {} ref.is_null i64.extend_i32_u",
}
FROM_ARGUMENTS = dict(random_programs.FROM_ARGUMENTS, funcref="ref.null func")
MAY_TRAP = re.compile(r"i\d\d\.(div|rem|trunc_f)")


def read_table():
    """Instructions that compute, and those that access memory: (name, immediates, operands, results)."""
    plain, accesses = [], []
    row = re.compile(r'^OP\([^"]*"([^"]+)", (\w+), "([^"*]*)>([^"*]*)"\)')
    for line in (ROOT / "src/wasm/opcodes.def").read_text().splitlines():
        match = row.match(line)
        if not match or ".const" in match[1]:
            continue
        name, immediates, operands, results = match.groups()
        if re.fullmatch(r"[al]?mem\d", immediates):
            accesses.append((name, immediates, operands[1:], results))
        elif immediates in ("none", "shuffle") or immediates.startswith("lane"):
            plain.append((name, immediates, operands, results))
    return [row for row in plain if row[2]], accesses


PLAIN, ACCESSES = read_table()
SCALAR_ACCESSES = [row for row in ACCESSES if re.fullmatch(r"[if]\d\d\.(load|store).*", row[0])]
SCALAR = [row for row in PLAIN if "V" not in row[2] + row[3]]


def types_of(letters):
    return [LETTERS[letter] for letter in letters]


class Module(random_programs.Program):
    def __init__(self, seed):
        super().__init__(seed)
        # Handlers in the new form are what most engines have.
        self.is_legacy = not self.portable

    def types(self, most):
        if not hasattr(self, "memories"):  # the first choices of all
            self.portable = self.chance(0.8)
            self.memories = [(self.random.choice(["i32", "i32", "i64"]), self.random.randint(1, 2), self.chance(0.3))
                             for _ in range(self.random.choice([1, 1, 2, 3]))]
        return super().types(most)

    def type(self):
        return self.random.choices(list(TYPES), TYPES.values())[0]

    def constant(self, type):
        if type in ("i32", "i64"):
            bits = int(type[1:])
            number = self.random.choice(INTEGERS[bits]) if self.chance(0.7) else self.random.getrandbits(bits)
            return f"{type}.const {number}"
        if type in ("f32", "f64"):
            value = self.random.choice(FLOATS)
            return f"{type}.const {SINGLE.get(value, value) if type == 'f32' else value}"
        if type == "v128":
            kind = self.random.choice(["i8x16", "i16x8", "i32x4", "i64x2"])
            bits, lanes = map(int, kind[1:].split("x"))
            edges = [0, 1, -1, 2**(bits - 1) - 1, -2**(bits - 1), 0x7fc00000 % 2**(bits - 1), 0x3f800000 % 2**(bits - 1)]
            numbers = [self.random.choice(edges) if self.chance(0.5) else self.random.getrandbits(bits) for _ in range(lanes)]
            return f"v128.const {kind} " + " ".join(map(str, numbers))
        if type == "funcref" and self.chance(0.6):
            return f"ref.func $f{self.random.randrange(len(self.signatures))}"
        return "ref.null func" if type == "funcref" else "ref.null extern"

    # ---- instructions

    def instruction(self, base, depth):
        makers = [(8, self.push_any), (26, self.compute), (8, self.set_local), (3, self.set_global), (2, self.drop_one),
                  (3, self.select), (12, self.access), (4, self.bulk), (3, self.table), (12 if depth < 5 else 0, self.block),
                  (6, self.branch_if), (7, self.call), (1, self.many_locals)]
        weights, functions = zip(*makers)
        self.random.choices(functions, weights)[0](base, depth)

    def compute(self, base, depth):
        for _ in range(self.random.randint(1, 4)):
            rows = self.random.choice([PLAIN, SCALAR])
            name, immediates, operands, results = self.random.choice(rows)
            if MAY_TRAP.match(name) and self.chance(0.8):
                continue
            if immediates == "shuffle":
                name += "".join(f" {self.random.randrange(32)}" for _ in range(16))
            elif immediates.startswith("lane"):
                name += f" {self.random.randrange(int(immediates[4:]))}"
            self.operate(types_of(operands), name, types_of(results), base)

    def address(self, memory, most, base, alignment=1):
        """Has an address on top, from which about `most` bytes can be accessed, more often than not."""
        type, _, _ = self.memories[memory]
        if self.chance(0.15):
            shift = f"memory.size {memory} {type}.const 16 {type}.shl"
            below = self.random.choice([most, most, 0, 1, 2 * most, self.random.randrange(2 * most + 1), -1])
            self.emit(f"{shift} {type}.const {below} {type}.sub")
            self.stack.append(type)
        else:
            mask = 255 & -alignment if self.chance(0.97) else 255
            self.operate([type], f"{type}.const {mask} {type}.and", [type], base)

    def offset(self, is_atomic):
        return self.random.choice([0, 0, 0, 8, 40, 1000] if is_atomic else [0, 0, 1, 3, 17, 1000, 65500])

    def access(self, base, depth):
        row = self.random.choice(ACCESSES)
        if row[1][0] == "a" and self.chance(0.5):  # they are a third of the table
            row = self.random.choice([row for row in ACCESSES if row[1][0] != "a"])
        is_atomic, size = row[1][0] == "a", 1 << int(row[1][-1])
        memory, offset = self.random.randrange(len(self.memories)), self.offset(is_atomic)
        self.address(memory, size + offset, base, size if is_atomic else 1)
        self.drop(1)
        self.access_there(row, memory, offset)

    def access_there(self, row, memory, offset):
        """Emits the access. The address is on top of the stack, but not in self.stack."""
        name, immediates, operands, results = row
        is_atomic, size = immediates[0] == "a", 1 << int(immediates[-1])
        for type in types_of(operands):
            if name.startswith("memory.atomic.wait") and type == "i64" and operands[-1] == "I":
                break
            self.emit(self.constant(type) if self.chance(0.4) else self.operand(type))
        if name.startswith("memory.atomic.wait"):
            self.emit(f"i64.const {self.random.getrandbits(8)}" * (name.endswith("64")))
            self.emit("i64.const 0")
        text = f"{name} {memory}" + (f" offset={offset}" if offset else "")
        if not is_atomic and self.chance(0.3):
            text += f" align={1 << self.random.randint(0, int(immediates[-1]))}"
        if immediates[0] == "l":
            text += f" {self.random.randrange(16 // size)}"
        self.emit(text)
        self.stack += types_of(results)

    def operand(self, type):
        """What pushes one, without a trace on the stack that we keep."""
        self.push(type)
        self.drop(1)
        return self.code.pop()

    def bulk(self, base, depth):
        memory, other = (self.random.randrange(len(self.memories)) for _ in range(2))
        type, other_type = self.memories[memory][0], self.memories[other][0]
        size = self.random.choice([0, 1, 7, 33, 200])
        kind = self.random.choice(["fill", "copy", "init", "size", "grow", "data.drop"])
        if kind == "size":
            self.operate([], f"memory.size {memory}", [type], base)
        elif kind == "grow":
            self.operate([type], f"{type}.const {self.random.choice([1, 3, 3, -1])} {type}.and memory.grow {memory}", [type], base)
        elif kind == "data.drop":
            self.emit("data.drop 1")
        else:
            self.address(memory, size, base)
            if kind == "copy":
                self.address(other, size, len(self.stack))
                length = "i64" if type == other_type == "i64" else "i32"
                self.emit(f"{length}.const {size} memory.copy {memory} {other}")
                self.drop(2)
            else:
                middle = "i32.const 90" if kind == "fill" else f"i32.const {self.random.choice([0, 1, 100])}"
                length = type if kind == "fill" else "i32"
                data = "" if kind == "fill" else " 1"
                self.emit(f"{middle} {length}.const {size} memory.{kind} {memory}{data}")
                self.drop(1)

    def table(self, base, depth):
        index = f"i32.const {self.random.choice([0, 1, 2, 3, 4, 7, 7, 9])}"
        few = f"i32.const {self.random.choice([0, 1, 2])}"
        operands, instructions, results = self.random.choice([
            ([], f"{index} table.get $t", ["funcref"]), ([], f"{index} {self.constant('funcref')} table.set $t", []),
            ([], "table.size $t", ["i32"]), (["funcref"], f"{few} table.grow $t", ["i32"]),
            ([], f"{index} {self.constant('funcref')} {few} table.fill $t", []),
            ([], f"{index} {few} {few} table.copy $t $t", []), ([], f"{index} {few} {few} table.init $t $passive", []),
        ])
        self.operate(operands, instructions, results, base)

    def call(self, base, depth):
        index = self.random.randrange(len(self.signatures))
        params, results = self.signatures[index]
        kind = self.random.random()
        if kind < 0.25:
            place = index if self.chance(0.9) else self.random.randrange(10)
            self.operate(params, f"i32.const {place} call_indirect $t{signature(params, results)}", results, base)
        elif kind < 0.35:
            self.operate(params, f"ref.func $f{index} call_ref $type{index}", results, base)
        else:
            self.operate(params, f"call $f{index}", results, base)

    def leave(self, base):
        alike = [i for i, one in enumerate(self.signatures) if one[1] == self.results]
        if self.chance(0.85):
            return super().leave(base)
        index = self.random.choice(alike)
        self.need(self.signatures[index][0], base)
        place = index if self.chance(0.9) else self.random.randrange(10)
        self.emit(f"i32.const {place} return_call_indirect $t{signature(*self.signatures[index])}")

    def select(self, base, depth):
        type = self.type()
        self.need_with_condition([type, type], base)
        self.drop(3)
        self.emit(f"select (result {type})" if type in ("externref", "funcref") else "select")
        self.stack.append(type)

    # ---- the module

    def text(self):
        data = "".join(f"\\{(37 * i + 11) & 255:02x}" for i in range(300))
        fields = [f"(type $type{i} (func{signature(*one)}))" for i, one in enumerate(self.signatures)]
        for i, (type, pages, is_shared) in enumerate(self.memories):
            address = " i64" if type == "i64" else ""
            fields.append(f'(memory (export "memory{i}"){address} {pages} {pages + 2}{" shared" if is_shared else ""})')
        fields.append(f'(data ({self.memories[0][0]}.const 0) "{data}") (data "{data[:360]}")')
        for i, type in enumerate(self.globals):
            zero = {"externref": "ref.null extern", "funcref": "ref.null func", "v128": "v128.const i64x2 1 2"}
            fields.append(f'(global (export "global{i}") (mut {type}) ({zero.get(type, f"{type}.const 5")}))')
        fields.append('(global $fuel (mut i32) (i32.const 0)) (global $told (export "told") (mut i64) (i64.const 0))')
        for i, tag in enumerate(self.tags):
            fields.append(f"(tag $t{i}{signature(tag, [])})")
        names = " ".join(f"$f{i}" for i in range(len(self.signatures)))
        fields.append(f"(table $t 8 12 funcref) (elem (table $t) (i32.const 0) func {names}) (elem $passive func {names})")
        for i, ((params, results), (declared, code)) in enumerate(zip(self.signatures, self.bodies)):
            body = "\n".join(write_handlers(code, self.tags, self.is_legacy))
            fields.append(f"(func $f{i}{signature(params, results)}{declared}\n{body})")
            fields.append(self.wrapper(i, params, results))
        return "(module\n" + "\n".join(fields) + ")\n"

    def wrapper(self, index, params, results):
        declared = "".join(f" (local $x{i} {t})" for i, t in enumerate(results))
        parts = [f'(func (export "run{index}") (param $i i32) (param $l i64) (param $d f64) '
                 f"(result i64) (local $sum i64){declared}\ni32.const {self.FUEL} global.set $fuel"]
        parts += [FROM_ARGUMENTS[t] for t in params] + [f"call $f{index}"]
        parts += [f"local.set $x{i}" for i in reversed(range(len(results)))]
        for i, type in enumerate(results):
            parts.append("local.get $sum i64.const 1000003 i64.mul " + AS_I64[type].format(f"$x{i}")
                         + " i64.add local.set $sum")
        return " ".join(parts) + " local.get $sum)"


class Far(Module):
    """Functions with so many locals that some are far from others."""
    MOST_FUNCTIONS = 3

    def types(self, most):
        if not hasattr(self, "memories"):
            self.portable = True
            self.memories = [("i32", 1, False)]
        return super().types(most)

    def local_types(self):
        types = super().local_types() + [self.type() for _ in range(3)]
        if self.chance(0.6):
            kind, count = self.random.choice([("i64", 40_000), ("f64", 33_000), ("v128", 17_000)])
            types = types[:2] + [kind] * count + types[2:]
        return types

    def begin_body(self):
        self.usable = sorted({*range(min(8, len(self.locals))), *range(max(0, len(self.locals) - 8), len(self.locals))})

    def settable_locals(self):
        return self.usable

    def push(self, type):
        usable = [i for i in self.usable if self.locals[i] == type]
        if usable and self.chance(0.6):
            self.emit(f"local.get {self.random.choice(usable)}")
            self.stack.append(type)
        else:
            super().push(type)


class Overlapping(Module):
    WINDOW = 64  # where it begins
    MASKS = [4, 8, 8, 12, 16, 24, 3, 7, 15]  # bits of a pointer that vary within it: some are always aligned
    NEAR = [1, 2, 3, 4, 4, 8, 8, -1, -4, -8]
    TYPES = {"i32": 8, "i64": 6, "f32": 3, "f64": 3, "v128": 3}
    MOST_FUNCTIONS, LENGTHS = 3, (6, 2)
    FUEL = 60  # blocks within blocks and calls within loops, of many accesses each

    def types(self, most):
        if not hasattr(self, "memories"):
            self.portable = True
            if self.chance(0.7):
                self.BLOCKS = [kind for kind in self.BLOCKS if kind != "try"]
            first = ("i32" if self.chance(0.8) else "i64", 1, self.chance(0.4))
            others = [(self.random.choice(["i32", "i64"]), 1, self.chance(0.4)) for _ in range(self.random.choice([0, 0, 0, 1]))]
            self.memories = [first, *others]
        return super().types(min(most, 3))

    def type(self):
        return self.random.choices(list(self.TYPES), self.TYPES.values())[0]

    # ---- pointers: locals that point into the window, two or more for each type of address

    def address_types(self):
        return sorted({type for type, _, _ in self.memories})

    def local_types(self):
        types = super().local_types() + 2 * self.address_types()
        self.declared = len(types)
        return types

    def begin_body(self):
        self.pointers = {type: [i for i, t in enumerate(self.locals) if t == type][-4:] for type in self.address_types()}
        for type, indices in self.pointers.items():
            mask = self.random.choice(self.MASKS)
            for index in indices:
                self.emit(self.unknown(type))
                self.set_pointer(type, index, mask if self.chance(0.7) else self.random.choice(self.MASKS))
        self.accesses(0, 0)
        for _ in self.stack:
            self.emit("drop")
        self.stack = []

    def unknown(self, type):
        """Returns instructions that push a number which is unknown until the module runs."""
        parameters = [f"local.get {i}" for i in range(len(self.locals) - self.declared) if self.locals[i] == type]
        globals_ = [f"global.get {i}" for i, t in enumerate(self.globals) if t == type]
        loads = [f"{self.memories[memory][0]}.const {4 * self.random.randrange(16)} {type}.load {memory}"
                 for memory in range(len(self.memories))]
        return self.random.choice(3 * parameters + globals_ + loads)

    def set_pointer(self, type, index, mask):
        """Makes a pointer of the number on top of the stack."""
        self.emit(f"{type}.const {mask} {type}.and {type}.const {self.WINDOW} {type}.add local.set {index}")

    def settable_locals(self):
        pointers = sum(self.pointers.values(), [])
        return [i for i in range(len(self.locals)) if i not in pointers]

    def pointer(self, type):
        """Returns instructions that push a pointer, or a place near it."""
        text = f"local.get {self.random.choice(self.pointers[type])}"
        kind = self.random.random()
        if kind < 0.15:
            text += f" {type}.const {self.random.choice(self.NEAR)} {type}.add"
        elif kind < 0.25:
            text += f" local.get {self.random.choice(self.pointers[type])} {self.operand('i32')} select"
        return text

    def address(self, memory, most, base, alignment=1):
        type = self.memories[memory][0]
        if self.chance(0.02):
            return super().address(memory, most, base, alignment)
        aligned = f" {type}.const {-alignment} {type}.and" if alignment > 1 else ""
        self.emit(self.pointer(type) + aligned)
        self.stack.append(type)

    def offset(self, is_atomic):
        return self.random.choice([0, 0, 0, 8] if is_atomic else [0, 0, 0, 0, 4, 8, 1, 2, 3, 6])

    # ---- instructions

    def instruction(self, base, depth):
        makers = [(40, self.accesses), (4, self.push_any), (8, self.compute), (5, self.set_local), (2, self.set_global),
                  (2, self.drop_one), (2, self.select), (6, self.bulk), (6, self.point), (5 if depth < 4 else 0, self.walk),
                  (10 if depth < 4 else 0, self.block), (5, self.branch_if), (7, self.call)]
        weights, functions = zip(*makers)
        self.random.choices(functions, weights)[0](base, depth)

    def accesses(self, base, depth):
        """Accesses some places again, after other writes. What was read is told last, because a compiler keeps what
        was written in registers only as long as nothing else is stored."""
        memory = self.random.randrange(len(self.memories))
        type = self.memories[memory][0]
        places, height = [], len(self.stack)
        for _ in range(self.random.randint(3, 8)):
            if self.chance(0.2):
                self.access(len(self.stack), depth)
                continue
            if not places or self.chance(0.4):
                places.append((self.pointer(type), self.offset(False), self.random.choice(SCALAR_ACCESSES)))
            at = self.random.randrange(len(places))
            address, offset, row = places[at]
            self.emit(address)
            self.access_there(row, memory, offset)
            # Next time there: what this one wrote, or anything.
            counterpart = re.sub(r"(load|store)(\d*).*", lambda m: ("store" if m[1] == "load" else "load") + m[2], row[0])
            alike = [other for other in SCALAR_ACCESSES if other[0].startswith(counterpart)]
            places[at] = address, offset, self.random.choice(alike if self.chance(0.7) else SCALAR_ACCESSES)
        while len(self.stack) > height and self.chance(0.9):
            self.tell()

    def tell(self):
        """Mixes the newest operand into what can be seen."""
        as_i64 = {"i32": "i64.extend_i32_u", "i64": "", "f32": "i32.reinterpret_f32 i64.extend_i32_u",
                  "f64": "i64.reinterpret_f64", "v128": "local.tee $vector i64x2.extract_lane 0 local.get $vector "
                                                        "i64x2.extract_lane 1 i64.const 5 i64.rotl i64.xor"}
        self.emit(as_i64[self.stack.pop()])
        self.emit("global.get $told i64.const 31 i64.mul i64.add global.set $told")

    def point(self, base, depth):
        """Moves a pointer: to where another points, or by a number of unknown value, possibly from memory."""
        memory = self.random.randrange(len(self.memories))
        type = self.memories[memory][0]
        kind = self.random.random()
        if kind < 0.4:
            self.emit(self.pointer(type))
        elif kind < 0.7:
            self.emit(self.unknown(type))
        else:
            self.emit(f"{self.pointer(type)} {type}.load {memory} offset={self.offset(False)} align=1")
        self.set_pointer(type, self.random.choice(self.pointers[type]), self.random.choice(self.MASKS))

    def walk(self, base, depth):
        """Makes a loop in which a pointer moves over the places of others."""
        type = self.random.choice(self.address_types())
        index, label = self.random.choice(self.pointers[type]), self.new_label()
        counter = f"$count{depth}"
        self.emit(f"i32.const {self.random.randint(2, 5)} local.set {counter} loop {label} {BURN}")
        inner = len(self.stack)
        for _ in range(self.random.randint(1, 3)):
            self.random.choice([self.accesses, self.accesses, self.accesses, self.bulk, self.call])(inner, depth)
        for _ in self.stack[inner:]:
            self.emit("drop")
        del self.stack[inner:]
        self.emit(f"local.get {index} {type}.const {self.random.choice([0, 1, 4, 4, 8, 8, 16, -4])} {type}.add local.set {index}")
        self.emit(f"local.get {counter} i32.const 1 i32.sub local.tee {counter} br_if {label} end")
        self.emit(f"local.get {index}")
        self.set_pointer(type, index, 31)

    def call(self, base, depth):
        index = self.random.randrange(len(self.signatures))
        params, results = self.signatures[index]
        how = f"i32.const {index} call_indirect $t{signature(params, results)}" if self.chance(0.2) else f"call $f{index}"
        self.operate(params, how, results, base)

    # ---- the module

    def function(self, params, results):
        declared, code = super().function(params, results)
        return declared + " (local $vector v128)" + "".join(f" (local $count{i} i32)" for i in range(4)), code

    def wrapper(self, index, params, results):
        """Returns what was told as well: of many processes only results are compared."""
        return super().wrapper(index, params, results)[:-1] + " global.get $told i64.xor)"
