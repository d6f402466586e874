"""Counting bits in one instruction of the machine. Needs numba."""

from __future__ import annotations

import importlib
from typing import Any

from numba import types
from numba.extending import intrinsic

# Neither is typed.
_ir: Any = importlib.import_module("llvmlite.ir")
_cgutils: Any = importlib.import_module("numba.core.cgutils")


@intrinsic
def count_bits(typing_context: Any, bits: Any) -> Any:
    """How many bits of a number are set."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.int64), code


@intrinsic
def lowest_bit(typing_context: Any, bits: Any) -> Any:
    """The place of the lowest bit that is set in a number which is not 0."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], context.get_constant(types.boolean, 1))

    return types.int64(types.int64), code


@intrinsic
def gather_bits(typing_context: Any, bits: Any, mask: Any) -> Any:
    """The bits of a number at the places that a mask has, side by side. Needs BMI2."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = _ir.IntType(64)
        pext = _cgutils.get_or_insert_function(
            builder.module, _ir.FunctionType(word, [word, word]), "llvm.x86.bmi.pext.64"
        )
        return builder.call(pext, arguments)

    return types.int64(types.int64, types.int64), code
