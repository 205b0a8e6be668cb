/* Samples of [Y_k f_k], folded into one triangle for each output k, where they are made: R^T R = [Y f]^T [Y f].

   A block takes one output of a chunk of samples. Each of its threads makes one row at a time; then the block puts these
   rows below its triangle and eliminates them by Householder's reflections, each thread in a column of its own. Nothing
   is squared. In front of this stand TL_COLUMNS, parameters and force; TL_ROWS of a block at once; TL_OUTPUTS, and
   TL_MEASURED of them. Source: Golub and Van Loan 2013, Matrix Computations, 5.1 and 5.2. */
#define TL_TRIANGLE (TL_COLUMNS * (TL_COLUMNS + 1) / 2)
#define TL_PLACE(j, k) ((j) * (2 * TL_COLUMNS - (j) - 1) / 2 + (k))
#define TL_ROOM_OF_A_BLOCK (TL_TRIANGLE + TL_ROWS * TL_COLUMNS + 3 * TL_ROWS + 6)

/* The reflection that eliminates column j of the rows: what its entries are divided by, tau, and what R_jj becomes. */
static inline void tl_reflection(const double *R, const double *rows, int j, double *mirror)
{
    const double a = R[TL_PLACE(j, j)];
    double square = 0.0;
    for (int i = 0; i < TL_ROWS; ++i) square += rows[i * TL_COLUMNS + j] * rows[i * TL_COLUMNS + j];
    const double length = sqrt(a * a + square), b = a > 0.0 ? -length : length;
    mirror[0] = square > 0.0 ? 1.0 / (a - b) : 0.0;
    mirror[1] = square > 0.0 ? (b - a) / b : 0.0;
    mirror[2] = square > 0.0 ? b : a;
}

/* The triangle of a triangle and rows below it, which are used up. The last thread of a step prepares the next one. */
static inline void tl_fold(double *R, double *rows, double *mirrors)
{
    TL_THREADS(k, 1) tl_reflection(R, rows, k, mirrors);
    TL_TOGETHER
    for (int j = 0; j < TL_COLUMNS; ++j) {
        const double *mirror = mirrors + 3 * (j % 2);
        TL_THREADS(k, TL_COLUMNS) {
            if (k > j) {
                double along = 0.0;
                for (int i = 0; i < TL_ROWS; ++i) along += rows[i * TL_COLUMNS + j] * rows[i * TL_COLUMNS + k];
                const double w = mirror[1] * (R[TL_PLACE(j, k)] + mirror[0] * along);
                R[TL_PLACE(j, k)] -= w;
                for (int i = 0; i < TL_ROWS; ++i)
                    rows[i * TL_COLUMNS + k] -= w * mirror[0] * rows[i * TL_COLUMNS + j];
                if (k == j + 1) tl_reflection(R, rows, k, mirrors + 3 * (k % 2));
            } else if (k == j) R[TL_PLACE(j, j)] = mirror[2];
        }
        TL_TOGETHER
    }
}

/* Evidence of a sample: the least discriminant and pivot and the largest residual so far; what is no number stays. */
static inline void tl_worse(double *worst, const double *health)
{
    for (int i = 0; i < 2; ++i) worst[i] = health[i] < worst[i] ? health[i] : worst[i];
    worst[2] = worst[2] == worst[2] && !(health[2] <= worst[2]) ? health[2] : worst[2];
}

/* Triangles of neighboring chunks, `apart` from each other, into the first of each pair. */
TL_KERNEL tl_join(size_t chunks, size_t apart, double *triangles)
{
    TL_BLOCKS(b, chunks * TL_MEASURED) {
        const size_t chunk = b / TL_MEASURED;
        TL_SHARED(room, TL_ROOM_OF_A_BLOCK)
        double *R = room, *rows = R + TL_TRIANGLE, *mirrors = rows + TL_ROWS * TL_COLUMNS;
        double *into = triangles + b * TL_COLUMNS * TL_COLUMNS;
        const double *from = into + apart * TL_MEASURED * TL_COLUMNS * TL_COLUMNS;
        if (chunk % (2 * apart) == 0 && chunk + apart < chunks) {
            TL_THREADS(j, TL_COLUMNS)
                for (int k = j; k < TL_COLUMNS; ++k) R[TL_PLACE(j, k)] = into[j * TL_COLUMNS + k];
            TL_TOGETHER
            for (int at = 0; at < TL_COLUMNS; at += TL_ROWS) {
                TL_THREADS(t, TL_ROWS)
                    for (int k = 0; k < TL_COLUMNS; ++k)
                        rows[t * TL_COLUMNS + k] = at + t < TL_COLUMNS ? from[(at + t) * TL_COLUMNS + k] : 0.0;
                TL_TOGETHER
                tl_fold(R, rows, mirrors);
            }
            TL_THREADS(j, TL_COLUMNS)
                for (int k = j; k < TL_COLUMNS; ++k) into[j * TL_COLUMNS + k] = R[TL_PLACE(j, k)];
            TL_TOGETHER
        }
    }
}
