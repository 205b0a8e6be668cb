/* A sample of the generated controller (defined before this file) for the FMU.

   `seen`: NP parameters, then the inputs except the time, the stamp first: 0 means that every sample is a new
   measurement. `made`: NF forces, the flags, TL_FLAGS of them one by one, samples so far, and the controller's memory,
   which is set back where all of this is zero. */
static void tl_control(double time, const double *seen, double *made)
{
    double *flags = made + NF, *samples = flags + 1 + TL_FLAGS, in[NI];
    @NAME@_controller *controller = (@NAME@_controller *)(samples + 1);
    unsigned raised;
    if (*samples == 0.0) @NAME@_begin(controller, @UP@_PARAMETER_HASH);
    *samples += 1.0;
    memcpy(controller->memory, seen, sizeof(double) * NP);
    in[IN_TIME] = time;
    memcpy(in + IN_STAMP, seen + NP, sizeof in - sizeof(double));
    if (in[IN_STAMP] == 0.0) in[IN_STAMP] = *samples;
    raised = @NAME@_step(controller, (const @NAME@_input *)in, made);
    flags[0] = raised;
    for (int k = 0; k < TL_FLAGS; ++k) flags[1 + k] = raised >> k & 1u;
}
