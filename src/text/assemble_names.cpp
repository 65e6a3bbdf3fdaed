// Ids and what they stand for; the name section, branch hints and custom sections.
#include <algorithm>

#include "base/utf8.h"
#include "text/encode.h"
#include "text/module_assembler.h"

namespace gpurun::text {

namespace {

constexpr std::string_view section_words[] = {
    // In the order of the binary format.
    "type",   "import", "func", "table",     "memory", "tag",  "global",
    "export", "start",  "elem", "datacount", "code",   "data",
};

void put_name_map(wasm::Bytes& out, const NameMap& names) {
    put_u32(out, u32(names.size()));
    for (const auto& [number, name] : names) {
        put_u32(out, number);
        put_string(out, name);
    }
}

void put_subsection(wasm::Bytes& out, u8 id, const wasm::Bytes& contents) {
    out.push_back(id);
    put_u32(out, u32(contents.size()));
    put_bytes(out, contents);
}

void put_names_of(wasm::Bytes& out, u8 id, const IndexSpace& space) {
    if (space.names.empty()) return;
    wasm::Bytes contents;
    put_name_map(contents, space.names);
    put_subsection(out, id, contents);
}

void put_nested_names(wasm::Bytes& out, u8 id, const std::vector<std::pair<u32, NameMap>>& maps) {
    if (maps.empty()) return;
    wasm::Bytes contents;
    put_u32(contents, u32(maps.size()));
    for (const auto& [number, names] : maps) {
        put_u32(contents, number);
        put_name_map(contents, names);
    }
    put_subsection(out, id, contents);
}

}  // namespace

u32 ModuleAssembler::index(const IndexSpace& space) {
    if (!in_.is(Kind::id)) return in_.expect_u32();
    const Token& token = in_.take();
    auto found = space.ids.find(tokens_.id(token));
    if (found != space.ids.end()) return found->second;
    in_.fail(token, std::string("unknown ") + space.what + " " + std::string(tokens_.text(token)));
    return 0;
}

void ModuleAssembler::bind(IndexSpace& space, u32 number) {
    std::string name;
    if (in_.is(Kind::id)) {
        const Token& token = in_.take();
        name = tokens_.id(token);
        if (!space.ids.emplace(tokens_.id(token), number).second) {
            in_.fail(token, std::string("duplicate ") + space.what + " " +
                                std::string(tokens_.text(token)));
        }
    }
    if (const Annotation* annotation = take_annotation(Annotation::Kind::name)) {
        name = name_annotation(*annotation);
        if (take_annotation(Annotation::Kind::name)) {
            in_.fail_at(annotation->position,
                        std::string("@name annotation: multiple ") + space.what);
        }
    }
    if (!name.empty()) space.names.emplace_back(number, std::move(name));
}

const Annotation* ModuleAssembler::take_annotation(Annotation::Kind kind) {
    for (usize i = annotations_here(); i < taken_.size(); i++) {
        const Annotation& annotation = tokens_.annotations()[first_annotation_ + i];
        if (annotation.at != in_.at()) break;
        if (annotation.kind != kind || taken_[i]) continue;
        taken_[i] = true;
        return &annotation;
    }
    return nullptr;
}

// The first of the module's annotations that does not stand before the cursor.
usize ModuleAssembler::annotations_here() const {
    if (taken_.empty()) return 0;
    auto begin = tokens_.annotations().begin() + s64(first_annotation_),
         end = begin + s64(taken_.size());
    auto is_before = [](const Annotation& a, u32 at) { return a.at < at; };
    return usize(std::lower_bound(begin, end, in_.at(), is_before) - begin);
}

std::string ModuleAssembler::name_annotation(const Annotation& annotation) {
    if (annotation.contents.size() != 1 || annotation.contents[0].kind != Kind::string) {
        in_.fail_at(annotation.position, "@name annotation: unexpected token, expects one string");
        return {};
    }
    std::string name = tokens_.string(annotation.contents[0]);
    if (!is_utf8(name))
        in_.fail_at(annotation.position, "@name annotation: malformed UTF-8 encoding");
    return name;
}

void ModuleAssembler::custom_annotations() {
    for (usize i = annotations_here(); i < taken_.size(); i++) {
        const Annotation& annotation = tokens_.annotations()[first_annotation_ + i];
        if (annotation.at != in_.at()) break;
        if (annotation.kind != Annotation::Kind::custom) continue;
        taken_[i] = true;
        customs_.push_back(parse_custom(annotation));
        if (in_.failed()) break;
    }
}

// "name" (before|after section)? "bytes"*
ModuleAssembler::Custom ModuleAssembler::parse_custom(const Annotation& annotation) {
    const std::vector<Token>& contents = annotation.contents;
    Custom section{"", {}, u32(std::size(section_words))};
    usize at = 0;
    auto is = [&](Kind kind) { return at < contents.size() && contents[at].kind == kind; };
    auto word = [&] { return is(Kind::keyword) ? tokens_.text(contents[at]) : std::string_view(); };
    auto fail = [&](const char* what) {
        in_.fail_at(annotation.position, std::string("@custom annotation: ") + what);
        return section;
    };
    if (!is(Kind::string)) return fail("missing section name");
    section.name = tokens_.string(contents[at++]);
    if (!is_utf8(section.name)) return fail("malformed UTF-8 encoding");
    if (is(Kind::left)) {
        at++;
        bool is_after = word() == "after";
        if (!is_after && word() != "before") return fail("malformed placement");
        at++;
        const auto* found = std::find(std::begin(section_words), std::end(section_words), word());
        if (found != std::end(section_words)) {
            section.place = u32(found - section_words) + is_after;
        } else if (word() == (is_after ? "last" : "first")) {
            section.place = is_after ? u32(std::size(section_words)) : 0;
        } else {
            return fail("malformed section kind");
        }
        at++;
        if (!is(Kind::right)) return fail("unexpected token");
        at++;
    }
    std::string bytes;
    while (is(Kind::string)) tokens_.append_string(contents[at++], bytes);
    if (at < contents.size()) return fail("unexpected token");
    section.contents.assign(bytes.begin(), bytes.end());
    return section;
}

void ModuleAssembler::check_annotations() {
    for (usize i = 0; i < taken_.size(); i++) {
        if (taken_[i]) continue;
        const Annotation& annotation = tokens_.annotations()[first_annotation_ + i];
        std::string name = to_string(annotation.kind);
        bool is_hint = annotation.kind == Annotation::Kind::branch_hint;
        return in_.fail_at(annotation.position, is_hint ? name + " annotation: not in a function"
                                                        : "misplaced " + name + " annotation");
    }
}

void ModuleAssembler::put_names(Bytes& out) const {
    std::vector<std::pair<u32, NameMap>> field_names;
    for (u32 i = 0; i < types_.size(); i++) {
        if (!types_[i].fields.names.empty()) field_names.emplace_back(i, types_[i].fields.names);
    }
    if (!module_name_.empty()) {
        Bytes contents;
        put_string(contents, module_name_);
        put_subsection(out, 0, contents);
    }
    put_names_of(out, 1, func_space_);
    put_nested_names(out, 2, local_names_);
    put_nested_names(out, 3, label_names_);
    put_names_of(out, 4, type_space_);
    put_names_of(out, 5, table_space_);
    put_names_of(out, 6, memory_space_);
    put_names_of(out, 7, global_space_);
    put_names_of(out, 8, elem_space_);
    put_names_of(out, 9, data_space_);
    put_nested_names(out, 10, field_names);
    put_names_of(out, 11, tag_space_);
}

void ModuleAssembler::put_branch_hints(Bytes& out) const {
    put_u32(out, u32(hints_.size()));
    for (const auto& [func, hints] : hints_) {
        put_u32(out, func);
        put_name_map(out, hints);  // an offset and a payload, in the same form
    }
}

Assembled ModuleAssembler::take_result() {
    constexpr SectionId order[] = {type,    import, function, table,      memory, tag, global,
                                   export_, start,  element,  data_count, code,   data};
    static_assert(std::size(order) == std::size(section_words));
    Assembled result;
    Bytes& out = result.bytes;
    out = {0, 'a', 's', 'm', 1, 0, 0, 0};

    auto put_custom = [&](std::string_view name, const Bytes& contents) {
        Bytes body;
        put_string(body, name);
        out.push_back(SectionId::custom);
        put_u32(out, u32(body.size() + contents.size()));
        put_bytes(out, body);
        put_bytes(out, contents);
    };
    auto put_customs = [&](u32 place) {
        for (const Custom& section : customs_) {
            if (section.place == place) put_custom(section.name, section.contents);
        }
    };
    for (u32 place = 0; place < std::size(order); place++) {
        if (!customs_.empty()) put_customs(place);
        if (order[place] == code && !hints_.empty()) {
            Bytes contents;
            put_branch_hints(contents);
            put_custom("metadata.code.branch_hint", contents);
        }
        const Section& section = sections_[order[place]];
        if (section.count == 0 && section.bytes.empty()) continue;
        Bytes count;
        if (order[place] != start && order[place] != data_count) put_u32(count, section.count);
        out.push_back(order[place]);
        put_u32(out, u32(count.size() + section.bytes.size()));
        put_bytes(out, count);
        u32 base = u32(out.size());
        for (const auto& [offset, position] : section.lines)
            result.lines.emplace_back(base + offset, position);
        put_bytes(out, section.bytes);
    }
    Bytes names;
    put_names(names);
    if (!names.empty()) put_custom("name", names);
    if (!customs_.empty()) put_customs(u32(std::size(order)));
    return result;
}

}  // namespace gpurun::text
