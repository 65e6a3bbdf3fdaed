// All ways to put 8 queens on a board of which an instance forbids some squares.
#include "suite.h"

enum { N = 8 };

typedef struct {
    uint8_t forbidden[N][N];
    int8_t column[N];
    uint32_t found, sum;
} Board;

static int is_free(const Board* board, int row, int column) {
    if (board->forbidden[row][column]) return 0;
    for (int r = 0; r < row; r++) {
        int c = board->column[r];
        if (c == column || c - column == row - r || column - c == row - r) return 0;
    }
    return 1;
}

static void place(Board* board, int row) {
    if (row == N) {
        board->found++;
        for (int r = 0; r < N; r++) board->sum = mix(board->sum, (uint32_t)board->column[r]);
        return;
    }
    for (int column = 0; column < N; column++)
        if (is_free(board, row, column)) {
            board->column[row] = (int8_t)column;
            place(board, row + 1);
        }
}

uint32_t run(uint32_t instance) {
    uint32_t random = seed_of(instance);
    Board board;
    memset(&board, 0, sizeof board);
    for (int i = 0; i < 12; i++) {
        uint32_t square = next_random(&random) % (N * N);
        board.forbidden[square / N][square % N] = 1;
    }
    place(&board, 0);
    return mix(board.sum, board.found);
}
