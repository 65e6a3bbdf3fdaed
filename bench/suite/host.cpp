// Runs a job of the suite, compiled for the host, in as many threads as there are cores. It says
// what the results have to be, and what the host does without wasm.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

// jobs.def has a row JOB(name) for each job; bench/suite/build makes it.
#define JOB(name) extern "C" uint32_t job_##name(uint32_t instance);
#include "jobs.def"
#undef JOB

namespace {

struct Job {
    const char* name;
    uint32_t (*run)(uint32_t);
};
constexpr Job jobs[] = {
#define JOB(name) {#name, job_##name},
#include "jobs.def"
#undef JOB
};

int usage() {
    std::fprintf(stderr, "usage: host [--instances N] [--same] [--each] [--threads N] JOB\n");
    return 2;
}

}  // namespace

int main(int argc, char** argv) {
    uint32_t instances = 1, threads = std::max(1u, std::thread::hardware_concurrency());
    bool each = false, same = false;
    const Job* job = nullptr;
    for (int i = 1; i < argc; i++) {
        const std::string word = argv[i];
        if (word == "--same")
            same = true;
        else if (word == "--each")
            each = true;
        else if (word == "--instances" && i + 1 < argc)
            instances = uint32_t(std::atoll(argv[++i]));
        else if (word == "--threads" && i + 1 < argc)
            threads = uint32_t(std::atoll(argv[++i]));
        else
            for (const Job& one : jobs)
                if (word == one.name) job = &one;
    }
    if (!job || instances == 0 || threads == 0) return usage();
    std::vector<uint32_t> results(instances);
    std::atomic<uint32_t> next = 0;
    auto work = [&] {
        constexpr uint32_t block = 16;
        for (;;) {
            const uint32_t first = next.fetch_add(block);
            if (first >= instances) return;
            for (uint32_t i = first; i < std::min(first + block, instances); i++)
                results[i] = job->run(same ? 0 : i);
        }
    };
    const auto begin = std::chrono::steady_clock::now();
    std::vector<std::thread> pool;
    for (uint32_t i = 0; i < threads; i++) pool.emplace_back(work);
    for (std::thread& thread : pool) thread.join();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (each)
        for (uint32_t i = 0; i < instances; i++) std::printf("%u\t%d\n", i, int(results[i]));
    std::fprintf(stderr, "host: %u processes in %.6f s, %.0f/s, %u threads\n", instances,
                 took.count(), instances / took.count(), threads);
    return 0;
}
