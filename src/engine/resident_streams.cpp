// Moves bytes of streams between the host and the processes of a resident machine, and closes
// streams.
#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/threads.h"
#include "engine/resident.h"

namespace gpurun::engine {

// How many callbacks for input may still run after their processes have ended. Nobody can end them.
constexpr u32 max_abandoned = 64;

// The machine whose messages this thread handles while it calls a user's function.
static thread_local const Resident* calling_back = nullptr;

bool Resident::is_calling_back() const { return calling_back == this; }

Result<u32> Resident::add_stream(std::shared_ptr<Stream> stream) {
    std::lock_guard lock(mutex_);
    if (failure_) return *failure_;
    const bool is_input = stream->is_input;
    if (!free_streams_.empty()) {
        const u32 number = free_streams_.back();
        if (is_input) inputs_.insert(number);
        streams_[number] = std::move(stream);
        free_streams_.pop_back();
        return number;
    }
    if (streams_.size() == max_host_streams)
        return Error{format("a machine has %u streams to the host at the most", max_host_streams)};
    const u32 number = u32(streams_.size());
    streams_.reserve(max_host_streams);  // so that nothing can go wrong behind inputs_
    if (is_input) inputs_.insert(number);
    streams_.push_back(std::move(stream));
    return number;
}

Result<u32> Resident::open_output(std::function<Result<bool>(std::string_view)> write, Use use) {
    auto stream = std::make_shared<Stream>();
    stream->write = std::move(write);
    stream->use = use;
    return add_stream(std::move(stream));
}

Result<u32> Resident::open_input(std::vector<u8> bytes, Use use) {
    auto stream = std::make_shared<Stream>();
    stream->is_input = stream->is_ended = true;
    stream->use = use;
    stream->waiting_bytes = bytes.size();
    if (!bytes.empty()) stream->waiting.push_back(std::move(bytes));
    return add_stream(std::move(stream));
}

Result<u32> Resident::open_input(decltype(host::Streams::read) read, Use use) {
    join_readers();
    auto stream = std::make_shared<Stream>();
    stream->is_input = true;
    stream->use = use;
    std::list<Reader> made;
    made.push_back({{}, stream});
    const auto reader = made.begin();
    {
        std::lock_guard lock(mutex_);
        if (is_stopping_) return Error{"the machine was stopped"};
        if (abandoned_ >= max_abandoned)
            return Error{
                format("%u callbacks for input of processes that have ended have not returned",
                       abandoned_)};
        // The thread waits for the lock, and then finds itself in the list.
        reader->thread = TRY(start_thread("for input", [this, reader, read = std::move(read)] {
            read_input(*reader->stream, read);
            end_reader(reader);
        }));
        stream->has_reader = true;
        readers_.splice(readers_.end(), made);
    }
    // An Error ends the reader too, since nobody will use the stream.
    Result<u32> number = guarded([&] { return add_stream(stream); });
    if (number) return number;
    std::lock_guard lock(mutex_);
    stream->is_closed = true;
    if (stream->has_reader) abandoned_++;
    changed_.notify_all();
    return number;
}

// Moves a reader to those that are done; its thread does nothing after that. The pump joins it.
void Resident::end_reader(std::list<Reader>::iterator reader) {
    {
        std::lock_guard lock(mutex_);
        reader->stream->has_reader = false;
        if (reader->stream->is_closed) abandoned_--;
        done_readers_.splice(done_readers_.end(), readers_, reader);
        changed_.notify_all();
    }
    machine_->wake();
}

// Joins those readers that are done.
void Resident::join_readers() {
    std::list<Reader> done;
    {
        std::lock_guard lock(mutex_);
        done.swap(done_readers_);
    }
    for (Reader& reader : done) reader.thread.join();
}

// Closes the host's end of a stream, with the lock held. What the device sent before it heard of
// that comes before the answer to a ping; then the number is free.
Result<void> Resident::close(u32 number, Stream& stream) {
    if (stream.is_closed) return {};
    stream.is_closed = true;
    if (stream.has_reader) abandoned_++;
    changed_.notify_all();  // its reader
    stream.write = nullptr;
    inputs_.erase(number);
    const MessageKind kind = stream.is_input ? MessageKind::input_end : MessageKind::output_end;
    TRY(post(kind, StreamBytes{number + 1, 0, stream.sent}));
    if (stream.use == Use::always) return {};
    const u64 ping = next_ping_++;
    closing_[ping] = number;
    return post(MessageKind::ping, Ping{ping});
}

// Reads as much input as the device has room for, and no more: the rest is left for other readers.
void Resident::read_input(Stream& stream, const decltype(host::Streams::read)& read) {
    auto room = [&] { return pipe_bytes - (stream.sent - stream.taken) - stream.waiting_bytes; };
    for (;;) {
        u64 most;
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [&] { return is_stopping_ || stream.is_closed || room() > 0; });
            if (is_stopping_ || stream.is_closed) return;
            most = room();
        }
        Result<host::Streams::Input> bytes = host::Streams::Input();
        try {
            bytes = read(most, {}, &is_stopping_);
        } catch (...) {
            return fail(caught_error());
        }
        if (bytes && !*bytes) continue;  // somebody wants to stop
        // Input that cannot be read counts as ended.
        bool is_ended = !bytes || (*bytes)->empty();
        if (!is_ended) {
            const u64 size = (*bytes)->size();
            Result<void> kept = guarded([&]() -> Result<void> {
                std::lock_guard lock(mutex_);
                stream.waiting.push_back(std::move(**bytes));
                stream.waiting_bytes += size;
                return {};
            });
            if (!kept) return fail(std::move(kept).error());
        } else {
            std::lock_guard lock(mutex_);
            stream.is_ended = true;
        }
        machine_->wake();
        if (is_ended) return;
    }
}

// Sends as much input as the device has room for, with the lock held. Returns false if there was
// none.
Result<bool> Resident::feed(u32 number, Stream& stream) {
    if (!stream.is_input || stream.is_closed || !stream.is_begun) return false;
    if (stream.waiting.empty()) {
        if (!stream.is_ended) return false;
        TRY(close(number, stream));
        return true;
    }
    const std::vector<u8>& front = stream.waiting.front();
    constexpr u64 most = max_message - sizeof(StreamBytes);
    const u64 room = pipe_bytes - (stream.sent - stream.taken);
    const u64 size = std::min({room, front.size() - stream.front_used, most});
    if (size == 0) return false;
    const StreamBytes head{number + 1, 0, stream.sent + size};
    const u8* bytes = reinterpret_cast<const u8*>(&head);
    auto body = std::make_shared<std::vector<u8>>(front.begin() + s64(stream.front_used),
                                                  front.begin() + s64(stream.front_used + size));
    TRY(post({MessageKind::input, std::vector<u8>(bytes, bytes + sizeof head), std::move(body), 0,
              size}));
    stream.sent += size;
    stream.waiting_bytes -= size;
    stream.front_used += size;
    if (stream.front_used == front.size()) {
        stream.waiting.pop_front();
        stream.front_used = 0;
    }
    return true;
}

Result<void> Resident::feed() {
    std::lock_guard lock(mutex_);
    for (auto at = inputs_.begin(); at != inputs_.end();) {
        const u32 number = *at++;  // closing it takes it away
        while (TRY(feed(number, *streams_[number]))) {
        }
    }
    return {};
}

// Handles a message that says how much of a stream was read, with the lock held.
Result<void> Resident::handle_taken(const StreamBytes& taken) {
    const u32 number = taken.stream - 1;
    if (number >= streams_.size() || !streams_[number]->is_input)
        return host::damaged_mailbox("an unknown input");
    Stream& stream = *streams_[number];
    if (taken.total == nobody_reads)
        return stream.use == Use::once ? close(number, stream) : Result<void>();
    if (taken.total < stream.taken || taken.total > stream.sent)
        return host::damaged_mailbox("more input taken than there was");
    stream.taken = taken.total;
    return {};
}

Result<void> Resident::handle_output(const host::Message& message) {
    const auto head = message.as<StreamBytes>();
    const std::span<const u8> bytes = message.after<StreamBytes>();
    const u32 number = head.stream - 1;
    std::function<Result<bool>(std::string_view)> write;
    {
        std::lock_guard lock(mutex_);
        if (number >= streams_.size() || streams_[number]->is_input)
            return host::damaged_mailbox("an unknown output");
        Stream& stream = *streams_[number];
        if (bytes.empty() && stream.use == Use::once) return close(number, stream);
        if (bytes.empty() || !stream.write) return {};
        write = stream.write;
    }
    // The function is called without the lock: it may take long, and call other functions here.
    struct CallingBack {
        const Resident* outer;
        ~CallingBack() { calling_back = outer; }
    } scope{std::exchange(calling_back, this)};
    Result<bool> is_read = write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    if (is_read && *is_read) return {};
    std::lock_guard lock(mutex_);
    return close(number, *streams_[number]);
}

}  // namespace gpurun::engine
