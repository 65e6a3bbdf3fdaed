// Links a module: checks its imports, makes an instance and runs its initialisers.
#include <algorithm>

#include "base/check.h"
#include "base/format.h"
#include "base/phases.h"
#include "engine/store.h"

namespace gpurun::engine {

using wasm::ExternKind;
using wasm::ValType;

namespace {

// Returns a function type as text: "(func (param i32 i64) (result i32))".
std::string signature(const wasm::TypeTable& types, u32 type) {
    auto list = [&](const char* word, const std::vector<ValType>& values) {
        if (values.empty()) return std::string();
        std::string text = format(" (%s", word);
        for (ValType value : values) text += " " + types.name(value);
        return text + ")";
    };
    const wasm::FuncType& func = types[type].func;
    return "(func" + list("param", func.params) + list("result", func.results) + ")";
}

}  // namespace

// ---- imports -----------------------------------------------------------------------

Result<void> Store::check_limits(const wasm::Limits& wanted, const Extern& given, u64 current) {
    const wasm::Limits& limits = given.limits;
    auto incompatible = [&](std::string why) {
        return Error{
            format("incompatible import type: %s: %s", to_string(given.kind), why.c_str())};
    };
    if (wanted.is_64 != limits.is_64)
        return incompatible(format("expected %s-bit addresses", wanted.is_64 ? "64" : "32"));
    if (wanted.is_shared != limits.is_shared)
        return incompatible(wanted.is_shared ? "expected a shared one"
                                             : "expected one that is not shared");
    if (current < wanted.min)
        return incompatible(format("expected at least %llu, got %llu",
                                   (unsigned long long)wanted.min, (unsigned long long)current));
    if (wanted.max && (!limits.max || *limits.max > *wanted.max))
        return incompatible(
            format("expected a maximum of %llu at the most", (unsigned long long)*wanted.max));
    return {};
}

Result<void> Store::check_import(const wasm::Module& module, const std::vector<u32>& types,
                                 const wasm::Import& import, const Extern& given) {
    auto incompatible = [&](const std::string& wanted, const std::string& got) {
        return Error{
            format("incompatible import type: expected %s, got %s", wanted.c_str(), got.c_str())};
    };
    if (given.kind != import.kind)
        return incompatible(to_string(import.kind), to_string(given.kind));
    switch (import.kind) {
        case ExternKind::func: {
            u32 wanted = types[module.funcs[import.index].type];
            if (!types_.is_subtype(given.type, wanted))
                return incompatible(signature(types_, wanted), signature(types_, given.type));
            return {};
        }
        case ExternKind::tag:
            if (types[module.tags[import.index].type] != given.type)
                return incompatible(
                    "a tag of " + signature(types_, types[module.tags[import.index].type]),
                    "one of " + signature(types_, given.type));
            return {};
        case ExternKind::global: {
            const wasm::GlobalType& wanted = module.globals[import.index].type;
            ValType type = store_type(wanted.type, types);
            bool fits =
                wanted.is_mutable == given.is_mutable &&
                (wanted.is_mutable ? type == given.value : types_.matches(given.value, type));
            if (!fits)
                return incompatible(
                    (wanted.is_mutable ? "mutable " : "immutable ") + types_.name(type),
                    (given.is_mutable ? "mutable " : "immutable ") + types_.name(given.value));
            return {};
        }
        case ExternKind::table: {
            const wasm::TableType& wanted = module.tables[import.index].type;
            ValType element = store_type(wanted.element, types);
            if (element != given.value)
                return incompatible("a table of " + types_.name(element),
                                    "one of " + types_.name(given.value));
            return check_limits(wanted.limits, given, TRY(read_word(given.at + table_length)));
        }
        case ExternKind::memory: {
            u64 bytes = TRY(read_wide(given.at + memory_bytes));
            return check_limits(module.memories[import.index].limits, given, bytes >> page_bits);
        }
    }
    return {};
}

// ---- what an instance owns ---------------------------------------------------------

Result<Extern> Store::make_table(const wasm::Table& table, const std::vector<u32>& types) {
    const wasm::Limits& limits = table.type.limits;
    u64 max = std::min<u64>(limits.max.value_or(~u32{0}), ~u32{0});
    if (limits.min > options_.table_elements)
        return Error{format("a table of %llu elements is larger than the limit of %u",
                            (unsigned long long)limits.min, options_.table_elements)};
    // Leaves room to grow, but not too much for tables that never do.
    u64 capacity =
        std::min(max, std::max<u64>(limits.min, std::min<u64>(options_.table_elements,
                                                              limits.min + options_.table_growth)));
    Extern made;
    made.kind = ExternKind::table;
    made.at = TRY(take_words(table_words, "a table"));
    u32 elements = TRY(take_words(capacity, "a table"));
    const u32 record[table_words] = {u32(limits.min), u32(capacity), elements, u32(max)};
    TRY(space_->write_words(made.at, record));
    made.value = store_type(table.type.element, types);
    made.limits = limits;
    return made;
}

Result<Extern> Store::make_memory(const wasm::MemoryType& memory) {
    const wasm::Limits& limits = memory.limits;
    constexpr u64 most_pages = u64{1} << 40;
    u64 max_pages = std::min(limits.max.value_or(limits.is_64 ? most_pages : 65'536), most_pages);
    u64 capacity_pages = std::min(max_pages, options_.memory_bytes >> page_bits);
    if (limits.min > capacity_pages)
        return Error{format(
            "a memory of %llu pages does not fit the limit of %llu pages; --memory raises it",
            (unsigned long long)limits.min,
            (unsigned long long)(options_.memory_bytes >> page_bits))};
    u64 capacity = capacity_pages << page_bits;
    u64 taken = next_byte_ + (options_.is_watched ? canary_bytes : 0);
    if (taken > options_.all_memory_bytes || capacity > options_.all_memory_bytes - taken)
        return Error{
            format("no address space left for a memory of up to %llu MiB; a smaller --memory asks "
                   "for less",
                   (unsigned long long)(capacity >> 20))};
    Extern made;
    made.kind = ExternKind::memory;
    made.at = TRY(take_words(memory_words, "a memory"));
    made.limits = limits;
    u32 record[memory_words] = {};
    auto put = [&](u32 word, u64 value) {
        record[word] = u32(value);
        record[word + 1] = u32(value >> 32);
    };
    put(memory_bytes, limits.min << page_bits);
    put(memory_base, next_byte_);
    put(memory_capacity, capacity);
    put(memory_max_pages, capacity_pages);
    record[memory_next] = last_memory_;
    record[memory_flags] =
        (limits.is_64 ? memory_is_64 : 0) | (limits.is_shared ? memory_is_shared : 0);
    TRY(space_->write_words(made.at, record));
    last_memory_ = made.at;
    TRY(space_->write_words(process_memories, {&last_memory_, 1}));
    next_byte_ += capacity;
    if (options_.is_watched) {
        std::vector<u8> canary(canary_bytes, u8(canary_pattern));
        TRY(space_->write_bytes(next_byte_, canary));
        next_byte_ += canary_bytes;
    }
    return made;
}

Result<void> Store::write_instance(Instance& instance) {
    const LoadedCode& code = codes_[instance.code_];
    const translate::InstanceLayout& layout = code.layout;
    const wasm::Module& module = *instance.module_;
    std::vector<u32> words(layout.words);
    words[instance_number] = instance.number_;
    words[instance_module] = code.header;
    auto put = [&](u32 at, const std::vector<Extern>& externs, usize count) {
        for (usize i = 0; i < count; i++) words[at + i] = externs[i].at;
    };
    put(layout.memories, instance.memories_, instance.memories_.size());
    put(layout.tables, instance.tables_, instance.tables_.size());
    put(layout.tags, instance.tags_, instance.tags_.size());
    put(layout.imported_funcs, instance.funcs_, instance.funcs_.size());
    put(layout.imported_globals, instance.globals_, module.imported_globals);
    for (usize i = 0; i < module.elems.size(); i++) {
        words[layout.elem_state + 2 * i] = module.elems[i].size();
        if (layout.elem_is_evaluated[i])
            words[layout.elem_state + 2 * i + 1] =
                TRY(take_words(module.elems[i].size(), "element segments"));
    }
    TRY(space_->write_words(instance.at_, words));
    return space_->write_words(instance_table_ + instance.number_, {&instance.at_, 1});
}

Result<Store::Instantiated> Store::instantiate(std::shared_ptr<const wasm::Module> module,
                                               std::span<const Extern> imports,
                                               const device::RunControl& control) {
    Instance* instance = TRY(begin_instance(std::move(module), imports));
    PhaseTimer timer(Phase::instantiate);
    ThreadState state = TRY(run(control));
    Completion completion = TRY(complete(state));
    return Instantiated{instance, std::move(completion)};
}

Result<Instance*> Store::begin_instance(std::shared_ptr<const wasm::Module> module_ptr,
                                        std::span<const Extern> imports) {
    PhaseTimer timer(Phase::instantiate);
    const wasm::Module& module = *module_ptr;
    CHECK(imports.size() == module.imports.size());
    if (instances_.size() == options_.instances)
        return Error{format("a process holds %u instances at the most", options_.instances)};
    u32 code = TRY(load_code(module_ptr));
    const std::vector<u32>& types = codes_[code].types;
    for (usize i = 0; i < imports.size(); i++) {
        const wasm::Import& import = module.imports[i];
        Result<void> checked = check_import(module, types, import, imports[i]);
        if (!checked)
            return Error{format("%s (import \"%s\" \"%s\")", checked.error().message.c_str(),
                                import.module.c_str(), import.name.c_str())};
    }

    auto instance = std::make_unique<Instance>();
    instance->module_ = module_ptr;
    instance->code_ = code;
    instance->number_ = u32(instances_.size() + 1);
    instance->at_ = TRY(take_words(codes_[code].layout.words, "an instance"));
    for (const Extern& import : imports) {
        switch (import.kind) {
            case ExternKind::func: instance->funcs_.push_back(import); break;
            case ExternKind::table: instance->tables_.push_back(import); break;
            case ExternKind::memory: instance->memories_.push_back(import); break;
            case ExternKind::global: instance->globals_.push_back(import); break;
            case ExternKind::tag: instance->tags_.push_back(import); break;
        }
    }
    for (usize i = module.imported_tables; i < module.tables.size(); i++)
        instance->tables_.push_back(TRY(make_table(module.tables[i], types)));
    for (usize i = module.imported_memories; i < module.memories.size(); i++)
        instance->memories_.push_back(TRY(make_memory(module.memories[i])));
    for (usize i = module.imported_globals; i < module.globals.size(); i++) {
        const wasm::GlobalType& type = module.globals[i].type;
        Extern made;
        made.kind = ExternKind::global;
        made.at = instance->at_ + codes_[code].layout.globals[i];
        made.value = store_type(type.type, types);
        made.is_mutable = type.is_mutable;
        instance->globals_.push_back(made);
    }
    for (usize i = module.imported_tags; i < module.tags.size(); i++) {
        Extern made;
        made.kind = ExternKind::tag;
        made.at = instance->at_ + codes_[code].layout.tags + u32(i);  // a word of its own: identity
        made.type = types[module.tags[i].type];
        instance->tags_.push_back(made);
    }
    TRY(write_instance(*instance));
    Instance* finished = instance.get();
    instances_.push_back(std::move(instance));
    TRY(begin_thread(codes_[code].instantiate, finished->at_, {}));
    return finished;
}

std::optional<Extern> Store::find_export(const Instance& instance, std::string_view name) const {
    const wasm::Module& module = *instance.module_;
    const wasm::Export* found = module.find_export(name);
    if (!found) return std::nullopt;
    switch (found->kind) {
        case ExternKind::func: {
            if (found->index < module.imported_funcs) return instance.funcs_[found->index];
            Extern func;
            func.kind = ExternKind::func;
            func.at = function_ref(instance.number_, found->index);
            func.type = codes_[instance.code_].types[module.funcs[found->index].type];
            return func;
        }
        case ExternKind::table: return instance.tables_[found->index];
        case ExternKind::memory: return instance.memories_[found->index];
        case ExternKind::global: return instance.globals_[found->index];
        case ExternKind::tag: return instance.tags_[found->index];
    }
    return std::nullopt;
}

}  // namespace gpurun::engine
