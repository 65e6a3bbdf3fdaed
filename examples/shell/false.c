// Ends with 1.
int main(void) { return 1; }
