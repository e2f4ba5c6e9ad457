"""LLVM through llvmlite's library, without the modules of llvmlite."""

import pytest
from h264lite.jit import llvm
from llvmlite import binding


@pytest.mark.parametrize("is_there", (True, False))
def test_the_processor_is_as_llvmlite_has_it(monkeypatch, is_there):
    """With and without the library by itself."""
    if not is_there:
        monkeypatch.setattr(llvm, "_library", lambda: (_ for _ in ()).throw(OSError("no library")))
        llvm.prepare()  # says nothing
    expected = binding.get_process_triple(), binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()
    assert llvm.processor.__wrapped__() == expected


def test_a_call_that_returns_no_pointer_is_an_error():
    with pytest.raises(RuntimeError, match="GetTargetFromTriple"):
        llvm.Engine("no-such-machine", {})
