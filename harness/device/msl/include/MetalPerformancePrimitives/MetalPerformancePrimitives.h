/* A file may name the namespace and use it in no kernel. */
#include <metal_tensor>
namespace mpp { namespace tensor_ops {} }
