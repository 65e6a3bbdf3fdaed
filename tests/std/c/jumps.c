// setjmp and longjmp: out of loops, out of deep calls, with values, again and again.
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

static jmp_buf outer, inner;

static int depth_reached;

__attribute__((noinline)) static void descend(int depth, int limit, int value) {
    volatile char frame[64] = {(char)depth};
    depth_reached = depth;
    if (depth == limit) longjmp(outer, value);
    descend(depth + 1, limit, value);
    printf("never %d\n", frame[0]);
}

__attribute__((noinline)) static int nested(int way) {
    switch (setjmp(inner)) {
        case 0:
            if (way == 1) longjmp(inner, 5);
            if (way == 2) longjmp(outer, 6);
            return 0;
        case 5: return 50;
        default: return -1;
    }
}

// A parser that leaves at the first mistake, from any depth.
static const char* at;

static int expression(void);

static int factor(void) {
    if (*at == '(') {
        at++;
        int value = expression();
        if (*at++ != ')') longjmp(outer, ')');
        return value;
    }
    if (*at < '0' || *at > '9') longjmp(outer, *at ? *at : 'e');
    int value = 0;
    while (*at >= '0' && *at <= '9') value = value * 10 + *at++ - '0';
    return value;
}

static int term(void) {
    int value = factor();
    while (*at == '*' || *at == '/') {
        char sign = *at++;
        int other = factor();
        if (sign == '/' && other == 0) longjmp(outer, '0');
        value = sign == '*' ? value * other : value / other;
    }
    return value;
}

static int expression(void) {
    int value = term();
    while (*at == '+' || *at == '-') value = *at++ == '+' ? value + term() : value - term();
    return value;
}

static void calculate(const char* text) {
    at = text;
    int mistake = setjmp(outer);
    if (mistake)
        printf("%s: stopped by '%c' at %d\n", text, mistake, (int)(at - text));
    else
        printf("%s = %d\n", text, expression());
}

int main(void) {
    int value = setjmp(outer);
    if (value == 0) descend(0, 100, 42);
    printf("out of %d calls with %d\n", depth_reached, value);

    volatile int rounds = 0;
    int again = setjmp(outer);
    rounds = rounds + 1;
    if (again < 1000) longjmp(outer, again + 1);
    printf("%d rounds, last with %d\n", rounds, again);

    printf("zero becomes %d\n", setjmp(outer) ? 1 : (longjmp(outer, 0), 2));
    printf("nested %d %d\n", nested(0), nested(1));
    if ((value = setjmp(outer)) == 0) {
        nested(2);
        puts("never");
    } else {
        printf("through two with %d\n", value);
    }
    calculate("1+2*3");
    calculate("(1+2)*(3-4)/1");
    calculate("2*(3+4");
    calculate("7/(2-2)");
    calculate("1+");
    calculate("((((5))))*2x");
    return 0;
}
