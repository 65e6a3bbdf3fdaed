// Dining philosophers: philosophers [HOW_MANY [MEALS [MICROSECONDS]]]. Each is a thread that eats
// when neither neighbour does, for some microseconds, and waits on a condition variable of its own
// until then. Nobody starves and nobody is stuck: at the end everyone has eaten every meal.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_PHILOSOPHERS = 200 };
enum State { THINKING, HUNGRY, EATING };

struct Philosopher {
    pthread_t thread;
    pthread_cond_t may_eat;
    enum State state;
    int meals;
};

// All of it is guarded by the table's mutex.
static struct {
    pthread_mutex_t mutex;
    int seats, meals, microseconds;
    int eating, most_eating, quarrels;
    struct Philosopher at[MAX_PHILOSOPHERS];
} table = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static int left(int seat) { return (seat + table.seats - 1) % table.seats; }
static int right(int seat) { return (seat + 1) % table.seats; }

static void try_to_eat(int seat) {
    struct Philosopher* philosopher = &table.at[seat];
    if (philosopher->state != HUNGRY || table.at[left(seat)].state == EATING ||
        table.at[right(seat)].state == EATING)
        return;
    philosopher->state = EATING;
    pthread_cond_signal(&philosopher->may_eat);
}

static void take_forks(int seat) {
    struct Philosopher* philosopher = &table.at[seat];
    pthread_mutex_lock(&table.mutex);
    philosopher->state = HUNGRY;
    try_to_eat(seat);
    while (philosopher->state != EATING) pthread_cond_wait(&philosopher->may_eat, &table.mutex);
    table.quarrels += table.at[left(seat)].state == EATING || table.at[right(seat)].state == EATING;
    if (++table.eating > table.most_eating) table.most_eating = table.eating;
    pthread_mutex_unlock(&table.mutex);
}

static void put_forks(int seat) {
    pthread_mutex_lock(&table.mutex);
    table.at[seat].meals++;
    table.at[seat].state = THINKING;
    table.eating--;
    try_to_eat(left(seat));
    try_to_eat(right(seat));
    pthread_mutex_unlock(&table.mutex);
}

static void* live(void* argument) {
    int seat = (int)((struct Philosopher*)argument - table.at);
    for (int meal = 0; meal < table.meals; meal++) {
        take_forks(seat);
        if (table.microseconds) usleep((unsigned)table.microseconds);
        put_forks(seat);
    }
    return NULL;
}

static int number_of(const char* text, int least, int most) {
    char* end;
    long number = strtol(text, &end, 10);
    if (end == text || *end || number < least || number > most) {
        fprintf(stderr, "philosophers: %s is no number from %d to %d\n", text, least, most);
        exit(2);
    }
    return (int)number;
}

int main(int argc, char** argv) {
    if (argc > 4) {
        fprintf(stderr, "usage: philosophers [HOW_MANY [MEALS [MICROSECONDS]]]\n");
        return 2;
    }
    table.seats = argc > 1 ? number_of(argv[1], 2, MAX_PHILOSOPHERS) : 5;
    table.meals = argc > 2 ? number_of(argv[2], 0, 1000000) : 100;
    table.microseconds = argc > 3 ? number_of(argv[3], 0, 1000000) : 0;
    for (int seat = 0; seat < table.seats; seat++) pthread_cond_init(&table.at[seat].may_eat, NULL);
    for (int seat = 0; seat < table.seats; seat++) {
        if (pthread_create(&table.at[seat].thread, NULL, live, &table.at[seat]) != 0) {
            fprintf(stderr, "philosophers: no thread for number %d\n", seat);
            return 1;
        }
    }
    for (int seat = 0; seat < table.seats; seat++) pthread_join(table.at[seat].thread, NULL);
    for (int seat = 0; seat < table.seats; seat++)
        printf("philosopher %d ate %d times\n", seat, table.at[seat].meals);
    int fine = table.quarrels == 0 && table.most_eating <= table.seats / 2;
    printf("%s\n", fine ? "no two neighbours ate at the same time" : "forks were in two hands");
    return !fine;
}
