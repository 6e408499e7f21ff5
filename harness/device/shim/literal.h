// literal: the half literals of MSL, 1.5h and 0x1p-3h, and those of bfloat, 1.5bf, which msl/rewrite.c
// spells with a suffix that C++ lets us define.
//
// The digits are read at compile time, in a template, so that no optimisation level leaves a
// conversion to run time (from long double it would be a library call).
#pragma once
#pragma clang system_header

namespace assay {

constexpr int digit_of(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

constexpr double scale_by(double value, int base, int exponent) {
    for (; exponent > 0; --exponent)
        value *= base;
    for (; exponent < 0; ++exponent)
        value /= base;
    return value;
}

// text is a C++ number without its suffix: digits, perhaps a point, perhaps an exponent.
constexpr double read_number(const char *text) {
    const bool hexadecimal = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    const int base = hexadecimal ? 16 : 10;
    const char *p = hexadecimal ? text + 2 : text;
    double value = 0;
    int behind_point = 0;
    bool after_point = false;
    for (; *p; ++p) {
        const bool exponent = hexadecimal ? *p == 'p' || *p == 'P' : *p == 'e' || *p == 'E';
        if (exponent)
            break;
        if (*p == '.')
            after_point = true;
        if (*p == '.' || *p == '\'')
            continue;
        value = value * base + digit_of(*p);
        behind_point += after_point;
    }
    value = scale_by(value, base, -behind_point);
    if (!*p)
        return value;
    ++p;
    const bool negative = *p == '-';
    if (*p == '-' || *p == '+')
        ++p;
    int exponent = 0;
    for (; *p; ++p)
        exponent = exponent * 10 + digit_of(*p);
    return scale_by(value, hexadecimal ? 2 : 10, negative ? -exponent : exponent);
}

// Rounded to odd, so that rounding the float again is as good as rounding the number once.
constexpr float to_odd_float(double value) {
    const float nearest = static_cast<float>(value);
    if (nearest == value)
        return nearest;
    const uint bits = __builtin_bit_cast(uint, nearest);
    return __builtin_bit_cast(float, nearest > value ? (bits - 1) | 1 : bits | 1);
}

template <char... c> struct number {
    static constexpr char text[sizeof...(c) + 1] = {c..., 0};
    static constexpr half as_half = static_cast<half>(read_number(text));
    static constexpr bfloat as_bfloat = static_cast<bfloat>(to_odd_float(read_number(text)));
};

} // namespace assay

template <char... c> METAL_FUNC constexpr half operator""h() {
    constexpr half value = assay::number<c...>::as_half;
    return value;
}
template <char... c> METAL_FUNC constexpr bfloat operator""_assay_bf() {
    constexpr bfloat value = assay::number<c...>::as_bfloat;
    return value;
}
