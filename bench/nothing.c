/* A program that does nothing: the floor of every figure about starting and ending processes. */
int main(void) { return 0; }
