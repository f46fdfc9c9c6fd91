/* The heat equation on a square plate, in MPI as any MPI library has it.
 *
 *     mpicc_abi -O3 heat.c -o heat -lm
 *     mpiexec -n 4 ./heat [SIZE [STEPS [FILE]]]
 *
 * The plate has SIZE x SIZE cells and is divided into blocks, one for each process. In every step each
 * process sends the rim of its block to its neighbours, receives theirs, and computes its cells anew
 * from the four around each. The rim of the plate is kept at 50 degrees; at the start there are waves
 * on it, for which the result is known. The program compares, and fails if it differs.
 *
 * FILE gets a line "plate ROWS COLUMNS DOWN ACROSS", where the last two count blocks, and then the
 * temperatures row by row, as doubles. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PI 3.14159265358979323846
/* The part of the difference to its neighbours that a cell makes up in a step; 0.25 is the most. */
#define SHARE 0.2
/* What rounding may add up to, in degrees. */
#define ROUNDING 1e-8

/* Waves on the plate: how many half waves down and across, and how high. */
static const struct { int down, across; double height; } waves[] = {
    {1, 2, 14}, {5, 3, 16}, {9, 8, 20},
};

typedef struct {
    int first_row, first_column, rows, columns;
} Block;

/* What every process knows. */
static int rank, processes, size, steps;
/* Blocks from north to south and from west to east. */
static int blocks_down, blocks_across;

static void fail(const char *what)
{
    fprintf(stderr, "heat: rank %d: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static int argument(int count, char **words, int place, int otherwise)
{
    if (place >= count) return otherwise;
    char *end;
    long value = strtol(words[place], &end, 10);
    if (*end != '\0' || value < 1 || value > 20000000) {
        if (rank == 0) fprintf(stderr, "heat: %s: a number is needed, as in: heat 1024 3000\n", words[place]);
        MPI_Finalize();
        exit(rank == 0 ? 2 : 0);
    }
    return (int)value;
}

/* As near to squares as the number of processes allows. */
static void divide(void)
{
    blocks_across = 1;
    for (int across = 1; across * across <= processes; across++)
        if (processes % across == 0) blocks_across = across;
    blocks_down = processes / blocks_across;
    if (blocks_down > size) fail("there are more processes than rows");
}

static Block block_of(int who)
{
    int down = who / blocks_across, across = who % blocks_across;
    Block block;
    block.first_row = (int)((long)size * down / blocks_down);
    block.first_column = (int)((long)size * across / blocks_across);
    block.rows = (int)((long)size * (down + 1) / blocks_down) - block.first_row;
    block.columns = (int)((long)size * (across + 1) / blocks_across) - block.first_column;
    return block;
}

/* The neighbour so many blocks away, if the plate goes on there. */
static int neighbour(int down, int across)
{
    int row = rank / blocks_across + down, column = rank % blocks_across + across;
    if (row < 0 || row >= blocks_down || column < 0 || column >= blocks_across) return MPI_PROC_NULL;
    return row * blocks_across + column;
}

/* What is left of a wave after one step; or, exactly, what the equation leaves of it in that time. */
static double left_of_wave(int wave, int exactly)
{
    double h = 1.0 / (size + 1), down = waves[wave].down * PI, across = waves[wave].across * PI;
    if (exactly) return exp(-(down * down + across * across) * SHARE * h * h);
    double sine_down = sin(down * h / 2), sine_across = sin(across * h / 2);
    return 1 - 4 * SHARE * (sine_down * sine_down + sine_across * sine_across);
}

/* The temperature of a cell after so many steps, without computing the steps between. */
static double known(int row, int column, const double *heights)
{
    double h = 1.0 / (size + 1), temperature = 50;
    for (size_t wave = 0; wave < sizeof waves / sizeof *waves; wave++)
        temperature += heights[wave] * sin(waves[wave].down * PI * (row + 1) * h)
                       * sin(waves[wave].across * PI * (column + 1) * h);
    return temperature;
}

static void heights_after(int step, int exactly, double *heights)
{
    for (size_t wave = 0; wave < sizeof waves / sizeof *waves; wave++)
        heights[wave] = waves[wave].height * pow(left_of_wave((int)wave, exactly), step);
}

/* Cells of a block lie row by row, with one more on each side. */
static double *cell(double *cells, Block block, int row, int column)
{
    return cells + (size_t)(row + 1) * (block.columns + 2) + column + 1;
}

static double *new_cells(Block block)
{
    double *cells = malloc((size_t)(block.rows + 2) * (block.columns + 2) * sizeof *cells);
    if (!cells) fail("there is no memory for the block");
    for (size_t at = 0; at < (size_t)(block.rows + 2) * (block.columns + 2); at++) cells[at] = 50;
    return cells;
}

/* Sends the rim to the neighbours and receives theirs. */
static void exchange(double *cells, Block block, MPI_Datatype column)
{
    int north = neighbour(-1, 0), south = neighbour(1, 0);
    int west = neighbour(0, -1), east = neighbour(0, 1);
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Status *ignored = MPI_STATUS_IGNORE;
    MPI_Sendrecv(cell(cells, block, 0, 0), block.columns, MPI_DOUBLE, north, 1,
                 cell(cells, block, block.rows, 0), block.columns, MPI_DOUBLE, south, 1, world, ignored);
    MPI_Sendrecv(cell(cells, block, block.rows - 1, 0), block.columns, MPI_DOUBLE, south, 2,
                 cell(cells, block, -1, 0), block.columns, MPI_DOUBLE, north, 2, world, ignored);
    MPI_Sendrecv(cell(cells, block, 0, 0), 1, column, west, 3,
                 cell(cells, block, 0, block.columns), 1, column, east, 3, world, ignored);
    MPI_Sendrecv(cell(cells, block, 0, block.columns - 1), 1, column, east, 4,
                 cell(cells, block, 0, -1), 1, column, west, 4, world, ignored);
}

static void compute(double *restrict next, double *restrict now, Block block)
{
    int width = block.columns + 2;
    for (int row = 0; row < block.rows; row++) {
        const double *here = cell(now, block, row, 0);
        double *there = cell(next, block, row, 0);
        for (int column = 0; column < block.columns; column++)
            there[column] = here[column]
                            + SHARE * (here[column - width] + here[column + width] + here[column - 1]
                                       + here[column + 1] - 4 * here[column]);
    }
}

/* A bar on a terminal; anywhere else a line now and then. */
static void show_progress(int step)
{
    static double last;
    double now = MPI_Wtime();
    if (step == 1) last = now;
    int is_terminal = isatty(2);
    if (rank != 0 || (step < steps && now - last < (is_terminal ? 0.1 : 2))) return;
    if (!is_terminal && step == steps) return;
    last = now;
    int percent = (int)(100L * step / steps);
    if (!is_terminal) {
        fprintf(stderr, "heat %dx%d %d%%  %d of %d steps\n", size, size, percent, step, steps);
        return;
    }
    char bar[41];
    for (int at = 0; at < 40; at++) bar[at] = at < percent * 40 / 100 ? '=' : ' ';
    bar[40] = '\0';
    fprintf(stderr, "\rheat %dx%d  [%s] %d%%  %d of %d steps  %d processes%s", size, size, bar, percent,
            step, steps, processes, step == steps ? "\n" : "");
}

/* The largest difference to what is known, on all processes. */
static double difference(double *cells, Block block, int exactly)
{
    double heights[sizeof waves / sizeof *waves], own = 0, all = 0;
    heights_after(steps, exactly, heights);
    for (int row = 0; row < block.rows; row++)
        for (int column = 0; column < block.columns; column++) {
            double wanted = known(block.first_row + row, block.first_column + column, heights);
            own = fmax(own, fabs(*cell(cells, block, row, column) - wanted));
        }
    MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
}

/* Where a block lies in an array of these rows and columns. */
static MPI_Datatype place_of(Block block, int rows, int columns, int first_row, int first_column)
{
    int whole[2] = {rows, columns}, part[2] = {block.rows, block.columns};
    int first[2] = {first_row, first_column};
    MPI_Datatype type;
    MPI_Type_create_subarray(2, whole, part, first, MPI_ORDER_C, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    return type;
}

/* Rank 0 gets the whole plate and writes it; the others send it their blocks. */
static void write_plate(const char *path, double *cells, Block block)
{
    MPI_Request sent;
    MPI_Datatype inside = place_of(block, block.rows + 2, block.columns + 2, 1, 1);
    MPI_Isend(cells, 1, inside, 0, 5, MPI_COMM_WORLD, &sent);
    if (rank == 0) {
        double *plate = malloc((size_t)size * size * sizeof *plate);
        if (!plate) fail("there is no memory for the whole plate");
        for (int who = 0; who < processes; who++) {
            Block part = block_of(who);
            MPI_Datatype place = place_of(part, size, size, part.first_row, part.first_column);
            MPI_Recv(plate, 1, place, who, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Type_free(&place);
        }
        FILE *file = fopen(path, "wb");
        if (!file) fail("the file for the plate cannot be opened");
        fprintf(file, "plate %d %d %d %d\n", size, size, blocks_down, blocks_across);
        size_t cells_written = fwrite(plate, sizeof *plate, (size_t)size * size, file);
        if (fclose(file) != 0 || cells_written != (size_t)size * size) fail("the plate cannot be written");
        free(plate);
    }
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
    MPI_Type_free(&inside);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &processes);
    size = argument(argc, argv, 1, 1024);
    steps = argument(argc, argv, 2, 3000);
    divide();

    Block block = block_of(rank);
    double *now = new_cells(block), *next = new_cells(block);
    double heights[sizeof waves / sizeof *waves];
    heights_after(0, 0, heights);
    for (int row = 0; row < block.rows; row++)
        for (int column = 0; column < block.columns; column++)
            *cell(now, block, row, column)
                = known(block.first_row + row, block.first_column + column, heights);

    MPI_Datatype column;
    MPI_Type_vector(block.rows, 1, block.columns + 2, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    double began = MPI_Wtime();
    for (int step = 1; step <= steps; step++) {
        exchange(now, block, column);
        compute(next, now, block);
        double *computed = next;
        next = now;
        now = computed;
        show_progress(step);
    }
    double own_time = MPI_Wtime() - began, time = 0;
    MPI_Allreduce(&own_time, &time, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Type_free(&column);

    double rounding = difference(now, block, 0), exact = difference(now, block, 1);
    if (argc > 3) write_plate(argv[3], now, block);
    if (rank == 0)
        printf("%d process%s, %d steps of %dx%d cells: %.3f s; differs from the equation's solution by\n"
               "%.2g degrees, from that of its steps by %.2g (rounding)\n",
               processes, processes == 1 ? "" : "es", steps, size, size, time, exact, rounding);
    fflush(stdout);
    if (!(rounding < ROUNDING)) fail("the result is wrong");
    free(now);
    free(next);
    return MPI_Finalize();
}
