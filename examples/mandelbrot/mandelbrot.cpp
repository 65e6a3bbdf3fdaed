// The Mandelbrot set as a picture (PPM): mandelbrot [WIDTH HEIGHT [LIMIT [FILE]]]
// To standard output, or to FILE. In doubles, with additions and products alone, so that every
// machine paints the same bytes.
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace {

struct Colour {
    std::uint8_t red, green, blue;
};

// How many steps a point takes to leave the circle of radius 2; `limit` if it never does.
int escape_time(double x0, double y0, int limit) {
    // The two large bulbs, which would take most of the time, are known without iterating.
    double q = (x0 - 0.25) * (x0 - 0.25) + y0 * y0;
    if (q * (q + (x0 - 0.25)) <= 0.25 * y0 * y0) return limit;
    if ((x0 + 1) * (x0 + 1) + y0 * y0 <= 0.0625) return limit;

    double x = 0, y = 0;
    for (int i = 0; i < limit; i++) {
        double xx = x * x, yy = y * y;
        if (xx + yy > 4) return i;
        y = 2 * x * y + y0;
        x = xx - yy + x0;
    }
    return limit;
}

class Palette {
public:
    explicit Palette(int limit) : colours_(static_cast<std::size_t>(limit) + 1) {
        // Between these, in equal steps, again and again.
        constexpr std::array<Colour, 6> stops{{{0, 7, 100},
                                               {32, 107, 203},
                                               {237, 255, 255},
                                               {255, 170, 0},
                                               {120, 20, 40},
                                               {0, 2, 20}}};
        constexpr int between = 8;
        for (int i = 0; i < limit; i++) {
            const Colour& a = stops[static_cast<std::size_t>(i / between) % stops.size()];
            const Colour& b = stops[static_cast<std::size_t>(i / between + 1) % stops.size()];
            auto mix = [t = i % between](int from, int to) {
                return static_cast<std::uint8_t>(from + (to - from) * t / between);
            };
            colours_[static_cast<std::size_t>(i)] = {mix(a.red, b.red), mix(a.green, b.green),
                                                     mix(a.blue, b.blue)};
        }
    }

    Colour operator[](int time) const { return colours_[static_cast<std::size_t>(time)]; }

private:
    std::vector<Colour> colours_;  // the last one, of points that stay, is black
};

std::string paint(int width, int height, int limit) {
    Palette palette(limit);
    std::string picture = "P6\n" + std::to_string(width) + " " + std::to_string(height) + "\n255\n";
    picture.reserve(picture.size() + std::size_t(width) * std::size_t(height) * 3);
    // The view is three units wide whatever the size; pixels are square.
    double scale = 3.0 / width;
    for (int row = 0; row < height; row++)
        for (int column = 0; column < width; column++) {
            double x = (column - width / 2.0) * scale - 0.65;
            double y = (row - height / 2.0) * scale;
            Colour colour = palette[escape_time(x, y, limit)];
            picture += static_cast<char>(colour.red);
            picture += static_cast<char>(colour.green);
            picture += static_cast<char>(colour.blue);
        }
    return picture;
}

bool number(std::string_view text, int most, int& value) {
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() && value > 0 && value <= most;
}

}  // namespace

int main(int argc, char** argv) {
    int width = 96, height = 64, limit = 128;
    if (argc == 2 || argc > 5 || (argc > 2 && !number(argv[1], 8192, width)) ||
        (argc > 2 && !number(argv[2], 8192, height)) ||
        (argc > 3 && !number(argv[3], 1000000, limit))) {
        std::fputs("usage: mandelbrot [WIDTH HEIGHT [LIMIT [FILE]]]\n", stderr);
        return 2;
    }
    std::string picture = paint(width, height, limit);
    std::FILE* file = argc > 4 ? std::fopen(argv[4], "wb") : stdout;
    if (!file || std::fwrite(picture.data(), 1, picture.size(), file) != picture.size() ||
        std::fflush(file) != 0) {
        std::perror(argc > 4 ? argv[4] : "standard output");
        return 1;
    }
    if (file != stdout) {
        std::fclose(file);
        std::printf("%s: %d x %d\n", argv[4], width, height);
    }
    return 0;
}
