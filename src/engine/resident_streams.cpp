// Streams between the host and the processes of a resident machine: what comes and goes, and when
// their ends close.
#include <algorithm>

#include "base/format.h"
#include "engine/resident.h"

namespace gpurun::engine {

Result<u32> Resident::add_stream(std::unique_ptr<Stream> stream) {
    std::lock_guard lock(mutex_);
    if (failure_) return *failure_;
    if (!free_streams_.empty()) {
        const u32 number = free_streams_.back();
        free_streams_.pop_back();
        // A thread that reads for it may not have seen yet that it is closed.
        if (streams_[number]->reader.joinable()) {
            finished_.push_back(std::move(streams_[number]->reader));
            retired_.push_back(std::move(streams_[number]));
        }
        if (stream->is_input) inputs_.insert(number);
        streams_[number] = std::move(stream);
        return number;
    }
    if (streams_.size() == max_host_streams)
        return Error{format("a machine has %u streams to the host at the most", max_host_streams)};
    if (stream->is_input) inputs_.insert(u32(streams_.size()));
    streams_.push_back(std::move(stream));
    return u32(streams_.size() - 1);
}

Result<u32> Resident::open_output(std::function<Result<bool>(std::string_view)> write, Use use) {
    auto stream = std::make_unique<Stream>();
    stream->write = std::move(write);
    stream->use = use;
    return add_stream(std::move(stream));
}

Result<u32> Resident::open_input(std::vector<u8> bytes, Use use) {
    auto stream = std::make_unique<Stream>();
    stream->is_input = stream->is_ended = true;
    stream->use = use;
    stream->waiting_bytes = bytes.size();
    if (!bytes.empty()) stream->waiting.push_back(std::move(bytes));
    return add_stream(std::move(stream));
}

Result<u32> Resident::open_input(decltype(host::Streams::read) read, Use use) {
    auto stream = std::make_unique<Stream>();
    stream->is_input = true;
    stream->use = use;
    Stream* it = stream.get();
    const u32 number = TRY(add_stream(std::move(stream)));
    std::lock_guard lock(mutex_);
    it->reader = std::thread([this, it, read = std::move(read)] { read_input(*it, read); });
    return number;
}

// The host's end. What the device sent before it heard of that comes before the answer to the ping;
// then the number is free. With the lock held.
Result<void> Resident::close(u32 number, Stream& stream) {
    if (stream.is_closed) return {};
    stream.is_closed = true;
    stream.write = nullptr;
    inputs_.erase(number);
    const MessageKind kind = stream.is_input ? MessageKind::input_end : MessageKind::output_end;
    TRY(post(kind, StreamBytes{number + 1, 0, stream.sent}));
    if (stream.use == Use::always) return {};
    const u64 ping = next_ping_++;
    closing_[ping] = number;
    return post(MessageKind::ping, Ping{ping});
}

// Brings as much as the device has room for, and no more: the rest is for whoever reads it next.
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
        Result<host::Streams::Input> bytes = read(most, {}, &is_stopping_);
        if (bytes && !*bytes) continue;  // somebody wants to stop
        // What cannot be read has ended, as a closed one has.
        const bool is_ended = !bytes || (*bytes)->empty();
        {
            std::lock_guard lock(mutex_);
            stream.is_ended = is_ended;
            if (!is_ended) {
                stream.waiting_bytes += (*bytes)->size();
                stream.waiting.push_back(std::move(**bytes));
            }
        }
        machine_->wake();
        if (is_ended) return;
    }
}

// Sends what the device has room for. False: there was nothing. With the lock held.
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

// With the lock held.
Result<void> Resident::handle_taken(const StreamBytes& taken) {
    const u32 number = taken.stream - 1;
    if (number >= streams_.size() || !streams_[number]->is_input)
        return host::damaged_mailbox("an input that there is not");
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
            return host::damaged_mailbox("an output that there is not");
        Stream& stream = *streams_[number];
        if (bytes.empty() && stream.use == Use::once) return close(number, stream);
        if (bytes.empty() || !stream.write) return {};
        write = stream.write;
    }
    // Without the lock: it may take its time, and ask for other things.
    Result<bool> is_read = write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    if (is_read && *is_read) return {};
    std::lock_guard lock(mutex_);
    return close(number, *streams_[number]);
}

}  // namespace gpurun::engine
