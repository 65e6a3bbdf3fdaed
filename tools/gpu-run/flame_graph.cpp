// Draws stacks as boxes: a function's box stands on that of its caller, as wide as its share.
#include <algorithm>
#include <map>
#include <memory>

#include "profile.h"

namespace gpurun::tool {
namespace {

using api::StackSample;

constexpr double width = 1200, row_height = 17, margin = 10, title_height = 44;
constexpr double least_width = 0.3;      // narrower boxes are left out
constexpr double character_width = 6.6;  // about, for the font below

struct Box {
    u64 count = 0;
    std::map<std::string, Box> callees;
};

u32 height_of(const Box& box) {
    u32 highest = 0;
    for (const auto& [name, callee] : box.callees) highest = std::max(highest, height_of(callee));
    return highest + 1;
}

std::string escaped(std::string_view text) {
    std::string result;
    for (char c : text) {
        switch (c) {
            case '<': result += "&lt;"; break;
            case '>': result += "&gt;"; break;
            case '&': result += "&amp;"; break;
            case '"': result += "&quot;"; break;
            default: result += u8(c) < 0x20 ? ' ' : c;
        }
    }
    return result;
}

// Warm, and for a name always the same.
std::string colour_of(std::string_view name) {
    u32 hash = 2166136261u;
    for (char c : name) hash = (hash ^ u8(c)) * 16777619u;
    char text[32];
    std::snprintf(text, sizeof text, "rgb(%u,%u,%u)", 205 + hash % 50, 80 + (hash >> 8) % 130,
                  (hash >> 16) % 60);
    return text;
}

// As much of a name as fits; whole characters of UTF-8.
std::string fitting(const std::string& name, double box_width) {
    usize most = usize(std::max(0.0, (box_width - 6) / character_width));
    if (name.size() <= most) return name;
    if (most < 3) return "";
    usize end = most - 2;
    while (end > 0 && (u8(name[end]) & 0xc0) == 0x80) end--;
    return name.substr(0, end) + "..";
}

class Drawing {
public:
    Drawing(u64 all, double bottom) : all_(all), bottom_(bottom) {}

    void draw(const std::string& name, const Box& box, double x, u32 depth) {
        const double box_width = (width - 2 * margin) * double(box.count) / double(all_);
        if (box_width < least_width) return;
        const double y = bottom_ - double(depth + 1) * row_height;
        char place[256];
        std::snprintf(place, sizeof place,
                      "x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"2\"", x, y,
                      box_width, row_height - 1);
        char share[64];
        std::snprintf(share, sizeof share, " (%llu samples, %.2f%%)", (unsigned long long)box.count,
                      100 * double(box.count) / double(all_));
        text += "<g><title>" + escaped(name) + share + "</title><rect " + place + " fill=\"" +
                colour_of(name) + "\"/>";
        if (std::string label = fitting(name, box_width); !label.empty()) {
            std::snprintf(place, sizeof place, "<text x=\"%.1f\" y=\"%.1f\">", x + 3, y + 12);
            text += place + escaped(label) + "</text>";
        }
        text += "</g>\n";
        for (const auto& [callee_name, callee] : box.callees) {
            draw(callee_name, callee, x, depth + 1);
            x += (width - 2 * margin) * double(callee.count) / double(all_);
        }
    }

    std::string text;

private:
    u64 all_;
    double bottom_;
};

}  // namespace

std::string flame_graph(std::span<const StackSample> samples, const std::string& title) {
    Box all;
    for (const StackSample& sample : samples) {
        all.count += sample.count;
        Box* box = &all;
        for (const std::string& function : sample.functions) {
            box = &box->callees[function];
            box->count += sample.count;
        }
    }
    const double height = title_height + double(height_of(all)) * row_height + margin;
    Drawing drawing(std::max<u64>(1, all.count), height - margin);
    if (all.count > 0) drawing.draw("all", all, margin, 0);
    char start[512];
    std::snprintf(start, sizeof start,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
                  "width=\"%.0f\" height=\"%.0f\">\n",
                  width, height, width, height);
    return std::string(start) +
           "<style>text{font:11px monospace}.title{font:bold 15px sans-serif}"
           "g:hover rect{stroke:black}</style>\n"
           "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
           "<text class=\"title\" x=\"10\" y=\"26\">" +
           escaped(title) + ": where its time went</text>\n" + drawing.text + "</svg>\n";
}

}  // namespace gpurun::tool
