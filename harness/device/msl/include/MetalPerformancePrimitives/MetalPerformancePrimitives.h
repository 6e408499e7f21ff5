/* Of what it declares nothing can run here; a file may name the namespace and use it in no kernel. */
namespace mpp { namespace tensor_ops {} }
