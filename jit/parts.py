"""Compilation of `helper` functions: lowered to LLVM IR and linked into the calling kernels; only kernels are assembled.

Numba otherwise optimises and assembles each function with all its callees at every level of the call tree, and wraps
each for calls from Python: for the decoder's kernels, some 15 levels deep, that is half of the first compile.
"""

import gc

from llvmlite.binding import Linkage
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import LoweringPass, register_pass
from numba.core.typed_passes import IRLegalization

# Numba's passes for closures, array expressions and raised errors: helpers have none of these.
_NEEDLESS = ("InlineClosureLikes", "NopythonRewrites", "RewriteDynamicRaises", "WithLifting", "InlineInlinables")


class _NoEnvironment:
    """Replaces the library's code generator: a helper raises nothing, so it needs no environment."""

    @staticmethod
    def set_env(name, environment):
        """Does nothing."""


class ClosedLibrary(JITCodeLibrary):
    """The code of a kernel; the helpers linked into it get private linkage.

    Private functions have no symbols. Internal functions have, and LLVM's in-memory linker (RuntimeDyld) resolves symbols
    of all objects by name alone: another kernel's calls of the same helper would reach a version with fewer arguments.
    """

    def _optimize_final_module(self):
        for function in self._final_module.functions:
            if function.linkage == Linkage.linkonce_odr:
                function.linkage = Linkage.private
        super()._optimize_final_module()


class _PartLibrary(JITCodeLibrary):
    """The code of a helper and of its callees, neither optimised nor assembled."""

    codegen = _NoEnvironment

    def _optimize_final_module(self):
        pass

    def _finalize_final_module(self):
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name):
        """0: a helper has no machine code of its own."""
        self._ensure_finalized()
        return 0


class _OpenLibrary(LoweringPass):
    """Pass that creates the library of the class `_library` in place of Numba's."""

    _library = JITCodeLibrary

    def __init__(self):
        LoweringPass.__init__(self)

    def run_pass(self, state):
        """Numba's entry point of a pass."""
        state.library = self._library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return False


@register_pass(mutates_CFG=False, analysis_only=True)
class _OpenClosedLibrary(_OpenLibrary):
    _name, _library = "open_closed_library", ClosedLibrary


@register_pass(mutates_CFG=False, analysis_only=True)
class _OpenPartLibrary(_OpenLibrary):
    _name, _library = "open_part_library", _PartLibrary


class ClosedCompiler(CompilerBase):
    """Numba's passes for a kernel with private helpers.

    LLVM then knows all callers: it drops the arguments that a helper does not use, mostly six or more of the seven words
    of an array, and inlines a helper with one caller.
    """

    def define_pipelines(self):
        """The only pipeline of passes."""
        manager = DefaultPassBuilder.define_nopython_pipeline(self.state, "closed")
        manager.add_pass_after(_OpenClosedLibrary, IRLegalization)
        manager.finalize()
        return [manager]


class PartCompiler(CompilerBase):
    """Numba's passes up to the LLVM IR that kernels link."""

    def define_pipelines(self):
        """The only pipeline of passes."""
        manager = DefaultPassBuilder.define_nopython_pipeline(self.state, "part")
        manager.passes = [entry for entry in manager.passes if entry[0].__name__ not in _NEEDLESS]
        manager.add_pass_after(_OpenPartLibrary, IRLegalization)
        manager.finalize()
        return [manager]

    def _compile_core(self):
        # The garbage collector would scan all objects of the compiler again and again and find nothing to free.
        collecting = gc.isenabled()
        gc.disable()
        try:
            return super()._compile_core()
        finally:
            if collecting:
                gc.enable()
