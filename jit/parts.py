"""How `helper` functions are compiled: translated and linked into the kernels that call them, which alone are assembled.

Numba otherwise optimises and assembles each function with everything below it, again at every level of the call tree,
and wraps each for calls from Python: for the decoder's kernels, some 15 levels deep, that is half of the first compile.
"""

import gc

from llvmlite.binding import Linkage
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import LoweringPass, register_pass
from numba.core.typed_passes import IRLegalization

# What Numba runs for closures, array expressions and raised errors: helpers have none.
_NEEDLESS = ("InlineClosureLikes", "NopythonRewrites", "RewriteDynamicRaises", "WithLifting", "InlineInlinables")


class _NoEnvironment:
    """In place of the library's code generator: a part raises nothing, and so has no use for its environment."""

    @staticmethod
    def set_env(name, environment):
        """Does nothing."""


class _ClosedLibrary(JITCodeLibrary):
    """The code of a kernel that keeps the helpers linked into it for itself.

    Private functions have no symbols. Internal ones have, and LLVM's linker in memory (RuntimeDyld) knows symbols of all
    objects by name alone: it would lead another kernel's calls of the same helper to one that takes fewer arguments.
    """

    def _optimize_final_module(self):
        for function in self._final_module.functions:
            if function.linkage == Linkage.linkonce_odr:
                function.linkage = Linkage.private
        super()._optimize_final_module()


class _PartLibrary(JITCodeLibrary):
    """The code of a helper and of what it calls, not optimised and not assembled."""

    codegen = _NoEnvironment

    def _optimize_final_module(self):
        pass

    def _finalize_final_module(self):
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name):
        """There is none."""
        self._ensure_finalized()
        return 0


class _OpenLibrary(LoweringPass):
    """Puts a library of its own kind where lowering would open one of Numba's."""

    _library = JITCodeLibrary

    def __init__(self):
        LoweringPass.__init__(self)

    def run_pass(self, state):
        """Numba's name for what a pass does."""
        state.library = self._library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return False


@register_pass(mutates_CFG=False, analysis_only=True)
class _OpenClosedLibrary(_OpenLibrary):
    _name, _library = "open_closed_library", _ClosedLibrary


@register_pass(mutates_CFG=False, analysis_only=True)
class _OpenPartLibrary(_OpenLibrary):
    _name, _library = "open_part_library", _PartLibrary


class ClosedCompiler(CompilerBase):
    """Numba's passes for a kernel that keeps its helpers for itself.

    That tells LLVM that nobody else calls them: it drops the arguments that a helper does not use, mostly six or more of
    the seven words that an array is, and lets a helper with one caller stand where it is called.
    """

    def define_pipelines(self):
        """The one pipeline of passes."""
        manager = DefaultPassBuilder.define_nopython_pipeline(self.state, "closed")
        manager.add_pass_after(_OpenClosedLibrary, IRLegalization)
        manager.finalize()
        return [manager]


class PartCompiler(CompilerBase):
    """Numba's passes up to the code that kernels link."""

    def define_pipelines(self):
        """The one pipeline of passes."""
        manager = DefaultPassBuilder.define_nopython_pipeline(self.state, "part")
        manager.passes = [entry for entry in manager.passes if entry[0].__name__ not in _NEEDLESS]
        manager.add_pass_after(_OpenPartLibrary, IRLegalization)
        manager.finalize()
        return [manager]

    def _compile_core(self):
        # The collector would go through all that compiling has made so far, again and again, and find nothing.
        collecting = gc.isenabled()
        gc.disable()
        try:
            return super()._compile_core()
        finally:
            if collecting:
                gc.enable()


def part(dispatcher, whole):
    """Sends calls from Python, for which there is no machine code, to the kernel that `whole` makes of the function."""
    dispatcher._insert = lambda *args, **kws: None
    dispatcher._compile_for_args = lambda *args, **kws: whole()  # what it returns is called
    return dispatcher
