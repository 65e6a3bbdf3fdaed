// A stock book: inventory [FILE], or standard input. Reads movements of goods, one a line,
//   DATE WAREHOUSE in|out|move QUANTITY ITEM [PRICE | TO-WAREHOUSE]
// and prints what is where, what it is worth (first in, first out), what went wrong, and which
// items go together. Built of the standard library's containers and algorithms.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <deque>
#include <functional>
#include <iomanip>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <queue>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>

namespace {

using Cents = long long;

struct In {
    int quantity;
    Cents price;
};
struct Out {
    int quantity;
};
struct Move {
    int quantity;
    std::string to;
};

struct Movement {
    std::string date, warehouse, item;
    std::variant<In, Out, Move> what;
};

struct Batch {
    int quantity;
    Cents price;
};

template <typename... Fs>
struct Overloaded : Fs... {
    using Fs::operator()...;
};
template <typename... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

std::optional<int> to_int(const std::string& text) {
    int value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

// "12.5" is 1250 cents: no floating point where money is.
std::optional<Cents> to_cents(const std::string& text) {
    auto dot = text.find('.');
    auto whole = to_int(text.substr(0, dot));
    if (!whole || *whole < 0) return std::nullopt;
    Cents cents = *whole * 100LL;
    if (dot == std::string::npos) return cents;
    std::string rest = text.substr(dot + 1);
    if (rest.empty() || rest.size() > 2) return std::nullopt;
    auto part = to_int(rest);
    if (!part || *part < 0) return std::nullopt;
    return cents + *part * (rest.size() == 1 ? 10 : 1);
}

std::string money(Cents cents) {
    std::ostringstream out;
    out << cents / 100 << '.' << std::setw(2) << std::setfill('0') << cents % 100;
    return out.str();
}

// Either a movement or what is wrong with the line.
std::variant<Movement, std::string> parse(const std::string& line) {
    std::istringstream in(line);
    std::string date, warehouse, verb, quantity_text, item, last;
    if (!(in >> date >> warehouse >> verb >> quantity_text >> item)) return "too few words";
    in >> last;
    auto quantity = to_int(quantity_text);
    if (!quantity || *quantity <= 0) return "not a quantity: " + quantity_text;
    Movement movement{date, warehouse, item, Out{*quantity}};
    if (verb == "in") {
        auto price = to_cents(last);
        if (!price) return "not a price: " + last;
        movement.what = In{*quantity, *price};
    } else if (verb == "move") {
        if (last.empty() || last == warehouse) return "nowhere to move to";
        movement.what = Move{*quantity, last};
    } else if (verb != "out") {
        return "no such movement: " + verb;
    }
    return movement;
}

class Book {
public:
    // What is wrong, if anything; then nothing has changed.
    std::optional<std::string> apply(const Movement& m) {
        auto& shelf = stock_[m.warehouse][m.item];
        auto error = std::visit(Overloaded{[&](const In& in) -> std::optional<std::string> {
                                               shelf.push_back({in.quantity, in.price});
                                               return std::nullopt;
                                           },
                                           [&](const Out& out) -> std::optional<std::string> {
                                               if (total(shelf) < out.quantity)
                                                   return lack(m, shelf, out.quantity);
                                               for (const Batch& batch : take(shelf, out.quantity))
                                                   sold_[m.item] += batch.quantity * batch.price;
                                               return std::nullopt;
                                           },
                                           [&](const Move& move) -> std::optional<std::string> {
                                               if (total(shelf) < move.quantity)
                                                   return lack(m, shelf, move.quantity);
                                               auto batches = take(shelf, move.quantity);
                                               auto& to = stock_[move.to][m.item];
                                               std::copy(batches.begin(), batches.end(),
                                                         std::back_inserter(to));
                                               return std::nullopt;
                                           }},
                                m.what);
        if (!error) {
            touched_[m.date].insert(m.item);
            ++moves_[m.item];
        }
        return error;
    }

    void print() const {
        for (const auto& [warehouse, shelves] : stock_) {
            std::cout << warehouse << '\n';
            Cents sum = 0;
            for (const auto& [item, shelf] : shelves) {
                if (shelf.empty()) continue;
                Cents value = worth(shelf);
                sum += value;
                std::cout << "  " << std::left << std::setw(14) << item << std::right
                          << std::setw(6) << total(shelf) << std::setw(12) << money(value)
                          << "  in " << shelf.size() << (shelf.size() == 1 ? " batch" : " batches")
                          << '\n';
            }
            std::cout << "  " << std::left << std::setw(20) << "total" << std::right
                      << std::setw(12) << money(sum) << '\n';
        }
        print_sold();
        print_pairs();
    }

private:
    using Shelf = std::deque<Batch>;

    static int total(const Shelf& shelf) {
        return std::accumulate(shelf.begin(), shelf.end(), 0,
                               [](int sum, const Batch& batch) { return sum + batch.quantity; });
    }

    static Cents worth(const Shelf& shelf) {
        return std::accumulate(shelf.begin(), shelf.end(), Cents{0}, [](Cents sum, const Batch& b) {
            return sum + b.quantity * b.price;
        });
    }

    static std::vector<Batch> take(Shelf& shelf, int quantity) {
        std::vector<Batch> taken;
        while (quantity > 0) {
            Batch& first = shelf.front();
            int part = std::min(first.quantity, quantity);
            taken.push_back({part, first.price});
            quantity -= part;
            first.quantity -= part;
            if (first.quantity == 0) shelf.pop_front();
        }
        return taken;
    }

    static std::string lack(const Movement& m, const Shelf& shelf, int wanted) {
        return m.warehouse + " has " + std::to_string(total(shelf)) + " " + m.item + ", not " +
               std::to_string(wanted);
    }

    // Best sellers by cost, at most three: a heap is enough.
    void print_sold() const {
        using Entry = std::pair<Cents, std::string>;
        std::priority_queue<Entry, std::vector<Entry>,
                            std::function<bool(const Entry&, const Entry&)>>
            queue([](const Entry& a, const Entry& b) {
                return std::tie(a.first, b.second) < std::tie(b.first, a.second);
            });
        for (const auto& [item, cost] : sold_) queue.emplace(cost, item);
        std::cout << "went out\n";
        for (int i = 0; i < 3 && !queue.empty(); ++i, queue.pop())
            std::cout << "  " << std::left << std::setw(14) << queue.top().second << std::right
                      << std::setw(18) << money(queue.top().first) << "  ("
                      << moves_.at(queue.top().second) << " movements)\n";
    }

    // Pairs of items that moved on the same day, at least twice.
    void print_pairs() const {
        std::map<std::pair<std::string, std::string>, int> pairs;
        for (const auto& [date, items] : touched_)
            for (auto a = items.begin(); a != items.end(); ++a)
                for (auto b = std::next(a); b != items.end(); ++b) ++pairs[{*a, *b}];
        std::vector<std::tuple<int, std::string, std::string>> rows;
        for (const auto& [pair, times] : pairs)
            if (times > 1) rows.emplace_back(-times, pair.first, pair.second);
        std::sort(rows.begin(), rows.end());
        std::cout << "together\n";
        for (const auto& [times, a, b] : rows)
            std::cout << "  " << a << " and " << b << ": " << -times << " days\n";
    }

    std::map<std::string, std::map<std::string, Shelf>> stock_;
    std::unordered_map<std::string, Cents> sold_;
    std::unordered_map<std::string, int> moves_;
    std::map<std::string, std::set<std::string>> touched_;
};

// By C's streams: the C++ library that Debian has for wasm comes without <fstream>.
std::optional<std::string> read_file(const char* name) {
    std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(name, "rb"), std::fclose);
    if (!file) return std::nullopt;
    std::string text;
    std::array<char, 512> buffer;
    while (std::size_t count = std::fread(buffer.data(), 1, buffer.size(), file.get()))
        text.append(buffer.data(), count);
    if (std::ferror(file.get())) return std::nullopt;
    return text;
}

}  // namespace

int main(int argc, char** argv) {
    std::istringstream text;
    if (argc > 1) {
        auto content = read_file(argv[1]);
        if (!content) {
            std::cerr << "inventory: " << argv[1] << ": cannot read\n";
            return 2;
        }
        text.str(std::move(*content));
    }
    std::istream& in = argc > 1 ? text : std::cin;
    Book book;
    std::string line;
    int number = 0, errors = 0;
    while (std::getline(in, line)) {
        ++number;
        if (line.empty() || line[0] == '#') continue;
        auto parsed = parse(line);
        std::optional<std::string> error;
        if (auto* message = std::get_if<std::string>(&parsed))
            error = *message;
        else
            error = book.apply(std::get<Movement>(parsed));
        if (error) {
            std::cerr << "line " << number << ": " << *error << '\n';
            ++errors;
        }
    }
    book.print();
    return errors > 0;
}
