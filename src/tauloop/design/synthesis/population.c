/* Worst measures of candidates over poses: one candidate after the other, its poses in blocks of lanes.

   In front of this stand sizes: TL_LANES samples per block, TL_THETA parameters, TL_POSITIONS numbers of a position,
   TL_START coordinates, TL_MEASURES measures of a pose, of which larger is worse; and `tl_measured`, which calls the
   kernel of a block. Poses are a structure of arrays whose length is a multiple of TL_LANES. A candidate whose worst
   measure exceeds a cap is left after the block in which it does. */

void tl_population(size_t n, size_t from, size_t to, size_t poses, const double *restrict theta,
    const double *restrict shift, const double *restrict pose, const double *restrict start,
    const double *restrict caps, double *restrict worst, double *restrict counts)
{
    for (size_t s = from; s < to; ++s) {
        double most[TL_MEASURES][TL_LANES], measured[TL_MEASURES][TL_LANES], health[4][TL_LANES];
        double parameters[TL_THETA + 1][TL_LANES], position[TL_POSITIONS][TL_LANES], near[TL_START + 1][TL_LANES];
        size_t done = 0;
        double unsound = 0.0;
        for (int j = 0; j < TL_MEASURES; ++j)
            for (int l = 0; l < TL_LANES; ++l) most[j][l] = -HUGE_VAL;
        for (int i = 0; i < TL_THETA; ++i)
            for (int l = 0; l < TL_LANES; ++l) parameters[i][l] = theta[s * TL_THETA + i];
        for (int i = 0; i < TL_START; ++i)
            for (int l = 0; l < TL_LANES; ++l) near[i][l] = start[i];
        for (size_t first = 0; first < poses; first += TL_LANES) {
            int exceeds = 0;
            double bad = 0.0;
            for (int i = 0; i < TL_POSITIONS; ++i)
                for (int l = 0; l < TL_LANES; ++l)
                    position[i][l] = pose[i * poses + first + l] + shift[s * TL_POSITIONS + i];
            tl_measured((const double (*)[TL_LANES])position, (const double (*)[TL_LANES])parameters,
                (const double (*)[TL_LANES])near, measured, health);
            for (int j = 0; j < TL_MEASURES; ++j)
                for (int l = 0; l < TL_LANES; ++l)
                    most[j][l] = measured[j][l] > most[j][l] ? measured[j][l] : most[j][l];
            for (int l = 0; l < TL_LANES; ++l)
                bad += (health[0][l] >= 0.0) & (health[1][l] > TL_SMALLEST_PIVOT) ? 0.0 : 1.0;
            unsound += bad;
            done += TL_LANES;
            for (int j = 0; j < TL_MEASURES; ++j)
                for (int l = 0; l < TL_LANES; ++l) exceeds |= most[j][l] > caps[j];
            if (exceeds) break;
        }
        for (int j = 0; j < TL_MEASURES; ++j) {
            double largest = most[j][0];
            for (int l = 1; l < TL_LANES; ++l) largest = most[j][l] > largest ? most[j][l] : largest;
            worst[j * n + s] = largest;
        }
        counts[s] = (double)done;
        counts[n + s] = unsound;
    }
}
