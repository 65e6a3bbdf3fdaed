// The way in: one source, one module.
#include "text/assemble.h"

#include "base/format.h"
#include "text/cursor.h"
#include "text/lexer.h"
#include "text/module_assembler.h"

namespace gpurun::text {

Result<Assembled> assemble(std::string_view source, std::string_view name) {
    Assembled result;
    SyntaxError error;
    if (assemble_source(source, result, error)) return result;
    return Error{to_string(error, name)};
}

bool assemble_source(std::string_view source, Assembled& result, SyntaxError& error) {
    if (source.size() > max_source_bytes) {
        error = {
            format("source too large: %zu bytes, at most %zu", source.size(), max_source_bytes),
            {}};
        return false;
    }
    Tokens tokens(source);
    u32 begin = 0, end = tokens.size() - 1;
    Cursor in(tokens, begin, end);
    if (in.is_left("module")) {
        u32 close = in.peek().link;
        if (close == end) {
            in.fail(tokens[end], "unexpected token: end of text, the module is not closed");
        } else if (close + 1 != end) {
            in.unexpected(tokens[close + 1]);
        }
        begin = 2;
        end = close;
    }
    ModuleAssembler assembler(tokens, begin, end);
    bool ok = assembler.run();
    // What is wrong inside the module comes first in the text.
    if (!ok) {
        error = assembler.error();
    } else if (in.failed()) {
        error = in.error();
    } else {
        result = assembler.take_result();
        return true;
    }
    return false;
}

}  // namespace gpurun::text
