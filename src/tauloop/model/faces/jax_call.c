/* Machine code of a function as XLA calls it: samples one after the other, arrays of numbers behind one another. */
#include <xla/ffi/api/c_api.h>

#define MOST 32

typedef void kernel(double *const *arrays);

XLA_FFI_Error *tauloop_call(XLA_FFI_CallFrame *frame);

XLA_FFI_Error *tauloop_call(XLA_FFI_CallFrame *frame)
{
    XLA_FFI_Extension_Base *extension = frame->extension_start;
    double *arrays[MOST] = {0};
    int64_t sizes[MOST] = {0};
    int64_t count = 0, samples = 1, k, i;
    kernel *function;

    if (extension && extension->type == XLA_FFI_Extension_Metadata) {
        XLA_FFI_Metadata *metadata = ((XLA_FFI_Metadata_Extension *)extension)->metadata;
        metadata->api_version.major_version = XLA_FFI_API_MAJOR;
        metadata->api_version.minor_version = XLA_FFI_API_MINOR;
        return 0;
    }
    for (k = 0; k < frame->args.size + frame->rets.size && k < MOST; ++k) {
        XLA_FFI_Buffer *buffer =
            (XLA_FFI_Buffer *)(k < frame->args.size ? frame->args.args[k] : frame->rets.rets[k - frame->args.size]);
        arrays[count] = (double *)buffer->data;
        sizes[count++] = buffer->dims[buffer->rank - 1];
        for (i = 0, samples = 1; i < buffer->rank - 1; ++i) samples *= buffer->dims[i];
    }
    function = (kernel *)(intptr_t)*(int64_t *)((XLA_FFI_Scalar *)frame->attrs.attrs[0])->value;
    for (i = 0; i < samples; ++i) {
        function(arrays);
        for (k = 0; k < count; ++k) arrays[k] += sizes[k];
    }
    return 0;
}
