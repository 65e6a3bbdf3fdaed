"""Random programs that validate and end: what random_long_test.py feeds to two engines.

A program keeps the types on its operand stack while it is made, and takes what stands there more
often than not, so that values live across branches, calls and handlers. Every loop and function
takes from a global and traps when it is used up. NaNs cannot be told apart by what is used.
"""
import random

TYPES = {"i32": 8, "i64": 6, "f32": 2, "f64": 3, "v128": 2, "externref": 1}

INTEGERS = {
    "i32": [0, 1, -1, 7, 32767, -32768, 32768, 65535, 2**31 - 1, -2**31],
    "i64": [0, 1, -1, 7, 32767, -32768, 32768, 2**31, -2**31, 2**63 - 1, -2**63],
}
FLOATS = ["0", "1.5", "-2.25", "1e10", "-1e-10", "3"]

ARITHMETIC = ["add", "sub", "mul", "and", "or", "xor", "shl", "shr_s", "shr_u", "rotl", "rotr"]
BINARY = {
    "i32": ARITHMETIC, "i64": ARITHMETIC, "f32": ["add", "sub", "mul"],
    "f64": ["add", "sub", "mul", "div", "min", "max"],
}
DIVISIONS = ["div_s", "div_u", "rem_s", "rem_u"]
VECTOR_BINARY = ["i32x4.add", "i64x2.mul", "v128.xor", "i8x16.sub", "i16x8.mul", "i8x16.swizzle"]
COMPARISONS = ["eq", "ne", "lt_s", "lt_u", "gt_s", "gt_u", "le_s", "le_u", "ge_s", "ge_u"]
FLOAT_COMPARISONS = ["eq", "ne", "lt", "gt", "le", "ge"]
UNARY = [  # operand, instructions, result
    ("i32", "i32.clz", "i32"), ("i32", "i32.popcnt", "i32"), ("i32", "i32.eqz", "i32"),
    ("i64", "i64.eqz", "i32"), ("i64", "i32.wrap_i64", "i32"), ("i64", "i32.wrap_i64", "i32"),
    ("i32", "i64.extend_i32_s", "i64"), ("i32", "i64.extend_i32_u", "i64"),
    ("i64", "i64.extend8_s", "i64"), ("i32", "i32.extend8_s", "i32"),
    ("f64", "i64.trunc_sat_f64_s", "i64"), ("f32", "i32.trunc_sat_f32_u", "i32"),
    ("i64", "f64.convert_i64_s", "f64"), ("i32", "f32.convert_i32_s", "f32"),
    ("f32", "f64.promote_f32", "f64"), ("f64", "f32.demote_f64", "f32"),
    ("f64", "f64.neg", "f64"), ("f64", "f64.abs", "f64"), ("f64", "f64.floor", "f64"),
    ("i32", "f32.reinterpret_i32 i32.reinterpret_f32", "i32"),
    ("i64", "f64.reinterpret_i64 i64.reinterpret_f64", "i64"),
    ("i32", "i32x4.splat", "v128"), ("i64", "i64x2.splat", "v128"),
    ("v128", "i64x2.extract_lane 1", "i64"), ("v128", "i32x4.extract_lane 2", "i32"),
    ("v128", "i8x16.extract_lane_s 3", "i32"), ("v128", "v128.not", "v128"),
    ("v128", "i32x4.neg", "v128"), ("v128", "v128.any_true", "i32"),
    ("externref", "ref.is_null", "i32"),
]
OFFSETS = [0, 3, 17, 1000, 70000]

BURN = ("global.get $fuel i32.eqz if unreachable end "
        "global.get $fuel i32.const 1 i32.sub global.set $fuel")
AS_I64 = {  # of a local, for the sum of a call's results
    "i32": "local.get {} i64.extend_i32_s", "i64": "local.get {}",
    "f32": "local.get {} i64.trunc_sat_f32_s", "f64": "local.get {} i64.trunc_sat_f64_s",
    "v128": "local.get {0} i64x2.extract_lane 0 local.get {0} i64x2.extract_lane 1 i64.xor",
    "externref": "local.get {} ref.is_null i64.extend_i32_u",
}
FROM_ARGUMENTS = {  # $i i32, $l i64, $d f64
    "i32": "local.get $i", "i64": "local.get $l", "f64": "local.get $d",
    "f32": "local.get $d f32.demote_f64", "v128": "local.get $l i64x2.splat",
    "externref": "ref.null extern",
}


def signature(params, results):
    return "".join(f" (param {t})" for t in params) + "".join(f" (result {t})" for t in results)


class Program:
    """After making: functions run0, run1, ... of (i32, i64, f64) -> i64, and sum() of the memory.

    If `portable`, its handlers can be written both in the legacy form and in the new one.
    """
    BLOCKS = ["block", "block", "loop", "if", "if", "try"]
    FUEL = 3000
    MOST_FUNCTIONS = 5
    LENGTHS = 9, 4  # instructions of a block at the most, outside and within others

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.portable = seed % 2 == 0
        self.label_count = 0
        self.signatures = [(self.types(4), self.types(3))
                           for _ in range(self.random.randint(1, self.MOST_FUNCTIONS))]
        self.globals = ["i32"] + self.types(4)
        self.tags = [self.types(3) for _ in range(self.random.randint(1, 3))]
        self.bodies = [self.function(*one) for one in self.signatures]

    # ---- choices

    def chance(self, probability):
        return self.random.random() < probability

    def type(self):
        return self.random.choices(list(TYPES), TYPES.values())[0]

    def types(self, most):
        return [self.type() for _ in range(self.random.randint(0, most))]

    def constant(self, type):
        if type in INTEGERS:
            bits = int(type[1:])
            any_number = self.random.randint(-2**(bits - 1), 2**(bits - 1) - 1)
            return f"{type}.const {self.random.choice(INTEGERS[type] + [any_number])}"
        if type == "v128":
            return f"v128.const i64x2 {self.random.randint(-2**63, 2**63 - 1)} 8"
        return "ref.null extern" if type == "externref" else \
            f"{type}.const {self.random.choice(FLOATS)}"

    # ---- operands; `base` is where the innermost block's operands begin

    def emit(self, text):
        self.code.append(text)

    def drop(self, count):
        if count:
            del self.stack[-count:]

    def push(self, type):
        locals_ = [i for i, t in enumerate(self.locals) if t == type]
        globals_ = [i for i, t in enumerate(self.globals) if t == type]
        if locals_ and self.chance(0.6):
            self.emit(f"local.get {self.random.choice(locals_)}")
        elif globals_ and self.chance(0.3):
            self.emit(f"global.get {self.random.choice(globals_)}")
        else:
            self.emit(self.constant(type))
        self.stack.append(type)

    def need(self, types, base):
        """Has `types` on top of the stack, with what is there already if that serves."""
        for kept in range(len(types), 0, -1):
            if (len(self.stack) - kept >= base and self.stack[-kept:] == types[:kept]
                    and self.chance(0.8)):
                break
        else:
            kept = 0
        for type in types[kept:]:
            self.push(type)

    def operate(self, operands, instructions, results, base):
        self.need(operands, base)
        self.drop(len(operands))
        self.emit(instructions)
        self.stack += results

    def need_with_condition(self, types, base):
        """Has `types` and a condition on top."""
        self.need(types, base)
        floor = len(self.stack) if types else base
        kind = self.random.random()
        type = self.random.choice(["i32", "i64"])
        compare = f"{type}.{self.random.choice(COMPARISONS)}"
        if kind < 0.25:
            self.operate([type, type], compare, ["i32"], floor)
        elif kind < 0.45:
            constant = f"{type}.const {self.random.randint(-40000, 40000)}"
            self.operate([type], f"{constant} {compare}", ["i32"], floor)
        elif kind < 0.6:
            type = self.random.choice(["f32", "f64"])
            compare = f"{type}.{self.random.choice(FLOAT_COMPARISONS)}"
            self.operate([type, type], compare, ["i32"], floor)
        elif kind < 0.75:
            self.operate([type], f"{type}.eqz", ["i32"], floor)
        else:
            self.need(["i32"], floor)

    # ---- instructions

    def instruction(self, base, depth):
        makers = [(16, self.push_any), (10, self.unary), (12, self.binary), (12, self.set_local),
                  (3, self.set_global), (3, self.drop_one), (5, self.select), (7, self.memory),
                  (12 if depth < 5 else 0, self.block), (7, self.branch_if), (8, self.call),
                  (1, self.many_locals)]
        weights, functions = zip(*makers)
        self.random.choices(functions, weights)[0](base, depth)

    def push_any(self, base, depth):
        self.push(self.type())

    def settable_locals(self):
        return range(len(self.locals))

    def many_locals(self, base, depth):
        for _ in range(self.random.randint(60, 90) if self.locals else 0):
            index = self.random.randrange(len(self.locals))
            self.emit(f"local.get {index}")
            self.stack.append(self.locals[index])

    def unary(self, base, depth):
        fitting = [u for u in UNARY if len(self.stack) > base and u[0] == self.stack[-1]]
        operand, instructions, result = self.random.choice(fitting or UNARY)
        self.operate([operand], instructions, [result], base)

    def binary(self, base, depth):
        type = self.random.choice(["i32", "i32", "i64", "i64", "f32", "f64", "v128"])
        if type == "v128":
            instruction = self.random.choice(VECTOR_BINARY)
        elif type in INTEGERS and self.chance(0.05):
            instruction = f"{type}.{self.random.choice(DIVISIONS)}"
        else:
            instruction = f"{type}.{self.random.choice(BINARY[type])}"
        self.operate([type, type], instruction, [type], base)

    def set_local(self, base, depth):
        settable = self.settable_locals()
        if not settable:
            return
        index = self.random.choice(settable)
        type = self.locals[index]
        if self.chance(0.45):
            self.operate([type], f"local.tee {index}", [type], base)
        else:
            self.operate([type], f"local.set {index}", [], base)

    def set_global(self, base, depth):
        index = self.random.randrange(len(self.globals))
        self.operate([self.globals[index]], f"global.set {index}", [], base)

    def drop_one(self, base, depth):
        if len(self.stack) > base:
            self.emit("drop")
            self.drop(1)

    def select(self, base, depth):
        type = self.type()
        self.need_with_condition([type, type], base)
        self.drop(3)
        self.emit("select (result externref)" if type == "externref" else "select")
        self.stack.append(type)

    def memory(self, base, depth):
        mask = "i32.const 255 i32.and"
        type, offset = self.random.choice(["i32", "i64"]), self.random.choice(OFFSETS)
        load = self.random.choice(["load", "load8_s", "load8_u", "load16_u"])
        store = self.random.choice(["store", "store8", "store16"])
        scratch = f"${type}"
        operands, instructions, results = self.random.choice([
            (["i32"], f"{mask} {type}.{load} offset={offset}", [type]),
            (["i32"], f"{mask} {type}.{load} offset={offset}", [type]),
            (["i32", type], f"local.set {scratch} {mask} local.get {scratch} "
                            f"{type}.{store} offset={offset}", []),
            (["i32", type], f"local.set {scratch} {mask} local.get {scratch} "
                            f"{type}.{store} offset={offset}", []),
            (["i32"], f"{mask} i32.const 7 i32.const 90 memory.fill", []),
            (["i32"], f"{mask} i32.const 20 i32.const 133 memory.copy", []),
            ([], "memory.size", ["i32"]),
            (["i32"], "i32.const 1 i32.and memory.grow", ["i32"]),
        ])
        self.operate(operands, instructions, results, base)

    def call(self, base, depth):
        index = self.random.randrange(len(self.signatures))
        params, results = self.signatures[index]
        by_table = f"i32.const {index} call_indirect{signature(params, results)}"
        self.operate(params, by_table if self.chance(0.3) else f"call $f{index}", results, base)

    def branch_if(self, base, depth):
        label, types = self.random.choice(self.labels)
        self.need_with_condition(types, base)
        self.drop(1)
        self.emit(f"br_if {label}")

    # ---- blocks

    def block(self, base, depth):
        kind = self.random.choice(self.BLOCKS)
        if kind == "if":
            self.need_with_condition([], base)
            self.drop(1)
        taken = self.random.randint(0, min(3, len(self.stack) - base)) if self.chance(0.5) else 0
        inner = len(self.stack) - taken
        params, results = self.stack[inner:], self.types(3) if self.chance(0.6) else []
        label = self.new_label()
        if kind == "try":
            self.try_block(label, params, results, inner, depth)
        else:
            self.emit(f"{kind} {label}{signature(params, results)}")
            if kind == "loop":
                self.emit(BURN)
            target = params if kind == "loop" else results
            self.section(label, target, results, inner, depth)
            if kind == "if" and (params != results or self.chance(0.7)):
                self.emit("else")
                self.stack = self.stack[:inner] + params
                self.section(label, target, results, inner, depth)
            self.emit("end")
        self.stack = self.stack[:inner] + results

    def new_label(self):
        self.label_count += 1
        return f"$L{self.label_count}"

    def section(self, label, target, results, inner, depth, is_catch=False):
        self.labels.append((label, target))
        if is_catch:
            self.catches.append(label)
        self.body(inner, depth + 1, results)
        if is_catch:
            self.catches.pop()
        self.labels.pop()

    def try_block(self, label, params, results, inner, depth):
        """Its parts are tuples in the code, which text() writes in one form or the other."""
        begin = len(self.code)
        self.emit(None)
        self.section(label, results, results, inner, depth)
        if not self.portable and self.chance(0.3):
            self.code[begin] = ("try", label, params, results, [])
            self.emit(f"delegate {self.random.choice(self.labels)[0]}")
            return
        caught = self.random.sample(range(len(self.tags)), self.random.randint(0, len(self.tags)))
        if not caught or self.chance(0.6):
            caught.append(None)
        for tag in caught:
            self.emit(("catch", label, tag))
            self.stack = self.stack[:inner] + (self.tags[tag] if tag is not None else [])
            self.section(label, results, results, inner, depth, is_catch=True)
        self.emit(("end try", label))
        self.code[begin] = ("try", label, params, results, caught)

    def body(self, base, depth, results):
        for _ in range(self.random.randint(0, self.LENGTHS[depth >= 3])):
            self.instruction(base, depth)
        if depth > 1 and self.chance(0.3):
            self.leave(base)
            dead = ["", "", "i32.const 1 drop", "drop drop", "i64.add drop", "block nop end",
                    "unreachable"]
            self.emit(self.random.choice(dead))
            return
        # Falls through with exactly its results.
        present = self.stack[base:]
        kept = 0
        while kept < min(len(present), len(results)) and present[kept] == results[kept]:
            kept += 1
        for _ in range(len(present) - kept):
            self.emit("drop")
        self.drop(len(present) - kept)
        for type in results[kept:]:
            self.push(type)

    def leave(self, base):
        kind = self.random.random()
        label, types = self.random.choice(self.labels)
        if kind < 0.4:
            self.need(types, base)
            self.emit(f"br {label}")
        elif kind < 0.6:
            alike = [name for name, others in self.labels if others == types]
            self.need(types, base)
            self.push("i32")
            count = self.random.randint(1, 6)
            self.emit("br_table " + " ".join(self.random.choices(alike, k=count)))
        elif kind < 0.7:
            self.need(self.results, base)
            self.emit("return")
        elif kind < 0.8:
            tag = self.random.randrange(len(self.tags))
            self.need(self.tags[tag], base)
            self.emit(f"throw $t{tag}")
        elif kind < 0.9 and self.catches and not self.portable:
            self.emit(f"rethrow {self.random.choice(self.catches)}")
        else:
            alike = [i for i, one in enumerate(self.signatures) if one[1] == self.results]
            index = self.random.choice(alike)
            self.need(self.signatures[index][0], base)
            self.emit(f"return_call $f{index}")

    # ---- functions and the module

    def local_types(self):
        return self.types(6)

    def begin_body(self):
        """For what a function does first."""

    def function(self, params, results):
        declared = self.local_types()
        self.locals, self.results = params + declared, results
        self.code, self.stack, self.catches = [], [], []
        label = self.new_label()
        self.labels = []
        self.emit(f"{BURN} block {label}{signature([], results)}")
        self.begin_body()
        self.section(label, results, results, 0, 0)
        self.emit("end")
        return "".join(f" (local {t})" for t in declared), self.code

    def text(self, legacy):
        """The module."""
        data = "".join(f"\\{(37 * i + 11) & 255:02x}" for i in range(300))
        fields = [f'(memory 2 4) (data (i32.const 0) "{data}")']
        for type in self.globals:
            zero = {"externref": "ref.null extern", "v128": "v128.const i64x2 1 2"}
            fields.append(f"(global (mut {type}) ({zero.get(type, f'{type}.const 5')}))")
        fields.append("(global $fuel (mut i32) (i32.const 0))")
        for i, tag in enumerate(self.tags):
            fields.append(f"(tag $t{i}{signature(tag, [])})")
        names = " ".join(f"$f{i}" for i in range(len(self.signatures)))
        fields.append(f"(table funcref (elem {names}))")
        for i, ((params, results), (declared, code)) in enumerate(zip(self.signatures, self.bodies)):
            body = " ".join(write_handlers(code, self.tags, legacy))
            fields.append(f"(func $f{i}{signature(params, results)}{declared} "
                          f"(local $i32 i32) (local $i64 i64)\n{body})")
            fields.append(self.wrapper(i, params, results))
        fields.append('(func (export "sum") (result i64) (local i32 i64)\n'
                      "loop local.get 1 i64.const 31 i64.mul local.get 0 i64.load8_u i64.add "
                      "local.set 1 local.get 0 i32.const 1 i32.add local.tee 0 i32.const 1400 "
                      "i32.lt_u br_if 0 end local.get 1)")
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


def write_handlers(code, tags, legacy):
    """The code with its try blocks as text. The new form: a block for each catch around a
    try_table, so that the end of that block is where the handler begins."""
    begun = set()  # labels of try_tables whose first handler has begun
    for part in code:
        if isinstance(part, str):
            yield part
        elif part[0] == "end try":
            yield "end"
        elif part[0] == "catch":
            _, label, tag = part
            if legacy:
                yield "catch_all" if tag is None else f"catch $t{tag}"
            else:
                yield f"br {label} end" if label in begun else f"end br {label} end"
                begun.add(label)
        else:
            _, label, params, results, caught = part
            if legacy:
                yield f"try {label}{signature(params, results)}"
                continue
            yield f"block {label}{signature(params, results)}"
            numbered = list(enumerate(caught))
            for number, tag in reversed(numbered):
                yield f"block {label}h{number}{signature(params, tags[tag] if tag is not None else [])}"
            clauses = [f"(catch_all {label}h{number})" if tag is None else
                       f"(catch $t{tag} {label}h{number})" for number, tag in numbered]
            yield f"try_table{signature(params, results)} {' '.join(clauses)}"
