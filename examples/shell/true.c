// Ends with 0.
int main(void) { return 0; }
