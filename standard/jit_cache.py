"""Kernels from Numba's cache on disk, without what only its compiler needs.

Numba's own way fills the tables of all functions that compiled code may call, with SciPy's among them, and parses each
kernel's intermediate code for callers that might be compiled against it: most of the time until the first picture.
"""

from llvmlite import binding
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompileResult
from numba.core.runtime import rtsys


class _LoadedLibrary(JITCodeLibrary):
    """The machine code of a kernel. Its intermediate code is parsed when something is compiled against it."""

    unparsed: bytes | None = None

    def _get_module_for_linking(self):
        if self.unparsed is not None:
            self._shared_module = binding.parse_bitcode(self.unparsed)
            self._codegen._engine._load_defined_symbols(self._shared_module)
            self.unparsed = None
        return super()._get_module_for_linking()


def _load(codegen, state, names):
    """JITCodeLibrary._unserialize; names: functions in the library to be called from outside."""
    name, kind, data = state
    if kind != "object":
        return codegen.unserialize_library(state)
    library = codegen.create_library(name)
    library.__class__ = _LoadedLibrary
    library.enable_object_caching()
    library._set_compiled_object(data[0])
    library.unparsed = data[1]
    library._finalize_final_module()
    codegen._engine._defined_symbols |= names
    return library


class _Results(CompileResultCacheImpl):
    def rebuild(self, target_context, payload):
        """CompileResult._rebuild, which see for the payload."""
        state, about, environment, signature, objectmode, lifted, annotation, reload_init, environments = payload
        for function in reload_init:
            function()
        library = _load(target_context.codegen(), state, {about.llvm_cpython_wrapper_name})
        entry_point = target_context.get_executable(library, about, environment)
        for other in environments:
            library.codegen.set_env(other.env_name, other)
        return CompileResult(
            target_context=target_context, typing_context=target_context.typing_context, library=library,
            environment=environment, entry_point=entry_point, fndesc=about, type_annotation=annotation,
            signature=signature, objectmode=objectmode, lifted=lifted, typing_error=None, call_helper=None,
            metadata=None, reload_init=reload_init, referenced_envs=environments,
        )  # fmt: skip


class KernelCache(FunctionCache):
    """Numba's cache of a function: the same files and keys."""

    _impl_class = _Results

    def load_overload(self, sig, target_context):
        """Numba's, but of target_context.refresh() only what allocates memory; the compiler does it whole when called."""
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)
