// Weakens the orders and fences that the runtime names, one at a time: some exploration has to fail
// then, or mutants.txt says why none does. `make test` tries some of them, with few interruptions;
// mutants_long_test.py all.
//
// A mutant is a call of an accessor in src/runtime and what it loses. mutants.txt has, for each
// that no exploration sees, a line `file: change: the line of the source`, and below it, or below
// several of them, indented lines with the argument.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "scenarios.h"

namespace gpurun::test {
namespace {

namespace fs = std::filesystem;

struct Kind {
    const char* operation;
    std::vector<Change> changes;
};
const Kind kinds[] = {
    {"load_shared", {Change::no_acquire}},
    {"store_shared", {Change::no_release}},
    {"compare_exchange", {Change::no_acquire, Change::no_release}},
    {"compare_exchange_acquire", {Change::no_acquire}},
    {"compare_exchange_release", {Change::no_release}},
    {"exchange", {Change::no_acquire, Change::no_release}},
    {"load_mapped", {Change::no_acquire, Change::device_scope}},
    {"store_mapped", {Change::no_release, Change::device_scope}},
    {"ring_bell", {Change::no_release, Change::device_scope}},
    {"atomic_fence", {Change::no_fence, Change::fence_acq_rel}},
    {"release_fence", {Change::no_fence}},
    {"acquire_fence", {Change::no_fence}},
    {"atomic_load", {Change::no_fence, Change::fence_acq_rel}},
};
const char* name_of(Change change) {
    switch (change) {
        case Change::no_acquire: return "no acquire";
        case Change::no_release: return "no release";
        case Change::device_scope: return "device scope";
        case Change::no_fence: return "no fence";
        case Change::fence_acq_rel: return "acq_rel fence";
    }
    return "";
}

// Platforms are what the accessors are; these three files are guests' own atomics, whose order is
// wasm's and does not keep the runtime together.
bool is_looked_at(const std::string& file) {
    return !file.starts_with("platform") && !file.ends_with("_nvptx.cpp") && file != "access.cpp" &&
           file != "native_bitcode.cpp" && file != "guest_atomics.h";
}

std::string read_file(const fs::path& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
}
std::string trimmed(const std::string& text) {
    const usize first = text.find_first_not_of(" \t");
    return first == std::string::npos
               ? ""
               : text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

struct Found {
    Mutant mutant;
    std::string key;  // as in mutants.txt
};

std::vector<Found> find_mutants(const fs::path& folder) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
        const std::string file = entry.path().filename();
        if ((file.ends_with(".h") || file.ends_with(".cpp")) && is_looked_at(file))
            files.push_back(entry.path());
    }
    std::ranges::sort(files, {}, [](const fs::path& path) { return path.filename(); });
    const std::regex call(R"(\b(\w+)(<\w+>)?\()");
    std::vector<Found> all;
    for (const fs::path& path : files) {
        std::vector<std::string> lines;
        std::istringstream in(read_file(path));
        for (std::string line; std::getline(in, line);) lines.push_back(line);
        std::set<std::string> had;
        for (usize i = 0; i < lines.size(); i++) {
            const std::string code = lines[i].substr(0, lines[i].find("//"));
            for (std::sregex_iterator at(code.begin(), code.end(), call), end; at != end; ++at) {
                const auto kind = std::ranges::find_if(
                    kinds, [&](const Kind& k) { return (*at)[1] == k.operation; });
                if (kind == std::end(kinds)) continue;
                // The compiler may name any line of a call.
                int depth = 0;
                usize last = i, from = usize(at->position() + at->length() - 1);
                for (bool is_over = false; !is_over && last < lines.size();) {
                    const std::string part = lines[last].substr(0, lines[last].find("//"));
                    for (usize c = from; c < part.size() && !is_over; c++) {
                        depth += (part[c] == '(') - (part[c] == ')');
                        is_over = depth == 0;
                    }
                    if (!is_over) last++, from = 0;
                }
                for (Change change : kind->changes) {
                    const std::string file = path.filename();
                    const Mutant mutant{kind->operation, file, u32(i + 1), u32(last + 1), change};
                    const std::string id = std::to_string(i) + kind->operation + name_of(change);
                    if (!had.insert(id).second) continue;
                    all.push_back(
                        {mutant, file + ": " + name_of(change) + ": " + trimmed(lines[i])});
                }
            }
        }
    }
    return all;
}

// By line of mutants.txt, the argument below it.
std::map<std::string, std::string> read_list(const fs::path& path) {
    std::map<std::string, std::string> list;
    std::istringstream in(read_file(path));
    std::vector<std::string> keys;
    bool has_argument = false;
    for (std::string line; std::getline(in, line);) {
        if (line.empty() || line[0] == '#') continue;
        if (line[0] == ' ') {
            for (const std::string& key : keys) list[key] += trimmed(line) + " ";
            has_argument = true;
            continue;
        }
        if (has_argument) keys.clear();
        has_argument = false;
        keys.push_back(line);
        list[line];
    }
    return list;
}

// The explorations that come to a place, short ones first.
std::vector<const ExploringTest*> tests_at(const Mutant& mutant) {
    static std::map<const ExploringTest*, std::set<SeenSite>> seen;
    static std::map<const ExploringTest*, u64> steps;
    for (const ExploringTest& test : exploring_tests()) {
        auto [known, is_new] = seen.try_emplace(&test);
        if (!is_new) continue;
        Hunt nothing{.how = {.preemptions = 1, .stale_loads = 0}, .caught_by = {}};
        hunt = &nothing;
        seen_sites = &known->second;
        test.run();
        seen_sites = nullptr;
        hunt = nullptr;
        EXPECT_EQ(nothing.caught_by, "");
        steps[&test] = nothing.steps;
    }
    std::vector<const ExploringTest*> found;
    for (const ExploringTest& test : exploring_tests())
        if (std::ranges::any_of(seen[&test], [&](const SeenSite& site) {
                return site.operation == mutant.operation && site.file == mutant.file &&
                       site.line >= mutant.line && site.line <= mutant.last_line;
            }))
            found.push_back(&test);
    std::ranges::sort(found, {}, [&](const ExploringTest* test) { return steps[test]; });
    return found;
}

// What caught it, or nothing. Few interruptions come first: they are mostly enough.
std::string caught_by(const Mutant& mutant, Weak most) {
    const auto tests = tests_at(mutant);
    mutate(&mutant);
    Hunt hunting;
    hunt = &hunting;
    for (u32 times = 0; times <= most.preemptions; times++)
        for (const ExploringTest* test : tests) {
            hunting.how = {times, most.stale_loads};
            if (hunting.caught_by.empty()) test->run();
        }
    hunt = nullptr;
    mutate(nullptr);
    return hunting.caught_by;
}

// GPURUN_MUTANTS: a part of them, "0/2" or "1/2", or those of a line, "wait.h:95".
TEST(Mutants, AreCaughtOrListed) {
    const fs::path source = std::getenv("GPURUN_SOURCE") ? std::getenv("GPURUN_SOURCE") : ".";
    const auto all = find_mutants(source / "src/runtime");
    ASSERT_GT(all.size(), 50u);
    auto list = read_list(source / "tests/interleave/mutants.txt");
    for (const auto& [key, why] : list) {
        EXPECT_NE(why, "") << "mutants.txt does not say why: " << key;
        EXPECT_TRUE(std::ranges::any_of(all, [&](const Found& one) { return one.key == key; }))
            << "mutants.txt has what is not in the source: " << key;
    }
    const char* wanted = std::getenv("GPURUN_MUTANTS");
    u32 part = 0, parts = 1;
    const bool is_short = wanted == nullptr;
    if (!is_short) std::sscanf(wanted, "%u/%u", &part, &parts);
    constexpr u32 short_step = 3;  // `make test` tries every third
    u32 tried = 0, caught = 0, listed = 0;
    for (u32 i = 0; i < all.size(); i++) {
        const auto& [mutant, key] = all[i];
        const std::string place = mutant.file + ":" + std::to_string(mutant.line);
        const bool is_wanted = is_short                              ? i % short_step == 0
                               : std::strchr(wanted, ':') != nullptr ? place == wanted
                                                                     : i % parts == part;
        if (!is_wanted || (is_short && list.contains(key))) continue;
        tried++;
        const std::string by =
            caught_by(mutant, is_short ? Weak{.preemptions = 1, .stale_loads = 1}
                                       : Weak{.preemptions = 4, .stale_loads = 2});
        const bool is_listed = list.contains(key);
        std::printf("%s: %s: %s\n", place.c_str(), key.c_str(),
                    !by.empty() ? by.c_str()
                    : is_listed ? "listed"
                                : "NOT CAUGHT");
        std::fflush(stdout);
        caught += !by.empty();
        listed += by.empty() && is_listed;
        EXPECT_TRUE(!by.empty() || is_listed) << key;
        EXPECT_FALSE(!by.empty() && is_listed) << "is listed, but is caught: " << key;
    }
    std::printf("%u mutants, %u tried, %u caught, %u listed\n", u32(all.size()), tried, caught,
                listed);
}

}  // namespace
}  // namespace gpurun::test
